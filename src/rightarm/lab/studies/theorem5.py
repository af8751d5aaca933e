"""Theorem 5: on some problem the regret is at least ½ √(KT) log K, so the log K cannot be removed."""

from __future__ import annotations

import numpy as np

from rightarm.lab.curve import Curve, Line, joined
from rightarm.lab.growth import fit
from rightarm.lab.study import Cell, Finding, Key, Panel, Samples, Study, Table, above, rounds_between
from rightarm.policies import BoltzmannGumbel
from rightarm.problems import Deterministic
from rightarm.theory import theorem5

CONSTANT = 0.5
OWN, WIDER = 1.0, 2.0  # the gap in units of the proof's own, √(K/T) log K


def cells(quick: bool) -> dict[Key, Cell]:
    """The problem depends on T, so every T is played separately, with the proof's gap and with twice as much."""
    last = {2: 10**5, 10: 10**5} if quick else {2: 10**7, 3: 10**7, 10: 10**7, 100: 10**6}
    return {
        (arms, T, factor): Cell(
            BoltzmannGumbel(C=1.0), Deterministic([factor * gap] + [0.0] * (arms - 1)), (T,), 8 if quick else 16
        )
        for arms, longest in last.items()
        for T in rounds_between(10**4, longest, per_decade=4 if quick else 2)
        for gap in [np.sqrt(arms / T) * np.log(arms)]
        for factor in (OWN, WIDER)
    }


def regret(samples: Samples, factor: float) -> dict[int, Curve]:
    """For every K, regret against T."""
    return {
        arms: joined(f"K = {arms}", [s.curve("") for (k, _, f), s in samples.items() if (k, f) == (arms, factor)])
        for arms in sorted({key[0] for key in samples})
    }


def constants(curves: dict[int, Curve]) -> list[Curve]:
    """Regret over √(KT) log K."""
    return [curve.over(theorem5(arms, curve.x, constant=1.0)) for arms, curve in curves.items()]


def judge(samples: Samples) -> Finding:
    """Some problem reaches the constant ½; whether the proof's own does is told for each K."""
    own, wider = (constants(regret(samples, factor)) for factor in (OWN, WIDER))
    best = [max(pair, key=lambda curve: float(curve.mean.min())) for pair in zip(own, wider, strict=True)]
    least = min(float(curve.mean.min()) for curve in best)
    reached = [above(f"{c.label}: the proof's own problem reaches ½", c, np.full(c.x.size, CONSTANT)) for c in own]
    return Finding(
        margin=f"on the proof's own problem the measured constant is "
        f"{', '.join(f'{c.mean[-1]:.3g} ({c.label})' for c in own)}, so that ½ is "
        f"{'reached for every K' if all(remark.holds for remark in reached) else 'not reached for every K'} there; "
        f"with the better of that gap and twice it, measured / bound is at least {least / CONSTANT:.3g}",
        claims=[above(f"{c.label}: some problem reaches ½", c, np.full(c.x.size, CONSTANT)) for c in best],
        remarks=reached,
        panels=[_panel("The proof's own gap, √(K/T) log K", own), _panel("Twice that gap", wider)],
        fits={curve.label: fit(curve) for curve in regret(samples, OWN).values()},
        tables=[
            Table(
                "regret / (√(KT) log K), least to largest over T (standard error)",
                ["", "the proof's gap", "twice that"],
                [[a.label, _span(a), _span(b)] for a, b in zip(own, wider, strict=True)],
            )
        ],
    )


def _panel(title: str, curves: list[Curve]) -> Panel:
    longest = max((curve.x for curve in curves), key=lambda x: float(x[-1]))
    half = Line("½", longest, np.full(longest.size, CONSTANT))
    return Panel(title, curves, [half], y="regret / (√(KT) log K)", log_y=False)


def _span(curve: Curve) -> str:
    return f"{curve.mean.min():.4f} to {curve.mean.max():.4f} ({curve.error.max():.4f})"


STUDY = Study(
    name="theorem5",
    title="Theorem 5: the logarithm of K cannot be removed",
    claim="For every K and T with √(K/T) log K ≤ 1 there is a problem on which Boltzmann–Gumbel exploration with C = 1 "
    "has a regret of at least ½ √(KT) log K.",
    formula="R_T ≥ ½ √(KT) log K",
    setting="The best arm pays Δ always, the others 0, with the proof's Δ = √(K/T) log K, and with twice as much. The "
    "printed proof drops the factors P[Z < 0] and P[A] in its last display, so that it does not show the constant ½.",
    cells=cells,
    judge=judge,
)
