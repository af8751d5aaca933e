"""The command line: ``rightarm reproduce figure1``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

try:
    import typer
except ImportError:
    sys.exit("the command line needs more packages: pip install 'rightarm[lab]'")

import rightarm
from rightarm.formula import check_count

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Multi-armed bandits: Boltzmann exploration done right."
)
reproduce = typer.Typer(no_args_is_help=True, help="Compute the paper's results again.")
app.add_typer(reproduce, name="reproduce")


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


@reproduce.command()
def figure1(
    quick: Annotated[
        bool, typer.Option("--quick", help="A smaller version: a fifth of the rounds, half the grid.")
    ] = False,
    output: Annotated[Path, typer.Option(help="The folder for figure, points and report.")] = Path("results/figure1"),
    replications: Annotated[
        int | None,
        typer.Option(callback=_at_least("replications", 2), help="Replications of every point: 64, quick 32."),
    ] = None,
    seed: Annotated[int, typer.Option(callback=_at_least("seed", 0), help="The seed.")] = 2017,
    workers: Annotated[
        int | None, typer.Option(callback=_at_least("workers", 1), help="Threads; one per core unless given.")
    ] = None,
) -> None:
    """Figure 1: mean regret against C², five algorithms, both scenarios. Killed and started again, it goes on."""
    from rightarm.lab import figure1 as lab
    from rightarm.lab.figure1_plot import draw
    from rightarm.lab.figure1_report import claims, report
    from rightarm.simulation.jobs import available_cores
    from rightarm.simulation.progress import bar

    make = lab.quick_plan if quick else lab.full_plan
    plan = make(seed=seed) if replications is None else make(replications, seed)
    try:
        with bar("Figure 1", lab.rounds_left(plan, output)) as on_rounds:
            points = lab.compute(plan, output, workers or available_cores(), on_rounds)
    except KeyboardInterrupt:
        typer.echo("stopped; what was finished is kept, and the same command goes on from there", err=True)
        raise typer.Exit(130) from None
    lab.write_csv(points, output / "figure1.csv")
    draw(points, plan, output / "figure1.png", output / "figure1.svg")
    (output / "report.md").write_text(report(points, plan), encoding="utf-8")
    if plan.smaller:
        typer.echo(
            f"A smaller version, T = {plan.horizon:,}; the paper's statements are about T = {lab.PAPER_HORIZON:,}."
        )
    for claim in claims(points, plan):
        typer.echo(f"{'agrees        ' if claim.holds else 'does not agree'}  {claim.statement}: {claim.evidence}.")
    typer.echo(
        "\n".join(f"wrote {output / name}" for name in ("figure1.png", "figure1.svg", "figure1.csv", "report.md"))
    )


def main() -> None:
    """The program's entry."""
    try:
        app()
    except OSError as error:  # an unwritable folder, a full disk
        sys.exit(f"rightarm: {error}")
