"""How much to explore with contexts: `python -m benchmarks.context_exploration`.

Regret of several policies on linear problems, long runs, and the share of right answers in one pass over a data set.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import rightarm as ra
from benchmarks.common import table

IRIS = Path(__file__).parent.parent / "examples" / "iris.csv"
PROBLEMS = [(5, 3, 0.5), (10, 10, 0.5), (5, 3, 0.1), (10, 10, 0.1)]  # arms, columns, deviation of the noise
HORIZON, REPLICATIONS = 10_000, 100


def policies(columns: int) -> dict[str, ra.Policy]:
    """Policies on a linear model of so many columns, by what to call them."""
    linear, plain = ra.estimators.Linear(columns), ra.estimators.Linear(columns, standardise=False)
    return {
        **{f"BoltzmannGumbel(C={C})": ra.BoltzmannGumbel(C=C, estimator=linear) for C in (0.05, 0.1, 0.2, 0.5)},
        **{f"UCB(C={C})": ra.UCB(C=C, estimator=linear) for C in (0.1, 0.2, 0.3)},
        "GaussianThompson(sigma=0.5)": ra.GaussianThompson(sigma=0.5, estimator=linear),
        "ResidualGumbel()": ra.ResidualGumbel(estimator=linear),
        "ScaledGumbel()": ra.ScaledGumbel(estimator=linear),
        "EpsilonGreedy(0.05)": ra.EpsilonGreedy(0.05, estimator=linear),
        "BoltzmannGumbel(C=0.1), standardise=False": ra.BoltzmannGumbel(C=0.1, estimator=plain),
        "UCB(C=0.2), standardise=False": ra.UCB(C=0.2, estimator=plain),
    }


def linear(arms: int, columns: int, noise: float) -> list[str]:
    """Mean regret and 95% quantile of every policy."""
    theta = np.random.default_rng(3).normal(size=(arms, columns)) / np.sqrt(columns)
    problem = ra.problems.LinearProblem(theta, context=ra.problems.GaussianContext(columns), noise=noise)
    played = list(policies(columns).values())
    result = ra.simulate(played, problem, horizon=HORIZON, replications=REPLICATIONS, seed=1)
    return [f"{row.mean():,.0f} ({np.quantile(row, 0.95):,.0f})" for row in result.regret[:, :, -1]]


def iris() -> list[str]:
    """The share of right answers of every policy."""
    rows = np.genfromtxt(IRIS, delimiter=",", skip_header=1, dtype=str)
    problem = ra.problems.Classification(rows[:, :-1].astype(float), rows[:, -1])
    played = list(policies(rows.shape[1] - 1).values())
    result = ra.simulate(played, problem, horizon=len(rows), replications=REPLICATIONS, seed=1)
    return [f"{1 - row.mean() / len(rows):.2f}" for row in result.regret[:, :, -1]]


def main() -> None:
    """Print a line for each policy."""
    columns = [linear(*problem) for problem in PROBLEMS] + [iris()]
    titles = [f"{arms} arms, {size} columns, noise {noise}" for arms, size, noise in PROBLEMS]
    rows = [list(line) for line in zip(policies(1), *columns, strict=True)]
    print(f"mean regret after {HORIZON:,} rounds (95% quantile); share of right answers\n")
    print(table(["policy", *titles, "iris, one pass"], rows))


if __name__ == "__main__":
    main()
