"""The plain NumPy loop: one replication at a time, vectorised over arms. Ties go to the first arm."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from . import EULER_GAMMA, PARAMETERS, bernoulli_means, measure

Array = NDArray[np.float64]


def bge(rng: np.random.Generator, t: int, pulls: Array, mean: Array, C: float) -> Array:
    """Score the arms by Boltzmann-Gumbel exploration."""
    return mean + C / np.sqrt(pulls) * rng.gumbel(EULER_GAMMA, size=len(pulls))


def belog(rng: np.random.Generator, t: int, pulls: Array, mean: Array, c: float) -> Array:
    """Score the arms by Boltzmann exploration at temperature c / log(t)."""
    return mean + c / math.log(t) * rng.gumbel(EULER_GAMMA, size=len(pulls))


def ucb(rng: np.random.Generator, t: int, pulls: Array, mean: Array, C: float) -> Array:
    """Score the arms by their upper confidence bounds."""
    return mean + C * np.sqrt(math.log(t) / pulls)


Score = Callable[[np.random.Generator, int, Array, Array, float], Array]
SCORES: dict[str, Score] = {"bge": bge, "belog": belog, "ucb": ucb}


def play(policy: str, means: Array, horizon: int, rng: np.random.Generator) -> float:
    """Play one replication and return its regret."""
    score, parameter, arms = SCORES[policy], PARAMETERS[policy], len(means)
    pulls, sums = np.zeros(arms), np.zeros(arms)
    for t in range(1, horizon + 1):
        chosen = t - 1 if t <= arms else np.argmax(score(rng, t, pulls, sums / pulls, parameter))
        pulls[chosen] += 1
        sums[chosen] += rng.random() < means[chosen]
    return float(pulls @ (means.max() - means))


def run(policy: str, arms: int, horizon: int, replications: int, seed: int) -> tuple[float, float]:
    """Return CPU nanoseconds per round and the mean regret."""
    means = np.array(bernoulli_means(arms))

    def replicate(replication: int) -> float:
        return play(policy, means, horizon, np.random.default_rng([seed, replication]))

    return measure(replicate, horizon, replications)
