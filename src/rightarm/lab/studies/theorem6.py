"""Theorem 6: with Catoni's estimator Theorem 4's bound holds for heavy tails, the second moment in place of σ²."""

from __future__ import annotations

import numpy as np

from rightarm.lab.studies.theorem4 import judge_bounds
from rightarm.lab.study import Cell, Finding, Key, Samples, Study, rounds_between
from rightarm.policies import BoltzmannGumbel
from rightarm.problems import Pareto, Problem, StudentT
from rightarm.theory import theorem6

PROBLEMS: dict[str, Problem] = {
    "Student's t": StudentT(mean=[1.0] + [0.5] * 4, df=3.0, scale=1.0),
    "Pareto": Pareto(alpha=3.0, scale=[1.0] + [2 / 3] * 4),
}
GAP = 0.5
PARTS = (1, 2, 4)  # √V is taken to be so many times smaller than it is


def moment(problem: Problem) -> float:
    """V, the largest second moment of an arm."""
    return float(problem.second_moments.max())


def cells(quick: bool) -> dict[Key, Cell]:
    """Rewards without a moment generating function."""
    rounds = rounds_between(100, 10**5) if quick else rounds_between(10**3, 10**7)
    return {
        (name, part): Cell(
            BoltzmannGumbel(C=np.sqrt(moment(problem)) / part, estimator="catoni"),
            problem,
            rounds,
            32,
        )
        for name, problem in PROBLEMS.items()
        for part in PARTS
    }


def judge(samples: Samples) -> Finding:
    """Regret lies below the bound for every C and both laws."""
    curves, bounds = [], []
    for (name, part), sample in samples.items():
        V = moment(PROBLEMS[name])
        curves.append(sample.curve(f"{name}, C = √V" + (f"/{part}" if part > 1 else "")))
        bounds.append(theorem6(PROBLEMS[name].gaps, curves[-1].x, np.sqrt(V) / part, V))
    names = [name for name, _ in samples]
    groups = {f", {name}": [i for i, own in enumerate(names) if own == name] for name in PROBLEMS}
    return judge_bounds(curves, bounds, GAP, groups, [])


STUDY = Study(
    name="theorem6",
    title="Theorem 6: heavy tails",
    claim="With Catoni's estimator in the place of the mean, Boltzmann–Gumbel exploration keeps Theorem 4's bound for "
    "all rewards whose second moment is at most V, with V in the place of σ².",
    formula="R_T ≤ Σ_i [ 9C² log_+²(TΔ_i²/c²) + c² e^γ + 18C² e^{V/2C²} (1 + e^{−γ}) ] / Δ_i + Σ_i Δ_i,  c = √V",
    setting="Five arms, all gaps 1/2: Student's t with 3 degrees of freedom around 1 and 1/2, and Pareto with index 3 "
    "and means 3/2 and 1; neither has a third moment. C is √V, and 2 and 4 times too small. The logarithm has TΔ_i², "
    "as the proof has it; printed is TΔ_i.",
    cells=cells,
    judge=judge,
)
