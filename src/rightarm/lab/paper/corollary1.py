"""Corollary 1: with C = σ the regret is at most 200 σ √(KT) log K + Σ Δ_i, whatever the gaps."""

from __future__ import annotations

import math

import numpy as np

from rightarm.lab.paper.evidence import decided, is_below, power
from rightarm.lab.paper.finding import BOUNDED, Claim, Finding, Study, Table, panel, worst_by_halves
from rightarm.lab.results import CellResult, Loaded
from rightarm.simulation.panels import Line
from rightarm.simulation.statistics import Curve
from rightarm.theory import corollary1, corollary1_constant
from rightarm.types import F64

PRINTED = 200  # the constant of the bound


def scale(cell: CellResult) -> float:
    """σ, or √V where tails are heavy: the C of the policy."""
    return float(cell.policy.values["C"])


def printed(cell: CellResult) -> float:
    """The bound as the paper prints it."""
    return float(corollary1(cell.problem.arms, cell.horizon, scale(cell)))


def corrected(cell: CellResult) -> float:
    """The bound with the price of the first pulls."""
    return float(corollary1(cell.problem.arms, cell.horizon, scale(cell), cell.problem.gaps))


def below_all(statement: str, cells: list[CellResult], bounds: list[float]) -> Claim:
    """The claim that the regret of every cell is below its bound."""
    over: F64 = np.stack([cell.regret[:, -1] / bound for cell, bound in zip(cells, bounds, strict=True)], axis=1)
    worst = cells[int(over.mean(axis=0).argmax())]
    text = f"measured / bound at most {over.mean(axis=0).max():.3g}, with gap {worst.problem.gaps.max():.3g}, "
    return Claim(statement, is_below(over, 1.0), text + f"T = {worst.horizon:,}, K = {worst.problem.arms}")


def in_an_interval() -> Claim:
    """That the printed bound holds where all rewards lie in an interval: by the proof's own steps."""
    constant = corollary1_constant(2)
    return Claim(
        "rewards in an interval of any length, σ half of it: the printed bound holds for every K and T",
        decided(constant <= PRINTED, constant > PRINTED),
        f"computed, not simulated: there Σ Δ_i ≤ 2σ√(KT), and the proof gives {constant:.1f} in the place of {PRINTED} "
        "for two arms, and less for more",
    )


def by_gap(cells: list[CellResult]) -> Curve:
    """Regret at the longest T against the gap, in units of σ √(KT) log K."""
    T = max(cell.horizon for cell in cells)
    own = [cell for cell in cells if cell.horizon == T]
    label = f"K = {own[0].problem.arms}, T = {T:,}"
    unit = printed(own[0]) / PRINTED
    return Curve.of_ends(label, [c.curve() for c in own], [c.value("factor") for c in own]).over(unit)


def judge(results: Loaded) -> Finding:
    """Regret lies below the corrected bound for all gaps, and not below the printed one where gaps are huge."""
    arms = sorted({cell.problem.arms for cell in results.where(problem="gap")})
    groups = [[cell for cell in results.where(problem="gap") if cell.problem.arms == K] for K in arms]
    far, heavy = results.where(problem="far"), results.where(problem="heavy")
    curves = [worst_by_halves(f"K = {cells[0].problem.arms}", cells) for cells in groups]
    constants = [c.over([_unit(K, T, scale(g[0])) for T in c.x]) for K, c, g in zip(arms, curves, groups, strict=True)]
    grown = {curve.label: power(curve, decades=2) for curve in curves if curve.x[-1] >= 99 * curve.x[0]}
    everything = list(results)
    largest = max(float(cell.regret[:, -1].mean()) / corrected(cell) for cell in everything)
    return Finding(
        margin=f"measured / bound at most {largest:.3g}",
        printed=[
            below_all("regret below 200 σ √(KT) log K, whatever the gaps", everything, list(map(printed, everything)))
        ],
        instead="with Σ Δ_i it",
        claims=[
            in_an_interval(),
            *(
                below_all(f"K = {K}: regret below the bound for every gap", cells, list(map(corrected, cells)))
                for K, cells in zip(arms, groups, strict=True)
            ),
            below_all("means 10⁴ and 0: regret below the bound", far, list(map(corrected, far))),
            below_all(
                "after Theorem 6: heavy tails, Catoni's estimator, √V in the place of σ",
                heavy,
                list(map(corrected, heavy)),
            ),
        ],
        remarks=[
            Claim(
                f"{label}: the worst regret grows no faster than T^{{0.55}}", found.below(0.55), f"power {found}", True
            )
            for label, found in grown.items()
        ],
        panels=[
            panel(
                "Worst regret over all gaps, as a constant",
                constants,
                [Line("printed", curves[0].x, np.full(curves[0].x.size, float(PRINTED)))],
                y="regret / (σ √(KT) log K)",
            ),
            panel(
                "Which gap is the worst",
                [by_gap(cells) for cells in groups],
                [Line("printed", np.array([0.25, 1000.0]), np.full(2, float(PRINTED)))],
                x="gap / (σ √(K/T))",
                y="regret / (σ √(KT) log K)",
            ),
        ],
        tables=[
            Table(
                "Means 10⁴ and 0, σ = 1, T = 100",
                ["regret", "printed bound", "with Σ Δ_i"],
                [[f"{c.regret[:, -1].mean():,.0f}", f"{printed(c):,.0f}", f"{corrected(c):,.0f}"] for c in far],
            )
        ],
    )


def _unit(arms: int, horizon: float, sigma: float) -> float:
    return sigma * math.sqrt(arms * horizon) * math.log(arms)


STUDY = Study(
    name="corollary1",
    claim="With C = σ the regret of Boltzmann–Gumbel exploration is at most 200 σ √(KT) log K plus the sum of the "
    "gaps, however small or large they are. Printed without that sum it is false for gaps that are large against σ: "
    "every arm is pulled once, and the proof drops Theorem 4's last term. Where all rewards lie in an interval, as in "
    "[0, 1], gaps cannot be so large, and the printed bound holds.",
    formula="R_T ≤ 200 σ √(KT) log K + Σ_i Δ_i",
    setting="Gaussian rewards, σ = 1; the best arm is better than all others by a gap of 0.25 to 1,000 times σ√(K/T). "
    "Besides, means 10⁴ and 0 in 100 rounds; and Student's t with 3 degrees of freedom with Catoni's estimator and "
    "C = √V, for the remark after Theorem 6.",
    criteria=(
        BOUNDED,
        "Every gap counts, none is chosen. In the pictures the worst gap is chosen by half of the replications, and "
        "drawn is the regret of the other half.",
    ),
    judge=judge,
)
