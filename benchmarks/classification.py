"""One pass over data sets of scikit-learn as bandits: `python -m benchmarks.classification`.

The share of right answers, each pass in another order of the rows.
"""

from __future__ import annotations

import rightarm as ra
from benchmarks.common import CACHE, table
from benchmarks.peers import data_sets

ORDERS = {"iris": 100, "wine": 100, "breast_cancer": 100, "digits": 20}


def policies(columns: int) -> dict[str, ra.Policy]:
    """Policies on a linear model of so many columns, by what to call them."""
    linear = ra.estimators.Linear(columns)
    return {
        "BoltzmannGumbel(C=0.05)": ra.BoltzmannGumbel(C=0.05, estimator=linear),
        "UCB(C=0.1)": ra.UCB(C=0.1, estimator=linear),
        "GaussianThompson(sigma=0.1)": ra.GaussianThompson(sigma=0.1, estimator=linear),
        "ResidualGumbel()": ra.ResidualGumbel(estimator=linear),
        "ScaledGumbel()": ra.ScaledGumbel(estimator=linear),
        "EpsilonGreedy(0.05)": ra.EpsilonGreedy(0.05, estimator=linear),
        "BoltzmannGumbel(C=0.5)": ra.BoltzmannGumbel(C=0.5, estimator=linear),
        "BoltzmannGumbel(C=0.05), ridge=1": ra.BoltzmannGumbel(
            C=0.05, estimator=ra.estimators.Linear(columns, ridge=1.0)
        ),
        "BoltzmannGumbel(C=0.05), standardise=False": ra.BoltzmannGumbel(
            C=0.05, estimator=ra.estimators.Linear(columns, standardise=False)
        ),
        "BoltzmannGumbel(C=0.05) without contexts": ra.BoltzmannGumbel(C=0.05),
    }


def shares(name: str) -> list[str]:
    """The share of right answers of every policy on one data set."""
    rows, classes = data_sets.run(name, CACHE)
    problem, played = ra.problems.Classification(rows, classes), list(policies(len(rows[0])).values())
    result = ra.simulate(played, problem, horizon=len(rows), replications=ORDERS[name], seed=1)
    return [f"{1 - regret.mean() / len(rows):.2f}" for regret in result.regret[:, :, -1]]


def main() -> None:
    """Print a line for each policy."""
    lines = zip(policies(1), *map(shares, ORDERS), strict=True)
    print(table(["", *ORDERS], [list(line) for line in lines]))


if __name__ == "__main__":
    main()
