"""Theorem 4: Boltzmann–Gumbel exploration has log² regret for any C, also far below σ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rightarm.lab.curve import Curve, Line
from rightarm.lab.growth import best, could_be, fit
from rightarm.lab.study import Cell, Claim, Finding, Key, Panel, Samples, Study, below, ratios, rounds_between
from rightarm.policies import BoltzmannGumbel
from rightarm.problems import Gaussian
from rightarm.theory import lai_robbins, theorem4
from rightarm.types import F64

GAP, ARMS, SIGMA = 0.5, 5, 1.0
PARTS = (1, 2, 4, 8)  # σ is taken to be so many times smaller than it is
PROBLEM = Gaussian([GAP] + [0.0] * (ARMS - 1), sigma=SIGMA)


def name(part: int) -> str:
    """The label of a curve."""
    return "C = σ" if part == 1 else f"C = σ/{part}"


def cells(quick: bool) -> dict[Key, Cell]:
    """Gaussian rewards: subgaussian with exactly this σ."""
    rounds = rounds_between(100, 10**5) if quick else rounds_between(10**3, 10**7)
    return {(p,): Cell(BoltzmannGumbel(C=SIGMA / p), PROBLEM, rounds, 32 if quick else 192) for p in PARTS}


def judge(samples: Samples) -> Finding:
    """Regret lies below the bound for every C."""
    curves = [samples[part,].curve(name(part)) for part in PARTS]
    bounds = [theorem4(PROBLEM.gaps, curve.x, SIGMA / p, SIGMA) for p, curve in zip(PARTS, curves, strict=True)]
    reference = Line("Lai–Robbins (asymptotic)", curves[0].x, lai_robbins(PROBLEM.gaps, curves[0].x, SIGMA))
    return judge_bounds(curves, bounds, GAP, {"": range(len(curves))}, [reference])


def judge_bounds(
    curves: list[Curve], bounds: list[F64], gap: float, groups: Mapping[str, Iterable[int]], references: list[Line]
) -> Finding:
    """Regret lies below its bound on every curve; growth like log² T is looked for. Two pictures for each group.

    A bound above gap·T, the largest regret there is, says nothing and counts for nothing.
    """
    pairs = list(zip(curves, bounds, strict=True))
    telling = [(curve, bound) for curve, bound in pairs if bound[-1] < gap * curve.x[-1]]
    fits = {curve.label: fit(curve) for curve in curves}
    at_end = ", ".join(f"{curve.mean[-1] / bound[-1]:.2g} at {curve.label}" for curve, bound in telling)
    return Finding(
        margin=f"measured / bound at most {ratios(*zip(*telling, strict=True)).max():.3g}; at the longest T {at_end}",
        claims=[below(f"{curve.label}: regret below the bound", curve, bound) for curve, bound in telling],
        remarks=[
            Claim(f"{curve.label}: the bound says something", False, f"it is {bound[-1]:.2g}, and no regret exceeds ΔT")
            for curve, bound in pairs
            if bound[-1] >= gap * curve.x[-1]
        ]
        + [
            Claim(f"{label}: growth like log² T fits as well as any", could_be("log² T", found), best(found))
            for label, found in fits.items()
        ],
        panels=[
            panel
            for title, group in groups.items()
            for panel in _panels(title, [curves[i] for i in group], telling, references)
        ],
        fits=fits,
    )


def _panels(title: str, drawn: list[Curve], telling: list[tuple[Curve, F64]], references: list[Line]) -> list[Panel]:
    """Regret with the bounds that say something; and on a linear axis, where log² is seen best."""
    bounded = [(curve, bound) for curve, bound in telling if curve in drawn]
    lines = [Line(f"bound, {curve.label}", curve.x, bound) for curve, bound in bounded]
    return [
        Panel(f"Regret{title}", drawn, lines + references),
        Panel(f"Regret{title}, on a linear axis", [curve for curve, _ in bounded], log_y=False),
    ]


STUDY = Study(
    name="theorem4",
    title="Theorem 4: Boltzmann–Gumbel exploration",
    claim="When rewards are σ²-subgaussian, the regret of Boltzmann–Gumbel exploration grows like log² T for every C, "
    "even if σ is underestimated; that is paid for by a constant e^{σ²/2C²}.",
    formula="R_T ≤ Σ_i [ 9C² log_+²(TΔ_i²/c²) + c² e^γ + 18C² e^{σ²/2C²} (1 + e^{−γ}) ] / Δ_i + Σ_i Δ_i,  c = σ",
    setting=f"K = {ARMS} arms with Gaussian rewards, σ = {SIGMA:g}, all gaps Δ = {GAP}. C is σ, and 2, 4 and 8 times "
    "too small; at C = σ/8 the bound is 10¹⁴, more than any regret, and not drawn. The logarithm has TΔ_i², as the "
    "proof has it; printed is TΔ_i.",
    cells=cells,
    judge=judge,
)
