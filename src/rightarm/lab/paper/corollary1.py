"""Corollary 1: with C = σ the regret is at most 200 σ √(KT) log K, whatever the gaps."""

from __future__ import annotations

import numpy as np

from rightarm.lab.paper.finding import Claim, Finding, Study, below, panel
from rightarm.lab.paper.growth import best, could_be, fit
from rightarm.lab.results import CellResult, Loaded
from rightarm.simulation.panels import Line
from rightarm.simulation.statistics import Curve
from rightarm.theory import corollary1

PRINTED = 200  # the constant of the bound


def unit(cell: CellResult) -> float:
    """σ √(KT) log K, the bound without its constant."""
    return float(corollary1(cell.problem.arms, cell.horizon, cell.problem.values["sigma"][0])) / PRINTED


def worst(cells: list[CellResult]) -> tuple[Curve, Curve]:
    """For every T the gap with the largest mean regret: that regret, and the same in units of σ √(KT) log K."""
    chosen = [
        max((cell for cell in cells if cell.horizon == T), key=lambda cell: float(cell.regret[:, -1].mean()))
        for T in sorted({cell.horizon for cell in cells})
    ]
    curve = Curve.of_ends(f"K = {cells[0].problem.arms}", [cell.curve() for cell in chosen])
    return curve, curve.over([unit(cell) for cell in chosen])


def by_gap(cells: list[CellResult]) -> Curve:
    """Regret at the longest T against the gap, in units of σ √(KT) log K."""
    T = max(cell.horizon for cell in cells)
    own = [cell for cell in cells if cell.horizon == T]
    label = f"K = {own[0].problem.arms}, T = {T:,}"
    return Curve.of_ends(label, [c.curve() for c in own], [c.value("factor") for c in own]).over(unit(own[0]))


def _inside(curve: Curve) -> Claim:
    """Whether the worst gap is none of the outermost, so that a worse one is not to be expected outside."""
    worst_gap = curve.x[curve.mean.argmax()]
    inside = bool(curve.x[0] < worst_gap < curve.x[-1])
    return Claim(f"{curve.label}: the worst gap lies among those tried", inside, f"it is {worst_gap:g} σ√(K/T)")


def judge(results: Loaded) -> Finding:
    """The worst regret lies below the bound and grows like √T."""
    groups = [results.where(K=K) for K in sorted({cell.value("K") for cell in results})]
    curves, constants = zip(*map(worst, groups), strict=True)
    gaps = [by_gap(cells) for cells in groups]
    fits = {curve.label: fit(curve) for curve in curves}
    largest = max(float(constant.mean.max()) for constant in constants)
    return Finding(
        margin=f"measured / bound at most {largest / PRINTED:.3g}: a constant of {largest:.3g} in the place of "
        f"{PRINTED} fits all that was tried",
        claims=[
            below(f"{own.label}: worst regret below the bound", own, np.full(own.x.size, PRINTED)) for own in constants
        ],
        remarks=[
            Claim(f"{label}: growth like √T fits as well as any", could_be("√T", found), best(found))
            for label, found in fits.items()
        ]
        + [_inside(curve) for curve in gaps],
        panels=[
            panel(
                "Worst regret over all gaps tried, as a constant",
                list(constants),
                [Line("bound", curves[0].x, np.full(curves[0].x.size, float(PRINTED)))],
                y="regret / (σ √(KT) log K)",
            ),
            panel(
                "Which gap is the worst",
                gaps,
                x="gap / (σ √(K/T))",
                y="regret / (σ √(KT) log K)",
                log_y=False,
            ),
        ],
        fits=fits,
    )


STUDY = Study(
    name="corollary1",
    claim="With C = σ the regret of Boltzmann–Gumbel exploration is at most 200 σ √(KT) log K, however small or large "
    "the gaps are.",
    formula="R_T ≤ 200 σ √(KT) log K",
    setting="Gaussian rewards, σ = 1; the best arm is better than all others by a gap of 1, 2, 4, 6, 8 and 12 times "
    "σ√(K/T), and for every T the worst of them counts.",
    judge=judge,
)
