"""Corollary 1: with C = σ the regret is at most 200 σ √(KT) log K, whatever the gaps."""

from __future__ import annotations

import numpy as np

from rightarm.lab.curve import Curve, Line, joined
from rightarm.lab.growth import best, could_be, fit
from rightarm.lab.study import Cell, Claim, Finding, Key, Panel, Samples, Study, below, rounds_between
from rightarm.policies import BoltzmannGumbel
from rightarm.problems import Gaussian
from rightarm.theory import corollary1

ARMS, SIGMA = (2, 10, 50), 1.0
FACTORS = (1.0, 2.0, 4.0, 6.0, 8.0, 12.0)  # the gap in units of σ √(K/T), around its worst value


def unit(arms: int, T: float) -> float:
    """σ √(KT) log K, the bound without its constant."""
    return float(corollary1(arms, T, SIGMA)) / 200


def cells(quick: bool) -> dict[Key, Cell]:
    """The worst gap depends on T, so every T is played separately, each with several gaps."""
    horizons = rounds_between(10**3, 10**4 if quick else 10**6, per_decade=4 if quick else 2)
    return {
        (arms, T, factor): Cell(
            BoltzmannGumbel(C=SIGMA),
            Gaussian([factor * SIGMA * np.sqrt(arms / T)] + [0.0] * (arms - 1), sigma=SIGMA),
            (T,),
            16 if quick else 64,
        )
        for arms in (ARMS[:2] if quick else ARMS)
        for T in horizons
        for factor in FACTORS
    }


def worst(samples: Samples, arms: int) -> Curve:
    """For every T the gap with the largest mean regret."""
    horizons = sorted({T for own, T, _ in samples if own == arms})
    curves = [
        max((samples[arms, T, f].curve("") for f in FACTORS), key=lambda curve: float(curve.mean[-1])) for T in horizons
    ]
    return joined(f"K = {arms}", curves)


def by_gap(samples: Samples, arms: int) -> Curve:
    """Regret at the longest T against the gap, in units of σ √(KT) log K."""
    T = max(T for own, T, _ in samples if own == arms)
    values = np.stack([samples[arms, T, f].regret[:, -1] for f in FACTORS], axis=1)
    return Curve(f"K = {arms}, T = {T:,}", np.array(FACTORS), values / unit(arms, T))


def _inside(curve: Curve) -> Claim:
    """Whether the worst gap is none of the outermost, so that a worse one is not to be expected outside."""
    worst_gap = curve.x[curve.mean.argmax()]
    inside = bool(curve.x[0] < worst_gap < curve.x[-1])
    return Claim(f"{curve.label}: the worst gap lies among those tried", inside, f"it is {worst_gap:g} σ√(K/T)")


def judge(samples: Samples) -> Finding:
    """The worst regret lies below the bound and grows like √T."""
    arms = sorted({key[0] for key in samples})
    curves = [worst(samples, k) for k in arms]
    units = [np.array([unit(k, T) for T in curve.x]) for k, curve in zip(arms, curves, strict=True)]
    constants = [curve.over(u) for curve, u in zip(curves, units, strict=True)]
    fits = {curve.label: fit(curve) for curve in curves}
    largest = max(float(constant.mean.max()) for constant in constants)
    claims = [below(f"{x.label}: worst regret below the bound", x, 200 * u) for x, u in zip(curves, units, strict=True)]
    return Finding(
        margin=f"measured / bound at most {largest / 200:.3g}: a constant of {largest:.3g} in the place of 200 fits "
        "all that was tried",
        claims=claims,
        remarks=[
            Claim(f"{label}: growth like √T fits as well as any", could_be("√T", found), best(found))
            for label, found in fits.items()
        ]
        + [_inside(by_gap(samples, k)) for k in arms],
        panels=[
            Panel(
                "Worst regret over all gaps tried, as a constant",
                constants,
                [Line("bound", curves[0].x, np.full(curves[0].x.size, 200.0))],
                y="regret / (σ √(KT) log K)",
            ),
            Panel(
                "Which gap is the worst",
                [by_gap(samples, k) for k in arms],
                x="gap / (σ √(K/T))",
                y="regret / (σ √(KT) log K)",
                log_y=False,
            ),
        ],
        fits=fits,
    )


STUDY = Study(
    name="corollary1",
    title="Corollary 1: a bound for all gaps",
    claim="With C = σ the regret of Boltzmann–Gumbel exploration is at most 200 σ √(KT) log K, however small or large "
    "the gaps are.",
    formula="R_T ≤ 200 σ √(KT) log K",
    setting=f"Gaussian rewards, σ = {SIGMA:g}; the best arm is better than all others by a gap of "
    f"{', '.join(f'{f:g}' for f in FACTORS)} times σ√(K/T), and for every T the worst of them counts.",
    cells=cells,
    judge=judge,
)
