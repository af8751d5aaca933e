"""Theorem 4: Boltzmann–Gumbel exploration has log² regret for any C, also far below σ."""

from __future__ import annotations

from rightarm.lab.curve import Line
from rightarm.lab.growth import best, could_be, fit
from rightarm.lab.study import Cell, Claim, Finding, Key, Panel, Samples, Study, below, ratios, rounds_between
from rightarm.policies import BoltzmannGumbel
from rightarm.problems import Gaussian
from rightarm.theory import lai_robbins, theorem4

GAP, ARMS, SIGMA = 0.5, 5, 1.0
PARTS = (1, 2, 4, 8)  # σ is taken to be so many times smaller than it is
PROBLEM = Gaussian([GAP] + [0.0] * (ARMS - 1), sigma=SIGMA)


def name(part: int) -> str:
    """The label of a curve."""
    return "C = σ" if part == 1 else f"C = σ/{part}"


def cells(quick: bool) -> dict[Key, Cell]:
    """Gaussian rewards: subgaussian with exactly this σ."""
    rounds = rounds_between(100, 10**4) if quick else rounds_between(10**3, 10**7)
    return {(p,): Cell(BoltzmannGumbel(C=SIGMA / p), PROBLEM, rounds, 32 if quick else 192) for p in PARTS}


def judge(samples: Samples) -> Finding:
    """Regret lies below the bound for every C; its growth is told, and log² is expected where C = σ."""
    curves = [samples[part,].curve(name(part)) for part in PARTS]
    bounds = [theorem4(PROBLEM.gaps, curve.x, SIGMA / p, SIGMA) for p, curve in zip(PARTS, curves, strict=True)]
    fits = {curve.label: fit(curve) for curve in curves}
    drawn = zip(PARTS[:3], curves[:3], bounds[:3], strict=True)
    return Finding(
        margin=f"measured / bound at most {ratios(curves, bounds).max():.3g} over all C; "
        + ", ".join(
            f"{curve.mean[-1] / bound[-1]:.2g} at {curve.label}" for curve, bound in zip(curves, bounds, strict=True)
        )
        + " for the longest T",
        claims=[below(f"{x.label}: regret below the bound", x, b) for x, b in zip(curves, bounds, strict=True)],
        remarks=[
            Claim(f"{label}: grows like log² T", could_be("log² T", found), best(found))
            for label, found in fits.items()
        ],
        panels=[
            Panel(
                "Regret",
                curves,
                [Line(f"bound, {name(p)}", curve.x, bound) for p, curve, bound in drawn]
                + [Line("Lai–Robbins", curves[0].x, lai_robbins(PROBLEM.gaps, curves[0].x, SIGMA))],
            ),
            Panel("Regret on a linear axis, without C = σ/8", curves[:3], log_y=False),
        ],
        fits=fits,
    )


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
