"""The page of the paper's claims: figures, verdicts, settings, fits and versions."""

from __future__ import annotations

from collections.abc import Sequence

from rightarm.lab.paper.evidence import AGREES
from rightarm.lab.paper.finding import Finding
from rightarm.lab.paper.growth import LATER
from rightarm.lab.paper.reproduce import Reproduced
from rightarm.lab.report.charts import Chart, line_chart
from rightarm.lab.report.pages import render
from rightarm.simulation.result import versions

PAPER = "https://arxiv.org/abs/1705.10257"
READING = (
    "Curves are means with 95% confidence bands, dotted lines are computed. A verdict is one of three: holds, fails, "
    "or cannot tell; what decides it stands before the numbers. “Holds” means that what was simulated agrees with the "
    "claim with certainty; it proves nothing about other problems. Where the paper’s statement is wrong as printed, "
    "that is said first, and the verdict after it is on what is named there: the corrected statement, or the printed "
    "one in the setting that was simulated. A measured value equals an exact one "
    f"if they differ by less than {AGREES:g} standard errors. Student’s t does not see what happens in fewer "
    "runs than were played, such as a policy that gets stuck once in a thousand. Growth is looked for in the later "
    f"part of a curve ({LATER:.0%} of its logarithmic range)."
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
    """The rows of its table of fits: a law that is rejected has no formula."""
    return [
        [label, found.law, "rejected" if found.rejected else found.text, f"{found.p:.2g}".replace("nan", "–")]
        for label, fits in finding.fits.items()
        for found in fits
    ]


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
