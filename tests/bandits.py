"""What the tests of the live bandit share: a clock to be moved, and a bandit that knows some rewards."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import rightarm as ra
from cases import PLAYERS, POLICIES
from rightarm.bandit import summary

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


def forgetful(arms: Iterable[Any], policy: ra.Policy, **settings: Any) -> ra.Bandit[Any]:
    """A bandit whose estimator forgets, if there is a ``discount`` or a ``window`` among its settings."""
    options = {name: settings.pop(name) for name in ("discount", "window") if name in settings}
    return ra.Bandit(arms, forgetting(policy, **options), **settings)


def told(rewards: Mapping[Any, list[float]], policy: ra.Policy = BGE, **settings: Any) -> ra.Bandit[Any]:
    """A bandit that knows these rewards."""
    bandit = forgetful(list(rewards), policy, seed=1, **settings)
    for arm, values in rewards.items():
        for value in values:
            bandit.tell(arm=arm, reward=value)
    return bandit


def arm_rows(bandit: ra.Bandit[Any]) -> list[dict[str, Any]]:
    """The rows of the summary, with arms as they are."""
    with bandit._lock:
        return [dict(row) for row in summary.arm_rows(bandit._current(), bandit._due())]


def column(bandit: ra.Bandit[Any], name: str) -> dict[Hashable, Any]:
    return {row["arm"]: row[name] for row in arm_rows(bandit)}


def forgetting(policy: ra.Policy, **options: Any) -> ra.Policy:
    """The policy with an estimator that forgets, by ``discount`` or ``window``."""
    if not options:
        return policy
    made: ra.Policy = policy.family(**policy.arguments, estimator=dataclasses.replace(policy.estimator, **options))
    return made


def agrees(counts: Mapping[Any, int], law: Mapping[Any, float]) -> None:
    """Every arm as often as its probability says; what has probability 0 or 1 never or always."""
    draws = sum(counts.values())
    for arm, p in law.items():
        spread = math.sqrt(draws * p * (1 - p))
        count = counts.get(arm, 0)
        assert (count == draws * p) if spread < 1e-9 else abs(count - draws * p) / spread < 4.5
