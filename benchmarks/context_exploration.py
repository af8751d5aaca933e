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


def policies(columns: int) -> list[ra.Policy]:
    """The same policies on a linear model of so many columns."""
    linear = ra.Linear(columns)
    return [
        *(ra.BoltzmannGumbel(C=C, estimator=linear) for C in (0.05, 0.1, 0.2, 0.5)),
        *(ra.UCB(C=C, estimator=linear) for C in (0.1, 0.3)),
        ra.GaussianThompson(sigma=0.5, estimator=linear),
        ra.ScaledGumbel(estimator=linear),
        ra.EpsilonGreedy(0.05, estimator=linear),
    ]


def name(policy: ra.Policy) -> str:
    """A policy without its model."""
    return str(policy).split(", Linear")[0].split("(Linear")[0].replace("(", " ").replace(")", "")


def linear(arms: int, columns: int, noise: float) -> list[str]:
    """Mean regret and 95% quantile of every policy."""
    theta = np.random.default_rng(3).normal(size=(arms, columns)) / np.sqrt(columns)
    problem = ra.LinearProblem(theta, context=ra.GaussianContext(columns), noise=noise)
    result = ra.simulate(policies(columns), problem, horizon=HORIZON, replications=REPLICATIONS, seed=1)
    return [f"{row.mean():,.0f} ({np.quantile(row, 0.95):,.0f})" for row in result.regret[:, :, -1]]


def iris() -> list[str]:
    """The share of right answers of every policy."""
    rows = np.genfromtxt(IRIS, delimiter=",", skip_header=1, dtype=str)
    problem = ra.Classification(rows[:, :-1].astype(float), rows[:, -1])
    result = ra.simulate(policies(rows.shape[1] - 1), problem, horizon=len(rows), replications=REPLICATIONS, seed=1)
    return [f"{1 - row.mean() / len(rows):.2f}" for row in result.regret[:, :, -1]]


def main() -> None:
    """Print a line for each policy."""
    columns = [linear(*problem) for problem in PROBLEMS] + [iris()]
    titles = [f"{arms} arms, {size} columns, noise {noise}" for arms, size, noise in PROBLEMS]
    rows = [[name(policy), *cells] for policy, *cells in zip(policies(1), *columns, strict=True)]
    print(f"mean regret after {HORIZON:,} rounds (95% quantile); share of right answers\n")
    print(table(["policy", *titles, "iris, one pass"], rows))


if __name__ == "__main__":
    main()
