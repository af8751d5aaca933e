"""The page of the paper's claims: figures, verdicts, settings, fits and versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rightarm.lab.paper.finding import AGREES, CERTAIN
from rightarm.lab.paper.growth import LATER, short
from rightarm.lab.report.charts import Chart, line_chart
from rightarm.lab.report.pages import render
from rightarm.simulation.panels import Panel, Style
from rightarm.simulation.result import versions

PAPER = "https://arxiv.org/abs/1705.10257"
READING = (
    "Curves are means with 95% confidence bands, dotted lines are computed. A bound is taken to be broken where the "
    f"mean is beyond it by more than {CERTAIN:g} standard errors; a measured value equals an exact one if they differ "
    f"by less than {AGREES:g}. “Holds” means that nothing measured here contradicts the claim. Growth is the "
    f"least-squares fit of a + b g(T) to the later part of a curve ({LATER:.0%} of its logarithmic range), weighted by "
    "standard errors; the residual is the root mean square distance in standard errors."
)


@dataclass(frozen=True)
class Section:
    """A result of the paper, as the page shows it: texts, claims with their evidence, and panels."""

    name: str
    """Its place on the page, for links."""
    title: str
    text: str
    """What it says, in our own words."""
    claims: Sequence[Any]
    """Each with a ``statement``, whether it ``holds`` (None if that cannot be told) and its ``evidence``."""
    formula: str = ""
    verdict: str = ""
    holds: bool | None = None
    panels: Sequence[Panel] = ()
    styles: Mapping[str, Style] | None = None
    """How its curves look, if not as usual."""
    remarks: Sequence[Any] = ()
    """Claims without weight in the verdict."""
    tables: Sequence[Any] = ()
    """Each with ``title``, ``head`` and ``rows``."""
    fits: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    setting: str = ""


def page(title: str, sections: Sequence[Section], made: str, quick: bool = False) -> str:
    """The whole page; a ``quick`` one says that its simulations are smaller than the paper's settings."""
    return render(
        "paper.html",
        title=title,
        quick=quick,
        paper=PAPER,
        reading=READING,
        sections=[(section, _charts(section), _growth(section)) for section in sections],
        made=made,
        packages=", ".join(f"{name} {version}" for name, version in versions().items()),
    )


def _charts(section: Section) -> list[Chart]:
    return [line_chart(panel, section.styles) for panel in section.panels]


def _growth(section: Section) -> list[list[str]]:
    """The rows of its table of fits."""
    rows = []
    for label, (best, *others) in section.fits.items():
        rest = ", ".join(f"{other.law} ({short(other)})" for other in others)
        law = f"{best.a:.4g} {'+' if best.b >= 0 else '−'} {abs(best.b):.4g} {best.law}".replace("-", "−")
        rows.append([label, law, f"± {best.b_error:.2g}", short(best), rest])
    return rows


def size_of(cells: Sequence[Any]) -> str:
    """How much was simulated, in a sentence."""
    arms = sorted({cell.problem.arms for cell in cells})
    horizons = [cell.checkpoints[0] for cell in cells] + [cell.horizon for cell in cells]
    replications = sorted({cell.replications for cell in cells})
    rounds = sum(cell.replications * (cell.horizon - cell.start.rounds) for cell in cells)
    span = f"from {min(horizons):,} to {max(horizons):,}" if min(horizons) < max(horizons) else f"= {max(horizons):,}"
    return (
        f"K = {', '.join(map(str, arms))}; T {span}; "
        f"{', '.join(map(str, replications))} replications; {len(cells)} simulations, {rounds:.2g} rounds in all."
    )
