"""Logs of policies that learn, made up for the tests of evaluation."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

MEANS = np.array([0.7, 0.4, 0.5])


LAW = {"a": 0.2, "b": 0.5, "c": 0.3}
Log = dict[str, list[Any]]


def softmax_log(seed: int, rounds: int, eta: float = 4.0, floor: float = 0.05, means: Any = MEANS) -> Log:
    """A log of softmax over the means so far, mixed with a floor: as adaptive as a log can be."""
    random, means = np.random.default_rng(seed), np.asarray(means)
    pulls, sums = np.ones(means.size), np.full(means.size, 0.5)
    rows: Log = {"arm": [], "propensity": [], "reward": []}
    for _ in range(rounds):
        weights = np.exp(eta * sums / pulls)
        p = floor + (1 - floor * means.size) * weights / weights.sum()
        arm = int(random.choice(means.size, p=p))
        reward = float(random.random() < means[arm])
        pulls[arm] += 1
        sums[arm] += reward
        for name, value in zip(rows, ("abcdefgh"[arm], float(p[arm]), reward), strict=True):
            rows[name].append(value)
    return rows


def even_log(seed: int, rounds: int, means: Any = MEANS) -> Log:
    return softmax_log(seed, rounds, eta=0.0, floor=0.0, means=means)


@functools.cache
def adaptive_logs() -> list[Log]:
    return [softmax_log(seed, 200, eta=10.0) for seed in range(300)]


def z(values: list[float], truth: float) -> float:
    return (float(np.mean(values)) - truth) / (float(np.std(values, ddof=1)) / math.sqrt(len(values)))
