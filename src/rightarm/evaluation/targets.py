"""What `evaluate` and `replay` can evaluate: fixed probabilities, or a policy of rightarm that learns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from rightarm.formula import check_number
from rightarm.live.arms import Arms, Law, draw
from rightarm.scores.policy import Policy
from rightarm.scores.rewards import reward_scale
from rightarm.types import F64, I64

Target = str | float | Policy | Mapping[Any, float]


class Chooser(Protocol):
    """A policy that chooses among arms, which are known by their numbers, and may learn from their rewards."""

    fixed: F64 | None
    """The probability of every arm, if it never changes."""

    def probabilities(self, arms: I64) -> F64:
        """The probability of each of these arms, if they are all that there are."""

    def choose(self, arms: I64, random: np.random.Generator) -> tuple[int, float]:
        """One of these arms, and its probability."""

    def learn(self, arm: int, reward: float, probability: float) -> None:
        """Take the reward of an arm that was chosen with this probability."""


class Fixed:
    """Probabilities that do not change; where only some arms can be chosen, they are taken relative to these."""

    def __init__(self, chances: F64) -> None:
        self.fixed: F64 | None = chances
        self.chances = chances

    def probabilities(self, arms: I64) -> F64:
        chances = self.chances[arms]
        total = chances.sum()
        if not total:
            raise ValueError("the policy gives no probability to any of the arms that a row had to choose among")
        return np.asarray(chances / total)

    def choose(self, arms: I64, random: np.random.Generator) -> tuple[int, float]:
        chances = self.probabilities(arms)
        place = int(random.choice(arms.size, p=chances))
        return int(arms[place]), float(chances[place])

    def learn(self, arm: int, reward: float, probability: float) -> None:
        pass


class Learning:
    """A policy of rightarm, with what it has learned so far."""

    fixed: F64 | None = None

    def __init__(self, policy: Policy, arms: int, reward_range: tuple[float, float]) -> None:
        self.scale = reward_scale(policy, reward_range)
        self.known, self.waiting = Arms(policy), np.zeros(arms, dtype=np.int64)
        self.law: Law | None = None  # that of the present state, until a reward changes it
        for _ in range(arms):
            self.known.add()

    def _law_of(self, arms: I64) -> Law:
        if self.law is None or self.law.members is not arms:
            self.law = self.known.law(arms, self.waiting)
        return self.law

    def probabilities(self, arms: I64) -> F64:
        return self._law_of(arms).chance

    def choose(self, arms: I64, random: np.random.Generator) -> tuple[int, float]:
        law = self._law_of(arms)
        place = draw(law.chance, law.heights, random.random())
        return int(arms[place]), float(law.chance[place])

    def learn(self, arm: int, reward: float, probability: float) -> None:
        self.known.learn(arm, reward if self.scale is None else self.scale.apply(reward), probability)
        self.law = None


def chooser_of(policy: Target, names: list[Any], reward_range: tuple[float, float]) -> Chooser:
    """What chooses as ``policy`` says: a policy of rightarm, "uniform", always one arm, or probabilities by arm."""
    if isinstance(policy, Policy):
        return Learning(policy, len(names), reward_range)
    if policy == "uniform" and "uniform" not in names:
        return Fixed(np.full(len(names), 1 / len(names)))
    if isinstance(policy, str | int | float) and policy in names:  # always this arm
        return Fixed(np.array([float(name == policy) for name in names]))
    if not isinstance(policy, Mapping):
        hint = "; call it with its parameters first" if callable(policy) else ""
        raise TypeError(f"policy must be a policy, 'uniform', an arm, or probabilities by arm, got {policy!r}{hint}")
    for arm, p in policy.items():
        if arm not in names:
            raise ValueError(f"policy must give probabilities to arms of the log, or to others in arms, got {arm!r}")
        if check_number(f"policy[{arm!r}]", p) < 0:
            raise ValueError(f"policy[{arm!r}] must be a probability, got {p}")
    chances = np.array([float(policy.get(name, 0.0)) for name in names])
    if abs(chances.sum() - 1) > 1e-9:
        raise ValueError(f"policy must have probabilities that add up to 1, got {chances.sum()}")
    return Fixed(chances)
