"""Bounds for all gaps: Corollary 1, and the rates that the paper quotes for others."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rightarm.experiments import CellResult, Results
from rightarm.paper.evidence import decided, is_below, is_less, power
from rightarm.paper.finding import Claim, Finding, NumberTable, panel, worst_by_halves
from rightarm.simulation.panels import Curve, Line
from rightarm.theory import corollary1, corollary1_constant, moss, order, theorem4, ucb1, ucb1_free, ucb_improved
from rightarm.types import F64, I64

# Corollary 1: with C = σ the regret is at most 200 σ √(KT) log K + Σ Δ_i, whatever the gaps.

PRINTED = 200  # the constant of the bound
UNIT = "regret / (σ √(KT) log K)"


def scale(cell: CellResult) -> float:
    """Return σ, or √V where tails are heavy: the C of the policy."""
    return float(cell.policy.values["C"])


def printed(cell: CellResult) -> float:
    """Return the bound as the paper prints it."""
    return float(corollary1(cell.problem.arms, cell.horizon, scale(cell)))


def corrected(cell: CellResult) -> float:
    """Return the bound with the price of the first pulls."""
    return float(corollary1(cell.problem.arms, cell.horizon, scale(cell), cell.problem.gaps))


def below_all(statement: str, cells: Sequence[CellResult], bounds: Sequence[float]) -> Claim:
    """Claim that the regret of every cell is below its bound."""
    over: F64 = np.stack([cell.regret[:, -1] / bound for cell, bound in zip(cells, bounds, strict=True)], axis=1)
    worst = cells[int(over.mean(axis=0).argmax())]
    text = (
        f"measured / bound at most {over.mean(axis=0).max():.3g}, with gap {worst.problem.gaps.max():.3g}, "
        f"T = {worst.horizon:,}, K = {worst.problem.arms}"
    )
    return Claim(statement, is_below(over, 1.0), text)


def below_corrected(statement: str, cells: Sequence[CellResult]) -> Claim:
    """Claim that the regret of every cell is below the bound with the price of the first pulls."""
    return below_all(statement, cells, [corrected(cell) for cell in cells])


def in_an_interval() -> Claim:
    """Claim that the printed bound holds where all rewards lie in an interval: by the proof's own steps."""
    constant = corollary1_constant(2)
    return Claim(
        "rewards in an interval of any length, σ half of it: the printed bound holds for every K and T",
        decided(constant <= PRINTED, constant > PRINTED),
        f"computed, not simulated: there Σ Δ_i ≤ 2σ√(KT), and the proof gives {constant:.1f} in the place of {PRINTED} "
        "for two arms, and less for more",
    )


def by_gap(cells: Sequence[CellResult]) -> Curve:
    """Return regret at the longest T against the gap, in units of σ √(KT) log K."""
    T = max(cell.horizon for cell in cells)
    own = [cell for cell in cells if cell.horizon == T]
    label = f"K = {own[0].problem.arms}, T = {T:,}"
    factors = [cell.value("factor") for cell in own]
    return Curve.of_ends(label, [cell.curve() for cell in own], factors).over(printed(own[0]) / PRINTED)


def as_constant(curve: Curve, cells: Sequence[CellResult]) -> Curve:
    """Return regret against T in units of σ √(KT) log K."""
    arms = cells[0].problem.arms
    return curve.over([scale(cells[0]) * math.sqrt(arms * T) * math.log(arms) for T in curve.x])


def printed_line(x: F64 | I64) -> Line:
    """Return the constant of the bound as a line."""
    return Line("printed", x, np.full(x.size, float(PRINTED)))


def judge_corollary1(results: Results) -> Finding:
    """Judge whether regret lies below the corrected bound for all gaps, and not below the printed one for huge gaps."""
    everything = list(results)
    groups: dict[int, list[CellResult]] = {}
    for cell in sorted(results.where(problem="gap"), key=lambda cell: cell.problem.arms):
        groups.setdefault(cell.problem.arms, []).append(cell)
    far = results.where(problem="far")
    heavy = results.where(problem="heavy")
    curves = [worst_by_halves(f"K = {arms}", cells) for arms, cells in groups.items()]
    constants = [as_constant(curve, cells) for curve, cells in zip(curves, groups.values(), strict=True)]
    grown = {curve.label: power(curve, decades=2) for curve in curves if curve.x[-1] >= 99 * curve.x[0]}
    largest = max(float(cell.regret[:, -1].mean()) / corrected(cell) for cell in everything)
    statement = "regret below 200 σ √(KT) log K, whatever the gaps"
    return Finding(
        margin=f"measured / bound at most {largest:.3g}",
        printed=[below_all(statement, everything, [printed(cell) for cell in everything])],
        instead="with Σ Δ_i it",
        claims=[
            in_an_interval(),
            *(below_corrected(f"K = {K}: regret below the bound for every gap", own) for K, own in groups.items()),
            below_corrected("means 10⁴ and 0: regret below the bound", far),
            below_corrected("after Theorem 6: heavy tails, Catoni's estimator, √V in the place of σ", heavy),
        ],
        remarks=[
            Claim(
                f"{label}: the worst regret grows no faster than T^{{0.55}}", found.below(0.55), f"power {found}", True
            )
            for label, found in grown.items()
        ],
        panels=[
            panel("Worst regret over all gaps, as a constant", constants, [printed_line(curves[0].x)], y=UNIT),
            panel(
                "Which gap is the worst",
                [by_gap(cells) for cells in groups.values()],
                [printed_line(np.array([0.25, 1000.0]))],
                x="gap / (σ √(K/T))",
                y=UNIT,
            ),
        ],
        tables=[
            NumberTable(
                "Means 10⁴ and 0, σ = 1, T = 100",
                ["regret", "printed bound", "with Σ Δ_i"],
                [[f"{c.regret[:, -1].mean():,.0f}", f"{printed(c):,.0f}", f"{corrected(c):,.0f}"] for c in far],
            )
        ],
    )


# The rates that the paper quotes for others: UCB, MOSS, UCB-Improved and Gaussian Thompson sampling beside BGE.

ORDERS = {
    "BGE": "√(KT) log K",
    "UCB1": "√(KT log T)",
    "MOSS": "√(KT)",
    "UCB-Improved": "√(KT log K)",
    "Gaussian-TS": "√(KT log K)",
}
FASTER = 0.05  # the power of T by which a regret must not outgrow its order
SIGMA = 0.5  # of rewards in [0, 1]


def quoted_bound(cell: CellResult) -> float:
    """Return the smaller of a policy's bounds, for these gaps and for all; infinite where none has a constant."""
    gaps = cell.problem.gaps
    T = cell.horizon
    K = cell.problem.arms
    match cell.value("policy"):
        case "BGE":
            return float(min(theorem4(gaps, T, SIGMA, SIGMA), corollary1(K, T, SIGMA, gaps)))
        case "UCB1":
            return float(min(ucb1(gaps, T), ucb1_free(K, T, gaps)))
        case "MOSS":
            return float(moss(K, T))
        case "UCB-Improved":
            return float(ucb_improved(gaps, T))
    return math.inf


def below_quoted(name: str, cells: Sequence[CellResult]) -> Claim:
    """Claim that the regret of every cell of a policy is below its bound."""
    over = np.stack([cell.regret[:, -1] / quoted_bound(cell) for cell in cells], axis=1)
    text = f"measured / bound at most {over.mean(axis=0).max():.3g}"
    return Claim(f"{name}: regret below its bound", is_below(over, 1.0), text)


def judge_rates(results: Results) -> Finding:
    """Judge whether every policy lies below its bounds, and its worst regret does not outgrow its order."""
    K = results[0].problem.arms
    cells = {name: results.where(policy=name) for name in ORDERS}
    curves = {name: worst_by_halves(name, own) for name, own in cells.items()}
    telling = {
        name: [cell for cell in own if quoted_bound(cell) < cell.problem.gaps.max() * cell.horizon]
        for name, own in cells.items()
    }
    in_order = {name: curve.over(order(ORDERS[name], K, curve.x)) for name, curve in curves.items()}
    growth = [
        Claim(
            f"{name}: the worst regret does not outgrow {ORDERS[name]}",
            found.below(FASTER),
            f"over it, power {found}",
            large=True,
        )
        for name, curve in in_order.items()
        for found in [power(curve, decades=9)]
    ]
    rivals = [name for name in ORDERS if name != "BGE"]
    over_root = [curve.over(order("√(KT)", K, curve.x)) for curve in curves.values()]
    return Finding(
        margin="worst regret over its order at the longest T "
        + ", ".join(f"{curve.mean[-1]:.2f} ({name}, {ORDERS[name]})" for name, curve in in_order.items()),
        claims=[below_quoted(name, own) for name, own in telling.items() if own] + growth,
        remarks=[
            Claim(
                f"at the longest T the worst regret of BGE is less than that of {name}",
                is_less(curves["BGE"].samples[:, -1], curves[name].samples[:, -1], len(rivals)),
                f"{curves['BGE'].mean[-1]:.0f} and {curves[name].mean[-1]:.0f}",
            )
            for name in rivals
        ],
        left_out=[
            f"{name}: {len(own) - len(telling[name])} of {len(own)} cells, {_why_left_out(name)}"
            for name, own in cells.items()
            if len(telling[name]) < len(own)
        ],
        panels=[
            panel("Worst regret over all gaps", list(curves.values())),
            panel("The same over √(KT)", over_root, y="regret / √(KT)"),
        ],
        tables=[
            NumberTable(
                "Worst regret over its order",
                ["", "order", *(f"T = {T:,.0f}" for T in next(iter(curves.values())).x)],
                [[name, ORDERS[name], *(f"{v:.3f}" for v in curve.mean)] for name, curve in in_order.items()],
            )
        ],
    )


def _why_left_out(name: str) -> str:
    if name == "Gaussian-TS":
        return "Agrawal and Goyal give an order without a constant"
    return "where the bound is above ΔT, the largest regret there is"
