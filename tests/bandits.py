"""What the tests of the live bandit share: a clock to be moved, and a bandit that knows some rewards."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import rightarm as ra
from cases import PLAYERS, POLICIES

BGE = ra.BoltzmannGumbel(C=0.5)
CATONI = ra.BoltzmannGumbel(C=0.5, estimator="catoni")
UNKNOWN_LAW = {"squashed", "exploring the worse"}  # scores that are not location + scale·z
ALL = {
    **{name: case.policy for name, case in POLICIES.items()},
    **{name: case.policy for name, case in PLAYERS.items()},
    "beta thompson": ra.BetaThompson(),
}
KNOWN = {name: policy for name, policy in ALL.items() if name not in UNKNOWN_LAW}

NO_SUMS = {"ucb-improved", "ucb-improved, soon over", "steady, remembering", "clocked, remembering"}
NO_SUMS |= {"exp3++ of 2017", "exp3++ of 2017, few gaps explored"}
HISTORY = {"ape2", "ape2 of second moments"}  # a reward adds what depends on the rewards before it
CANNOT_FORGET = {"ucb on the median of means"}

STATE: dict[Hashable, list[float]] = {"a": [0.5] * 20, "b": [0.6] * 5, "c": [0.45] * 40, "d": [0.6] * 10}
HASHABLES: list[Hashable] = ["red", "", 1, -2.5, None, False, ("a", 1), (("x",), None), ()]


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def told(rewards: Mapping[Any, list[float]], policy: ra.Policy = BGE, **settings: Any) -> ra.Bandit[Any]:
    """A bandit that knows these rewards."""
    bandit = ra.Bandit(rewards, policy, seed=1, **settings)
    for arm, values in rewards.items():
        for value in values:
            bandit.tell(arm=arm, reward=value)
    return bandit


def column(bandit: ra.Bandit[Any], name: str) -> dict[Hashable, Any]:
    return {row["arm"]: row[name] for row in bandit.table()}


def agrees(counts: Mapping[Any, int], law: Mapping[Any, float]) -> None:
    """Every arm as often as its probability says; what has probability 0 or 1 never or always."""
    draws = sum(counts.values())
    for arm, p in law.items():
        spread = math.sqrt(draws * p * (1 - p))
        count = counts.get(arm, 0)
        assert (count == draws * p) if spread < 1e-9 else abs(count - draws * p) / spread < 4.5
