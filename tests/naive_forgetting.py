"""The oracle for estimators that forget, and for variances: every reward in a list, every number summed anew.

The formulas of the policy are taken as NumPy has them (other tests compare these with the papers); what is known of the
arms, which arm goes first, and what a reward adds to a column is written here once more, in plain Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

import rightarm as ra
from naive import Reward, pick

Estimate = Callable[[Sequence[float], Sequence[float]], float]
"""An arm's mean from its rewards that count, the oldest first, and their weights."""


def plain(rewards: Sequence[float], weights: Sequence[float]) -> float:
    return math.fsum(w * x for w, x in zip(weights, rewards, strict=True)) / math.fsum(weights)


def catoni(C: float) -> Estimate:
    """The printed sum, with the sum of the weights for the number of rewards."""

    def estimate(rewards: Sequence[float], weights: Sequence[float]) -> float:
        root, terms = math.sqrt(math.fsum(weights)), []
        for w, x in zip(weights, rewards, strict=True):
            y = abs(x) / (C * root)
            terms.append(w * math.copysign(math.log1p(y + y * y / 2), x))
        return C / root * math.fsum(terms)

    return estimate


class Player:
    """A policy with all rewards that it has seen."""

    def __init__(self, policy: ra.Policy, arms: int, estimate: Estimate) -> None:
        self.policy, self.arms, self.estimate = policy, arms, estimate
        self.discount, self.window = policy.estimator.discount or 1.0, policy.estimator.window
        self.seen: list[tuple[int, float, dict[str, float]]] = []  # arm, reward, what it added to the columns
        self.last = [0] * arms

    def counting(self, arm: int, more: int = 0) -> list[tuple[float, float, dict[str, float]]]:
        """The rewards of an arm that count, ``more`` older ones too: reward, weight, what it added."""
        rounds = len(self.seen)
        first = 0 if self.window is None else max(0, rounds - self.window - more)
        listed = [(self.discount ** (rounds - 1 - i), *self.seen[i]) for i in range(first, rounds)]
        return [(reward, weight, added) for weight, own, reward, added in listed if own == arm]

    def pulls(self, arm: int, more: int = 0) -> float:
        return math.fsum(weight for _, weight, _ in self.counting(arm, more))

    def mean(self, arm: int, more: int = 0) -> float:
        rows = self.counting(arm, more)
        return self.estimate([row[0] for row in rows], [row[1] for row in rows]) if rows else 0.0

    def variance(self, arm: int, more: int = 0) -> float:
        rows = self.counting(arm, more)
        if not rows:
            return 0.0
        centre = plain([row[0] for row in rows], [row[1] for row in rows])
        return math.fsum(w * (x - centre) ** 2 for x, w, _ in rows) / math.fsum(w for _, w, _ in rows)

    def column(self, name: str, arm: int, more: int = 0) -> float:
        return math.fsum(w * added[name] for _, w, added in self.counting(arm, more) if name in added)

    def state(self) -> tuple[float, list[float], list[float], dict[str, list[float]] | None, list[float]]:
        """Round, pulls, means, columns and variances, as formulas see them."""
        every = range(self.arms)
        memory = {name: [self.column(name, arm) for arm in every] for name in self.policy.columns}
        pulls, means = [self.pulls(arm) for arm in every], [self.mean(arm) for arm in every]
        return 1 + math.fsum(pulls), pulls, means, memory or None, [self.variance(arm) for arm in every]

    def choose(self, z: Sequence[float], share: float, ties: Iterator[int]) -> tuple[int, float]:
        """The arm, and the probability that it had if its scores are a location and Gumbel noise."""
        t, pulls, means, memory, variances = self.state()
        forgotten = [arm for arm in range(self.arms) if pulls[arm] < 1e-100]
        if forgotten and self.policy.needs_pulls:
            return min(forgotten, key=lambda arm: self.last[arm]), 1.0
        known = (t, pulls, means)
        arm = pick(self.policy.scores(*known, np.array(z), memory, variances).tolist(), ties)  # type: ignore[arg-type]
        floors, height = self.policy.floors(*known, memory, variances).tolist(), 0.0  # type: ignore[arg-type]
        for other, floor in enumerate(floors):
            if height <= share < height + floor:
                arm = other
            height += floor
        if not self.policy.weighted:
            return arm, 1.0
        locations = self.policy.scores(*known, 0.0, memory, variances)  # type: ignore[arg-type]
        shares = np.exp(locations - locations.max())
        return arm, float(floors[arm] + (1 - sum(floors)) * shares[arm] / shares.sum())

    def learn(self, arm: int, reward: float, probability: float) -> None:
        t = self.state()[0]
        before = {name: self.discount * self.column(name, arm) for name in self.policy.columns}
        self.seen.append((arm, reward, {}))
        self.last[arm] = len(self.seen)
        known = (self.pulls(arm, more=1), self.mean(arm, more=1), reward, before, self.arms, probability)
        after = self.policy.learned(t, *known, variance=self.variance(arm, more=1))  # type: ignore[arg-type]
        self.seen[-1] = arm, reward, {name: after[name] - before[name] for name in after}


def play(
    player: Player,
    reward: Reward,
    noise: Iterable[Sequence[float]],
    shares: Iterable[float],
    luck: Iterable[tuple[float, float, float]],
    ties: Iterator[int],
) -> Iterator[int]:
    """The arm of every round; the problem counts all pulls that there were."""
    pulled = [0] * player.arms
    for t, (z, share, (u, v, w)) in enumerate(zip(noise, shares, luck, strict=True), start=1):
        arm, probability = player.choose(z, share, ties)
        pulled[arm] += 1
        player.learn(arm, reward(t, pulled[arm], arm, u, v, w), probability)
        yield arm
