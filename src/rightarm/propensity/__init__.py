"""Exact probabilities of a perturbed arg max: that arm i has the largest of independent random scores.

The score of arm i is location_i + scale_i·Z_i with Z_i of one law of noise for all arms, or a beta variable. With
distribution functions F_j and densities f_j,

    p_i = P[score_i is the largest] = ∫ f_i(x) Π_{j≠i} F_j(x) dx,

a softmax for Gumbel noise of one scale, else an integral that is computed to nearly all digits, at any locations and
scales: `gumbel` and `graded` say how.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rightarm.noise import Exponential, Gaussian, Gumbel, Law, Uniform
from rightarm.propensity import graded, gumbel, uniform
from rightarm.propensity.laws import BETA, EXPONENTIAL, GAUSSIAN, GUMBEL

F64 = NDArray[np.float64]

TINY = 2.0**-60  # of the least positive scale: what stands for a scale of zero beside positive ones


class Beta:
    """The beta law of a score, which has no location and scale but two shapes: density ∝ θ^(a−1) (1−θ)^(b−1).

    >>> of_largest(Beta(), [1.0, 2.0], [1.0, 1.0]).round(4)
    array([0.3333, 0.6667])
    """

    def __repr__(self) -> str:
        return "Beta()"


GRADED: dict[type, int] = {Gumbel: GUMBEL, Gaussian: GAUSSIAN, Exponential: EXPONENTIAL, Beta: BETA}
KNOWN = "Gumbel(), Gaussian(), Exponential(), Uniform(), Beta() or None"


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
    first, second = _checked(law, location, scale)
    arms = _contenders(law, first, second)
    if arms is None:
        return _all_arms(law, first, second)
    chance, scale = np.zeros(first.size), second[arms]
    chance[arms] = _all_arms(law, first[arms], _positive(scale)) if scale.any() else 1.0 / arms.size
    return chance


def log_of_one(law: Law | Beta | None, location: ArrayLike, scale: ArrayLike, arm: int) -> float:
    """The logarithm of the probability of one arm, with all digits however small the probability is.

    The arguments are those of `of_largest`.

    >>> from rightarm.noise import Gaussian
    >>> round(log_of_one(Gaussian(), location=[0.2, 0.9], scale=[0.025, 0.025], arm=0), 6)
    -199.907104
    """
    first, second = _checked(law, location, scale)
    check_arm(arm, first.size)
    arms = _contenders(law, first, second)
    if arms is not None:
        if arm not in arms:
            return -math.inf
        first, second, arm = first[arms], second[arms], int(np.flatnonzero(arms == arm)[0])
        if not second.any():
            return -math.log(first.size)
        second = _positive(second)
    return _log_one(law, first, second, int(arm))


def check_arm(arm: int, arms: int) -> None:
    """Raise if ``arm`` is not the number of one of ``arms``."""
    if isinstance(arm, bool) or not isinstance(arm, int | np.integer) or not 0 <= arm < arms:
        raise ValueError(f"arm must be a whole number from 0 to {arms - 1}, got {arm!r}")


def _all_arms(law: Law | Beta | None, first: F64, second: F64) -> F64:
    chance = np.empty(first.size)
    if isinstance(law, Gumbel):
        gumbel.all_arms(first, second, chance)
    elif isinstance(law, Uniform):
        lower, upper = _ends(first, second)
        uniform.below(lower, upper, upper.max(), chance)
    else:
        kind = GRADED[type(law)]
        graded.all_arms(kind, first - graded.origin(kind, first, second), second, chance)
    return chance


def _log_one(law: Law | Beta | None, first: F64, second: F64, arm: int) -> float:
    if isinstance(law, Gumbel) and (second == second[0]).all():
        place = first / second
        return float(place[arm] - place.max() - np.log(np.exp(place - place.max()).sum()))
    if isinstance(law, Uniform):
        lower, upper = _ends(first, second)
        if upper[arm] <= 0:
            return -math.inf
        chance = np.empty(first.size)
        factor = uniform.below(lower, upper, upper[arm], chance)
        return float(math.log(chance[arm]) + factor)
    kind = GRADED[type(law)]
    return float(graded.log_one(kind, first - graded.origin(kind, first, second), second, arm))


def _ends(location: F64, scale: F64) -> tuple[F64, F64]:
    """The ends of uniform scores, the largest lower one being 0."""
    highest = np.argmax(location - scale)
    lower = (location - location[highest]) - (scale - scale[highest])
    return lower, lower + 2 * scale


def _checked(law: Law | Beta | None, location: ArrayLike, scale: ArrayLike) -> tuple[F64, F64]:
    """The two numbers of every arm's law as arrays, or an error that says what is wrong with them."""
    if not isinstance(law, Uniform) and type(law) not in GRADED and law is not None:
        raise TypeError(f"law must be {KNOWN}, whose probabilities are known, got {law!r}")
    first, second = np.asarray(location, dtype=float), np.asarray(scale, dtype=float)
    if first.ndim != 1 or first.shape != second.shape or not first.size:
        message = f"location and scale must be two rows of one length, got shapes {first.shape} and {second.shape}"
        raise ValueError(message)
    if isinstance(law, Beta):
        for name, shape in (("first", first), ("second", second)):
            if not (np.isfinite(shape) & (shape > 0)).all():
                raise ValueError(f"the {name} shapes of beta laws must be positive and finite, got {shape.tolist()}")
        return first, second
    if law is None:
        second = np.zeros(first.size)
    if isinstance(law, Gaussian | Uniform):  # symmetric: −z is as good as z
        second = np.abs(second)
    if not np.isfinite(second).all() or (second < 0).any():
        raise ValueError(f"scale must be finite and not negative, got {second.tolist()}")
    if np.isnan(first).any() or not first.max() < np.inf:
        raise ValueError(f"location must be a number below infinity, got {first.tolist()}")
    return first, second


def _contenders(law: Law | Beta | None, first: F64, second: F64) -> NDArray[np.int64] | None:
    """The arms that can have the largest score, or None for all: of scales of zero, those with the largest location."""
    if isinstance(law, Beta) or (second.all() and first.min() > -np.inf):
        return None
    fixed = second == 0
    best = first[fixed].max() if fixed.any() else -np.inf
    return np.flatnonzero(np.where(fixed, first == best, first > -np.inf))


def _positive(scale: F64) -> F64:
    """The scales, one of zero being as good as a very small one."""
    return scale if scale.all() else np.where(scale > 0, scale, TINY * scale[scale > 0].min())
