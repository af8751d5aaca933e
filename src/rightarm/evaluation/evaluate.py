"""`evaluate`: what another policy would have earned, from the log of one that ran.

Every row of the log is weighted by how much more often the other policy would have chosen its arm. A model of rewards
makes the estimate steadier: whatever it expects of a row, the estimate stays unbiased if that does not depend on the
reward of the row, given the rows before. So models learn from the rows before only. The interval holds for logs of
bandits that learn, of any length and however often one looks (`rightarm.inference.sequences`).
"""

from __future__ import annotations

import bisect
import copy
import math
import warnings as python_warnings
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from rightarm.display import counted
from rightarm.estimators import ridge_regression
from rightarm.estimators.context_rows import count_values, standardise
from rightarm.evaluation.targets import (
    Chooser,
    PolicyEstimate,
    Target,
    chooser_of,
    contexts_of,
    facts,
    features_for,
    name_of,
    warning_of,
)
from rightarm.formula import check_count
from rightarm.inference.sequences import check_confidence, joint_lower_bound
from rightarm.logs.log import LogLike
from rightarm.logs.rows import Rows, read_rows
from rightarm.types import F64, I64

FEW = 100  # effective rows below which an answer says little
DOMINANT = 0.1  # share of all weight on one row from which on the answer depends on that row
DEVIATIONS = 4.5  # standard errors of the mean weight from 1 that are not chance
RIDGE = 1.0  # in rows of a standardised column


@dataclass(frozen=True, kw_only=True)
class Evaluation(PolicyEstimate):
    """The estimated earnings of a policy in the rounds of a log, a mean per decision; `evaluate` makes it.

    The interval is of the value, not of one of the estimates.

    Attributes
    ----------
    policy
        The policy evaluated.
    logged
        The mean reward that the log itself has.
    ips
        The mean of weight · reward: unbiased.
    snips
        The same divided by the mean weight: steadier, with a bias that vanishes as rows come.
    dr
        Doubly robust: unbiased, and steadier than ``ips`` where arms differ or rewards are often above 0.
    effective_rows
        How many rows of a log of the policy itself the weighted ones are worth: (Σw)²/Σw².
    mean_weight
        Near 1 if the propensities are right and the log could choose every arm that the policy chooses.
    max_weight
        The largest weight of a row.
    rows, left_out, open_windows, low, high, confidence, reward_range, floor, warnings
        Those of every estimate: the rows used and not used, the interval, what was assumed, and what is wrong.
    """

    logged: float
    ips: float
    snips: float
    dr: float
    effective_rows: float
    mean_weight: float
    max_weight: float

    def _pairs(self) -> dict[str, str]:
        return {
            "rows": self.rows_in_words(),
            "the log's own mean reward": f"{self.logged:.6g}",
            "IPS": f"{self.ips:.6g}",
            "self-normalised IPS": f"{self.snips:.6g}",
            "doubly robust": f"{self.dr:.6g}",
            f"{100 * self.confidence:g}% interval, at any time": f"{self.low:.6g} to {self.high:.6g}",
            "effective rows": f"{self.effective_rows:,.1f}",
            "weights, mean and largest": f"{self.mean_weight:.4g}, {self.max_weight:.4g}",
            "assumed": self.assumptions(),
        }


@runtime_checkable
class RewardRegression(Protocol):
    """A regression, such as those of scikit-learn."""

    def fit(self, contexts: F64, rewards: F64, /) -> object:
        """Learn from a row of numbers for each reward."""

    def predict(self, contexts: F64, /) -> ArrayLike:
        """Return a reward for each row of numbers."""


def evaluate(
    log: LogLike,
    policy: Target,
    *,
    arms: Iterable[Hashable] | None = None,
    reward_range: tuple[float, float] | None = None,
    missing: float | None = None,
    confidence: float = 0.95,
    floor: float | None = None,
    rewards: RewardRegression | ArrayLike | None = None,
    folds: int = 10,
) -> Evaluation:
    """Estimate what ``policy`` would have earned per decision, from the log of another one.

    With A_t, μ_t and r_t the arm, its propensity and the reward of row t, π_t what the policy would have done there,
    w_t = π_t(A_t)/μ_t, and q_t(a) the reward that arm a is expected to bring there, judging by the rows before t:

        IPS = mean of w_t r_t        self-normalised = Σ w_t r_t / Σ w_t
        doubly robust = mean of  Σ_a π_t(a) q_t(a) + w_t (r_t − q_t(A_t))

    The doubly robust estimate is unbiased for any q_t that is made without the reward of row t and what came of it, and
    the better q_t predicts, the steadier it is. There is no estimate from predictions alone: it would be as wrong as
    these are.

    The interval is a confidence sequence: it holds for logs of policies that learn, and at whatever row one stops. It
    needs right propensities, a log that could choose every arm that the policy chooses, and rewards in their range.
    It is about the mean over the rows of Σ_a π_t(a) E[r_t | a, the rows before], so rewards may drift.

    Parameters
    ----------
    log
        A path, of a log or of a bandit's folder; a `rightarm.logs.Log` that was read already; a frame such as
        `read_log` gives; or a mapping of columns ``arm``, ``propensity``, ``reward``, in the order of decisions. If it
        has ``allowed`` in every row, the policy chooses among these. ``context``, if it is there, has a row of numbers
        for each decision, as `Features.encode_many` makes them, or is a table of the features, which those of the
        policy encode; ``arm_features`` has a row of numbers for each arm of ``allowed``.
    policy
        "uniform"; an arm, always that one; probabilities by arm, the same in every row; a function that takes the
        context, an array with the columns of the log's context (`Features.names`), and gives probabilities, by arm, or
        in the order of ``arms`` if these are given or are numbered 0, 1, 2 and so on; or a policy of rightarm. That one
        learns from the log as it goes: π_t are the probabilities with which it would draw after the rows before t, in
        the context of row t if it looks at contexts. What is estimated then is the mean reward of its choices made with
        the log's knowledge, not what it would have found out by itself: `replay` estimates that.
    arms
        All arms, if the log does not show them all, or if their order matters.
    reward_range
        What rewards can be, known beforehand and not read off them. Without it the range that the log's bandit was
        given, if the log says one, else 0 to 1. For a policy that is for a certain range (`Policy.reward_range`),
        rewards are scaled from this one to that.
    missing
        The reward that counts where none came; without it such rows are left out, which is right only if rewards are
        lost by chance. Decisions whose window of reward is open are left out in any case.
    confidence
        The confidence of the interval.
    floor
        A propensity that no arm could fall below, if there is one, known beforehand; without it likewise that of the
        log's bandit. The interval then also uses the doubly robust rewards; it becomes narrower where rewards are rare
        or arms differ much, not always.
    rewards
        q_t of your own, an array with a row for each row of the log and a column for each of ``arms``; or a regression
        with ``fit`` and ``predict``, such as those of scikit-learn. Without it q_t = (S + a)/(N + 1), S and N being the
        sum and the number of the arm's rewards so far and a the mean of all rewards so far and of one in the middle of
        their range; or, if the log has contexts, ridge regression on them (for each arm by itself, with standardised
        columns), whichever of both has predicted the rows before better.

        An array is taken as it is and used for the estimate alone, since nobody can see how it was made; the interval
        uses it nowhere. Predictions are cut to the range of rewards.
    folds
        A regression is fitted on (context, arm as a unit vector) in time: the rows are divided into so many parts that
        follow each other, and each is predicted by a fit on all parts before it, the first one as without ``rewards``.
        (Folds that are predicted by later rows would leak: later choices depend on earlier rewards where the log's
        policy learned.)

    Returns
    -------
    Evaluation
        The estimates, the interval, and warnings where they are worth little.

    Raises
    ------
    ValueError
        If the log is wrong, has no rewards, or has rewards outside their range; if the policy chooses arms that there
        are not.

    References
    ----------
    Horvitz and Thompson 1952 (IPS); Swaminathan and Joachims 2015 (self-normalised); Dudík, Langford and Li 2011
    (doubly robust); Karampatziakis, Mineiro and Ramdas 2021 (the interval, see `rightarm.inference.sequences`).

    Examples
    --------
    >>> log = {"arm": ["a", "b"] * 500, "propensity": [0.8, 0.2] * 500, "reward": [0.0, 1.0] * 500}
    >>> result = evaluate(log, {"a": 0.8, "b": 0.2})
    >>> round(result.ips, 9), round(result.mean_weight, 9)
    (0.5, 1.0)
    """
    rows = read_rows(log, arms, reward_range=reward_range, missing=missing, floor=floor, features=features_for(policy))
    rows.check_weights()
    low, high = rows.reward_range
    span = high - low
    target = chooser_of(policy, rows)
    found = weighted(rows, target, *reward_models(rewards, rows, folds))
    weights = found.weights
    earned = weights * rows.scaled
    bound = None if rows.floor is None else found.largest / rows.check_floor(rows.floor)  # no weight can be larger
    lower, upper = _interval(found, earned, bound, confidence)
    total = float(weights.sum())
    name = name_of(policy)
    warnings = [text for text in (warning_of(rows), *_complaints(rows, target, weights)) if text]
    if lower > upper:
        warnings.append("the interval is empty: the propensities cannot be those that chose the arms")
    for text in warnings:
        python_warnings.warn(f"{name}: {text}", stacklevel=2)
    return Evaluation(
        **facts(rows, rows.floor, confidence),
        policy=name,
        low=low + span * lower,
        high=low + span * upper,
        logged=float(rows.rewards.mean()),
        ips=float((weights * rows.rewards).mean()),
        snips=low + span * float(earned.sum()) / total if total else math.nan,
        dr=low + span * float(found.robust[0].mean()),
        effective_rows=_effective(weights),
        mean_weight=total / weights.size,
        max_weight=float(weights.max()),
        warnings=tuple(warnings),
    )


class Weighted(NamedTuple):
    """The rows of a log as they count for a policy."""

    weights: F64
    robust: F64  # the doubly robust reward of each row (columns) by each model (rows), for rewards from 0 to 1
    largest: float  # the largest probability that the policy can give an arm


def weighted(rows: Rows, target: Chooser, *models: RewardModel) -> Weighted:
    """Return every row's weight, and its doubly robust reward by each model; models may be the same."""
    different = list(dict.fromkeys(models))
    weights = np.empty(rows.arms.size)
    robust = np.empty((len(different), rows.arms.size))
    chances = np.zeros(len(rows.names))
    for t, (arm, propensity, reward) in enumerate(zip(rows.arms, rows.propensities, rows.scaled, strict=True)):
        available = rows.available(t)
        chances[:] = 0.0
        chances[available] = target.probabilities(t, available)
        weights[t] = chances[arm] / propensity
        for values, model in zip(robust, different, strict=True):
            expected = model.expect(t)  # before the row is learned, so that no bias comes in
            values[t] = chances @ expected + weights[t] * (reward - expected[arm])
            model.learn(t)
        target.learn(t, int(arm), float(rows.rewards[t]), float(propensity))
    is_constant = target.fixed is not None and rows.allowed is None
    return Weighted(weights, robust, float(chances.max()) if is_constant else 1.0)


def _interval(found: Weighted, earned: F64, bound: float | None, confidence: float) -> tuple[float, float]:
    """Return the ends of the interval, for rewards from 0 to 1; ``bound`` is the largest weight that there can be."""
    side = (1 + check_confidence(confidence)) / 2
    below = [(earned, 0.0)]
    above = [(found.weights - earned, 0.0)]
    if bound is not None:
        robust = found.robust[-1]  # by the model for the interval
        below.append((robust, bound))
        above.append((1 - robust, bound))
    return min(1.0, joint_lower_bound(below, side)), max(0.0, 1 - joint_lower_bound(above, side))


def _effective(weights: F64) -> float:
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares else 0.0


def _complaints(rows: Rows, target: Chooser, weights: F64) -> list[str]:
    """Say what makes an answer from these weights worth little."""
    found = []
    effective = _effective(weights)
    total = float(weights.sum())
    if effective < FEW:
        found.append(f"the effective sample size is {effective:.1f}, of {counted(weights.size, 'row')}")
    if total and weights.max() > DOMINANT * total:
        found.append(f"one row has {100 * weights.max() / total:.0f}% of all weight, {weights.max():.4g}")
    spread = float(((weights - 1) ** 2).sum())
    if spread and abs(total - weights.size) / math.sqrt(spread) > DEVIATIONS:
        found.append(
            f"the mean weight is {total / weights.size:.4g} and should be near 1: "
            "propensities are wrong, or the policy chooses what the log could not"
        )
    if target.fixed is not None:
        unseen = float(target.fixed[np.bincount(rows.arms, minlength=len(rows.names)) == 0].sum())
        if unseen > 0:
            found.append(f"{100 * unseen:.3g}% of the choices are of arms that the log never shows")
    return found


# Models of rewards.


class RewardModel(Protocol):
    """Expects rewards, from 0 to 1, row by row, and learns from each row after that."""

    def expect(self, row: int) -> F64:
        """Return what every arm is expected to bring in a row, from the rows before it."""

    def learn(self, row: int) -> None:
        """Take the reward of the row that was looked at last."""


class RunningMeans:
    """Expects the mean reward of each arm in the rows before, drawn to the mean of all by one row more."""

    def __init__(self, rows: Rows) -> None:
        self.arms = rows.arms
        self.scaled = rows.scaled
        self.pulls = np.zeros(len(rows.names))
        self.sums = np.zeros(len(rows.names))
        self.average = 0.5  # of all rows before, and one of 1/2

    def expect(self, row: int) -> F64:
        return np.asarray((self.sums + self.average) / (self.pulls + 1))

    def learn(self, row: int) -> None:
        arm = self.arms[row]
        reward = self.scaled[row]
        self.pulls[arm] += 1
        self.sums[arm] += reward
        self.average += (reward - self.average) / (row + 2)


class RidgeByArm:
    """Expects by ridge regression, for each arm by itself, of what rewards were beyond the mean of the rows before.

    expected = a_t + z_t · θ̂_arm, where θ̂ is fitted on r_s − a_s in the arm's rows s < t, z_t is (1, the context's
    columns standardised by the rows so far), and a_t the mean of all rewards before and one of 1/2.
    """

    def __init__(self, rows: Rows, contexts: F64) -> None:
        count = len(rows.names)
        size = contexts.shape[1]
        self.arms = rows.arms
        self.scaled = rows.scaled
        self.contexts = np.ascontiguousarray(contexts)
        self.factor = np.zeros((ridge_regression.sizes(size + 1, 0)[0], count))
        for arm in range(count):
            ridge_regression.begin(self.factor, arm, size + 1, 0, RIDGE)
        self.joint = np.zeros((0, count))  # columns that all arms share: none
        self.common = np.zeros((0, 2))  # and their factor
        self.columns = (np.arange(size), np.full(size, -1))
        self.moments = np.zeros((3, size))
        self.row = np.ones(size + 2)  # 1, the standardised context, and what the reward was beyond the mean
        self.pulls = np.empty(count)
        self.found = np.empty(count)
        self.average = 0.5

    def expect(self, row: int) -> F64:
        standardise(self.contexts[row], *self.columns, self.moments, self.row[1:-1])
        ridge_regression.read(
            self.row[:-1], self.joint, self.factor, self.common, self.found.size, self.pulls, self.found
        )
        return np.minimum(np.maximum(self.found + self.average, 0.0), 1.0)

    def learn(self, row: int) -> None:
        reward = float(self.scaled[row])
        count_values(self.contexts[row], *self.columns, self.moments)
        self.row[-1] = reward - self.average
        ridge_regression.take(self.row, int(self.arms[row]), self.row.size - 1, self.factor, self.common)
        self.row[0] = 1.0  # which was used up
        self.average += (reward - self.average) / (row + 2)


class BetterModel:
    """Follows the one of two models that has predicted the rows before better, in squares; the first if both are level.

    Regression on contexts does harm where rewards are rare or arms have few rows, and large weights make it worse.
    """

    def __init__(self, rows: Rows, first: RewardModel, second: RewardModel) -> None:
        self.arms = rows.arms
        self.scaled = rows.scaled
        self.models = (first, second)
        self.errors = [0.0, 0.0]
        self.found = [np.empty(0), np.empty(0)]

    def expect(self, row: int) -> F64:
        self.found = [model.expect(row) for model in self.models]
        return self.found[self.errors[1] < self.errors[0]]

    def learn(self, row: int) -> None:
        arm = self.arms[row]
        reward = float(self.scaled[row])
        for i, (model, found) in enumerate(zip(self.models, self.found, strict=True)):
            self.errors[i] += (reward - found.item(arm)) ** 2
            model.learn(row)


def running_model(rows: Rows) -> RewardModel:
    """Return the model that needs nothing else: means, or regression on the contexts, if the log has them."""
    means = RunningMeans(rows)
    if rows.contexts is None:
        return means
    return BetterModel(rows, means, RidgeByArm(rows, rows.contexts.rows))


class GivenRewards:
    """Expects rewards that are given: a row for each row of the log, and a column for each arm."""

    def __init__(self, rewards: RewardRegression | ArrayLike, rows: Rows) -> None:
        if not rows.ordered:
            raise ValueError(f"give arms= to say the order of the columns of rewards; the arms are {rows.names!r:.80}")
        length = rows.arms.size + rows.left_out
        try:
            table = np.array(rewards, dtype=float)
        except (TypeError, ValueError):
            table = np.zeros(0)
        if table.shape != (length, len(rows.names)):
            found = f"the shape {table.shape}" if table.size else f"{rewards!r:.80}"
            shape = f"{length} rows and {len(rows.names)} arms"
            raise ValueError(f"rewards must be an array of {shape}, or have fit and predict, got {found}")
        if not np.isfinite(table).all():
            row, arm = np.argwhere(~np.isfinite(table))[0]
            raise ValueError(f"rewards must be finite, got {table[row, arm]} in row {row + 1} for {rows.names[arm]!r}")
        self.table = _scaled(table[rows.places], rows.reward_range)

    def expect(self, row: int) -> F64:
        return np.asarray(self.table[row])

    def learn(self, row: int) -> None:
        pass


class RefittedRegression:
    """Expects what a regression predicts, fitted on (context, arm as a unit vector) anew for each part of the log.

    The rows are divided into parts that follow each other; what is expected in a part is fitted on all parts before it.
    In the first one it is what `running_model` expects.
    """

    def __init__(self, regression: RewardRegression, rows: Rows, folds: int) -> None:
        self.regression = regression
        self.rows = rows
        self.contexts = contexts_of(rows, regression)
        self.first = running_model(rows)
        count = check_count("folds", folds, least=2, most=rows.arms.size)
        self.starts = [i * rows.arms.size // count for i in range(count + 1)]
        self.table: F64 = np.zeros((0, len(rows.names)))  # of the present part

    def expect(self, row: int) -> F64:
        part = bisect.bisect_right(self.starts, row) - 1
        if part == 0:
            return self.first.expect(row)
        if row == self.starts[part]:
            self.table = self._predicted(row, self.starts[part + 1])
        return np.asarray(self.table[row - self.starts[part]])

    def learn(self, row: int) -> None:
        if row < self.starts[1]:
            self.first.learn(row)

    def _predicted(self, start: int, stop: int) -> F64:
        """Return what is expected from ``start`` to ``stop``, fitted on the rows before."""
        model = copy.deepcopy(self.regression)
        model.fit(self._design(self.contexts[:start], self.rows.arms[:start]), self.rows.rewards[:start])
        some = self.contexts[start:stop]
        columns = [np.ravel(model.predict(self._design(some, np.full(stop - start, arm)))) for arm in self.rows.every]
        for column in columns:
            if column.size != stop - start or not np.isfinite(column).all():
                must = "rewards must predict a finite number for each row"
                raise ValueError(f"{must}, got {column!s:.80} from {model!r}")
        return _scaled(np.array(columns, dtype=float).T, self.rows.reward_range)

    def _design(self, contexts: F64, arms: I64) -> F64:
        return np.hstack([contexts, np.eye(len(self.rows.names))[arms]])


def reward_models(
    rewards: RewardRegression | ArrayLike | None, rows: Rows, folds: int
) -> tuple[RewardModel, RewardModel]:
    """Return the model of the estimate, and that of the interval, which may use nothing of unknown origin."""
    if rewards is None:
        model = running_model(rows)
        return model, model
    if isinstance(rewards, RewardRegression):
        fitted = RefittedRegression(rewards, rows, folds)
        return fitted, fitted
    return GivenRewards(rewards, rows), running_model(rows)


def _scaled(table: F64, limits: tuple[float, float]) -> F64:
    """Return rewards in units of their range, cut off at its ends."""
    return np.clip((table - limits[0]) / (limits[1] - limits[0]), 0.0, 1.0)
