"""The command line: ``rightarm policies``, ``compare``, ``run``, ``results``, ``report``, ``evaluate`` and others."""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

try:
    import typer
except ImportError:
    sys.exit("the command line needs more packages: pip install 'rightarm[lab]'")

import rightarm
from rightarm.formula import check_count
from rightarm.lab.paper import STUDIES
from rightarm.lab.paper.finding import Study

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Multi-armed bandits: Boltzmann exploration done right."
)
reproduce = typer.Typer(no_args_is_help=True, help="Compute the paper's results again.")
app.add_typer(reproduce, name="reproduce")
ALL = "all"


@app.callback(invoke_without_command=True)
def version(show: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    """Options of the program itself."""
    if show:
        typer.echo(f"rightarm {rightarm.__version__}")
        raise typer.Exit


def _at_least(name: str, least: int) -> Callable[[int | None], int | None]:
    """A check of an option that says which value it got."""

    def check(value: int | None) -> int | None:
        try:
            return None if value is None else check_count(name, value, least)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    return check


Replications = Annotated[
    int | None,
    typer.Option(callback=_at_least("replications", 16), help="Of every simulation; fewer than 16 tell nothing."),
]
Seed = Annotated[int, typer.Option(callback=_at_least("seed", 0), help="The seed.")]
FilesSeed = Annotated[
    int | None, typer.Option(callback=_at_least("seed", 0), help="The seed; the file's own unless given.")
]
Workers = Annotated[
    int | None,
    typer.Option(callback=_at_least("workers", 1), help="Threads, or local Dask workers; one per core unless given."),
]
Dask = Annotated[str | None, typer.Option(help="A Dask scheduler's address, or 'local' for worker processes here.")]
Quick = Annotated[bool, typer.Option("--quick", help="A smaller version, for a first look.")]


@contextlib.contextmanager
def _running(dask: str | None, workers: int | None) -> Iterator[None]:
    """What ends a run is told in a line; Ctrl-C with a word on how to go on."""
    from rightarm.lab.run import RunError
    from rightarm.lab.run.executors import check_dask

    try:
        check_dask(dask, workers)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    try:
        yield
    except RunError as error:
        sys.exit(f"rightarm: {error}; what was finished is kept")
    except KeyboardInterrupt:
        typer.echo("stopped; what was finished is kept, and the same command goes on from there", err=True)
        raise typer.Exit(130) from None
    except (ImportError, ValueError) as error:  # no Dask; a folder of something else
        sys.exit(f"rightarm: {error}")


def _reproduce_one(
    study: Study,
    output: Path | None,
    quick: bool,
    replications: int | None,
    seed: int | None,
    workers: int | None,
    dask: str | None,
) -> None:
    """Reproduce a study, tell what its judge says, and write page and points into the folder of its results."""
    from rightarm.lab.paper import reproduce as lab

    size = lab.Size(output or Path("results") / lab.folder_of(study, quick), quick, replications, seed)
    with _running(dask, workers):
        done = lab.reproduce(study, size, workers=workers, dask=dask, progress=True)
    typer.echo("\n".join([*done.statements, done.line]))
    typer.echo("\n".join(f"wrote {path}" for path in lab.write([done], study.name, study.title, size)))


def _command(study: Study) -> Callable[..., None]:
    def command(
        quick: Quick = False,
        output: Annotated[
            Path | None, typer.Option(help="The folder for results and page; results/<name> unless given.")
        ] = None,
        replications: Replications = None,
        seed: FilesSeed = None,
        workers: Workers = None,
        dask: Dask = None,
    ) -> None:
        _reproduce_one(study, output, quick, replications, seed, workers, dask)

    return command


for _study in STUDIES:
    reproduce.command(_study.name, help=f"{_study.title}. Killed and started again, it goes on.")(_command(_study))


@reproduce.command(name=ALL)
def everything(
    quick: Quick = False,
    output: Annotated[Path, typer.Option(help="The folder for page and points; each study has one in it.")] = Path(
        "results"
    ),
    replications: Replications = None,
    seed: FilesSeed = None,
    workers: Workers = None,
    dask: Dask = None,
) -> None:
    """All of these on one page. Killed and started again, it goes on."""
    from rightarm.lab.paper import reproduce as lab

    done = []
    with _running(dask, workers):
        for study in STUDIES:
            size = lab.Size(output / lab.folder_of(study, quick), quick, replications, seed)
            done.append(lab.reproduce(study, size, workers=workers, dask=dask, progress=True))
            typer.echo(done[-1].line)
    name, whole = f"{ALL}-quick" if quick else ALL, lab.Size(output, quick, replications, seed)
    paths = lab.write(done, name, "Boltzmann Exploration Done Right, reproduced", whole)
    typer.echo("\n".join(f"wrote {path}" for path in paths))


@app.command()
def policies(name: Annotated[str | None, typer.Argument(help="Show one of them in full.")] = None) -> None:
    """List the policies, each with its formula and where it comes from."""
    from rightarm.lab.experiment.catalogue import described, families
    from rightarm.scores.policy import PolicyFamily

    known = families(PolicyFamily)
    if name is not None:
        if name not in known:
            raise typer.BadParameter(f"there is no policy {name!r}; there are {', '.join(known)}")
        typer.echo(inspect.getdoc(known[name]))
        return
    for family in known.values():
        signature, sentence, formula, reference = described(family)
        typer.secho(signature, bold=True)
        typer.echo(textwrap.indent(f"{sentence}\n\n{formula}\n", "    "))
        typer.echo(textwrap.fill(reference, 110, initial_indent="    ", subsequent_indent="    ") + "\n")


@app.command()
def compare(
    policies: Annotated[list[str], typer.Argument(help="Such as 'UCB(C=0.5)' 'BoltzmannGumbel(C=0.5)' KLUCB.")],
    problem: Annotated[
        str, typer.Option(help="What the arms pay; also Gaussian, Uniform, Pareto, StudentT, LogNormal and others.")
    ] = "Bernoulli([0.6] + [0.5] * 9)",
    horizon: Annotated[int, typer.Option(callback=_at_least("horizon", 1), help="Rounds.")] = 100_000,
    replications: Annotated[int, typer.Option(callback=_at_least("replications", 1), help="Replications.")] = 64,
    seed: Annotated[int, typer.Option(callback=_at_least("seed", 0), help="The seed.")] = 2017,
    workers: Annotated[
        int | None, typer.Option(callback=_at_least("workers", 1), help="Threads; one per core unless given.")
    ] = None,
    output: Annotated[Path, typer.Option(help="The picture: .png, .svg or .pdf.")] = Path("compare.png"),
    log: Annotated[bool, typer.Option("--log", help="Logarithmic axes.")] = False,
) -> None:
    """Run policies side by side on one problem, and draw their regret with the Lai–Robbins lower bound.

    rightarm compare 'UCB(C=0.5)' 'BoltzmannGumbel(C=0.5)' KLUCB --problem 'Bernoulli([0.6] + [0.5] * 9)'

    Problems are written as in Python: 'Bernoulli([0.6, 0.5]).corrupted(arm=0, rounds=100)',
    'RandomProblem(Bernoulli, mean=Uniform(low=[0.0] * 10, high=1.0))'. The bound is about the long run; over a short
    one a policy may well be below it.
    """
    from rightarm.lab.experiment.expressions import read_policy, read_problem
    from rightarm.lab.lower_bound import lai_robbins

    if output.suffix not in (".png", ".svg", ".pdf"):
        raise typer.BadParameter(f"output must end in .png, .svg or .pdf, got {output}")
    output.parent.mkdir(parents=True, exist_ok=True)  # before the work, so that it is not lost if this fails
    try:
        chosen, setting = [read_policy(text) for text in policies], read_problem(problem)
        result = rightarm.simulate(
            chosen, setting, horizon=horizon, replications=replications, seed=seed, workers=workers, progress=True
        )
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(str(error)) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    bound = lai_robbins(setting)
    result.plot(output, log=log, bounds={} if bound is None else {"Lai–Robbins, asymptotically": bound})
    typer.echo(str(result))
    if bound is not None:
        slope = float(bound(10)) / math.log(10)
        typer.echo(
            f"Lai–Robbins: in the long run no consistent policy's regret grows more slowly than {slope:,.4g} log T"
        )
    typer.echo(f"wrote {output}")


ResultsFolder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of an experiment's results.")]


@contextlib.contextmanager
def _loaded(folder: Path) -> Iterator[rightarm.Loaded]:
    """The results in a folder; damaged parts are told of, and what is wrong with an argument is."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        try:
            yield rightarm.load(folder)
        except (ValueError, FileNotFoundError) as error:
            raise typer.BadParameter(str(error)) from None
    for warning in told:
        typer.echo(f"warning: {warning.message}", err=True)


@app.command()
def results(
    folder: ResultsFolder,
    csv: Annotated[bool, typer.Option("--csv", help="All columns, as CSV.")] = False,
) -> None:
    """List the results of an experiment, finished or not: a line for each of its cells.

    rightarm results results/gaps --csv > gaps.csv
    """
    with _loaded(folder) as loaded:
        typer.echo(loaded.frame.write_csv() if csv else str(loaded), nl=not csv)


@app.command()
def plot(
    folder: ResultsFolder,
    output: Annotated[
        Path | None, typer.Option(help="The picture: .png, .svg or .pdf; regret.png in the folder unless given.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Draw final regret against this parameter, not regret over the rounds.")
    ] = None,
    log: Annotated[bool, typer.Option("--log", help="Logarithmic axes.")] = False,
) -> None:
    """Draw the results of an experiment: regret over the rounds, or against a swept parameter, for each problem.

    rightarm plot results/gaps --against C --output gaps.svg
    """
    output = output or folder / ("regret.png" if against is None else f"regret-{against}.png")
    if output.suffix not in (".png", ".svg", ".pdf"):
        raise typer.BadParameter(f"output must end in .png, .svg or .pdf, got {output}")
    with _loaded(folder) as loaded:
        output.parent.mkdir(parents=True, exist_ok=True)
        loaded.plot(output, against=against, log=log)
    typer.echo(f"wrote {output}")


@app.command()
def report(
    folder: ResultsFolder,
    output: Annotated[Path | None, typer.Option(help="The page; report.html in the folder unless given.")] = None,
) -> None:
    """Make one page of an experiment's results, finished or not: curves, tables, differences. It needs no network.

    rightarm report results/gaps --output gaps.html
    """
    from rightarm.lab.report import write_report

    output = output or folder / "report.html"
    if output.suffix not in (".html", ".htm"):
        raise typer.BadParameter(f"output must end in .html, got {output}")
    with _loaded(folder) as loaded:
        output.parent.mkdir(parents=True, exist_ok=True)
        try:
            write_report(loaded, output)
        except ImportError as error:  # no plotly
            sys.exit(f"rightarm: {error}")
    typer.echo(f"wrote {output}")


@app.command()
def run(
    experiment: Annotated[
        Path, typer.Argument(help="The experiment, a TOML file; or one of the paper's: figure1, theorem4, ...")
    ],
    output: Annotated[
        Path | None, typer.Option(help="The folder for results; results/<experiment> if not given.")
    ] = None,
    workers: Workers = None,
    dask: Dask = None,
    quick: Annotated[bool, typer.Option("--quick", help="The smaller version that the file has.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the cells and how long they should take.")
    ] = False,
    processes: Annotated[bool, typer.Option("--processes", hidden=True)] = False,
) -> None:
    """Run an experiment. Killed and started again, it goes on.

    rightarm run experiment.toml --output results/mine --workers 4
    """
    from rightarm.lab.experiment import ExperimentError, read_experiment
    from rightarm.lab.paper.finding import shipped
    from rightarm.lab.run import run_into
    from rightarm.lab.run.experiments import folder_for

    if processes:
        raise typer.BadParameter("--processes is gone; --dask local gives worker processes")
    try:
        plan = read_experiment(experiment if experiment.exists() else shipped(str(experiment)) or experiment, quick)
    except ExperimentError as error:
        raise typer.BadParameter(str(error)) from None
    folder = output or folder_for(plan, quick)
    if dry_run:
        _show_plan(plan.cells, folder, workers)
        return
    with _running(dask, workers):
        blocks = run_into(folder, plan, workers=workers, dask=dask, progress=True)
    typer.echo(f"{len(plan.cells)} cells, {blocks} blocks of them played now\nwrote {folder}")


def _show_plan(cells: Sequence[Any], folder: Path, workers: int | None) -> None:
    """The cells, what is missing of each, and an estimate of the time."""
    from rightarm.lab import run as lab
    from rightarm.lab.results import Results
    from rightarm.simulation.jobs import available_cores

    try:
        if folder.is_dir():
            with Results.open(folder, write=False) as results:
                missing = results.missing(cells)
        else:
            missing = [(cell, job) for cell in cells for job in cell.blocks()]
        seconds = lab.seconds_of(missing)
    except (lab.RunError, ValueError) as error:
        sys.exit(f"rightarm: {error}")
    for cell in cells:
        left = lab.duration(seconds[cell.key]) if cell.key in seconds else "done"
        typer.echo(f"{left:>12}  {lab.name_of(cell)}")
    count = workers or available_cores()
    rounds = sum(job.rounds for _, job in missing)
    total = lab.duration(sum(seconds.values()) / count)
    typer.echo(
        f"{len(cells)} cells, {len(missing)} blocks and {rounds:,} rounds left: about {total} on {count} workers"
    )


LogFile = Annotated[
    Path,
    typer.Argument(help="A log of rightarm (.jsonl, or a .parquet folder), or a table of others (.csv, .parquet)."),
]
Policies = Annotated[
    list[str],
    typer.Option("--policy", help="Such as 'UCB(C=0.5)', uniform, or '{\"a\": 0.9, \"b\": 0.1}'; may be repeated."),
]
ArmColumn = Annotated[str, typer.Option("--arm", help="The column of a table that names the arm.")]
PropensityColumn = Annotated[str, typer.Option("--propensity", help="The column with the propensity.")]
RewardColumn = Annotated[str, typer.Option("--reward", help="The column with the reward.")]
RewardRange = Annotated[tuple[float, float], typer.Option("--range", help="The smallest and the largest reward.")]
Missing = Annotated[float | None, typer.Option(help="The reward that counts where none came; else the row does not.")]
Confidence = Annotated[float, typer.Option(help="Of the interval.")]
Floor = Annotated[float | None, typer.Option(help="A propensity that no arm of the log could fall below.")]


def _policy_or_uniform(text: str) -> Any:
    from rightarm.lab.experiment.expressions import read_policy

    return text if text == "uniform" else read_policy(text)


def _law_by_arm(text: str, names: dict[str, Any]) -> dict[Any, Any]:
    """Probabilities by arm from JSON, in which every name is a text."""
    try:
        law = json.loads(text)
    except ValueError as error:
        raise ValueError(f"policy must be JSON if it begins with a brace, got {text}: {error}") from None
    return {names.get(name, name): probability for name, probability in law.items()}


def _off_policy(run: Callable[..., Any], log: Path, policies: list[str], columns: dict[str, str], options: Any) -> None:
    """Read a log, and say what came out for each policy."""
    from rightarm.logs import read_log, read_table

    try:
        table = log.suffix == ".csv" or (log.suffix == ".parquet" and log.is_file())
        frame = read_table(log, **columns) if table else read_log(log)
        listed = [arm for row in frame["among"].drop_nulls().unique() for arm in row] if "among" in frame else []
        names = {str(arm): arm for arm in [*frame["arm"].unique(), *listed]}
        targets = [_law_by_arm(text, names) if text.startswith("{") else _policy_or_uniform(text) for text in policies]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the text has them
            for target in targets:
                typer.echo(str(run(frame, target, **options)))
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(str(error)) from None


@app.command()
def evaluate(
    log: LogFile,
    policy: Policies,
    arm: ArmColumn = "arm",
    propensity: PropensityColumn = "propensity",
    reward: RewardColumn = "reward",
    reward_range: RewardRange = (0.0, 1.0),
    missing: Missing = None,
    confidence: Confidence = 0.95,
    floor: Floor = None,
) -> None:
    """Estimate from a log what other policies would have earned: IPS, self-normalised, doubly robust, an interval.

    rightarm evaluate log.jsonl --policy uniform --policy 'Boltzmann(0.1)'
    """
    from rightarm import evaluation

    columns = {"arm": arm, "propensity": propensity, "reward": reward}
    options = {"reward_range": reward_range, "missing": missing, "confidence": confidence, "floor": floor}
    _off_policy(evaluation.evaluate, log, policy, columns, options)


@app.command()
def replay(
    log: LogFile,
    policy: Policies,
    arm: ArmColumn = "arm",
    propensity: PropensityColumn = "propensity",
    reward: RewardColumn = "reward",
    reward_range: RewardRange = (0.0, 1.0),
    missing: Missing = None,
    confidence: Confidence = 0.95,
    floor: Floor = None,
    seed: Seed = 2017,
) -> None:
    """Run policies over a log that was collected evenly at random, by rejection.

    rightarm replay log.csv --policy 'UCB(C=0.5)' --arm item --propensity p --reward click
    """
    from rightarm import evaluation

    columns = {"arm": arm, "propensity": propensity, "reward": reward}
    options = {"reward_range": reward_range, "missing": missing, "confidence": confidence, "floor": floor}
    _off_policy(evaluation.replay, log, policy, columns, options | {"seed": seed})


def main() -> None:
    """The program's entry."""
    try:
        app()
    except OSError as error:  # an unwritable folder, a full disk
        sys.exit(f"rightarm: {error}")
