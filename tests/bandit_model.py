"""A bandit that only counts: every reward in a list, every number summed anew. Slow, and easy to believe."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

import rightarm as ra
from naive_memory import influence

Chances = Callable[["Model", list[Hashable]], Any]
FORGOTTEN = 1e-100  # discounted pulls from which on an arm counts as never pulled


def by_policy(model: Model, arms: list[Hashable]) -> Any:
    """The exact probabilities, from the model's own counts; the round is one more than the rewards that count."""
    memory = {name: [model.gained(name, arm) for arm in arms] for name in model.added}
    pulls, means = [model.pulls(arm) for arm in arms], [model.estimate(arm) for arm in arms]
    counting = min(len(model.learned), model.window or len(model.learned))
    return ra.probabilities(model.policy, pulls=pulls, means=means, round=counting + 1, memory=memory or None)


def by_gumbel(model: Model, arms: list[Hashable]) -> Any:
    """Those of Boltzmann-Gumbel exploration by its formula, for pulls that are no whole numbers."""
    scale = model.policy.values["C"] / np.sqrt([model.pulls(arm) for arm in arms])
    location = np.array([model.estimate(arm) for arm in arms]) + scale * model.policy.values["location"]
    return ra.noise.probability_of_largest(ra.noise.Gumbel(), location, scale)


def by_exponents(model: Model, arms: list[Hashable]) -> Any:
    """Those of EXP3 by its formula: (1 − γ) e^(γ Ĝ_i / K) / Σ_j e^(γ Ĝ_j / K) + γ / K."""
    gamma = model.policy.values["gamma"]
    exponents = gamma / len(arms) * np.array([model.gained("gain", arm) for arm in arms])
    weights = np.exp(exponents - exponents.max())
    return (1 - gamma) * weights / weights.sum() + gamma / len(arms)


class Model:
    """What a bandit must know; ``added`` says what a reward of such a probability adds to each column of the policy."""

    def __init__(
        self,
        arms: Iterable[Hashable],
        policy: ra.Policy,
        *,
        floor: float = 0.0,
        discount: float = 1.0,
        window: int | None = None,
        added: dict[str, Callable[[float, float], float]] | None = None,
        chances: Chances = by_policy,
    ) -> None:
        self.arms, self.policy, self.chances, self.floor = list(arms), policy, chances, floor
        self.discount, self.window, self.added = discount, window, added or {}
        self.retired: set[Hashable] = set()
        self.learned: list[tuple[Hashable, float, float]] = []  # arm, reward, propensity
        self.sorted_at, self.sorted = 0, dict[Hashable, list[tuple[float, float, float]]]()
        self.pending: dict[int, tuple[Hashable, float, float]] = {}  # arm, propensity, when it was asked
        self.told: dict[int, float | None] = {}
        self.place: dict[int, int] = {}  # where among ``learned`` the reward of a decision is
        self.cancelled: dict[int, tuple[Hashable, float, float]] = {}

    # What is known.

    def rewards(self, arm: Hashable) -> list[tuple[float, float, float]]:
        """Those of an arm that count: reward, propensity, weight."""
        if self.sorted_at != len(self.learned):
            self.sorted_at, self.sorted = len(self.learned), {}
            counting = self.learned if self.window is None else self.learned[-self.window :]
            for age, (own, reward, p) in enumerate(reversed(counting)):  # the last reward has age 0
                self.sorted.setdefault(own, []).append((reward, p, self.discount**age))
        return self.sorted.get(arm, [])

    def pulls(self, arm: Hashable) -> float:
        return math.fsum(weight for _, _, weight in self.rewards(arm))

    def mean(self, arm: Hashable) -> float:
        total = math.fsum(reward * weight for reward, _, weight in self.rewards(arm))
        return total / self.pulls(arm) if self.rewards(arm) else 0.0

    def estimate(self, arm: Hashable) -> float:
        if not isinstance(self.policy.estimator, ra.estimators.Catoni):
            return self.mean(arm)
        C, root = self.policy.values["C"], math.sqrt(self.pulls(arm))
        terms = [weight * influence(reward / (C * root)) for reward, _, weight in self.rewards(arm)]
        return C / root * math.fsum(terms) if terms else 0.0

    def gained(self, name: str, arm: Hashable) -> float:
        """What the rewards of an arm have added to a column."""
        return math.fsum(weight * self.added[name](reward, p) for reward, p, weight in self.rewards(arm))

    def lifetime(self) -> tuple[list[float], list[float], list[float]]:
        """Of every arm the number of all rewards, also of those that count no more, their mean, and Σ (x − mean)²."""
        counts, means, spreads = list[float](), list[float](), list[float]()
        for arm in self.arms:
            rewards = [reward for own, reward, _ in self.learned if own == arm]
            counts.append(len(rewards))
            means.append(math.fsum(rewards) / len(rewards) if rewards else 0.0)
            spreads.append(math.fsum((reward - means[-1]) ** 2 for reward in rewards))
        return counts, means, spreads

    @property
    def round(self) -> int:
        """The rewards learned ever, and one."""
        return len(self.learned) + 1

    def waiting(self, arm: Hashable) -> int:
        return sum(own == arm for own, _, _ in self.pending.values())

    def probabilities(self, allowed: Iterable[Hashable] | None = None) -> dict[Hashable, float]:
        chosen = self.arms if allowed is None else list(allowed)
        arms = [arm for arm in self.arms if arm in chosen and arm not in self.retired]
        new = [arm for arm in arms if self.pulls(arm) < FORGOTTEN]
        if new and self.policy.decision_inputs & {"pulls", "mean", "best", "worst"}:
            others, free = [arm for arm in arms if arm not in new], [arm for arm in new if not self.waiting(arm)]
            if not others:
                chances = [1 / len(arms)] * len(arms)
            elif free:
                chances = [(arm in free) / len(free) for arm in arms]
            else:
                law = dict(zip(others, self.chances(self, others), strict=True))
                chances = [law[arm] * len(others) / len(arms) if arm in law else 1 / len(arms) for arm in arms]
        else:
            chances = self.chances(self, arms)
        rest = 1 - self.floor * len(arms)
        return {arm: self.floor + rest * float(p) for arm, p in zip(arms, chances, strict=True)}

    # What happens.

    def ask(self, decision: ra.Decision[Any], now: float) -> None:
        assert decision.id not in self.pending
        assert decision.id not in self.told
        self.pending[decision.id] = (decision.arm, decision.propensity, now)

    def reward(self, arm: Hashable, reward: float, propensity: float = 1.0) -> None:
        self.learned.append((arm, reward, propensity))

    def tell(self, number: int, reward: float) -> bool | None:
        """Whether it is learned; None if it contradicts what was told before."""
        if number in self.pending:
            arm, propensity, _ = self.pending.pop(number)
            self.told[number], self.place[number] = reward, len(self.learned)
            self.reward(arm, reward, propensity)
            return True
        return False if self.told[number] == reward else None

    def correct(self, number: int, reward: float) -> None:
        """Put a reward in the place of the one that was learned; of a cancelled decision learn it now."""
        if number in self.place:
            arm, _, propensity = self.learned[self.place[number]]
            self.learned[self.place[number]] = (arm, reward, propensity)
        else:
            self.place[number] = len(self.learned)
            arm, propensity, _ = self.cancelled[number]
            self.reward(arm, reward, propensity)
        self.told[number], self.sorted_at = reward, -1

    def cancel(self, number: int) -> bool:
        if number not in self.pending:
            return False
        self.cancelled[number] = self.pending.pop(number)
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
