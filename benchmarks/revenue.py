"""How often intervals without a range miss on revenue: `python -m benchmarks.revenue`.

Few visitors buy, for a log-normal sum, and two arms are alike. A policy chooses by the rewards so far, and all is
looked at twenty times. A run counts if the truth is outside at any look. Visitors come in batches of a fiftieth of all
so far, each batch to one arm, so that many runs can be played side by side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from benchmarks.common import table
from rightarm.inference.sequences import Normal, effective_rewards
from rightarm.types import F64

ARMS, LOOKS, FIRST, ERROR = 2, 20, 100, 0.05
RUNS = 4_000


@dataclass(frozen=True)
class Revenue:
    """Rewards of a visitor: ``offset``, and for buyers ``sign`` times a log-normal sum besides."""

    buyers: float
    deviation: float
    """Of the logarithm of the sums."""
    visitors: int
    offset: float = 0.0
    sign: float = 1.0
    location: float = 3.0

    @property
    def mean(self) -> float:
        return self.offset + self.sign * self.buyers * math.exp(self.location + self.deviation**2 / 2)

    @property
    def sigma(self) -> float:
        """The root of the mean square of what buyers bring; nearly the standard deviation where they are few."""
        return math.sqrt(self.buyers) * math.exp(self.location + self.deviation**2)

    def draw(self, random: np.random.Generator, runs: int, size: int) -> tuple[F64, F64, F64, F64]:
        """Of ``size`` visitors of each run: sum, sum of squares, lowest and highest reward."""
        buyers = random.binomial(size, self.buyers, runs)
        owner = np.repeat(np.arange(runs), buyers)
        rewards = self.offset + self.sign * np.exp(random.normal(self.location, self.deviation, owner.size))
        others = size - buyers
        sums = np.bincount(owner, rewards, runs) + others * self.offset
        squares = np.bincount(owner, rewards**2, runs) + others * self.offset**2
        lows, highs = (np.where(others > 0, self.offset, end) for end in (np.inf, -np.inf))
        np.minimum.at(lows, owner, rewards)
        np.maximum.at(highs, owner, rewards)
        return sums, squares, lows, highs


class Looks(NamedTuple):
    """Statistics of the arms' rewards; the axes are looks, runs and arms."""

    counts: F64
    means: F64
    spreads: F64
    lows: F64
    highs: F64


Score = Callable[[np.random.Generator, Revenue, F64, F64, F64], F64]
"""The scores of the arms of many runs, from counts, means and spreads."""


def _thompson(random: np.random.Generator, problem: Revenue, counts: F64, means: F64, spreads: F64) -> F64:
    return means + np.sqrt(spreads) / counts * random.normal(size=means.shape)


def _bge(random: np.random.Generator, problem: Revenue, counts: F64, means: F64, spreads: F64) -> F64:
    return means + problem.sigma / 3 / np.sqrt(counts) * random.gumbel(size=means.shape)


def _scaled(random: np.random.Generator, problem: Revenue, counts: F64, means: F64, spreads: F64) -> F64:
    """`ScaledGumbel` while arms differ by less than their rewards do."""
    sigma = np.sqrt((spreads / (counts + 2)).max(axis=1, keepdims=True))
    return np.asarray(means + sigma / (2 * ARMS ** (1 / 6)) / np.sqrt(counts) * random.gumbel(size=means.shape))


def _greedy(random: np.random.Generator, problem: Revenue, counts: F64, means: F64, spreads: F64) -> F64:
    """ε-greedy with ε = 1/5."""
    explored = np.where(random.random((len(means), 1)) < 0.2, np.inf, 0.0)
    return np.where(explored > 0, random.random(means.shape), means)


def _even(random: np.random.Generator, problem: Revenue, counts: F64, means: F64, spreads: F64) -> F64:
    return random.random(means.shape)


POLICIES: dict[str, Score] = {
    "Thompson": _thompson,
    "BGE, C = σ/3": _bge,
    "ScaledGumbel": _scaled,
    "ε-greedy": _greedy,
    "even": _even,
}


def played(problem: Revenue, policy: str, runs: int, seed: int) -> Looks:
    """What is known of the arms at every look of many runs."""
    random, every = np.random.default_rng(seed), np.arange(runs)
    counts, sums, squares = (np.zeros((runs, ARMS)) for _ in range(3))
    lows, highs = np.full((runs, ARMS), np.inf), np.full((runs, ARMS), -np.inf)
    due, found, visitors = np.geomspace(FIRST, problem.visitors, LOOKS).tolist(), [], 0
    while visitors < problem.visitors:
        size = min(max(1, visitors // 50), problem.visitors - visitors)
        seen = np.maximum(counts, 1)
        means = sums / seen
        spreads = np.maximum(squares - counts * means**2, 0.0)
        scores = POLICIES[policy](random, problem, seen, means, spreads)
        arms = np.where(counts > 0, scores, np.inf).argmax(axis=1)
        total, total_squares, low, high = problem.draw(random, runs, size)
        counts[every, arms] += size
        sums[every, arms] += total
        squares[every, arms] += total_squares
        lows[every, arms] = np.minimum(lows[every, arms], low)
        highs[every, arms] = np.maximum(highs[every, arms], high)
        visitors += size
        if visitors >= due[0] - 1e-6:
            due = [one for one in due if one > visitors + 1e-6]
            means = sums / np.maximum(counts, 1)
            found.append(
                [counts.copy(), means, np.maximum(squares - counts * means**2, 0.0), lows.copy(), highs.copy()]
            )
    return Looks(*np.moveaxis(np.array(found), 1, 0))


class Missed(NamedTuple):
    """In how many runs intervals missed at some look."""

    arms: list[int]
    """The interval of each arm."""
    any: int
    """That of any arm."""
    difference: int
    opened: int
    """Runs in which both arms had an interval at the last look."""


def missed(problem: Revenue, looks: Looks, gate: bool = True) -> Missed:
    """Count the runs that are wrong at any look; without ``gate`` an arm needs 100 rewards that are not all equal."""
    counts, means, spreads, *extremes = looks
    effective = effective_rewards(counts, means, spreads, (extremes[0], extremes[1]))
    rewards = Normal(counts, means, spreads, None, effective if gate else np.where(spreads > 0, counts, 0.0))
    found, above = rewards.intervals(1 - ERROR), rewards.gaps(ERROR / rewards.sides)
    wrong = np.asarray(((found.lows > problem.mean) | (found.highs < problem.mean)).any(axis=0))
    apart = ((above[..., 0, 1] < 0) | (above[..., 1, 0] < 0)).any(axis=0)
    opened = np.isfinite(found.lows[-1]).all(axis=-1)
    return Missed(wrong.sum(axis=0).tolist(), int(wrong.any(axis=1).sum()), int(apart.sum()), int(opened.sum()))


PROBLEMS = {
    f"{100 * buyers:g}% buy, sd {deviation:g}{name}": Revenue(buyers, deviation, visitors, offset, sign)
    for buyers, deviation, visitors in (
        (0.01, 1.0, 100_000),
        (0.03, 1.0, 30_000),
        (0.05, 1.0, 20_000),
        (0.01, 1.5, 400_000),
        (0.03, 1.5, 150_000),
        (0.05, 1.5, 100_000),
    )
    for name, offset, sign in (("", 0.0, 1.0), (", minus 1", -1.0, 1.0), (", 5 minus", 5.0, -1.0))
    if not name or buyers == 0.03
}


def main() -> None:
    """Print the table."""
    rows = []
    for name, problem in PROBLEMS.items():
        for policy in POLICIES:
            looks = played(problem, policy, RUNS, seed=5)
            before, now = missed(problem, looks, gate=False), missed(problem, looks)
            shares = before.any, before.difference, max(now.arms), now.any, now.difference, now.opened
            rows.append([f"{name}: {policy}", *(f"{100 * share / RUNS:.1f}%" for share in shares)])
    titles = ["revenue: policy", "no gate: any arm", "difference", "gate: an arm", "any arm", "difference", "have both"]
    print(table(titles, rows))


if __name__ == "__main__":
    main()
