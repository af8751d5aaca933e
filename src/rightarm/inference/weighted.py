"""Two arms compared by decisions that were made with known probabilities, which may depend on anything known before.

Where a policy shows arms to different people, the means of the arms' rewards cannot be compared: one arm may have got
the better people. Weighted by 1/propensity both arms stand for all people alike.

With rewards r_t scaled to 0 to 1, the arm A_t and its propensity p_t, and given all that came before decision t,

    X_t = 1{A_t = a} r_t/p_t + 1{A_t = b} (1 − r_t)/p_t  ≥  0     has the mean  μ_t(a) + 1 − μ_t(b),

whatever p_t is: so a bound below its average is one below the difference, and with a and b exchanged one above it
(`rightarm.inference.confidence`). If no propensity can fall below a known floor, the doubly robust

    Y_t = q_t(a) − q_t(b) + 1{A_t = a} (r_t − q_t(a))/p_t − 1{A_t = b} (r_t − q_t(b))/p_t  ≥  −1/floor

has the mean μ_t(a) − μ_t(b) too, and gets half of the bets: q_t are means of the decisions before t. It is much
narrower where rewards are rare.

References: Horvitz and Thompson 1952; Dudík, Langford and Li, "Doubly robust policy evaluation and learning", ICML
2011; Karampatziakis, Mineiro and Ramdas, "Off-policy confidence sequences", ICML 2021.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rightarm.inference.comparisons import Difference
from rightarm.inference.confidence import check_confidence, joint_lower_bound
from rightarm.inference.sequences import BOUNDED, Range
from rightarm.scores.rewards import check_reward_range
from rightarm.types import F64

Chosen = tuple[NDArray[np.bool_], NDArray[np.bool_]]


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
    """How much more one arm earns than another, over decisions, in their order, that could all have chosen either.

    - ``arms``: 0 where the first arm was chosen, 1 where the second was, anything else for the others.
    - ``floor``: a probability below which neither could fall, known beforehand; 0 if there is none.

    It is about the average, over these decisions, of how much more the first arm earns there, so the world may drift.
    The module's text has formulas and references.

    >>> found = weighted_difference([0, 1] * 400, [0.5] * 800, [1, 0, 1, 1] * 200, (0, 1), names=("blue", "red"))
    >>> print(found)
    blue is better than red: by 0.3812 to 0.6077 (95%, at any time)
    """
    low, high = check_reward_range(reward_range)
    which, chances = np.asarray(arms), np.asarray(propensities, dtype=float)
    scaled = (np.asarray(rewards, dtype=float) - low) / (high - low)
    if not which.shape == chances.shape == scaled.shape or which.ndim != 1:
        raise ValueError(f"columns must be of one length, got {which.shape}, {chances.shape} and {scaled.shape}")
    if scaled.size and not (-1e-9 <= scaled.min() <= scaled.max() <= 1 + 1e-9):
        raise ValueError(f"rewards must be in reward_range, {low} to {high}, got others")
    if scaled.size and not floor * (1 - 1e-9) <= chances.min() <= chances.max() <= 1 + 1e-9:
        raise ValueError(f"propensities must be from {floor} to 1, got {chances.min()} to {chances.max()}")
    chosen, side = (which == 0, which == 1), (1 + check_confidence(confidence)) / 2
    bets = [[(_hedged(first, second, scaled, chances), 0.0)] for first, second in (chosen, chosen[::-1])]
    if floor > 0:
        robust, bound = _robust(chosen, scaled, chances), 1 / floor - 1
        bets[0].append((1 + robust, bound))
        bets[1].append((1 - robust, bound))
    ends = [min(joint_lower_bound(one, side) - 1, 1.0) for one in bets]
    means = [_mean(one, scaled, chances) for one in chosen]
    absent = [str(name) for name, one in zip(names, chosen, strict=True) if not one.any()]
    lacking = f"no reward of {' or of '.join(absent)}{f' where {where}' if where else ''}" if absent else ""
    estimate = (high - low) * (means[0] - means[1])
    return Difference(
        names[0],
        names[1],
        estimate,
        (high - low) * ends[0],
        -(high - low) * ends[1],
        confidence,
        BOUNDED,
        lacking,
        where,
        which.size,
    )


def _hedged(first: NDArray[np.bool_], second: NDArray[np.bool_], scaled: F64, chances: F64) -> F64:
    return np.asarray((first * scaled + second * (1 - scaled)) / chances)


def _robust(chosen: Chosen, scaled: F64, chances: F64) -> F64:
    """The doubly robust difference of every decision, with means of those before it and one reward of 1/2."""
    expected = [(_before(one * scaled) + 0.5) / (_before(one) + 1) for one in chosen]
    parts = [q + one * (scaled - q) / chances for one, q in zip(chosen, expected, strict=True)]
    return np.asarray(parts[0] - parts[1])


def _before(values: NDArray[np.bool_] | F64) -> F64:
    """The sum of the values before each."""
    return np.concatenate(([0.0], np.cumsum(values, dtype=float)))[: values.size]


def _mean(one: NDArray[np.bool_], scaled: F64, chances: F64) -> float:
    """The mean reward of an arm, weighted and self-normalised."""
    weights = one / chances
    return float(weights @ scaled / weights.sum()) if one.any() else float("nan")
