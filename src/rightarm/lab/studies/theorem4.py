"""Theorem 4: Boltzmann–Gumbel exploration has log² regret for any C, also far below σ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rightarm.lab.curve import Curve, Line
from rightarm.lab.growth import best, could_be, fit
from rightarm.lab.study import Cell, Claim, Finding, Key, Panel, Samples, Study, below, ratios, rounds_between
from rightarm.policies import BoltzmannGumbel
from rightarm.problems import Gaussian
from rightarm.simulation.types import F64
from rightarm.theory import lai_robbins, theorem4

GAP, ARMS, SIGMA = 0.5, 5, 1.0
PARTS = (1, 2, 4, 8)  # σ is taken to be so many times smaller than it is
DRAWN = 10  # bounds up to so many times T are drawn; the others say nothing
PROBLEM = Gaussian([GAP] + [0.0] * (ARMS - 1), sigma=SIGMA)


def name(part: int) -> str:
    """The label of a curve."""
    return "C = σ" if part == 1 else f"C = σ/{part}"


def cells(quick: bool) -> dict[Key, Cell]:
    """Gaussian rewards: subgaussian with exactly this σ."""
    rounds = rounds_between(100, 10**4) if quick else rounds_between(10**3, 10**7)
    return {(p,): Cell(BoltzmannGumbel(C=SIGMA / p), PROBLEM, rounds, 32 if quick else 192) for p in PARTS}


def judge(samples: Samples) -> Finding:
    """Regret lies below the bound for every C."""
    curves = [samples[part,].curve(name(part)) for part in PARTS]
    bounds = [theorem4(PROBLEM.gaps, curve.x, SIGMA / p, SIGMA) for p, curve in zip(PARTS, curves, strict=True)]
    reference = Line("Lai–Robbins (asymptotic)", curves[0].x, lai_robbins(PROBLEM.gaps, curves[0].x, SIGMA))
    return judge_bounds(curves, bounds, {"": range(len(curves))}, [reference])


def judge_bounds(
    curves: list[Curve], bounds: list[F64], groups: Mapping[str, Iterable[int]], references: list[Line]
) -> Finding:
    """Regret lies below its bound on every curve; growth like log² T is looked for. A picture for each group."""
    fits = {curve.label: fit(curve) for curve in curves}
    at_end = [f"{c.mean[-1] / b[-1]:.2g} at {c.label}" for c, b in zip(curves, bounds, strict=True)]
    return Finding(
        margin=f"measured / bound at most {ratios(curves, bounds).max():.3g}; at the longest T {', '.join(at_end)}",
        claims=[below(f"{x.label}: regret below the bound", x, b) for x, b in zip(curves, bounds, strict=True)],
        remarks=[
            Claim(f"{label}: growth like log² T fits as well as any", could_be("log² T", found), best(found))
            for label, found in fits.items()
        ],
        panels=[
            panel
            for title, group in groups.items()
            for panel in _panels(title, [(curves[i], bounds[i]) for i in group], references)
        ],
        fits=fits,
    )


def _panels(title: str, pairs: list[tuple[Curve, F64]], references: list[Line]) -> list[Panel]:
    """Regret with those bounds that are worth drawing; and on a linear axis, where log² is seen best."""
    useful = [(curve, bound) for curve, bound in pairs if bound[-1] < DRAWN * curve.x[-1]]
    lines = [Line(f"bound, {curve.label}", curve.x, bound) for curve, bound in useful]
    drawn = [curve for curve, _ in pairs]
    return [
        Panel(f"Regret{title}", drawn, lines + references),
        Panel(f"Regret{title}, on a linear axis", [c for c, _ in useful], log_y=False),
    ]


STUDY = Study(
    name="theorem4",
    title="Theorem 4: Boltzmann–Gumbel exploration",
    claim="When rewards are σ²-subgaussian, the regret of Boltzmann–Gumbel exploration grows like log² T for every C, "
    "even if σ is underestimated; that is paid for by a constant e^{σ²/2C²}.",
    formula="R_T ≤ Σ_i [ 9C² log_+²(TΔ_i²/c²) + c² e^γ + 18C² e^{σ²/2C²} (1 + e^{−γ}) ] / Δ_i + Σ_i Δ_i,  c = σ",
    setting=f"K = {ARMS} arms with Gaussian rewards, σ = {SIGMA:g}, all gaps Δ = {GAP}. C is σ, and 2, 4 and 8 times "
    "too small; at C = σ/8 the bound is 10¹⁴ and not drawn. The logarithm has TΔ_i², as the proof has it; "
    "printed is TΔ_i.",
    cells=cells,
    judge=judge,
)
