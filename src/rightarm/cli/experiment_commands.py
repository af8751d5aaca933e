"""``rightarm run``, ``results``, ``plot``, ``report`` and ``reproduce``: experiments and their results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import rightarm
from rightarm.cli.log_commands import Confidence, Floor, Missing
from rightarm.cli.options import Dask, FilesSeed, Quick, Replications, Workers, picture, resumable, stop
from rightarm.display import counted, table, wrapped
from rightarm.paper import STUDIES
from rightarm.paper.finding import Study

if TYPE_CHECKING:
    from rightarm.experiments import Cell

app = typer.Typer()
PAPERS = {study.name: study.path for study in STUDIES}

ResultsFolder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of an experiment's results.")]


@app.command()
def results(
    folder: ResultsFolder,
    csv: Annotated[bool, typer.Option("--csv", help="All columns, as CSV.")] = False,
) -> None:
    """List the results of an experiment, finished or not: a line for each of its cells.

    rightarm results results/gaps --csv > gaps.csv
    """
    loaded = rightarm.experiments.load(folder)
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
    where: Annotated[
        list[str] | None, typer.Option(help="Only cells with this value, such as C=0.5 or policy=bge; may be repeated.")
    ] = None,
    size: Annotated[str | None, typer.Option(help="Width and height in inches, such as 7x4.")] = None,
    log: Annotated[bool, typer.Option("--log", help="Logarithmic axes.")] = False,
) -> None:
    """Draw the results of an experiment: regret over the rounds, or against a swept parameter, for each problem.

    rightarm plot results/gaps --against C --where policy=bge --where policy=ucb --size 7x4 --output gaps.svg
    """
    loaded = rightarm.experiments.load(folder)
    output = picture(output or folder / ("regret.png" if against is None else f"regret-{against}.png"))
    loaded.plot(output, against=against, where=_conditions(where or []), log=log, figsize=_inches(size))
    typer.echo(f"wrote {output}")


def _conditions(texts: list[str]) -> dict[str, list[str]]:
    """Return values by name; a name that is given several times may have any of its values."""
    conditions: dict[str, list[str]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"where must be a name and a value such as C=0.5, got {text!r}")
        conditions.setdefault(name.strip(), []).append(value.strip())
    return conditions


def _inches(size: str | None) -> tuple[float, float] | None:
    if size is None:
        return None
    found = re.fullmatch(r"(\d+\.?\d*)[x×](\d+\.?\d*)", size)
    if found is None or not 1 <= float(found[1]) <= 100 or not 1 <= float(found[2]) <= 100:
        raise ValueError(f"size must be width and height in inches, from 1 to 100, such as 7x4, got {size!r}")
    return float(found[1]), float(found[2])


@app.command()
def report(
    source: Annotated[
        Path, typer.Argument(help="The folder of an experiment's results, or the log or folder of a bandit.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(help="The page; report.html in the folder, or the log's name with .html, unless given."),
    ] = None,
    control: Annotated[str | None, typer.Option(help="Of a log: the arm to compare others with.")] = None,
    reward_range: Annotated[
        tuple[float, float] | None, typer.Option("--range", help="The smallest and the largest reward.")
    ] = None,
    missing: Missing = None,
    confidence: Confidence = 0.95,
    floor: Floor = None,
) -> None:
    """Make one page, which needs no network, of an experiment's results, finished or not, or of a live bandit's log.

    rightarm report results/gaps --output gaps.html

    rightarm report decisions.jsonl --control red --range 0 1

    The first has curves, tables and differences. The second is for a weekly meeting: which arm is the best, what the
    bandit earned, whether the log is in order. All options but --output are about logs, and only needed where the log
    does not say how its bandit was set up.
    """
    from rightarm.logs import is_log
    from rightarm.reports.experiment_page import write_report
    from rightarm.reports.log_page import log_report

    is_a_log = is_log(source)
    output = output or (source.with_suffix(".html") if is_a_log else source / "report.html")
    if output.suffix not in (".html", ".htm"):
        raise ValueError(f"output must end in .html, got {output}")
    if is_a_log:
        output.parent.mkdir(parents=True, exist_ok=True)
        made = log_report(
            source,
            output,
            control=control,
            reward_range=reward_range,
            missing=missing,
            confidence=confidence,
            floor=floor,
        )
    else:
        loaded = rightarm.experiments.load(source)
        output.parent.mkdir(parents=True, exist_ok=True)
        made = write_report(loaded, output)
    typer.echo(f"wrote {made}")


@app.command()
def run(
    experiment: Annotated[
        Path, typer.Argument(help=f"The experiment, a TOML file; or one of the paper's: {', '.join(PAPERS)}.")
    ],
    output: Annotated[
        Path | None, typer.Option(help="The folder for results; results/<experiment> if not given.")
    ] = None,
    workers: Workers = None,
    dask: Dask = None,
    quick: Annotated[bool, typer.Option("--quick", help="The smaller version, if the file has one.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the cells and how long they should take.")
    ] = False,
) -> None:
    """Run an experiment. Killed and started again, it goes on.

    rightarm run experiment.toml --output results/mine --workers 4
    """
    from rightarm.experiments.file import read_experiment
    from rightarm.experiments.runner import folder_for, run_into

    path = experiment if experiment.exists() else PAPERS.get(str(experiment))
    if path is None:
        raise ValueError(f"there is no file {experiment}; the paper's experiments are {', '.join(PAPERS)}")
    plan = read_experiment(path, quick)
    folder = output or folder_for(plan, quick)
    if dry_run:
        _show_plan(plan.cells, folder, workers)
        return
    with resumable():
        blocks = run_into(folder, plan, workers=workers, dask=dask, progress=True)
    typer.echo(f"{len(plan.cells)} cells are complete; blocks of replications computed now: {blocks}\nwrote {folder}")


def _show_plan(cells: Sequence[Cell], folder: Path, workers: int | None) -> None:
    """Show the cells, what is missing of each, and an estimate of the time."""
    from rightarm.experiments import ResultFolder, RunError
    from rightarm.experiments.runner import duration, seconds_of
    from rightarm.simulation.jobs import available_cores

    if folder.is_dir():
        with ResultFolder.open(folder, write=False) as results:
            missing = results.missing(cells)
    else:
        missing = [(cell, job) for cell in cells for job in cell.blocks()]
    try:
        seconds = seconds_of(missing)
    except RunError as error:
        stop(error)
    left = {key: duration(needed) for key, needed in seconds.items()}
    typer.echo(table(["cell", "left"], [[cell.title, left.get(cell.key, "done")] for cell in cells]))
    count = workers or available_cores()
    rounds = sum(job.rounds for _, job in missing)
    total = duration(sum(seconds.values()) / count)
    left_over = f"{len(cells)} cells, {len(missing)} blocks and {rounds:,} rounds left"
    typer.echo(f"{left_over}: about {total} on {counted(count, 'worker')}")


reproduce = typer.Typer(
    no_args_is_help=True,
    name="reproduce",
    help="Compute the paper's results again. What was killed goes on when it is started again. With --strict the exit "
    "code is 0 if every claim holds (corrected or restricted where the paper errs), 1 if one fails, 3 if one cannot be "
    "told.",
)
app.add_typer(reproduce)


def _add_study(name: str, title: str, studies: Sequence[Study], help: str) -> None:
    """Add a command for one study, or for several on one page, each with its own folder of results."""
    alone = len(studies) == 1

    def command(
        quick: Quick = False,
        output: Annotated[
            Path | None, typer.Option(help="The folder for results and page; in the folder results unless given.")
        ] = None,
        replications: Replications = None,
        seed: FilesSeed = None,
        workers: Workers = None,
        dask: Dask = None,
        strict: Annotated[
            bool, typer.Option("--strict", help="Let the exit code say the verdict: 0 holds, 1 fails, 3 cannot tell.")
        ] = False,
    ) -> None:
        from rightarm.paper import reproducing

        size = reproducing.Size(quick, replications, seed)
        whole = output or Path("results") / (size.named(name) if alone else "")
        done = []
        with resumable():
            for study in studies:
                folder = whole if alone else whole / size.named(study.name)
                done.append(reproducing.reproduce(study, folder, size, workers=workers, dask=dask, progress=True))
                for line in [*(done[-1].statements if alone else []), done[-1].line]:
                    typer.echo(wrapped(line, hanging="  "))
        stem = whole / (name if alone else size.named(name))
        made = f"rightarm reproduce {name}{size.options}"
        for path in reproducing.write(done, stem, title, made, quick):
            typer.echo(f"wrote {path}")
        raise typer.Exit(reproducing.exit_code(done) if strict else 0)

    reproduce.command(name, help=f"{help}.")(command)


for _study in STUDIES:
    _add_study(_study.name, _study.title, [_study], _study.title)
_add_study("all", "Boltzmann Exploration Done Right, reproduced", STUDIES, "All of these on one page")
