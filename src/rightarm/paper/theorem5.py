"""Theorem 5: on some problem the regret is at least ½ √(KT) log K, so the log K cannot be removed."""

from __future__ import annotations

import numpy as np

from rightarm.experiments import Results
from rightarm.paper.evidence import Verdict, all_of, halves, is_below
from rightarm.paper.finding import Claim, Finding, NumberTable, above, panel
from rightarm.problems import problem
from rightarm.simulation.panels import Curve, Line, Panel
from rightarm.theory import theorem5

PRINTED = 0.5  # the constant of the bound


@problem(mean=lambda pay: np.minimum(pay, 1.0))
def AtMostOne(*, pay: float) -> float:
    """Pay the same always, and never more than 1: the theorem is about rewards in [0, 1]."""
    return np.minimum(pay, 1.0)  # type: ignore[no-any-return]


def regret(results: Results, factor: float) -> dict[int, Curve]:
    """Return, by K, regret against T on the problem with ``factor`` times the proof's own gap, or 1 if that is less."""
    cells = sorted(results.where(factor=factor), key=lambda cell: (cell.problem.arms, cell.horizon))
    return {
        K: Curve.of_ends(f"K = {K}", [cell.curve() for cell in cells if cell.problem.arms == K])
        for K in dict.fromkeys(cell.problem.arms for cell in cells)
    }


def constants(curves: dict[int, Curve]) -> list[Curve]:
    """Return regret over √(KT) log K."""
    return [curve.over(theorem5(arms, curve.x, constant=1.0)) for arms, curve in curves.items()]


def reached(label: str, tried: list[Curve]) -> Claim:
    """Claim that at every T one of the problems reaches ½: the best by half of the replications, in the others."""
    verdicts = []
    least = np.inf
    for point in range(tried[0].x.size):
        pairs = [halves(curve.samples[:, point]) for curve in tried]
        _, judged = max(pairs, key=lambda pair: float(pair[0].mean()))
        verdicts.append(is_below(-judged[:, None], -PRINTED))
        least = min(least, float(judged.mean()))
    return Claim(
        f"{label}: some problem reaches ½ at every T", all_of(verdicts), f"the constant is at least {least:.3g}"
    )


def judge_theorem5(results: Results) -> Finding:
    """Judge whether some problem reaches the constant ½; for each K, remark whether the proof's own does."""
    own, wider = (constants(regret(results, factor)) for factor in (1.0, 2.0))
    proofs = [above(f"{c.label}: the proof's own problem reaches ½", c, np.full(c.x.size, PRINTED)) for c in own]
    everywhere = all_of(claim.verdict for claim in proofs)
    word = {Verdict.HOLDS: "reached for every K", Verdict.FAILS: "not reached for every K"}.get(
        everywhere, "not decided"
    )
    claims = [reached(a.label, [a, b]) for a, b in zip(own, wider, strict=True)]
    return Finding(
        margin=f"on the proof's own problem the measured constant is "
        f"{', '.join(f'{c.mean.min():.3g} ({c.label})' for c in own)} at least, so that ½ is {word} there",
        claims=claims,
        remarks=proofs,
        panels=[_panel("The proof's own gap, √(K/T) log K", own), _panel("Twice that gap, 1 at most", wider)],
        tables=[
            NumberTable(
                "regret / (√(KT) log K), least to largest over T (standard error)",
                ["", "the proof's gap", "twice that"],
                [[a.label, _span(a), _span(b)] for a, b in zip(own, wider, strict=True)],
            )
        ],
    )


def _panel(title: str, curves: list[Curve]) -> Panel:
    longest = max((curve.x for curve in curves), key=lambda x: float(x[-1]))
    half = Line("½", longest, np.full(longest.size, PRINTED))
    return panel(title, curves, [half], y="regret / (√(KT) log K)", log_y=False)


def _span(curve: Curve) -> str:
    return f"{curve.mean.min():.4f} to {curve.mean.max():.4f} ({curve.error.max():.4f})"
