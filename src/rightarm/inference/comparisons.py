"""Comparisons of arms: differences, the best arm, harm, and the warning that all rewards are equal.

`difference`, `best` and `harm` compare the means of arms by their statistics (`rightarm.inference.sequences`).

`weighted_difference` is for policies that show arms to different people: there the means of the arms' rewards cannot be
compared, as one arm may have got the better people. Weighted by 1/propensity both arms stand for all people alike. With
rewards r_t scaled to 0 to 1, the arm A_t and its propensity p_t, and given all that came before decision t,

    X_t = 1{A_t = a} r_t/p_t + 1{A_t = b} (1 − r_t)/p_t  ≥  0     has the mean  μ_t(a) + 1 − μ_t(b),

whatever p_t is: so a bound below its average is one below the difference, and with a and b exchanged one above it. If
no propensity can fall below a known floor, the doubly robust

    Y_t = q_t(a) − q_t(b) + 1{A_t = a} (r_t − q_t(a))/p_t − 1{A_t = b} (r_t − q_t(b))/p_t  ≥  −1/floor

has the mean μ_t(a) − μ_t(b) too, and gets half of the bets: q_t are means of the decisions before t. It is much
narrower where rewards are rare.

`one_value` warns. A bandit that hears of clicks and not of silence gives every arm the mean 1, and no statistics can
mend that. Nobody can see from outside whether silence means 0; but rewards of one value prove nothing about arms in any
case, so it is always right to say so. `one_value` is the only place that decides when.

References
----------
Horvitz and Thompson 1952; Dudík, Langford and Li, "Doubly robust policy evaluation and learning", ICML 2011;
Karampatziakis, Mineiro and Ramdas, "Off-policy confidence sequences", ICML 2021.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rightarm.display import counted, number
from rightarm.errors import WrongValue
from rightarm.formula import check_number
from rightarm.inference.sequences import (
    BOUNDED,
    IN_WORDS,
    NO_REWARD,
    REMEDY,
    Extremes,
    Range,
    Rewards,
    check_confidence,
    joint_lower_bound,
    rewards_of,
)
from rightarm.policies.inputs import check_reward_range
from rightarm.types import F64

Chosen = tuple[NDArray[np.bool_], NDArray[np.bool_]]

NAMED = 8  # arms that a sentence names; of more it says how many
MANY = 20  # rewards of one value that are worth a word: of fair coins that is chance in 2 of 10⁶ bandits
FEW = 5  # rewards that are enough where MANY decisions that are older than usual have none


@dataclass(frozen=True)
class Difference:
    """A difference of the means of two arms, ``arm`` minus ``other``; `difference` makes it."""

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
    """What has to come before there is an answer; empty if nothing."""
    where: str = ""
    """The segment that it is about; empty if it is about all decisions."""
    decisions: int | None = None
    """The number of decisions it rests on, where that is not the number of both arms' rewards."""
    warning: str = ""
    """Why none of it is to be trusted, if all rewards so far are equal; see `rightarm.inference.comparisons`."""

    @property
    def better(self) -> bool | None:
        """Return whether the first arm is the better one; None while that is open."""
        if self.warning:
            return None
        if self.low > 0:
            return True
        return False if self.high < 0 else None

    def __str__(self) -> str:
        if self.warning or self.lacking:
            return f"cannot tell yet: {self.warning or self.lacking}"
        sure = _sure(self.confidence, self.kind)
        where = f" where {self.where}" if self.where else ""
        low = number(self.low)
        high = number(self.high)
        if self.better is None:
            means = "means" if self.decisions is None else "weighted means"
            interval = f"{self.arm} − {self.other}{where} is between {low} and {high} ({sure})"
            return f"cannot tell yet: {interval}; {number(self.estimate)} by the {means} so far"
        if self.better:
            return f"{self.arm} is better than {self.other}{where}: by {low} to {high} ({sure})"
        return f"{self.arm} is worse than {self.other}{where}: by {number(-self.high)} to {number(-self.low)} ({sure})"


@dataclass(frozen=True)
class Best:
    """The arms that can still be the best, and what choosing one of them for good can cost; `best` makes it."""

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
    """Why none of it is to be trusted, if all rewards so far are equal; see `rightarm.inference.comparisons`."""

    @property
    def stop(self) -> bool:
        """Return whether choosing the leader for good costs at most the tolerance; never if `lacking`."""
        return not self.warning and not self.lacking and self.cost <= self.tolerance

    def __str__(self) -> str:
        if self.warning:
            return f"cannot tell yet: {self.warning}"
        sure = _sure(self.confidence, self.kind)
        costs = f"costs at most {number(self.cost)} per decision"
        if self.arms == 1:
            return f"{self.leader} is the only arm"
        if self.lacking:
            return f"cannot tell yet: {self.lacking}"
        if len(self.candidates) == 1:
            return f"{self.leader} is the best of {self.arms} arms ({sure}): one can stop"
        if self.stop:
            return f"one can stop with {self.leader}: it {costs}, and {number(self.tolerance)} is tolerated ({sure})"
        candidates = (
            f"the best of {self.arms} arms is {_either(self.candidates)}; stopping now with {self.leader} {costs}"
        )
        return f"cannot tell yet: {candidates} ({sure})"


def _sure(confidence: float, kind: str) -> str:
    return f"{100 * confidence:g}%, {IN_WORDS[kind]}"


def _lacking(rewards: Rewards, names: Sequence[Hashable]) -> str:
    """Say what arms lack so that they can be compared; empty if nothing."""
    short = list(zip(names, rewards.short_of(), strict=True))
    silent = [name for name, lack in short if lack == NO_REWARD]
    few = [f"{name} has {lack}" for name, lack in short if lack not in ("", NO_REWARD)]
    parts = []
    if silent:
        parts.append(f"{NO_REWARD} of {_either(silent) if len(silent) <= NAMED else f'{len(silent)} arms'}")
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
    """Return the difference of two arms' means, the first minus the second, with an interval that holds at any time.

    Both arms' evidence is multiplied, which is narrower than two intervals one against the other;
    `rightarm.inference.sequences` has the formulas.

    Parameters
    ----------
    counts, means, spreads, reward_range, confidence, sigma, extremes
        As for `means`, of two arms.
    names : sequence
        What the two arms are called.

    Examples
    --------
    >>> print(difference([20_000, 30_000], [0.05, 0.03], [950.0, 873.0], (0, 1), names=("blue", "red")))
    blue is better than red: by 0.0123 to 0.02792 (95%, at any time)
    """
    rewards = rewards_of(counts, means, spreads, reward_range, sigma, extremes)
    if rewards.counts.shape != (2,) or len(names) != 2:
        raise ValueError(f"a difference is that of two arms, got statistics of {rewards.counts.size}")
    above = rewards.gaps((1 - check_confidence(confidence)) / rewards.sides)
    estimate = float(rewards.means[0] - rewards.means[1]) if rewards.counts.all() else math.nan
    return Difference(
        arm=names[0],
        other=names[1],
        estimate=estimate,
        low=-float(above[1, 0]),
        high=float(above[0, 1]),
        confidence=confidence,
        kind=rewards.kind,
        lacking=_lacking(rewards, names),
    )


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
    """Return which arms can be the best, which one to choose, and what that can cost; all of it holds at any time.

    Every pair of arms is compared with an error of (1 − confidence) / (K − 1): the answer is wrong only if one of the
    K − 1 comparisons of the true best arm with the others is.

    Parameters
    ----------
    counts, means, spreads, reward_range, confidence, sigma, extremes
        As for `means`.
    tolerance : float
        The loss per decision that is small enough to stop.
    names : sequence, optional
        What the arms are called; numbers from 0 unless given.

    Examples
    --------
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
    costs = above.max(axis=0)
    order = np.argsort(-np.where(rewards.counts > 0, rewards.means, -np.inf), kind="stable").tolist()
    rewarded = [i for i in order if rewards.counts[i] > 0]
    leader = min(rewarded or order, key=lambda i: float(costs[i]))
    has_leader = arms == 1 or bool(rewarded and np.isfinite(costs[leader]))
    return Best(
        leader=labels[leader] if has_leader else None,
        candidates=tuple(labels[i] for i in order if (above[i] >= 0).all()),
        arms=arms,
        cost=float(costs[leader]),
        tolerance=allowed,
        confidence=confidence,
        kind=rewards.kind,
        lacking=_lacking(rewards, labels) if arms > 1 else "",
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
    """Return whether an arm, the first of two, is worse than the second, the control, by more than ``budget``.

    However often one asks, the answer for an arm that is not worse by more than the budget is ever True with
    probability 1 − confidence at most. It may be asked as seldom as one likes.

    Parameters
    ----------
    counts, means, spreads, reward_range, confidence, sigma, extremes
        As for `means`, of two arms.
    budget : float
        The loss per decision that is allowed.

    Examples
    --------
    >>> harm([400, 9_000], [0.01, 0.05], [3.96, 427.5], 0.005, reward_range=(0, 1))
    True
    """
    rewards = rewards_of(counts, means, spreads, reward_range, sigma, extremes)
    allowed = check_number("budget", budget)
    if rewards.counts.shape != (2,):
        raise ValueError(f"harm is that of an arm against a control, got statistics of {rewards.counts.size}")
    error = 1 - check_confidence(confidence)
    return float(rewards.means[1] - rewards.means[0]) > allowed and rewards.exceeds(allowed, error)


def weighted_difference(
    arms: ArrayLike,
    propensities: ArrayLike,
    rewards: ArrayLike,
    reward_range: Range,
    confidence: float = 0.95,
    *,
    floor: float = 0.0,
    names: Sequence[Hashable] = ("the first", "the second"),
    where: str = "",
) -> Difference:
    """Return how much more one arm earns than another, over decisions that could all have chosen either.

    It is about the average, over these decisions, of how much more the first arm earns there, so the world may drift.
    The module's text has formulas and references.

    Parameters
    ----------
    arms, propensities, rewards : array_like
        The decisions in their order: 0 where the first arm was chosen, 1 where the second was, anything else for the
        others; its propensity; its reward.
    reward_range : tuple of two floats
        The lowest and the highest reward that can come.
    confidence : float
        The probability that the interval is never wrong.
    floor : float
        A probability below which neither arm could fall, known beforehand; 0 if there is none.
    names : sequence
        What the two arms are called.
    where : str
        The segment that the decisions are of, for the text.

    Examples
    --------
    >>> found = weighted_difference([0, 1] * 400, [0.5] * 800, [1, 0, 1, 1] * 200, (0, 1), names=("blue", "red"))
    >>> print(found)
    blue is better than red: by 0.3812 to 0.6077 (95%, at any time)
    """
    low, high = check_reward_range(reward_range)
    which = np.asarray(arms)
    chances = np.asarray(propensities, dtype=float)
    scaled = (np.asarray(rewards, dtype=float) - low) / (high - low)
    if not which.shape == chances.shape == scaled.shape or which.ndim != 1:
        raise ValueError(f"columns must be of one length, got {which.shape}, {chances.shape} and {scaled.shape}")
    if scaled.size and not (-1e-9 <= scaled.min() <= scaled.max() <= 1 + 1e-9):
        raise ValueError(f"rewards must be in reward_range, {low} to {high}, got others")
    if scaled.size and not floor * (1 - 1e-9) <= chances.min() <= chances.max() <= 1 + 1e-9:
        raise ValueError(f"propensities must be from {floor} to 1, got {chances.min()} to {chances.max()}")
    chosen = (which == 0, which == 1)
    side = (1 + check_confidence(confidence)) / 2
    bets = [[(_hedged(first, second, scaled, chances), 0.0)] for first, second in (chosen, chosen[::-1])]
    if floor > 0:
        robust = _robust(chosen, scaled, chances)
        bound = 1 / floor - 1
        bets[0].append((1 + robust, bound))
        bets[1].append((1 - robust, bound))
    ends = [min(joint_lower_bound(one, side) - 1, 1.0) for one in bets]
    means = [_mean(one, scaled, chances) for one in chosen]
    absent = [str(name) for name, one in zip(names, chosen, strict=True) if not one.any()]
    lacking = f"no reward of {' or of '.join(absent)}{f' where {where}' if where else ''}" if absent else ""
    return Difference(
        arm=names[0],
        other=names[1],
        estimate=(high - low) * (means[0] - means[1]),
        low=(high - low) * ends[0],
        high=-(high - low) * ends[1],
        confidence=confidence,
        kind=BOUNDED,
        lacking=lacking,
        where=where,
        decisions=which.size,
    )


def _hedged(first: NDArray[np.bool_], second: NDArray[np.bool_], scaled: F64, chances: F64) -> F64:
    return np.asarray((first * scaled + second * (1 - scaled)) / chances)


def _robust(chosen: Chosen, scaled: F64, chances: F64) -> F64:
    """Return the doubly robust difference of every decision, with means of those before it and one reward of 1/2."""
    expected = [(_before(one * scaled) + 0.5) / (_before(one) + 1) for one in chosen]
    parts = [q + one * (scaled - q) / chances for one, q in zip(chosen, expected, strict=True)]
    return np.asarray(parts[0] - parts[1])


def _before(values: NDArray[np.bool_] | F64) -> F64:
    """Return the sum of the values before each."""
    return np.concatenate(([0.0], np.cumsum(values, dtype=float)))[: values.size]


def _mean(one: NDArray[np.bool_], scaled: F64, chances: F64) -> float:
    """Return the mean reward of an arm, weighted and self-normalised."""
    weights = one / chances
    return float(weights @ scaled / weights.sum()) if one.any() else float("nan")


def one_value(
    rewards: int, value: float | None, answered: Collection[int], silent: Collection[int], default: float | None = None
) -> str:
    """Say in one sentence that all rewards so far are equal and what to do about it; empty if there is nothing to say.

    There is nothing to say before 20 rewards; or 5, where 20 decisions that are older than usual have none.

    Parameters
    ----------
    rewards : int
        The number of rewards.
    value : float or None
        The value of all of them; None if they differ.
    answered, silent : collections of int
        The decisions with a reward and those without, as numbers that grow with time, as ids do. A silent one is older
        than usual if half of those with a reward were made after it.
    default : float, optional
        The reward that silence gets when a window closes, if it gets one.

    Examples
    --------
    >>> one_value(3, 1.0, answered=[2, 7, 9], silent=[1, 3, 4, 5, 6, 8])
    ''
    >>> print(one_value(30, 1.0, answered=range(0, 900, 30), silent=range(1, 900, 2)))
    all 30 rewards are 1 and 450 decisions have none, so arms cannot be compared; if silence means 0, give the \
bandit a window with a default of 0 (reward_window=..., default_reward=0)
    >>> print(one_value(500, 0.0, answered=range(500), silent=[], default=0.0))
    no reward other than 0 has come in 500, so arms cannot be compared; see whether rewards are told at all
    """
    if value is None or not (rewards >= MANY or (rewards >= FEW and _older(answered, silent) >= MANY)):
        return ""
    if value == (default or 0.0):
        told = f"no reward other than {number(value)} has come in {rewards:,}"
        return f"{told}, so arms cannot be compared; see whether rewards are told at all"
    if default is not None and silent:
        wait = f"{counted(len(silent), 'decision')} {'waits' if len(silent) == 1 else 'wait'} for that"
        closing = f"silence counts as {number(default)} only when windows close, and {wait}"
        return f"all {rewards:,} rewards so far are {number(value)}, so arms cannot be compared; {closing}"
    have = f" and {counted(len(silent), 'decision')} {'has' if len(silent) == 1 else 'have'} none" if silent else ""
    told = f"all {rewards:,} rewards are {number(value)}{have}, so arms cannot be compared"
    if default is not None:
        return told
    remedy = "give the bandit a window with a default of 0 (reward_window=..., default_reward=0)"
    return f"{told}; if silence means 0, {remedy}"


def _older(answered: Collection[int], silent: Collection[int]) -> int:
    """Return how many decisions without a reward are older than half of those with one."""
    middle = statistics.median(answered) if len(answered) else 0
    return sum(each < middle for each in silent)
