"""``rightarm results``, ``plot``, ``report`` and ``run``: experiments that are files, and what came of them."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import rightarm
from rightarm.cli.options import at_least

app = typer.Typer()

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
        Path, typer.Argument(help="The experiment, a TOML file; or one of the paper's: figure1, ...")
    ],
    output: Annotated[
        Path | None, typer.Option(help="The folder for results; results/<experiment> if not given.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(callback=at_least("workers", 1), help="Threads, processes or local Dask workers; one per core."),
    ] = None,
    processes: Annotated[bool, typer.Option("--processes", help="Processes, not threads.")] = False,
    dask: Annotated[str | None, typer.Option(help="A Dask scheduler's address, or 'local' for workers here.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the cells and how long they should take.")
    ] = False,
) -> None:
    """Run an experiment. Killed and started again, it goes on.

    rightarm run experiment.toml --output results/mine --workers 4
    """
    from rightarm.lab.experiment import SHIPPED, ExperimentError, read_experiment

    shipped = SHIPPED / f"{experiment}.toml"
    if not experiment.exists() and shipped.parent == SHIPPED and shipped.exists():
        experiment = shipped
    if processes and dask is not None:
        raise typer.BadParameter("--processes and --dask exclude each other")
    if dask not in (None, "local") and workers is not None:
        raise typer.BadParameter(f"the workers at {dask} are what they are; leave out --workers")
    try:
        plan = read_experiment(experiment)
    except ExperimentError as error:
        raise typer.BadParameter(str(error)) from None
    folder = output or Path("results") / experiment.stem
    kind = "processes" if processes else "threads" if dask is None else "dask"
    if dry_run:
        _show_plan(plan.cells, folder, workers)
    else:
        _run(plan, folder, kind, workers, dask)


def _run(plan: Any, folder: Path, kind: str, workers: int | None, address: str | None) -> None:
    """Run an experiment into ``folder``, with a bar."""
    from rightarm.lab import run as lab
    from rightarm.lab.execution import executor
    from rightarm.lab.results import Results
    from rightarm.simulation.progress import watched

    rounds = lab.Rounds()
    try:
        with (
            Results.open(folder, write=True) as results,
            executor(kind, workers, address, rounds.add) as crew,
            watched(plan.title or folder.name) as show,
        ):
            results.begin(plan.cells, plan.text, plan.title)
            blocks = lab.run(
                plan.cells, results, crew, lambda now: show(now.share, now), rounds if kind == "threads" else None
            )
    except lab.RunError as error:
        sys.exit(f"rightarm: {error}; what was finished is kept")
    except KeyboardInterrupt:
        typer.echo("stopped; what was finished is kept, and the same command goes on from there", err=True)
        raise typer.Exit(130) from None
    except (ImportError, ValueError) as error:  # no Dask; a folder of something else
        sys.exit(f"rightarm: {error}")
    typer.echo(f"{len(plan.cells)} cells, {blocks} blocks of them played now\nwrote {folder}")


def _show_plan(cells: Sequence[Any], folder: Path, workers: int | None) -> None:
    """The cells, what is missing of each, and an estimate of the time."""
    from rightarm.lab import run as lab
    from rightarm.lab.results import Results
    from rightarm.simulation.jobs import available_cores

    if folder.is_dir():
        with Results.open(folder, write=False) as results:
            missing = results.missing(cells)
    else:
        missing = [(cell, job) for cell in cells for job in cell.blocks()]
    try:
        seconds = lab.seconds_of(missing)
    except lab.RunError as error:
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
