"""Corrections leave no trace: afterwards all is what it would be had the right reward come, or nothing has changed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from bandits import BGE, Clock
from rightarm.estimators import arrowhead
from rightarm.estimators.statistics import COUNT
from rightarm.live import ledger
from rightarm.live.contextual import ContextArms
from rightarm.types import F64

ARMS = ["a", "b", "c"]
DIGITS = 1e-12
WRONG = [3.0, 1e9, 1794956542.0, 1e20]  # among them a moment in seconds, told by mistake


class Leaning(ra.Estimator):
    """An estimator of one's own, whose numbers depend on the order of the rewards."""

    KEEPS = 2

    @staticmethod
    def learn(kept: Any, reward: float) -> None:
        kept[0] += 0.1 * (reward - kept[0])
        kept[1] += 1.0

    @staticmethod
    def read(kept: Any) -> tuple[float, float]:
        return kept[0], kept[1]


def scaled(estimator: Any) -> ra.Policy:
    return ra.ScaledGumbel(estimator=estimator)


CASES: dict[str, tuple[ra.Policy, dict[str, Any]]] = {
    "default": (ra.ScaledGumbel(), {}),
    "discount": (ra.ScaledGumbel(), {"discount": 0.97}),
    "window": (ra.ScaledGumbel(), {"window": 40}),
    "catoni": (scaled(ra.Catoni(C=1.0)), {}),
    "catoni, discount": (scaled(ra.Catoni(C=1.0, discount=0.97)), {}),
    "catoni, window": (scaled(ra.Catoni(C=1.0, window=40)), {}),
    "median": (scaled(ra.MedianOfMeans(groups=5)), {}),
    "one's own": (scaled(Leaning()), {}),
    "linear": (scaled(ra.Linear(2)), {}),
    "linear, raw": (scaled(ra.Linear(2, standardise=False)), {}),
    "linear, discount": (scaled(ra.Linear(2, discount=0.97)), {}),
    "linear, shared": (scaled(ra.Linear(2, private=["x0"])), {}),
    "linear, shared, discount": (scaled(ra.Linear(2, private=["x0"], discount=0.97)), {}),
}
LOGISTIC = ra.LinTS(sigma=1.0, estimator=ra.Logistic(2))


class Story:
    """What happens to a bandit by chance: the same arms, contexts and rewards for all bandits of a seed."""

    def __init__(self, bandit: Any, seed: int, rewards: Any = None) -> None:
        self.bandit, self.random = bandit, np.random.default_rng(seed)
        self.rewards = rewards if rewards is not None else lambda random: 0.5 + 0.2 * random.normal()

    def context(self) -> Any:
        x = [float(self.random.normal()), float(self.random.normal(5.0))]
        return x if self.bandit.policy.estimator.asks_context else None

    def step(self, instead: float | None = None) -> Any:
        """Tell a reward, or another one instead."""
        arm, context, observes = ARMS[self.random.integers(3)], self.context(), self.random.random() < 0.1
        reward = float(self.rewards(self.random))
        if observes and instead is None:
            self.bandit.tell(arm=arm, reward=reward, context=context)
            return None
        decision = self.bandit.ask(among=[arm], context=context)
        self.bandit.tell(decision, reward if instead is None else instead)
        return decision

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step()


def played(bandit: Any, seed: int, wrong: float, right: float, before: int = 20, after: int = 15, **options: Any) -> Any:
    """Play a story in which one reward is told as ``wrong`` and corrected later."""
    story = Story(bandit, seed, **options)
    story.steps(before)
    decision = story.step(wrong)
    story.steps(after)
    if wrong != right:
        assert story.bandit.correct(decision, right) is True
    return bandit


def learned(bandit: Any) -> dict[str, F64]:
    """All numbers that a bandit has learned, each row such that rounding is in proportion to its largest number."""
    known = bandit._state.known
    counts, means, spreads = known.lifetime()
    plain = {"counts": counts, "means": means, "spreads": spreads}
    rows = {f"{name} of {arm}": plain[name][[arm]] for name in plain for arm in range(len(ARMS))}
    for arm in range(len(ARMS)):
        for name, value in (("count", known.statistic(COUNT)), ("mean", known.means())):
            rows[f"{name} that counts of {arm}"] = value[[arm]]
        if isinstance(known, ContextArms):
            R, u = arrowhead.dense(known.factor, known.common, known.design.own, arm)
            rows |= {f"R of {arm}": R, f"u of {arm}": u, f"residuals of {arm}": known.factor[arrowhead.RESIDUALS, [arm]]}
        else:
            rows |= {f"own of {arm}": known.kept[arm, 0, 4:], f"spread of {arm}": known.kept[arm, 0, [3]]}
    return rows


def assert_same(bandit: Any, expected: Any) -> None:
    ours, theirs = learned(bandit), learned(expected)
    for name, row in theirs.items():
        assert ours[name] == pytest.approx(row, rel=0, abs=DIGITS * np.abs(row).max(initial=0.0)), name
    context = [0.3, 5.5] if bandit.policy.estimator.asks_context else None
    assert bandit.probabilities(context) == pytest.approx(expected.probabilities(context), rel=DIGITS, abs=0.0)
