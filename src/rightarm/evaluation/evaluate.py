"""`evaluate`: what another policy would have earned, from the log of one that ran.

Every row of the log is weighted by how much more often the other policy would have chosen its arm. The interval holds
for logs of bandits that learn, of any length and however often one looks (`rightarm.inference.confidence`).
"""

from __future__ import annotations

import math
import warnings as python_warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rightarm.evaluation.common import (
    as_html,
    as_text,
    in_words,
    rows_in_words,
    warning_of,
)
from rightarm.evaluation.expected import Expected, expected_by
from rightarm.evaluation.targets import Chooser, Target, chooser_of, features_for, name_of
from rightarm.inference.confidence import check_confidence, joint_lower_bound
from rightarm.logs.rows import Rows, read_rows
from rightarm.types import F64

FEW = 100  # effective rows below which an answer says little
DOMINANT = 0.1  # share of all weight on one row from which on the answer depends on that row
DEVIATIONS = 4.5  # standard errors of the mean weight from 1 that are not chance


@dataclass(frozen=True)
class Evaluation:
    """The estimated earnings of a policy in the rounds of a log, a mean per decision; `evaluate` makes it."""

    policy: str
    """The policy evaluated."""
    rows: int
    """The rows used."""
    left_out: int
    """The rows that were not: those without a reward, and those whose window of reward is open."""
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
    reward_range: tuple[float, float]
    """What rewards could be: as given, or as the log says, or 0 to 1."""
    floor: float | None
    """The propensity that no arm could fall below, as given or as the log says; None if neither does."""
    warnings: tuple[str, ...]
    """Why the numbers may be worth little; empty if nothing is wrong."""
    open_windows: int = 0
    """How many of the rows left out have an open window of reward; the others have no reward."""

    def _pairs(self) -> dict[str, str]:
        return {
            "rows": rows_in_words(self.rows, self.left_out, self.open_windows),
            "the log's own mean reward": f"{self.logged:.6g}",
            "IPS": f"{self.ips:.6g}",
            "self-normalised IPS": f"{self.snips:.6g}",
            "doubly robust": f"{self.dr:.6g}",
            f"{100 * self.confidence:g}% interval, at any time": f"{self.low:.6g} to {self.high:.6g}",
            "effective rows": f"{self.effective_rows:,.1f}",
            "weights, mean and largest": f"{self.mean_weight:.4g}, {self.max_weight:.4g}",
            "taken as known": in_words(self.reward_range, self.floor),
        }

    def __str__(self) -> str:
        return as_text(self.policy, self._pairs(), self.warnings)

    def _repr_html_(self) -> str:
        return as_html(self.policy, self._pairs(), self.warnings)


def evaluate(
    log: Any,
    policy: Target,
    *,
    arms: Iterable[Any] | None = None,
    reward_range: tuple[float, float] | None = None,
    missing: float | None = None,
    confidence: float = 0.95,
    floor: float | None = None,
    rewards: Any = None,
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
        has ``among`` in every row, the policy chooses among these. ``context``, if it is there, has a row of numbers
        for each decision, as `Features.encode_many` makes them, or is a table of the features, which those of the
        policy encode; ``arm_features`` has a row of numbers for each arm of ``among``.
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
        given, if the log says one, else 0 to 1. For a policy that is for rewards of a certain range (`Policy.rewards`),
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
    (doubly robust); Karampatziakis, Mineiro and Ramdas 2021 (the interval, see `rightarm.inference.confidence`).

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
    weights, robust, largest = weighted(rows, target, *expected_by(rewards, rows, folds))
    earned = weights * rows.scaled
    bound = None if rows.floor is None else largest / rows.check_floor(rows.floor)  # no weight can be larger
    lower, upper = _interval(weights, earned, robust[-1], bound, confidence)
    total = float(weights.sum())
    name = name_of(policy)
    warnings = [text for text in (warning_of(rows), *_complaints(rows, target, weights)) if text]
    if lower > upper:
        warnings.append("the interval is empty: the propensities cannot be those that chose the arms")
    for text in warnings:
        python_warnings.warn(f"{name}: {text}", stacklevel=2)
    return Evaluation(
        name,
        rows=weights.size,
        left_out=rows.left_out,
        logged=float(rows.rewards.mean()),
        ips=float((weights * rows.rewards).mean()),
        snips=low + span * float(earned.sum()) / total if total else math.nan,
        dr=low + span * float(robust[0].mean()),
        low=low + span * lower,
        high=low + span * upper,
        confidence=confidence,
        effective_rows=_effective(weights),
        mean_weight=total / weights.size,
        max_weight=float(weights.max()),
        reward_range=rows.reward_range,
        floor=rows.floor,
        warnings=tuple(warnings),
        open_windows=rows.open_windows,
    )


def _interval(weights: F64, earned: F64, robust: F64, bound: float | None, confidence: float) -> tuple[float, float]:
    """Return the ends of the interval, for rewards from 0 to 1; ``bound`` is the largest weight that there can be."""
    side = (1 + check_confidence(confidence)) / 2
    below = [(earned, 0.0)]
    above = [(weights - earned, 0.0)]
    if bound is not None:
        below.append((robust, bound))
        above.append((1 - robust, bound))
    return min(1.0, joint_lower_bound(below, side)), max(0.0, 1 - joint_lower_bound(above, side))


def weighted(rows: Rows, target: Chooser, *models: Expected) -> tuple[F64, F64, float]:
    """Return every row's weight, and its doubly robust reward by each model of what is expected.

    Models may be the same. The third is the largest probability that the target can give an arm.
    """
    different = list(dict.fromkeys(models))
    weights, robust = np.empty(rows.arms.size), np.empty((len(different), rows.arms.size))
    law = np.zeros(len(rows.names))
    for t, (arm, propensity, reward) in enumerate(zip(rows.arms, rows.propensities, rows.scaled, strict=True)):
        available = rows.available(t)
        law[:] = 0.0
        law[available] = target.probabilities(t, available)
        weights[t] = law[arm] / propensity
        for own, model in zip(robust, different, strict=True):
            expected = model.before(t)  # known before the row, so that no bias comes in
            own[t] = law @ expected + weights[t] * (reward - expected[arm])
            model.learn(t)
        target.learn(t, int(arm), float(rows.rewards[t]), float(propensity))
    constant = target.fixed is not None and rows.among is None
    return weights, robust, float(law.max()) if constant else 1.0


def _effective(weights: F64) -> float:
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares else 0.0


def _complaints(rows: Rows, target: Chooser, weights: F64) -> list[str]:
    """Say what makes an answer from these weights worth little."""
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
    if target.fixed is not None:
        unseen = float(target.fixed[np.bincount(rows.arms, minlength=len(rows.names)) == 0].sum())
        if unseen > 0:
            found.append(f"{100 * unseen:.3g}% of the choices are of arms that the log never shows")
    return found
