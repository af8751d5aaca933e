"""The rates that the paper quotes for others: UCB, MOSS, UCB-Improved and Gaussian Thompson sampling beside BGE."""

from __future__ import annotations

import math

import numpy as np

from rightarm.lab.paper.evidence import is_below, is_less, power
from rightarm.lab.paper.finding import BOUNDED, Claim, Finding, Study, Table, panel, worst_by_halves
from rightarm.lab.paper.theorem4 import TELLING
from rightarm.lab.results import CellResult, Loaded
from rightarm.theory import corollary1, moss, order, theorem4, ucb1, ucb1_free, ucb_improved

ORDERS = {
    "BGE": "√(KT) log K",
    "UCB1": "√(KT log T)",
    "MOSS": "√(KT)",
    "UCB-Improved": "√(KT log K)",
    "Gaussian-TS": "√(KT log K)",
}
FASTER = 0.05  # the power of T by which a regret must not outgrow its order
SIGMA = 0.5  # of rewards in [0, 1]


def bound(cell: CellResult) -> float:
    """The smaller of a policy's bounds, for these gaps and for all; infinite where none has a constant."""
    gaps, T, K = cell.problem.gaps, cell.horizon, cell.problem.arms
    bounds = {
        "BGE": lambda: min(theorem4(gaps, T, SIGMA, SIGMA), corollary1(K, T, SIGMA, gaps)),
        "UCB1": lambda: min(ucb1(gaps, T), ucb1_free(K, T, gaps)),
        "MOSS": lambda: moss(K, T),
        "UCB-Improved": lambda: ucb_improved(gaps, T),
    }
    return float(bounds.get(str(cell.value("policy")), lambda: math.inf)())


def judge(results: Loaded) -> Finding:
    """Every policy lies below its bounds, and its worst regret does not outgrow its order."""
    K = results[0].problem.arms
    own = {name: results.where(policy=name) for name in ORDERS}
    curves = {name: worst_by_halves(name, cells) for name, cells in own.items()}
    telling = {
        name: [cell for cell in cells if bound(cell) < cell.problem.gaps.max() * cell.horizon]
        for name, cells in own.items()
    }
    in_order = {name: curve.over(order(ORDERS[name], K, curve.x)) for name, curve in curves.items()}
    grown = {name: power(curve, decades=9) for name, curve in in_order.items()}
    claims = [
        Claim(
            f"{name}: regret below its bound",
            is_below(np.stack([cell.regret[:, -1] / bound(cell) for cell in cells], axis=1), 1.0),
            f"measured / bound at most {max(cell.regret[:, -1].mean() / bound(cell) for cell in cells):.3g}",
        )
        for name, cells in telling.items()
        if cells
    ]
    claims += [
        Claim(
            f"{name}: the worst regret does not outgrow {ORDERS[name]}",
            found.below(FASTER),
            f"over it, power {found}",
            True,
        )
        for name, found in grown.items()
    ]
    rivals = [name for name in ORDERS if name != "BGE"]
    return Finding(
        margin="worst regret over its order at the longest T "
        + ", ".join(f"{curve.mean[-1]:.2f} ({name}, {ORDERS[name]})" for name, curve in in_order.items()),
        claims=claims,
        remarks=[
            Claim(
                f"at the longest T the worst regret of BGE is less than that of {name}",
                is_less(curves["BGE"].samples[:, -1], curves[name].samples[:, -1], len(rivals)),
                f"{curves['BGE'].mean[-1]:.0f} and {curves[name].mean[-1]:.0f}",
            )
            for name in rivals
        ],
        left_out=[
            f"{name}: {len(cells) - len(telling[name])} of {len(cells)} cells, {_why(name)}"
            for name, cells in own.items()
            if len(telling[name]) < len(cells)
        ],
        panels=[
            panel("Worst regret over all gaps", list(curves.values())),
            panel("The same over √(KT)", [c.over(order("√(KT)", K, c.x)) for c in curves.values()], y="regret / √(KT)"),
        ],
        tables=[
            Table(
                "Worst regret over its order",
                ["", "order", *(f"T = {T:,.0f}" for T in next(iter(curves.values())).x)],
                [[name, ORDERS[name], *(f"{v:.3f}" for v in curve.mean)] for name, curve in in_order.items()],
            )
        ],
    )


def _why(name: str) -> str:
    if name == "Gaussian-TS":
        return "Agrawal and Goyal give an order without a constant"
    return "where the bound is above ΔT, the largest regret there is"


STUDY = Study(
    name="rates",
    claim="UCB's regret is of order √(KT log T) whatever the gaps, that of MOSS √(KT), that of UCB-Improved and "
    "Gaussian Thompson sampling √(KT log K), and BGE's √(KT) log K. The paper calls BGE's guarantee an improvement on "
    "UCB's. With the constants it is one only where 100 log K < 4√(2 log T): for two arms beyond T = 10^{65}.",
    formula="R_T = O(√(KT log T)), O(√(KT)), O(√(KT log K)), O(√(KT) log K)",
    setting="Bernoulli rewards, K = 10 arms, the best better than the rest by a gap of 1 to 9 times σ√(K/T), σ = 1/2.",
    criteria=(
        BOUNDED,
        TELLING,
        "For every T the worst gap is chosen by half of the replications and judged by the other half. Regret does not "
        f"outgrow its order if their ratio grows by a power of T below {FASTER:g}, by a 99% bootstrap interval over "
        "replications, and does if that lies above; a quick run cannot tell.",
    ),
    judge=judge,
)
