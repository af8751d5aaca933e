"""Theorem 3: a constant learning rate first and log(tΔ²)/Δ afterwards has logarithmic regret."""

from __future__ import annotations

import math

import numpy as np

from rightarm.experiments import CellResult, Results
from rightarm.paper.evidence import decided, fit
from rightarm.paper.finding import Claim, Finding, below, grows, panel, ratios
from rightarm.simulation.panels import Curve, Line
from rightarm.theory import theorem3, theorem3_exceeded, theorem3_known, theorem3_second, theorem3_start
from rightarm.types import F64

MANY = (1.0, 1_000, 10**12)  # gap, arms and horizon at which the printed bound is exceeded
ARMS = (1_000, 500, 200, 100)  # for which it is told from which T on it is


def split(cells: list[CellResult], gap: float) -> list[Curve]:
    """Return suboptimal pulls against T for one K: all of them, and those of the second phase."""
    arms = cells[0].problem.arms
    every = []
    second = []
    for cell in cells:
        last = math.ceil(float(theorem3_start(gap, arms, cell.horizon))) - 1
        (place,) = np.flatnonzero(cell.rounds == last)
        every.append(cell.regret[:, -1] / gap)
        second.append((cell.regret[:, -1] - cell.regret[:, place]) / gap)
    T = np.array([cell.horizon for cell in cells], dtype=float)
    return [Curve.of(f"K = {arms}", T, np.stack(samples, axis=1)) for samples in (every, second)]


def exceeded() -> Claim:
    """Claim that the exact regret of rewards without noise is below the printed bound, for very many arms."""
    least = float(theorem3_known(*MANY))
    bound = float(theorem3(*MANY))
    gap, arms, horizon = MANY
    return Claim(
        f"pulls below the bound with {arms:,} arms, one paying {gap:g} always and the others 0, T = {horizon:,}",
        decided(least <= bound, least > bound),
        f"computed, not simulated: at least {least:,.0f}, of which the second phase has "
        f"{float(theorem3_second(*MANY)):,.0f}; the bound is {bound:,.0f}; in this example it is exceeded "
        + ", ".join(f"{_since(arms)} with {arms:,} arms" for arms in ARMS),
    )


def _since(arms: int) -> str:
    power = theorem3_exceeded(arms)
    return f"from T = 10^{{{power:.1f}}} on" if math.isfinite(power) else "never"


def judge_theorem3(results: Results) -> Finding:
    """Judge whether suboptimal pulls lie below the bound, those of the second phase below its share, and growth."""
    gap = float(np.ptp(results[0].problem.means))
    K = list(dict.fromkeys(cell.problem.arms for cell in results))
    pulls, second = zip(*(split([cell for cell in results if cell.problem.arms == k], gap) for k in K), strict=True)
    bounds = [theorem3(gap, k, curve.x) for k, curve in zip(K, pulls, strict=True)]
    shares: list[F64] = [np.full(curve.x.size, 9 * k / gap**2) for k, curve in zip(K, second, strict=True)]
    known = [theorem3_second(gap, k, curve.x) for k, curve in zip(K, second, strict=True)]
    fits = {curve.label: fit(curve) for curve in pulls}
    claims = [below(f"{n.label}: suboptimal pulls below the bound", n, b) for n, b in zip(pulls, bounds, strict=True)]
    claims += [
        below(f"{n.label}: those of the second phase below its share, 9K/Δ²", n, b)
        for n, b in zip(second, shares, strict=True)
    ]
    claims += [grows(label, "log T", found) for label, found in fits.items()]
    return Finding(
        margin=f"measured / bound at most {ratios(pulls, bounds).max():.3g}, second phase / its share at most "
        f"{ratios(second, shares).max():.3g}",
        printed=[exceeded()],
        instead=f"in simulations with {' and '.join(map(str, K))} arms it",
        claims=claims,
        panels=[
            panel(
                "Pulls of suboptimal arms",
                pulls,
                [Line(f"bound, {n.label}", n.x, b) for n, b in zip(pulls, bounds, strict=True)],
                y="suboptimal pulls",
            ),
            panel(
                "Those of the second phase",
                second,
                [Line(f"share of the bound, {n.label}", n.x, b) for n, b in zip(second, shares, strict=True)]
                + [Line(f"if the means were known, {n.label}", n.x, b) for n, b in zip(second, known, strict=True)],
                y="suboptimal pulls",
            ),
        ],
        fits=fits,
    )
