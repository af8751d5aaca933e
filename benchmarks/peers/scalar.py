"""The plain Numba loop: one replication, one arm, one number at a time. Ties go to the first arm."""

import math
from collections.abc import Callable

import numba
import numpy as np
from numpy.typing import NDArray

from . import EULER_GAMMA, PARAMETERS, bernoulli_means, measure

Score = Callable[[int, int, float, float], float]
Play = Callable[[NDArray[np.float64], int, float, int], float]


@numba.njit()
def bge(t: int, pulls: int, mean: float, C: float) -> float:
    """Score an arm by Boltzmann-Gumbel exploration."""
    return mean + C / math.sqrt(pulls) * np.random.gumbel(EULER_GAMMA, 1.0)


@numba.njit()
def belog(t: int, pulls: int, mean: float, c: float) -> float:
    """Score an arm by Boltzmann exploration at temperature c / log(t)."""
    return mean + c / math.log(t) * np.random.gumbel(EULER_GAMMA, 1.0)


@numba.njit()
def ucb(t: int, pulls: int, mean: float, C: float) -> float:
    """Score an arm by its upper confidence bound."""
    return mean + C * math.sqrt(math.log(t) / pulls)


def player(score: Score) -> Play:
    """Return the compiled loop of one policy."""

    @numba.njit()
    def play(means: NDArray[np.float64], horizon: int, parameter: float, seed: int) -> float:
        np.random.seed(seed)
        arms = len(means)
        pulls = np.zeros(arms, np.int64)
        sums = np.zeros(arms)
        for t in range(1, horizon + 1):
            chosen = t - 1
            if t > arms:
                best = -np.inf
                for arm in range(arms):
                    value = score(t, pulls[arm], sums[arm] / pulls[arm], parameter)
                    if value > best:
                        best, chosen = value, arm
            pulls[chosen] += 1
            if np.random.random() < means[chosen]:
                sums[chosen] += 1.0
        return float(np.sum(pulls * (means.max() - means)))

    return play


PLAYERS: dict[str, Play] = {"bge": player(bge), "belog": player(belog), "ucb": player(ucb)}


def run(policy: str, arms: int, horizon: int, replications: int, seed: int) -> tuple[float, float]:
    """Return CPU nanoseconds per round, compilation excluded, and the mean regret."""
    play, parameter, means = PLAYERS[policy], PARAMETERS[policy], np.array(bernoulli_means(arms))
    play(means, arms + 1, parameter, seed)

    def replicate(replication: int) -> float:
        return play(means, horizon, parameter, seed + replication)

    return measure(replicate, horizon, replications)
