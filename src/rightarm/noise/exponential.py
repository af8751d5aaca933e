"""The exponential law: its draws, and the probabilities of arms with exponential noise, compiled.

The density begins at an arm's location, so that the product of the distribution functions vanishes at the largest of
them. Locations are counted from there, and points are sought on the scale of log x.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from rightarm.formula.compile import fma, jit
from rightarm.noise import log_concave
from rightarm.noise.contenders import LEAST, shared
from rightarm.noise.law import Law
from rightarm.noise.log_concave import Axis, LogConcave, location_of, mills_anew, octaves, same, scale_of
from rightarm.noise.words import LOG_OF_2, log1p, share, split
from rightarm.types import F64

f32 = np.float32
u32 = np.uint32

graded_arms, graded_one = log_concave.all_arms, log_concave.log_one


@jit
def quantile(word: u32) -> f32:
    """−log(1 − u) at u = share(word).

    Near u = 0 a float32 of 1 − u has lost the digits that matter; there it is taken as −log1p(−u).
    """
    below = share(word)
    exponent, f = split(share(u32(~word)))
    lower = below < f32(0.25)
    f = -below if lower else f
    exponent = f32(0) if lower else exponent
    return -fma(exponent, LOG_OF_2, log1p(f))


@jit
def height(x: float, location: float, scale: float) -> float:
    """log of the density over the density at the mode."""
    u = (x - location) / scale
    return -u if u >= 0.0 else -np.inf


@jit
def peak(location: float, scale: float) -> float:
    """log of the density at the mode."""
    return -math.log(scale)


@jit
def mills(x: float, location: float, scale: float) -> float:
    """P[X ≤ x] over the density at x."""
    return scale * math.expm1((x - location) / scale)


@jit
def log_cdf(x: float, location: float, scale: float) -> float:
    """log P[X ≤ x]."""
    u = (x - location) / scale
    return math.log(-math.expm1(-u)) if u > 0.0 else -np.inf


@jit
def point(t: float) -> float:
    """x at t = log x."""
    return math.exp(t)


@jit
def place(x: float) -> float:
    """t = log x."""
    return math.log(x)


@jit
def start(location: float, scale: float) -> float:
    """The search for an arm's points begins at x = scale."""
    return math.log(scale)


@jit
def step(location: float, scale: float) -> float:
    """The first step of a search: a factor e."""
    return 1.0


@jit
def all_arms(location: F64, scale: F64, chance: F64) -> None:
    """The probability of every arm to have the largest location + scale·z, z exponential, scales positive."""
    axis = Axis(point, place, same, start, step)
    law = LogConcave(location_of, scale_of, height, peak, mills, mills_anew, log_cdf, octaves, axis)
    graded_arms(law, location - location.max(), scale, chance)


@jit
def of_largest(location: F64, scale: F64, chance: F64) -> int:
    """The probability of every arm, whatever locations and scales are."""
    return shared(location, scale, chance, all_arms, LEAST)


@jit
def log_of_one(location: F64, scale: F64, arm: int) -> float:
    """The logarithm of the probability of one arm."""
    axis = Axis(point, place, same, start, step)
    law = LogConcave(location_of, scale_of, height, peak, mills, mills_anew, log_cdf, octaves, axis)
    return graded_one(law, location - location.max(), scale, arm)


@jit
def log_tails(x: float) -> tuple[float, float]:
    """log P[Z ≤ x] and log P[Z > x]."""
    return log_cdf(x, 0.0, 1.0), -max(x, 0.0)


class Exponential(Law):
    """The exponential law with mean 1.

    >>> round(Exponential().cdf(1.0), 4)
    0.6321
    """

    quantile: ClassVar[Any] = quantile
    kernel = of_largest
    generator = staticmethod(lambda random, size: random.standard_exponential(size))
    log_kernel = log_of_one
    log_tails = log_tails

    def cdf(self, x: float) -> float:
        return -math.expm1(-x) if x > 0 else 0.0
