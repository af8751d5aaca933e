"""Theorem 2: a learning rate above 2 log t from the beginning gets stuck at the worse arm for ever."""

from __future__ import annotations

from typing import Any

import numpy as np

from rightarm.lab.curve import Line
from rightarm.lab.growth import best, fit
from rightarm.lab.study import (
    AGREES,
    Cell,
    Claim,
    Finding,
    Key,
    Panel,
    Sample,
    Samples,
    Study,
    Table,
    above,
    ratios,
    rounds_between,
)
from rightarm.policies import Boltzmann, inverse_log
from rightarm.problems import problem
from rightarm.theory import theorem2, theorem2_start

GAP = 0.25
RATES = (3.0, 4.0, 8.0)


@problem(mean=lambda low, high, chance: low + (high - low) * chance)
def TwoValues(u: Any, *, low: float, high: float, chance: float) -> Any:
    """Pay ``high`` with probability ``chance``, else ``low``."""
    return low + (high - low) * (u < chance)


def cells(quick: bool) -> dict[Key, Cell]:
    """The proof's problem: the better arm is a coin, the other pays 1/2 always."""
    arms = TwoValues(low=[0.0, 0.5], high=[1.0, 0.5], chance=[0.5 + GAP, 1.0])
    rounds = rounds_between(100, 10**4) if quick else rounds_between(10**3, 10**7)
    return {(c,): Cell(Boltzmann(inverse_log(1 / c)), arms, rounds, 128 if quick else 256) for c in RATES}


def stuck_share(c: float, horizon: int) -> float:
    """The exact probability that the coin, pulled once at the start, pays 0 and is not pulled again up to T."""
    t = np.arange(3.0, horizon + 1)
    return float((0.5 - GAP) * np.exp(np.log1p(-1 / (1 + t ** (c / 2))).sum()))


def stuck(c: float, sample: Sample) -> tuple[float, float, float]:
    """The measured share of replications that never came back, the exact one, and their distance in standard errors."""
    share, expected = float((sample.pulls[:, 0] == 1).mean()), stuck_share(c, sample.cell.horizon)
    return share, expected, (share - expected) / np.sqrt(expected * (1 - expected) / len(sample.pulls))


def judge(samples: Samples) -> Finding:
    """Regret lies above the linear bound, grows like T, and as many replications are stuck as the law says."""
    curves = [samples[c,].curve(f"η = {c:g} log t") for c in RATES]
    bounds = [theorem2(GAP, curve.x, c) for curve, c in zip(curves, RATES, strict=True)]
    shares = {c: stuck(c, samples[c,]) for c in RATES}
    fits = {curve.label: fit(curve) for curve in curves}
    z = max(abs(share[2]) for share in shares.values())
    claims = [above(f"{x.label}: regret above the bound", x, bound) for x, bound in zip(curves, bounds, strict=True)]
    claims += [
        Claim(f"{curve.label}: linear growth", fits[curve.label][0].law == "T", best(fits[curve.label]))
        for curve in curves
    ]
    claims.append(Claim("as many replications are stuck as computed", z < AGREES, f"at most {z:.1f} standard errors"))
    rows = [
        [f"{c:g}", f"{theorem2_start(c)}", f"{share:.4f}", f"{expected:.4f}", f"{distance:+.1f}"]
        for c, (share, expected, distance) in shares.items()
    ]
    return Finding(
        margin=f"measured / bound at least {ratios(curves, bounds).min():.3g}; at the end "
        + ", ".join(f"{s:.1%} of the replications stuck at c = {c:g}" for c, (s, _, _) in shares.items()),
        claims=claims,
        panels=[
            Panel(
                "Regret",
                curves,
                [Line(f"bound, {x.label}", x.x, b) for c, x, b in zip(RATES, curves, bounds, strict=True) if c > 3],
            ),
            Panel("Regret per round", [curve.over(curve.x) for curve in curves], y="regret / T", log_y=False),
        ],
        fits=fits,
        tables=[Table("Stuck: the better arm pulled once, never again", ["c", "t_0", "measured", "exact", "z"], rows)],
    )


STUDY = Study(
    name="theorem2",
    title="Theorem 2: too fast a learning rate",
    claim="There is a problem with two arms on which Boltzmann exploration has linear regret if its learning rate is "
    "above 2 log t from the beginning: when the better arm starts badly, it may never be pulled again.",
    formula="η_t ≥ c log t, c > 2  ⇒  R_T ≥ Δ (T − t_0) (1/2 − Δ)^{t_0} / 2,  t_0 = ⌈(2/a)^{1/a}⌉, a = c/2 − 1",
    setting=f"The proof's problem: arm 1 pays 1 with probability 1/2 + Δ, Δ = {GAP}, else 0; arm 2 pays 1/2 always. At "
    "c = 3 the bound is below 10⁻¹⁰ T (t_0 = 16) and is not drawn. The constant t_0 is the corrected one; printed "
    "is (2a)^{1/a}.",
    cells=cells,
    judge=judge,
)
