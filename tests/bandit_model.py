"""A bandit that only counts: every reward in a list, every number summed anew. Slow, and easy to believe."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

import rightarm as ra
from naive_memory import influence

Chances = Callable[["Model", list[Hashable]], Any]
FORGOTTEN = 1e-9  # discounted pulls from which on an arm counts as never pulled


def by_policy(model: Model, arms: list[Hashable]) -> Any:
    """The exact probabilities, from the model's own counts."""
    memory = {name: [model.memory[name].get(arm, 0.0) for arm in arms] for name in model.memory}
    pulls, means = [model.pulls(arm) for arm in arms], [model.estimate(arm) for arm in arms]
    return ra.probabilities(model.policy, pulls=pulls, means=means, round=model.round, memory=memory or None)


def by_gumbel(model: Model, arms: list[Hashable]) -> Any:
    """Those of Boltzmann-Gumbel exploration by its formula, for pulls that are no whole numbers."""
    scale = model.policy.values["C"] / np.sqrt([model.pulls(arm) for arm in arms])
    location = np.array([model.estimate(arm) for arm in arms]) + scale * model.policy.values["location"]
    return ra.propensity.of_largest(ra.noise.Gumbel(), location, scale)


class Model:
    """What a bandit must know; ``learn`` says how the policy's own columns go on, of the old value, reward and p."""

    def __init__(
        self,
        arms: Iterable[Hashable],
        policy: ra.Policy,
        *,
        floor: float = 0.0,
        discount: float = 1.0,
        window: int | None = None,
        learn: dict[str, Callable[[float, float, float], float]] | None = None,
        chances: Chances = by_policy,
    ) -> None:
        self.arms, self.policy, self.chances, self.floor = list(arms), policy, chances, floor
        self.discount, self.window, self.learn = discount, window, learn or {}
        self.retired: set[Hashable] = set()
        self.learned: list[tuple[Hashable, float]] = []
        self.pending: dict[int, tuple[Hashable, float, float]] = {}  # arm, propensity, when it was asked
        self.told: dict[int, float | None] = {}
        self.memory: dict[str, dict[Hashable, float]] = {name: {} for name in self.learn}

    # What is known.

    def rewards(self, arm: Hashable) -> list[tuple[float, float]]:
        """Those of an arm that count, each with its weight."""
        counting = self.learned if self.window is None else self.learned[-self.window :]
        return [
            (reward, self.discount**age) for age, (own, reward) in enumerate(reversed(counting)) if own == arm
        ]  # the last reward has age 0

    def pulls(self, arm: Hashable) -> float:
        return math.fsum(weight for _, weight in self.rewards(arm))

    def mean(self, arm: Hashable) -> float:
        total = math.fsum(reward * weight for reward, weight in self.rewards(arm))
        return total / self.pulls(arm) if self.rewards(arm) else 0.0

    def estimate(self, arm: Hashable) -> float:
        if self.policy.estimator == "mean":
            return self.mean(arm)
        rewards, C = [reward for reward, _ in self.rewards(arm)], self.policy.values["C"]
        root = math.sqrt(len(rewards))
        return C / root * math.fsum(influence(reward / (C * root)) for reward in rewards) if rewards else 0.0

    @property
    def round(self) -> int:
        """The rewards that count, and one."""
        if self.discount < 1:
            return round(sum(self.pulls(arm) for arm in self.arms)) + 1
        return min(len(self.learned), self.window or len(self.learned)) + 1

    def waiting(self, arm: Hashable) -> int:
        return sum(own == arm for own, _, _ in self.pending.values())

    def probabilities(self, among: Iterable[Hashable] | None = None) -> dict[Hashable, float]:
        chosen = self.arms if among is None else list(among)
        arms = [arm for arm in self.arms if arm in chosen and arm not in self.retired]
        new = [arm for arm in arms if self.pulls(arm) < FORGOTTEN]
        if new and self.policy.decision_inputs & {"pulls", "mean", "best", "worst"}:
            first = min(new, key=self.waiting)  # min takes the first of several
            chances = [float(arm == first) for arm in arms]
        else:
            chances = self.chances(self, arms)
        rest = 1 - self.floor * len(arms)
        return {arm: self.floor + rest * float(p) for arm, p in zip(arms, chances, strict=True)}

    # What happens.

    def ask(self, decision: ra.Decision, now: float) -> None:
        assert decision.id not in self.pending
        assert decision.id not in self.told
        self.pending[decision.id] = (decision.arm, decision.propensity, now)

    def reward(self, arm: Hashable, reward: float, propensity: float = 1.0) -> None:
        self.learned.append((arm, reward))
        for name, rule in self.learn.items():
            self.memory[name][arm] = rule(self.memory[name].get(arm, 0.0), reward, propensity)

    def tell(self, number: int, reward: float) -> bool | None:
        """Whether it is learned; None if it contradicts what was told before."""
        if number in self.pending:
            arm, propensity, _ = self.pending.pop(number)
            self.told[number] = reward
            self.reward(arm, reward, propensity)
            return True
        return False if self.told[number] == reward else None

    def cancel(self, number: int) -> bool:
        if number not in self.pending:
            return False
        del self.pending[number]
        self.told[number] = None
        return True

    def expire(self, before: float, reward: float | None) -> int:
        late = [number for number, (_, _, asked) in self.pending.items() if asked < before]
        for number in sorted(late):
            if reward is None:
                self.cancel(number)
            else:
                self.tell(number, reward)
        return len(late)
