"""`evaluate` with contexts: `python -m benchmarks.evaluation`. CPU microseconds a row, the least of three turns.

The regression is what a doubly robust estimate adds; the other columns are the whole of `evaluate`.
"""

from __future__ import annotations

import functools
import time
import warnings
from typing import Any

import numpy as np

import rightarm as ra
from benchmarks.common import best_of, table
from rightarm.evaluation.evaluate import RidgeByArm
from rightarm.logs.rows import read_rows

SIZES, ROWS, TURNS = [(10, 10), (10, 64), (34, 20), (100, 20)], 3_000, 3  # arms and features; rows of the log


def even_log(arms: int, features: int) -> dict[str, Any]:
    """A log that was collected evenly at random."""
    random = np.random.default_rng(1)
    rewards = (random.random(ROWS) < 0.3) * 1.0
    contexts = random.normal(size=(ROWS, features))
    return {
        "arm": random.integers(arms, size=ROWS),
        "propensity": np.full(ROWS, 1 / arms),
        "reward": rewards,
        "context": contexts,
    }


def regression_us(log: dict[str, Any], arms: int) -> float:
    """Expecting and learning a row."""
    rows = read_rows(log, range(arms))
    model = RidgeByArm(rows, log["context"])
    start = time.process_time()
    for row in range(ROWS):
        model.expect(row)
        model.learn(row)
    return 1e6 * (time.process_time() - start) / ROWS


def evaluate_us(log: dict[str, Any], arms: int, policy: Any) -> float:
    """All that `evaluate` does."""
    start = time.process_time()
    ra.evaluate(log, policy, arms=range(arms))
    return 1e6 * (time.process_time() - start) / ROWS


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    rows = []
    for arms, features in SIZES:
        log, policy = even_log(arms, features), ra.BoltzmannGumbel(C=0.05, estimator=ra.estimators.Linear(features))
        measures = [
            functools.partial(regression_us, log, arms),
            functools.partial(evaluate_us, log, arms, "uniform"),
            functools.partial(evaluate_us, log, arms, policy),
        ]
        found = [best_of(TURNS, measure) for measure in measures]
        rows.append([f"{arms}, {features}", *(f"{us:.0f}" for us in found)])
    print(table(["arms, features", "regression, µs a row", "evaluate uniform", "evaluate LinBGE"], rows))


if __name__ == "__main__":
    main()
