"""Theorem 6: with Catoni's estimator Theorem 4's bound holds for heavy tails, the second moment in place of σ²."""

from __future__ import annotations

from rightarm.lab.paper.finding import BOUNDED, GROWTH, Finding, Study
from rightarm.lab.paper.theorem4 import TELLING, fraction, judge_bounds
from rightarm.lab.results import Loaded
from rightarm.theory import theorem6


def judge(results: Loaded) -> Finding:
    """Regret lies below the bound for every C and both laws."""
    curves, bounds = [], []
    for cell in results:
        V = float(cell.problem.second_moments.max())
        curves.append(cell.curve(f"{cell.value('problem')}, C = {fraction('√V', cell)}"))
        bounds.append(theorem6(cell.problem.gaps, curves[-1].x, cell.policy.values["C"], V))
    names = dict.fromkeys(str(cell.value("problem")) for cell in results)
    groups = {f", {name}": [curve for curve in curves if curve.label.startswith(f"{name}, ")] for name in names}
    return judge_bounds(curves, bounds, float(results[0].problem.gaps.max()), groups, [])


STUDY = Study(
    name="theorem6",
    claim="With Catoni's estimator in the place of the mean, Boltzmann–Gumbel exploration keeps Theorem 4's bound for "
    "all rewards whose second moment is at most V, with V in the place of σ².",
    formula="R_T ≤ Σ_i [ 9C² log_+²(TΔ_i²/c²) + c² e^γ + 18C² e^{V/2C²} (1 + e^{−γ}) ] / Δ_i + Σ_i Δ_i,  c = √V",
    setting="Five arms, all gaps 1/2: Student's t with 3 degrees of freedom around 1 and 1/2, and Pareto with index 3 "
    "and means 3/2 and 1; neither has a third moment. C is √V, and 2 and 4 times too small. The logarithm has TΔ_i², "
    "as the proof has it; printed is TΔ_i.",
    criteria=(BOUNDED, TELLING, GROWTH),
    judge=judge,
)
