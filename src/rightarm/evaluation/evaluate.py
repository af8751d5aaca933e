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

from rightarm.evaluation.common import as_html, as_text, check_floor, check_propensities
from rightarm.evaluation.targets import Chooser, Target, chooser_of
from rightarm.inference.confidence import check_confidence, joint_lower_bound
from rightarm.logs.rows import Rows, read_rows
from rightarm.scores.rewards import check_reward_range
from rightarm.types import F64

FEW = 100  # effective rows below which an answer says little
DOMINANT = 0.1  # share of all weight on one row from which on the answer depends on that row
DEVIATIONS = 4.5  # standard errors of the mean weight from 1 that are not chance


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

    def _pairs(self) -> dict[str, str]:
        return {
            "rows": f"{self.rows:,}" + (f" ({self.left_out:,} without a reward left out)" if self.left_out else ""),
            "the log's own mean reward": f"{self.logged:.6g}",
            "IPS": f"{self.ips:.6g}",
            "self-normalised IPS": f"{self.snips:.6g}",
            "doubly robust": f"{self.dr:.6g}",
            f"{100 * self.confidence:g}% interval, at any time": f"{self.low:.6g} to {self.high:.6g}",
            "effective rows": f"{self.effective_rows:,.1f}",
            "weights, mean and largest": f"{self.mean_weight:.4g}, {self.max_weight:.4g}",
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

    - ``policy``: "uniform"; an arm, always that one; probabilities by arm, the same in every row; or a policy of
      rightarm. That one learns from the log as it goes: π_t are its exact probabilities given the rows before t. What
      is estimated then is the mean reward of its choices made with the log's knowledge, not what it would have found
      out by itself: `replay` estimates that.
    - ``log``: a path, a frame such as `read_log` gives, or a mapping of columns ``arm``, ``propensity``, ``reward``,
      in the order of decisions. If it has ``among`` in every row, the policy chooses among these.
    - ``arms``: all arms, if the log does not show them all.
    - ``reward_range``: what rewards can be, known beforehand and not read off the log. For a policy that is for rewards
      of a certain range (`Policy.rewards`), rewards are scaled from this one to that.
    - ``missing``: the reward that counts where none came; without it such rows are left out, which is right only if
      rewards are lost by chance.
    - ``floor``: a propensity that no arm could fall below, if there is one, known beforehand. The interval then also
      uses the doubly robust rewards; it becomes narrower where rewards are rare or arms differ much, not always.

    The interval is a confidence sequence: it holds for logs of policies that learn, and at whatever row one stops. It
    needs right propensities, a log that could choose every arm that the policy chooses, and rewards in their range.
    It is about the mean over the rows of Σ_a π_t(a) E[r_t | a, the rows before], so rewards may drift.

    Horvitz and Thompson 1952 (IPS); Swaminathan and Joachims 2015 (self-normalised); Dudík, Langford and Li 2011
    (doubly robust); Karampatziakis, Mineiro and Ramdas 2021 (the interval, see `rightarm.inference.confidence`).

    >>> log = {"arm": ["a", "b"] * 500, "propensity": [0.8, 0.2] * 500, "reward": [0.0, 1.0] * 500}
    >>> result = evaluate(log, {"a": 0.8, "b": 0.2})
    >>> round(result.ips, 9), round(result.mean_weight, 9)
    (0.5, 1.0)
    """
    low, high = check_reward_range(reward_range)
    rows, span = read_rows(log, arms, (low, high), missing), high - low
    check_propensities(rows)
    target, scaled = chooser_of(policy, rows.names, (low, high)), (rows.rewards - low) / span
    weights, robust, largest = weighted(rows, scaled, target)
    earned = weights * scaled
    bets = [[(earned, 0.0)], [(weights - earned, 0.0)]]
    if floor is not None:
        bound = largest / check_floor(floor, rows)  # no weight can be larger
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


def weighted(rows: Rows, scaled: F64, target: Chooser) -> tuple[F64, F64, float]:
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
    constant = target.fixed is not None and rows.among is None
    return weights, robust, float(law.max()) if constant else 1.0


def _effective(weights: F64) -> float:
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares else 0.0


def _complaints(rows: Rows, target: Chooser, weights: F64) -> list[str]:
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
    if target.fixed is not None:
        unseen = float(target.fixed[np.bincount(rows.arms, minlength=len(rows.names)) == 0].sum())
        if unseen > 0:
            found.append(f"{100 * unseen:.3g}% of the choices are of arms that the log never shows")
    return found
