"""``rightarm reproduce``: the paper's results, computed again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from rightarm.cli.options import Quick, Replications, Seed, StudyReplications, Workers, working
from rightarm.lab.reproduce import Plan
from rightarm.lab.studies import STUDIES
from rightarm.lab.study import Study

app = typer.Typer(no_args_is_help=True, help="Compute the paper's results again.")
ALL = "all"


@app.command()
def figure1(
    quick: Annotated[
        bool, typer.Option("--quick", help="A smaller version: a fifth of the rounds, half the grid.")
    ] = False,
    output: Annotated[Path, typer.Option(help="The folder for figure, points and report.")] = Path("results/figure1"),
    replications: Replications = None,
    seed: Seed = 2017,
    workers: Workers = None,
) -> None:
    """Figure 1: mean regret against C², five algorithms, both scenarios. Killed and started again, it goes on."""
    from rightarm.lab import figure1 as lab
    from rightarm.lab.figure1_plot import draw
    from rightarm.lab.figure1_report import claims, report
    from rightarm.simulation.jobs import available_cores

    plan = lab.plan(quick, replications, seed)
    with working("Figure 1", lab.rounds_left(plan, output)) as on_rounds:
        points = lab.compute(plan, output, workers or available_cores(), on_rounds)
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


def _reproduce(name: str, title: str, plans: Sequence[Plan], output: Path, workers: int | None) -> None:
    """Reproduce some studies, tell their verdicts, and write page and points into ``output``."""
    from rightarm.lab import reproduce as lab
    from rightarm.lab.figure1 import plan as figure1_plan
    from rightarm.simulation.jobs import available_cores

    done = []
    with working(name, sum(plan.rounds_left for plan in plans)) as on_rounds:
        for plan in plans:
            done.append(lab.reproduce(plan, workers or available_cores(), on_rounds))
            typer.echo(done[-1].line)
    page, points = output / f"{name}.html", output / f"{name}.csv"
    lab.write_csv(done, points)
    first = plans[0]
    made = f"rightarm reproduce {name}{' --quick' if first.quick else ''} --seed {first.seed}"
    shown = (figure1_plan(first.quick, first.replications, first.seed), output / "figure1")
    lab.write_page(done, page, title, made, shown if name == ALL else None, first.quick)
    typer.echo(f"wrote {page}\nwrote {points}")


def _command(study: Study) -> Callable[..., None]:
    def command(
        quick: Quick = False,
        output: Annotated[Path, typer.Option(help="The folder for page and points.")] = Path("results") / study.name,
        replications: StudyReplications = None,
        seed: Seed = 2017,
        workers: Workers = None,
    ) -> None:
        plan = Plan(study, output, quick, replications, seed)
        _reproduce(study.name, study.title, [plan], output, workers)

    return command


for _study in STUDIES:
    app.command(_study.name, help=f"{_study.title}. Killed and started again, it goes on.")(_command(_study))


@app.command(name=ALL)
def everything(
    quick: Quick = False,
    output: Annotated[Path, typer.Option(help="The folder for page and points; each study has one in it.")] = Path(
        "results"
    ),
    replications: StudyReplications = None,
    seed: Seed = 2017,
    workers: Workers = None,
) -> None:
    """All of these on one page (quick: Figure 1 only if it is there). Killed and started again, it goes on."""
    plans = [Plan(study, output / study.name, quick, replications, seed) for study in STUDIES]
    if not quick:
        figure1(False, output / "figure1", replications, seed, workers)
    _reproduce(ALL, "Boltzmann Exploration Done Right, reproduced", plans, output, workers)
