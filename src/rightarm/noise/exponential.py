"""The exponential law: its draws, and the probabilities of arms with exponential noise, compiled.

With F_j the distribution function of arm j's score,

    p_i = ∫ f_i(x)/F_i(x) · Π F_j(x) dx.

The density begins at an arm's location, so that the product of the distribution functions vanishes at the largest of
them. Locations are counted from there. The grid starts at a point x_L where −log Π F_j is DEPTH, which is sought on the
scale of log x, and is equally spaced in log(x − x_L), POINTS an octave: narrow laws near x_L and wide ones further on
are met with steps that fit them.
"""

from __future__ import annotations

import math

import numpy as np

from rightarm.formula.compile import fma, jit
from rightarm.noise.law import Law
from rightarm.noise.pieces import LEAST, LOG_OF_2, log1p, share, solve_contenders, split
from rightarm.types import F64, I64

f32 = np.float32
u32 = np.uint32

POINTS = 12
STEP = math.log(2) / POINTS
DEPTH = 60.0
DEAD = 60.0  # scales above its location from where on an arm's distribution function is 1


@jit
def quantile(word: u32) -> f32:
    """Return −log(1 − u) at u = share(word).

    Near u = 0 a float32 of 1 − u has lost the digits that matter; there it is taken as −log1p(−u).
    """
    below = share(word)
    exponent, f = split(share(u32(~word)))
    lower = below < f32(0.25)
    f = -below if lower else f
    exponent = f32(0) if lower else exponent
    return -fma(exponent, LOG_OF_2, log1p(f))


@jit
def log_cdf(u: float) -> float:
    """Return log P[Z ≤ u]."""
    return math.log(-math.expm1(-u)) if u > 0.0 else -np.inf


@jit
def depth(x: float, location: F64, scale: F64) -> float:
    """Return −log Π F_j(x)."""
    total = 0.0
    for j in range(location.size):
        total -= log_cdf((x - location[j]) / scale[j])
    return total


@jit
def find_left_point(t: float, location: F64, scale: F64) -> tuple[float, float]:
    """Return x_L, where the depth is between DEPTH and DEPTH + 2, and a step over which it falls by 2 to 4.

    The search begins at x = eᵗ, and t moves by 1, by 2, by 4 and so on until the depth is on either side.
    """
    low = high = t
    step = 1.0
    while depth(math.exp(high), location, scale) > DEPTH:
        low = high
        high += step
        step *= 2.0
    while depth(math.exp(low), location, scale) < DEPTH:
        high = low
        low -= step
        step *= 2.0
    deep = depth(math.exp(low), location, scale)
    while deep > DEPTH + 2.0 and high - low > 1e-15 * (abs(low) + abs(high)):
        middle = 0.5 * (low + high)
        there = depth(math.exp(middle), location, scale)
        if there >= DEPTH:
            low = middle
            deep = there
        else:
            high = middle
    x = math.exp(low)
    y = math.exp(high) - x
    while deep - depth(x + y, location, scale) < 2.0:
        y *= 2.0
    while deep - depth(x + y, location, scale) > 4.0:
        y *= 0.5
    return x, y


@jit
def drop_ended(x: float, location: F64, scale: F64, arms: I64, count: int) -> int:
    """Leave those of the first ``count`` arms whose distribution function is not yet 1 at x; return how many."""
    left = 0
    for i in range(count):
        j = arms[i]
        if (x - location[j]) / scale[j] < DEAD:
            arms[left] = j
            left += 1
    return left


@jit
def integrate(location: F64, scale: F64, chance: F64) -> None:
    """Put the probability of every arm in ``chance``; the largest location is 0, and scales are positive."""
    chance[:] = 0.0
    x, y = find_left_point(math.log(scale[np.argmax(location)]), location, scale)
    arms = np.arange(location.size)
    ratio = np.empty(location.size)
    count = drop_ended(x, location, scale, arms, arms.size)
    k = 0
    while count > 0:
        away = y * 2.0 ** (k / POINTS)
        here = x + away
        log_product = 0.0
        count = drop_ended(here, location, scale, arms, count)  # first: beyond, an arm's ratio may be infinite
        for i in range(count):
            j = arms[i]
            u = (here - location[j]) / scale[j]
            ratio[j] = scale[j] * math.expm1(u)
            log_product += log_cdf(u)
        for i in range(count):
            chance[arms[i]] += STEP * away * math.exp(log_product) / ratio[arms[i]]
        k += 1


@jit
def all_arms(location: F64, scale: F64, chance: F64) -> None:
    """Put the probability of every arm to have the largest location + scale·z in ``chance``; scales are positive."""
    integrate(location - location.max(), scale, chance)


@jit
def solve(location: F64, scale: F64, chance: F64) -> int:
    """Find the probability of every arm, whatever locations and scales are."""
    return solve_contenders(location, scale, chance, all_arms, LEAST)


@jit
def log_tails(x: float) -> tuple[float, float]:
    """Return log P[Z ≤ x] and log P[Z > x]."""
    return log_cdf(x), -max(x, 0.0)


class Exponential(Law):
    """The exponential law with mean 1.

    >>> round(Exponential().cdf(1.0), 4)
    0.6321
    """

    word_quantile = quantile
    kernel = solve
    generator = staticmethod(lambda random, size: random.standard_exponential(size))
    log_tails = log_tails

    def cdf(self, x: float) -> float:
        return -math.expm1(-x) if x > 0 else 0.0
