"""Theorem 3: a constant learning rate first and log(tΔ²)/Δ afterwards has logarithmic regret."""

from __future__ import annotations

import math

from rightarm.lab.curve import Curve, Line, joined
from rightarm.lab.growth import best, could_be, fit
from rightarm.lab.study import Cell, Claim, Finding, Key, Panel, Samples, Study, below, ratios, rounds_between
from rightarm.policies import Boltzmann, two_phase
from rightarm.problems import Bernoulli
from rightarm.theory import theorem3

GAP = 0.5  # so large that the second phase begins before T; at the paper's Δ = 0.01 it begins after 6·10⁷ rounds
ARMS = (2, 5)


def cells(quick: bool) -> dict[Key, Cell]:
    """The schedule knows T, so every T is played separately."""
    horizons = rounds_between(10**4, 10**5 if quick else 10**7, per_decade=4 if quick else 2)
    return {
        (arms, T): Cell(
            Boltzmann(two_phase(gap=GAP, horizon=T)),
            Bernoulli([0.75] + [0.75 - GAP] * (arms - 1)),
            (T,),
            16 if quick else 64,
        )
        for arms in ARMS
        for T in horizons
    }


def judge(samples: Samples) -> Finding:
    """Suboptimal pulls lie below the bound, and regret grows like log T."""
    regret = {
        arms: joined(f"K = {arms}", [sample.curve("") for (own, _), sample in samples.items() if own == arms])
        for arms in ARMS
    }
    pulls = [Curve(curve.label, curve.x, curve.samples / GAP) for curve in regret.values()]
    bounds = [theorem3(GAP, arms, curve.x) for arms, curve in regret.items()]
    fits = {curve.label: fit(curve) for curve in regret.values()}
    claims = [below(f"{n.label}: suboptimal pulls below the bound", n, b) for n, b in zip(pulls, bounds, strict=True)]
    claims += [
        Claim(f"{label}: logarithmic growth", could_be("log T", found), best(found)) for label, found in fits.items()
    ]
    worst = ratios(pulls, bounds).max()
    return Finding(
        margin=f"measured / bound at most {worst:.3g} (suboptimal pulls), {GAP * worst:.3g} (regret)",
        claims=claims,
        panels=[
            Panel(
                "Pulls of suboptimal arms",
                pulls,
                [Line(f"bound, K = {k}", n.x, b) for k, n, b in zip(ARMS, pulls, bounds, strict=True)],
                y="suboptimal pulls",
            ),
            Panel("Regret on a linear axis", list(regret.values()), log_y=False),
        ],
        fits=fits,
    )


def begin(arms: int, horizon: int) -> int:
    """τ, rounded up."""
    return math.ceil(16 * math.e * arms * math.log(horizon) / GAP**2)


STUDY = Study(
    name="theorem3",
    title="Theorem 3: two phases",
    claim="Boltzmann exploration with learning rate 1 for a logarithmic number of rounds τ and log(tΔ²)/Δ from then on "
    "has logarithmic regret; but the schedule must know the gap Δ and the horizon T.",
    formula="R_T ≤ 16 e K log(T) / Δ² + 9 K / Δ²,  τ = 16 e K log(T) / Δ²",
    setting=f"Bernoulli arms, the best with mean 0.75, the others with 0.75 − Δ, Δ = {GAP}: a gap so large that the "
    f"second phase begins in time (K = 5: τ = {begin(5, 10**4):,} for T = 10⁴ and {begin(5, 10**7):,} for T = 10⁷). "
    "The proof bounds the number of suboptimal pulls, which is what is compared.",
    cells=cells,
    judge=judge,
)
