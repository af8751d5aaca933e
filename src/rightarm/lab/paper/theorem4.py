"""Theorem 4: Boltzmann–Gumbel exploration has log² regret for any C, also far below σ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rightarm.lab.paper.finding import BOUNDED, GROWTH, Claim, Finding, Study, below, panel, ratios
from rightarm.lab.paper.growth import fit, grows_at_most, told
from rightarm.lab.results import CellResult, Loaded
from rightarm.simulation.panels import Line, Panel
from rightarm.simulation.statistics import Curve
from rightarm.theory import lai_robbins, theorem4
from rightarm.types import F64

TELLING = "A bound above ΔT, the largest regret there is, says nothing; such cells are left out, and named."


def judge(results: Loaded) -> Finding:
    """Regret lies below the bound for every C for which it says something, and grows no faster than log² T."""
    curves = [cell.curve(f"C = {fraction('σ', cell)}") for cell in results]
    gaps, sigma = results[0].problem.gaps, results[0].problem.values["sigma"][0]
    bounds = [
        theorem4(gaps, curve.x, cell.policy.values["C"], sigma) for cell, curve in zip(results, curves, strict=True)
    ]
    reference = Line("Lai–Robbins (asymptotic)", curves[0].x, lai_robbins(gaps, curves[0].x, sigma))
    return judge_bounds(curves, bounds, float(gaps.max()), {"": curves}, [reference])


def fraction(whole: str, cell: CellResult) -> str:
    """The part of σ or √V that C is, in words."""
    return whole if cell.value("part") == 1 else f"{whole}/{cell.value('part'):g}"


def judge_bounds(
    curves: list[Curve],
    bounds: list[F64],
    gap: float,
    groups: Mapping[str, Sequence[Curve]],
    references: list[Line],
) -> Finding:
    """Regret lies below its bound on every curve and grows no faster than log² T. Two pictures for each group.

    A bound above gap·T, the largest regret there is, says nothing and counts for nothing.
    """
    pairs = list(zip(curves, bounds, strict=True))
    telling = [(curve, bound) for curve, bound in pairs if bound[-1] < gap * curve.x[-1]]
    fits = {curve.label: fit(curve) for curve in curves}
    at_end = ", ".join(f"{curve.mean[-1] / bound[-1]:.2g} at {curve.label}" for curve, bound in telling)
    growth = [
        Claim(f"{c.label}: growth no faster than log² T", grows_at_most("log² T", found), told(found), large=True)
        for c in curves
        for found in [fits[c.label]]
    ]
    spoken = {curve.label for curve, _ in telling}
    return Finding(
        margin=f"measured / bound at most {ratios(*zip(*telling, strict=True)).max():.3g}; at the longest T {at_end}",
        claims=[below(f"{curve.label}: regret below the bound", curve, bound) for curve, bound in telling]
        + [claim for claim in growth if claim.statement.partition(":")[0] in spoken],
        remarks=[claim for claim in growth if claim.statement.partition(":")[0] not in spoken],
        left_out=[
            f"{curve.label}: the bound is {bound[-1]:.2g} at the end, no regret exceeds {gap * curve.x[-1]:,.0f}"
            for curve, bound in pairs
            if curve.label not in spoken
        ],
        panels=[panel for title, own in groups.items() for panel in _panels(title, list(own), telling, references)],
        fits=fits,
    )


def _panels(title: str, drawn: list[Curve], telling: list[tuple[Curve, F64]], references: list[Line]) -> list[Panel]:
    """Regret with the bounds that say something; and on a linear axis, where log² is seen best."""
    bounded = [(curve, bound) for curve, bound in telling if curve in drawn]
    lines = [Line(f"bound, {curve.label}", curve.x, bound) for curve, bound in bounded]
    return [
        panel(f"Regret{title}", drawn, lines + references),
        panel(f"Regret{title}, on a linear axis", [curve for curve, _ in bounded], log_y=False),
    ]


STUDY = Study(
    name="theorem4",
    claim="When rewards are σ²-subgaussian, the regret of Boltzmann–Gumbel exploration grows like log² T for every C, "
    "even if σ is underestimated; that is paid for by a constant e^{σ²/2C²}.",
    formula="R_T ≤ Σ_i [ 9C² log_+²(TΔ_i²/c²) + c² e^γ + 18C² e^{σ²/2C²} (1 + e^{−γ}) ] / Δ_i + Σ_i Δ_i,  c = σ",
    setting="K = 5 arms with Gaussian rewards, σ = 1, all gaps Δ = 0.5. C is σ, and 2, 4 and 8 times too small. The "
    "logarithm has TΔ_i², as the proof has it; printed is TΔ_i.",
    criteria=(BOUNDED, TELLING, GROWTH),
    judge=judge,
)
