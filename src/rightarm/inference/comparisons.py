"""Answers about several arms: which is better and by how much, which can be the best, what stopping now can cost."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rightarm.errors import WrongValue
from rightarm.formula import check_number
from rightarm.inference.confidence import check_confidence
from rightarm.inference.sequences import BOUNDED, IN_WORDS, NO_REWARD, REMEDY, Extremes, Range, Rewards, rewards_of
from rightarm.text import number

NAMED = 8  # arms that a sentence names; of more it says how many


@dataclass(frozen=True)
class Difference:
    """The difference of the means of two arms, ``arm`` minus ``other``; `difference` makes it."""

    arm: Hashable
    other: Hashable
    estimate: float = math.nan
    """The difference of the means so far; NaN while an arm has no reward."""
    low: float = -math.inf
    """The lower end of its interval; −∞ where nothing can be said."""
    high: float = math.inf
    confidence: float = 0.95
    kind: str = BOUNDED
    """``bounded`` or ``sub-Gaussian``, which hold for any number of rewards, or ``asymptotic``."""
    lacking: str = ""
    """What has to come before anything can be told; empty if nothing."""
    where: str = ""
    """The segment that it is about; empty if it is about all decisions."""
    decisions: int | None = None
    """How many decisions it rests on, where that is not the number of both arms' rewards."""
    warning: str = ""
    """Why none of it is to be trusted, if all rewards so far are equal; see `rightarm.inference.one_value`."""

    @property
    def better(self) -> bool | None:
        """Whether the first arm is the better one; None while that cannot be told."""
        if self.warning:
            return None
        return True if self.low > 0 else False if self.high < 0 else None

    def __str__(self) -> str:
        if self.warning or self.lacking:
            return f"cannot tell yet: {self.warning or self.lacking}"
        sure, where = _sure(self.confidence, self.kind), f" where {self.where}" if self.where else ""
        if self.better is None:
            known = f"{self.arm} − {self.other}{where} is between {number(self.low)} and {number(self.high)} ({sure})"
            means = "means" if self.decisions is None else "weighted means"
            return f"cannot tell yet: {known}; {number(self.estimate)} by the {means} so far"
        ends = (self.low, self.high) if self.better else (-self.high, -self.low)
        word = "better" if self.better else "worse"
        return f"{self.arm} is {word} than {self.other}{where}: by {number(ends[0])} to {number(ends[1])} ({sure})"


@dataclass(frozen=True)
class Best:
    """Which arms can still be the best, and what choosing one of them for good can cost; `best` makes it."""

    leader: Hashable | None
    """The arm with rewards that one can choose for good at the least risk; None while no arm's risk has a bound."""
    candidates: tuple[Hashable, ...]
    """The arms that can still be the best one, the highest mean so far first."""
    arms: int
    cost: float = math.inf
    """A bound on what choosing the leader for good costs per decision: the best arm's mean minus the leader's."""
    tolerance: float = 0.0
    confidence: float = 0.95
    kind: str = BOUNDED
    """``bounded`` or ``sub-Gaussian``, which hold for any number of rewards, or ``asymptotic``."""
    lacking: str = ""
    """Why some arms cannot be compared, if so."""
    warning: str = ""
    """Why none of it is to be trusted, if all rewards so far are equal; see `rightarm.inference.one_value`."""

    @property
    def stop(self) -> bool:
        """Whether choosing the leader for good costs at most the tolerance; never with a `warning` or `lacking`."""
        return not self.warning and not self.lacking and self.cost <= self.tolerance

    def __str__(self) -> str:
        if self.warning:
            return f"cannot tell yet: {self.warning}"
        sure, costs = _sure(self.confidence, self.kind), f"costs at most {number(self.cost)} per decision"
        if self.arms == 1:
            return f"{self.leader} is the only arm"
        if self.lacking:
            return f"cannot tell yet: {self.lacking}"
        if len(self.candidates) == 1:
            return f"{self.leader} is the best of {self.arms} arms ({sure}): one can stop"
        if self.stop:
            return f"one can stop with {self.leader}: it {costs}, and {number(self.tolerance)} is tolerated ({sure})"
        known = f"the best of {self.arms} arms is {_either(self.candidates)}; stopping now with {self.leader} {costs}"
        return f"cannot tell yet: {known} ({sure})"


def _sure(confidence: float, kind: str) -> str:
    return f"{100 * confidence:g}%, {IN_WORDS[kind]}"


def _lacking(rewards: Rewards, names: Sequence[Hashable]) -> str:
    """Say what arms lack so that they can be compared; empty if nothing."""
    short = list(zip(names, rewards.short_of(), strict=True))
    silent = [name for name, lack in short if lack == NO_REWARD]
    few = [f"{name} has {lack}" for name, lack in short if lack not in ("", NO_REWARD)]
    parts = [f"{NO_REWARD} of {_either(silent) if len(silent) <= NAMED else f'{len(silent)} arms'}"] if silent else []
    if few:
        more = f" and {len(few) - NAMED:,} more arms have too few" if len(few) > NAMED else ""
        parts += [", ".join(few[:NAMED]) + more, REMEDY]
    return "; ".join(parts)


def _either(names: Sequence[Hashable]) -> str:
    """Name all of these with an "or", or say how many they are."""
    if len(names) > NAMED:
        return f"one of {len(names)} arms"
    *others, last = map(str, names)
    return f"{', '.join(others)} or {last}" if others else last


def difference(
    counts: ArrayLike,
    means: ArrayLike,
    spreads: ArrayLike,
    reward_range: Range | None = None,
    confidence: float = 0.95,
    *,
    sigma: float | None = None,
    extremes: Extremes | None = None,
    names: Sequence[Hashable] = ("the first", "the second"),
) -> Difference:
    """The difference of two arms' means, the first minus the second, with an interval that holds at any time.

    Statistics and options are those of `means`, of two arms. Both arms' evidence is multiplied, which is narrower than
    two intervals one against the other; `rightarm.inference.sequences` has the formulas.

    >>> print(difference([20_000, 30_000], [0.05, 0.03], [950.0, 873.0], (0, 1), names=("blue", "red")))
    blue is better than red: by 0.0123 to 0.02792 (95%, at any time)
    """
    rewards = rewards_of(counts, means, spreads, reward_range, sigma, extremes)
    if rewards.counts.shape != (2,) or len(names) != 2:
        raise ValueError(f"a difference is that of two arms, got statistics of {rewards.counts.size}")
    above = rewards.gaps((1 - check_confidence(confidence)) / rewards.sides)
    estimate = float(rewards.means[0] - rewards.means[1]) if rewards.counts.all() else math.nan
    low, high = -float(above[1, 0]), float(above[0, 1])
    return Difference(names[0], names[1], estimate, low, high, confidence, rewards.kind, _lacking(rewards, names))


def best(
    counts: ArrayLike,
    means: ArrayLike,
    spreads: ArrayLike,
    reward_range: Range | None = None,
    confidence: float = 0.95,
    *,
    tolerance: float = 0.0,
    sigma: float | None = None,
    extremes: Extremes | None = None,
    names: Sequence[Hashable] | None = None,
) -> Best:
    """Which arms can be the best, which one to choose, and what that can cost; all of it holds at any time.

    Statistics and options are those of `means`. Every pair of arms is compared with an error of (1 − confidence) /
    (K − 1): what is said here is wrong only if one of the K − 1 comparisons of the true best arm with the others is.

    >>> print(best([900, 50_000, 2_000], [0.010, 0.030, 0.012], [8.9, 1455.0, 23.7], (0, 1), names=["a", "b", "c"]))
    b is the best of 3 arms (95%, at any time): one can stop
    """
    rewards = rewards_of(counts, means, spreads, reward_range, sigma, extremes)
    allowed = check_number("tolerance", tolerance)
    arms = rewards.counts.size
    labels = list(range(arms) if names is None else names)
    if not arms or len(labels) != arms:
        raise WrongValue("names", f"must be those of at least one arm, got {len(labels)} names of {arms} arms")
    if allowed < 0:
        raise WrongValue("tolerance", f"must not be negative, got {tolerance}", code="out_of_range")
    above = rewards.gaps((1 - check_confidence(confidence)) / max(arms - 1, 1))
    np.fill_diagonal(above, 0.0)
    costs, order = above.max(axis=0), np.argsort(-np.where(rewards.counts > 0, rewards.means, -np.inf), kind="stable")
    told = [i for i in order.tolist() if rewards.counts[i] > 0]
    leader = min(told or order.tolist(), key=lambda i: float(costs[i]))
    leads = arms == 1 or bool(told and np.isfinite(costs[leader]))
    able = [i for i in order.tolist() if (above[i] >= 0).all()]
    return Best(
        labels[leader] if leads else None,
        tuple(labels[i] for i in able),
        arms,
        float(costs[leader]),
        allowed,
        confidence,
        rewards.kind,
        _lacking(rewards, labels) if arms > 1 else "",
    )


def harm(
    counts: ArrayLike,
    means: ArrayLike,
    spreads: ArrayLike,
    budget: float,
    reward_range: Range | None = None,
    confidence: float = 0.95,
    *,
    sigma: float | None = None,
    extremes: Extremes | None = None,
) -> bool:
    """Whether an arm, the first of two, is worse than the second, the control, by more than ``budget``.

    Statistics and options are those of `means`. However often one asks, the answer for an arm that is not worse by more
    than the budget is ever True with probability 1 − confidence at most. It may be asked as seldom as one likes.

    >>> harm([400, 9_000], [0.01, 0.05], [3.96, 427.5], 0.005, reward_range=(0, 1))
    True
    """
    rewards = rewards_of(counts, means, spreads, reward_range, sigma, extremes)
    allowed = check_number("budget", budget)
    if rewards.counts.shape != (2,):
        raise ValueError(f"harm is that of an arm against a control, got statistics of {rewards.counts.size}")
    error = 1 - check_confidence(confidence)
    return float(rewards.means[1] - rewards.means[0]) > allowed and rewards.exceeds(allowed, error)
