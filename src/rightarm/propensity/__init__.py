"""Exact probabilities of a perturbed arg max: that arm i has the largest of independent random scores.

The score of arm i is location_i + scale_i·Z_i with Z_i of one law of noise for all arms, or a beta variable. With
distribution functions F_j and densities f_j,

    p_i = P[score_i is the largest] = ∫ f_i(x) Π_{j≠i} F_j(x) dx,

a softmax for Gumbel noise of one scale, else an integral that is computed to nearly all digits, at any locations and
scales: `gumbel`, `gaussian`, `beta` and `graded` say how.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rightarm.noise import Gaussian, Gumbel, Law, Uniform
from rightarm.propensity import graded, uniform
from rightarm.propensity.largest import CODES, Beta, check, contenders, kernel_of, usual

__all__ = ["Beta", "check_arm", "log_of_one", "of_largest"]

F64 = NDArray[np.float64]


def of_largest(law: Law | Beta | None, location: ArrayLike, scale: ArrayLike) -> F64:
    """The probability of every arm to have the largest score, location + scale·z with z of the given law.

    Errors are below 1e-12, of beta laws below 1e-10. Scales of zero, or no law, make a score its location; ties are
    fair. For `Beta`, the two arguments are its shapes.

    >>> from rightarm.noise import Gumbel
    >>> of_largest(Gumbel(), location=[0.0, np.log(3)], scale=[1.0, 1.0])
    array([0.25, 0.75])
    >>> of_largest(Gumbel(), location=[0.6, 0.5], scale=[0.5, 0.05]).round(6)
    array([0.683968, 0.316032])
    """
    first, second = _rows(location, scale)
    chance = np.empty(first.size)
    check(law, kernel_of(law)(first, second, chance), first, second)
    return chance


def log_of_one(law: Law | Beta | None, location: ArrayLike, scale: ArrayLike, arm: int) -> float:
    """The logarithm of the probability of one arm, with all digits however small the probability is.

    The arguments are those of `of_largest`.

    >>> from rightarm.noise import Gaussian
    >>> round(log_of_one(Gaussian(), location=[0.2, 0.9], scale=[0.025, 0.025], arm=0), 6)
    -199.907104
    """
    first, second = _rows(location, scale)
    check_arm(arm, first.size)
    if isinstance(law, Beta):
        of_largest(law, first, second)  # raises if something is wrong
        return float(graded.log_one(CODES[Beta], first, second, arm))
    second = np.zeros(first.size) if law is None else np.abs(second) if isinstance(law, Gaussian | Uniform) else second
    names = np.empty(first.size, np.int64)
    count = contenders(first, second, names)
    check(law, count, first, second)
    arms = names[:count]
    if arm not in arms:
        return -math.inf
    first, second = first[arms], second[arms]
    if first[0] == -math.inf or not usual(first, second):
        return -math.log(count)
    return _log_one(law, first, second, int(np.searchsorted(arms, arm)))


def check_arm(arm: int, arms: int) -> None:
    """Raise if ``arm`` is not the number of one of ``arms``."""
    if isinstance(arm, bool) or not isinstance(arm, int | np.integer) or not 0 <= arm < arms:
        raise ValueError(f"arm must be a whole number from 0 to {arms - 1}, got {arm!r}")


def _log_one(law: Law | Beta | None, first: F64, second: F64, arm: int) -> float:
    if isinstance(law, Gumbel) and (second == second[0]).all():
        place = first / second
        return float(place[arm] - place.max() - np.log(np.exp(place - place.max()).sum()))
    if isinstance(law, Uniform):
        lower, upper = uniform.ends(first, second)
        if upper[arm] <= 0:
            return -math.inf
        chance = np.empty(first.size)
        factor = uniform.below(lower, upper, upper[arm], chance)
        return float(math.log(chance[arm]) + factor)
    code = CODES[type(law)]
    return float(graded.log_one(code, first - graded.origin(code, first, second), second, arm))


def _rows(location: ArrayLike, scale: ArrayLike) -> tuple[F64, F64]:
    """The two numbers of every arm's law as arrays."""
    first, second = np.array(location, dtype=float), np.array(scale, dtype=float)
    if first.ndim != 1 or first.shape != second.shape or not first.size:
        message = f"location and scale must be two rows of one length, got shapes {first.shape} and {second.shape}"
        raise ValueError(message)
    return first, second
