"""Exact probabilities of a perturbed arg max: that arm i has the largest of independent random scores.

The score of arm i is location_i + scale_i·Z_i with Z_i of one law of noise for all arms, or a beta variable. With
distribution functions F_j and densities f_j,

    p_i = P[score_i is the largest] = ∫ f_i(x) Π_{j≠i} F_j(x) dx,

a softmax for Gumbel noise of one scale, else an integral that is computed to nearly all digits, at any locations and
scales. The files of `rightarm.noise`, one for each law, say how.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rightarm.noise import Beta, Fixed, ScoreLaw
from rightarm.types import F64

__all__ = ["Beta", "of_largest", "score_law"]

FIXED = Fixed()


def score_law(law: ScoreLaw | None) -> ScoreLaw:
    """The law of scores that ``law`` stands for; None are scores without noise."""
    if law is None:
        return FIXED
    if not isinstance(law, ScoreLaw):
        raise TypeError(f"law must be Gumbel(), Gaussian(), Exponential(), Uniform(), Beta() or None, got {law!r}")
    return law


def of_largest(law: ScoreLaw | None, location: ArrayLike, scale: ArrayLike) -> F64:
    """The probability of every arm to have the largest score, location + scale·z with z of the given law.

    Errors are below 1e-12, of a law of your own below 1e-11, of beta laws below 1e-10. Scales of zero, or no law, make
    a score its location; ties are fair, and arms at +∞ tie. For `Beta`, the two arguments are its shapes.

    >>> from rightarm.noise import Gumbel
    >>> of_largest(Gumbel(), location=[0.0, np.log(3)], scale=[1.0, 1.0])
    array([0.25, 0.75])
    >>> of_largest(Gumbel(), location=[0.6, 0.5], scale=[0.5, 0.05]).round(6)
    array([0.683968, 0.316032])
    """
    first, second = _rows(location, scale)
    chance, scores = np.empty(first.size), score_law(law)
    scores.check(scores.chances()(first, second, chance), first, second)
    return chance


def _rows(location: ArrayLike, scale: ArrayLike) -> tuple[F64, F64]:
    """The two numbers of every arm's law as arrays."""
    first, second = np.array(location, dtype=float), np.array(scale, dtype=float)
    if first.ndim != 1 or first.shape != second.shape or not first.size:
        message = f"location and scale must be two rows of one length, got shapes {first.shape} and {second.shape}"
        raise ValueError(message)
    return first, second
