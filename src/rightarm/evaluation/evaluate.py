"""What another policy would have earned, from the log of one that ran: off-policy evaluation, and replay by rejection.

`evaluate` weighs every row of a log by how much more often the other policy would have chosen its arm. `replay` runs
the other policy over a log collected evenly at random, and keeps the rows where both agree. The confidence intervals
hold for logs of bandits that learn, of any length and however often one looks (`rightarm.evaluation.confidence`).
"""

from __future__ import annotations

import math
import os
import warnings as python_warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rightarm.evaluation.confidence import check_confidence, interval, joint_lower_bound
from rightarm.formula import check_count, check_number
from rightarm.live.arms import NEVER, Arms, Law, draw
from rightarm.logs.log import check_propensity, read_log
from rightarm.scores.policy import Policy
from rightarm.text import table, wrapped

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

FEW = 100  # rows that the weights are worth, below which an answer says little
DOMINANT = 0.1  # of all weight on one row
DEVIATIONS = 4.5  # of the mean weight from 1 that are not chance
ROUNDED = 1e-3  # relative error of propensities in files of others

ANY = (-math.inf, math.inf)  # rewards that need no range

Target = str | Policy | Mapping[Any, float]


@dataclass(frozen=True)
class Rows:
    """A log as arrays: the rows that have a reward; arms are numbers, places in ``names``."""

    names: list[Any]
    arms: I64
    propensities: F64
    rewards: F64
    among: list[I64] | None
    left_out: int

    @property
    def every(self) -> I64:
        """All arms, by number."""
        return np.arange(len(self.names))


def read_rows(
    log: Any, arms: Iterable[Any] | None = None, reward_range: tuple[float, float] = ANY, missing: float | None = None
) -> Rows:
    """The rows of a log that have a reward, checked."""
    low, high = reward_range
    if isinstance(log, str | os.PathLike):
        log = read_log(log)
    for name in ("arm", "propensity", "reward"):
        if name not in log:
            raise ValueError(f"log must have the columns arm, propensity and reward, got none called {name!r}")
    chosen, propensities, told = (_listed(log[name]) for name in ("arm", "propensity", "reward"))
    given: list[Any] = _listed(log["among"]) if "among" in log else [None] * len(chosen)
    lengths = {len(column) for column in (chosen, propensities, told, given)}
    if len(lengths) > 1:
        raise ValueError(f"the columns of a log must be of one length, got {sorted(lengths)}")
    among = None if any(row is None for row in given) else [list(row) for row in given]
    names = _names(chosen, among, arms)
    place = {name: i for i, name in enumerate(names)}
    rewards = np.array([np.nan if reward is None else reward for reward in told], dtype=float)
    if missing is not None:
        rewards[np.isnan(rewards)] = check_number("missing", missing)
    kept = np.flatnonzero(~np.isnan(rewards))
    for i in kept:
        check_propensity(f"propensity of row {i + 1}", propensities[i])
    outside = kept[(rewards[kept] < low) | (rewards[kept] > high) | np.isinf(rewards[kept])]
    if outside.size:
        row = outside[0]
        raise ValueError(f"reward must be from {low} to {high}, see reward_range, got {rewards[row]} in row {row + 1}")
    if not kept.size:
        raise ValueError(f"log must have rows with rewards, got {len(chosen)} rows without")
    return Rows(
        names,
        np.array([place[chosen[i]] for i in kept], dtype=np.int64),
        np.array([propensities[i] for i in kept], dtype=float),
        rewards[kept],
        None if among is None else [np.array(sorted(place[arm] for arm in among[i])) for i in kept],
        len(chosen) - kept.size,
    )


def _check_range(reward_range: tuple[float, float]) -> tuple[float, float]:
    low, high = (check_number("reward_range", end) for end in reward_range)
    if not low < high:
        raise ValueError(f"reward_range must be two numbers, the lower one first, got {reward_range}")
    return low, high


def _listed(column: Any) -> list[Any]:
    """A column as plain values, not as NumPy's."""
    return list(column.tolist() if hasattr(column, "tolist") else column)


def _names(chosen: list[Any], among: list[list[Any]] | None, arms: Iterable[Any] | None) -> list[Any]:
    """The names of all arms, in the order given, or sorted.

    Not in the order in which the log shows them: a policy that begins with the first arm that it does not know would
    be told by that which arm comes next.
    """
    found = {*chosen, *(arm for row in among or () for arm in row)}
    if arms is None:
        return sorted(found, key=lambda arm: (isinstance(arm, str), arm))
    names = list(dict.fromkeys(arms))
    unknown = sorted(found - set(names), key=str)
    if unknown:
        raise ValueError(f"arms must include every arm of the log, got {names} without {unknown[0]!r}")
    return names


# The policies that are evaluated.


class _Fixed:
    """A law over the arms that does not change."""

    def __init__(self, law: F64) -> None:
        self.law = law

    def probabilities(self, arms: I64) -> F64:
        law = self.law[arms]
        total = law.sum()
        if not total:
            raise ValueError("the policy gives no probability to any of the arms that a row had to choose among")
        return np.asarray(law / total)

    def choose(self, arms: I64, random: np.random.Generator) -> tuple[int, float]:
        law = self.probabilities(arms)
        place = int(random.choice(arms.size, p=law))
        return int(arms[place]), float(law[place])

    def learn(self, arm: int, reward: float, probability: float) -> None:
        pass


class _Learning:
    """A policy of rightarm, with what it knows so far."""

    def __init__(self, policy: Policy, arms: int) -> None:
        self.known, self.last = Arms(policy), [NEVER] * arms
        self.law: Law | None = None  # until it learns
        for _ in range(arms):
            self.known.add()

    def _law_of(self, arms: I64) -> Law:
        if self.law is None or self.law.members is not arms:
            self.law = self.known.law(arms, self.last, now=1)
        return self.law

    def probabilities(self, arms: I64) -> F64:
        return self._law_of(arms).chance

    def choose(self, arms: I64, random: np.random.Generator) -> tuple[int, float]:
        law = self._law_of(arms)
        place = draw(law.chance, law.heights, random.random())
        return int(arms[place]), float(law.chance[place])

    def learn(self, arm: int, reward: float, probability: float) -> None:
        self.known.learn(arm, reward, probability)
        self.law = None


def _target(policy: Target, names: list[Any]) -> _Fixed | _Learning:
    if isinstance(policy, Policy):
        return _Learning(policy, len(names))
    if policy == "uniform":
        return _Fixed(np.full(len(names), 1 / len(names)))
    if not isinstance(policy, Mapping):
        hint = "; call it with its parameters first" if callable(policy) else ""
        raise TypeError(f"policy must be a policy, 'uniform', or probabilities by arm, got {policy!r}{hint}")
    for arm, p in policy.items():
        if arm not in names:
            raise ValueError(f"policy must give probabilities to arms of the log, or to others in arms, got {arm!r}")
        if check_number(f"policy[{arm!r}]", p) < 0:
            raise ValueError(f"policy[{arm!r}] must be a probability, got {p}")
    law = np.array([float(policy.get(name, 0.0)) for name in names])
    if abs(law.sum() - 1) > 1e-9:
        raise ValueError(f"policy must have probabilities that add up to 1, got {law.sum()}")
    return _Fixed(law)


# Evaluation by weights.


@dataclass(frozen=True)
class Evaluation:
    """What a policy would have earned in the rounds of a log, a mean per decision; `evaluate` makes it."""

    policy: str
    """The policy evaluated."""
    rows: int
    """The rows used."""
    left_out: int
    """The rows without a reward, which were not."""
    logged: float
    """The mean reward that the log itself has."""
    ips: float
    """The mean of weight · reward: unbiased."""
    snips: float
    """The same divided by the mean weight: steadier, with a bias that vanishes as rows come."""
    dr: float
    """Doubly robust: unbiased, and steadier than ``ips`` where arms differ or rewards are often above 0."""
    low: float
    """The lower end of the confidence interval of the value, not of one estimate."""
    high: float
    """Its upper end."""
    confidence: float
    effective_rows: float
    """How many rows of the policy's own the weighted ones are worth: (Σw)²/Σw²."""
    mean_weight: float
    """Near 1 if the propensities are right and the log could choose every arm that the policy chooses."""
    max_weight: float
    warnings: tuple[str, ...]
    """Why the numbers may be worth little; empty if nothing is wrong."""

    def __str__(self) -> str:
        pairs = {
            "rows": f"{self.rows:,}" + (f" ({self.left_out:,} without a reward left out)" if self.left_out else ""),
            "the log's own mean reward": f"{self.logged:.6g}",
            "IPS": f"{self.ips:.6g}",
            "self-normalised IPS": f"{self.snips:.6g}",
            "doubly robust": f"{self.dr:.6g}",
            f"{100 * self.confidence:g}% interval, at any time": f"{self.low:.6g} to {self.high:.6g}",
            "effective rows": f"{self.effective_rows:,.1f}",
            "weights, mean and largest": f"{self.mean_weight:.4g}, {self.max_weight:.4g}",
        }
        return _text(self.policy, pairs, self.warnings)


def _text(title: str, pairs: Mapping[str, str], warnings: Iterable[str] = ()) -> str:
    lines = table(["", "", ""], [["", *pair] for pair in pairs.items()], words=3)
    return "\n".join([title, lines, *(wrapped(f"warning: {warning}", indent="  ") for warning in warnings)])


def evaluate(
    log: Any,
    policy: Target,
    *,
    arms: Iterable[Any] | None = None,
    reward_range: tuple[float, float] = (0.0, 1.0),
    missing: float | None = None,
    confidence: float = 0.95,
    floor: float | None = None,
) -> Evaluation:
    """What ``policy`` would have earned per decision, from the log of another one.

    With A_t, μ_t and r_t the arm, its propensity and the reward of row t, π_t what the policy would have done there,
    w_t = π_t(A_t)/μ_t, and q_t(a) the mean reward of arm a in the rows before t:

        IPS = mean of w_t r_t        self-normalised = Σ w_t r_t / Σ w_t
        doubly robust = mean of  Σ_a π_t(a) q_t(a) + w_t (r_t − q_t(A_t))

    - ``policy``: "uniform"; or probabilities by arm, the same in every row; or a policy of rightarm. That one learns
      from the log as it goes: π_t are its exact probabilities given the rows before t. What is estimated then is the
      mean reward of its choices made with the log's knowledge, not what it would have found out by itself: `replay`
      estimates that.
    - ``log``: a path, a frame such as `read_log` gives, or a mapping of columns ``arm``, ``propensity``, ``reward``,
      in the order of decisions. If it has ``among`` in every row, the policy chooses among these.
    - ``arms``: all arms, if the log does not show them all.
    - ``reward_range``: what rewards can be, known beforehand and not read off the log.
    - ``missing``: the reward that counts where none came; without it such rows are left out, which is right only if
      rewards are lost by chance.
    - ``floor``: a propensity that no arm could fall below, if there is one, known beforehand. The interval then also
      uses the doubly robust rewards; it becomes narrower where rewards are rare or arms differ much, not always.

    The interval is a confidence sequence: it holds for logs of policies that learn, and at whatever row one stops. It
    needs right propensities, a log that could choose every arm that the policy chooses, and rewards in their range.
    It is about the mean over the rows of Σ_a π_t(a) E[r_t | a, the rows before], so rewards may drift.

    Horvitz and Thompson 1952 (IPS); Swaminathan and Joachims 2015 (self-normalised); Dudík, Langford and Li 2011
    (doubly robust); Karampatziakis, Mineiro and Ramdas 2021 (the interval, see `rightarm.evaluation.confidence`).

    >>> log = {"arm": ["a", "b"] * 500, "propensity": [0.8, 0.2] * 500, "reward": [0.0, 1.0] * 500}
    >>> result = evaluate(log, {"a": 0.8, "b": 0.2})
    >>> round(result.ips, 9), round(result.mean_weight, 9)
    (0.5, 1.0)
    """
    low, high = _check_range(reward_range)
    rows, span = read_rows(log, arms, (low, high), missing), high - low
    target, scaled = _target(policy, rows.names), (rows.rewards - low) / span
    weights, robust, largest = _weighted(rows, scaled, target)
    earned = weights * scaled
    bets = [[(earned, 0.0)], [(weights - earned, 0.0)]]
    if floor is not None:
        bound = largest / _check_floor(floor, rows)  # no weight can be larger
        bets = [[*bets[0], (robust, bound)], [*bets[1], (1 - robust, bound)]]
    side = (1 + check_confidence(confidence)) / 2
    ends = min(1.0, joint_lower_bound(bets[0], side)), max(0.0, 1 - joint_lower_bound(bets[1], side))
    total = float(weights.sum())
    found = _complaints(rows, target, weights)
    if ends[0] > ends[1]:
        found.append("the interval is empty: the propensities cannot be those that chose the arms")
    for text in found:
        python_warnings.warn(f"{policy}: {text}", stacklevel=2)
    return Evaluation(
        str(policy),
        rows=weights.size,
        left_out=rows.left_out,
        logged=float(rows.rewards.mean()),
        ips=float((weights * rows.rewards).mean()),
        snips=low + span * float(earned.sum()) / total if total else math.nan,
        dr=low + span * float(robust.mean()),
        low=low + span * ends[0],
        high=low + span * ends[1],
        confidence=confidence,
        effective_rows=_effective(weights),
        mean_weight=total / weights.size,
        max_weight=float(weights.max()),
        warnings=tuple(found),
    )


def _weighted(rows: Rows, scaled: F64, target: _Fixed | _Learning) -> tuple[F64, F64, float]:
    """Every row's weight and doubly robust reward; and the largest probability that the target can give an arm."""
    weights, robust = np.empty(rows.arms.size), np.empty(rows.arms.size)
    pulls, sums = np.zeros(len(rows.names)), np.zeros(len(rows.names))
    average = 0.5  # of all rows before, and one of 1/2
    every, law = rows.every, np.zeros(len(rows.names))
    for t, (arm, propensity, reward) in enumerate(zip(rows.arms, rows.propensities, scaled, strict=True)):
        available = every if rows.among is None else rows.among[t]
        law[:] = 0.0
        law[available] = target.probabilities(available)
        expected = (sums + average) / (pulls + 1)  # known before the row, so that no bias comes in
        weights[t] = law[arm] / propensity
        robust[t] = law @ expected + weights[t] * (reward - expected[arm])
        target.learn(int(arm), float(rows.rewards[t]), float(propensity))
        pulls[arm] += 1
        sums[arm] += reward
        average += (reward - average) / (t + 2)
    constant = isinstance(target, _Fixed) and rows.among is None
    return weights, robust, float(law.max()) if constant else 1.0


def _check_floor(floor: float, rows: Rows) -> float:
    check_propensity("floor", floor)
    below = rows.propensities < floor * (1 - 1e-9)
    if below.any():
        row = int(np.argmax(below))
        raise ValueError(f"floor must be at most every propensity, got {floor} and {rows.propensities[row]} in the log")
    return floor


def _effective(weights: F64) -> float:
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares else 0.0


def _complaints(rows: Rows, target: _Fixed | _Learning, weights: F64) -> list[str]:
    """What makes an answer from these weights worth little."""
    found = []
    effective, total = _effective(weights), float(weights.sum())
    if effective < FEW:
        found.append(f"the {weights.size:,} rows are worth only {effective:.1f} of the policy's own")
    if total and weights.max() > DOMINANT * total:
        found.append(f"one row has {100 * weights.max() / total:.0f}% of all weight, {weights.max():.4g}")
    spread = float(((weights - 1) ** 2).sum())
    if spread and abs(total - weights.size) / math.sqrt(spread) > DEVIATIONS:
        found.append(
            f"the mean weight is {total / weights.size:.4g} and should be near 1: "
            "propensities are wrong, or the policy chooses what the log could not"
        )
    if isinstance(target, _Fixed):
        unseen = np.bincount(rows.arms, minlength=len(rows.names)) == 0
        if target.law[unseen].sum() > 0:
            found.append(f"{100 * target.law[unseen].sum():.3g}% of the choices are of arms that the log never shows")
    return found


# Replay by rejection.


@dataclass(frozen=True)
class Replay:
    """What a policy earned in the rows of a log where it chose as the log did; `replay` makes it."""

    policy: str
    """The policy replayed."""
    rows: int
    """The rows of the log that have a reward."""
    left_out: int
    """The rows without one."""
    kept: int
    """The rows where both agreed: the rounds that the policy played."""
    mean: float
    """The mean reward of these."""
    low: float
    """The lower end of its confidence interval."""
    high: float
    """Its upper end."""
    confidence: float
    pulls: dict[Any, int]
    """How often the policy pulled each arm."""
    rewards: F64 = field(repr=False, compare=False)
    """The rewards, round by round."""

    def __str__(self) -> str:
        arm = max(self.pulls, key=self.pulls.__getitem__)
        pairs = {
            "rows": f"{self.rows:,}" + (f" ({self.left_out:,} without a reward left out)" if self.left_out else ""),
            "rounds played": f"{self.kept:,}",
            "mean reward": f"{self.mean:.6g}",
            f"{100 * self.confidence:g}% interval, at any time": f"{self.low:.6g} to {self.high:.6g}",
            "most pulled arm": f"{arm}, {self.pulls[arm]:,} times",
        }
        return _text(self.policy, pairs)


def replay(
    log: Any,
    policy: Target,
    *,
    arms: Iterable[Any] | None = None,
    reward_range: tuple[float, float] = (0.0, 1.0),
    missing: float | None = None,
    confidence: float = 0.95,
    floor: float | None = None,
    seed: int = 0,
) -> Replay:
    """Run ``policy`` over a log that was collected evenly at random, as if it had been there.

    In every row the policy chooses; where it chooses the arm of the log, it gets the reward and learns, and all other
    rows are passed over. What it sees is what it would have seen live, for about rows/arms rounds. The interval is for
    the mean, over the rounds played, of the expected rewards of its choices.

    A log whose propensities differ is refused, unless ``floor`` is given, a propensity that no arm could fall below: a
    row with propensity μ is then kept with probability floor/μ only, which makes the rows kept even.

    Parameters are those of `evaluate`; the policy draws from ``seed``.

    Li, Chu, Langford and Wang, "Unbiased offline evaluation of contextual-bandit-based news article recommendation
    algorithms", WSDM 2011.

    >>> import rightarm as ra
    >>> log = {"arm": ["a", "b", "b", "a"] * 200, "propensity": [0.5] * 800, "reward": [0.0, 1.0, 1.0, 0.0] * 200}
    >>> result = replay(log, ra.UCB(C=0.5))
    >>> result.pulls["b"] > 300, result.mean > 0.9
    (True, True)
    """
    low, high = _check_range(reward_range)
    rows, span = read_rows(log, arms, (low, high), missing), high - low
    target, random = _target(policy, rows.names), np.random.default_rng(check_count("seed", seed, least=0))
    if floor is None:
        _check_even(rows)
    least = float(rows.propensities.min()) if floor is None else _check_floor(floor, rows)
    kept, every = [], rows.every
    for t, (arm, propensity, reward) in enumerate(zip(rows.arms, rows.propensities, rows.rewards, strict=True)):
        if floor is not None and random.random() * propensity >= least:
            continue
        available = every if rows.among is None else rows.among[t]
        chosen, probability = target.choose(available, random)
        if chosen == arm:
            target.learn(chosen, float(reward), probability)
            kept.append(t)
    if not kept:
        raise ValueError(
            f"the policy agreed with none of the log's {rows.arms.size:,} rows; there is nothing to report"
        )
    rewards = rows.rewards[kept]
    ends = interval((rewards - low) / span, confidence)
    counts = np.bincount(rows.arms[kept], minlength=len(rows.names))
    return Replay(
        str(policy),
        rows=rows.arms.size,
        left_out=rows.left_out,
        kept=len(kept),
        mean=float(rewards.mean()),
        low=low + span * ends[0],
        high=low + span * ends[1],
        confidence=confidence,
        pulls={name: int(count) for name, count in zip(rows.names, counts, strict=True)},
        rewards=rewards,
    )


def _check_even(rows: Rows) -> None:
    """Refuse a log that was not collected evenly at random."""
    least, most = float(rows.propensities.min()), float(rows.propensities.max())
    if most - least > ROUNDED * most:
        raise ValueError(
            f"replay needs a log collected evenly at random, got propensities from {least:.6g} to {most:.6g}; "
            "give a floor that no propensity can fall below, or use evaluate"
        )
    sizes = {len(rows.names)} if rows.among is None else {len(row) for row in rows.among}
    for size in sizes:
        if abs(most * size - 1) > 0.4 / size:  # an arm more or less would be 1/size
            raise ValueError(
                f"a propensity of {most:.6g} in every row means about {1 / most:.0f} arms, "
                f"got {size}; say which there are with arms"
            )
