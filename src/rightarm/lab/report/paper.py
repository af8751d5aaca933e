"""The page of the paper's claims: figures, verdicts, settings, fits and versions."""

from __future__ import annotations

from collections.abc import Sequence

from rightarm.lab.paper.finding import AGREES, CERTAIN, Finding
from rightarm.lab.paper.growth import LATER, short
from rightarm.lab.paper.reproduce import Reproduced
from rightarm.lab.report.charts import Chart, line_chart
from rightarm.lab.report.pages import render
from rightarm.simulation.result import versions

PAPER = "https://arxiv.org/abs/1705.10257"
READING = (
    "Curves are means with 95% confidence bands, dotted lines are computed. A bound is taken to be broken where the "
    f"mean is beyond it by more than {CERTAIN:g} standard errors; a measured value equals an exact one if they differ "
    f"by less than {AGREES:g}. “Holds” means that nothing measured here contradicts the claim. Growth is the "
    f"least-squares fit of a + b g(T) to the later part of a curve ({LATER:.0%} of its logarithmic range), weighted by "
    "standard errors; the residual is the root mean square distance in standard errors."
)


def page(title: str, done: Sequence[Reproduced], made: str, quick: bool = False) -> str:
    """The whole page; a ``quick`` one says that its simulations are smaller than the paper's settings."""
    return render(
        "paper.html",
        title=title,
        quick=quick,
        paper=PAPER,
        reading=READING,
        sections=[(one.study, one.finding, _charts(one), _growth(one.finding), _setting(one)) for one in done],
        made=made,
        packages=", ".join(f"{name} {version}" for name, version in versions().items()),
    )


def _charts(one: Reproduced) -> list[Chart]:
    return [line_chart(panel, one.study.styles) for panel in one.finding.panels]


def _growth(finding: Finding) -> list[list[str]]:
    """The rows of its table of fits."""
    rows = []
    for label, (best, *others) in finding.fits.items():
        rest = ", ".join(f"{other.law} ({short(other)})" for other in others)
        law = f"{best.a:.4g} {'+' if best.b >= 0 else '−'} {abs(best.b):.4g} {best.law}".replace("-", "−")
        rows.append([label, law, f"± {best.b_error:.2g}", short(best), rest])
    return rows


def _setting(one: Reproduced) -> str:
    """The setting, and how much was simulated."""
    cells = one.experiment.cells
    arms = sorted({cell.problem.arms for cell in cells})
    horizons = [cell.checkpoints[0] for cell in cells] + [cell.horizon for cell in cells]
    replications = sorted({cell.replications for cell in cells})
    rounds = sum(cell.replications * (cell.horizon - cell.start.rounds) for cell in cells)
    span = f"from {min(horizons):,} to {max(horizons):,}" if min(horizons) < max(horizons) else f"= {max(horizons):,}"
    return (
        f"{one.study.setting} K = {', '.join(map(str, arms))}; T {span}; "
        f"{', '.join(map(str, replications))} replications; {len(cells)} simulations, {rounds:.2g} rounds in all."
    )
