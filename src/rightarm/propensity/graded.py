"""The probabilities of a perturbed arg max for any log-concave law: a graded trapezoidal rule, compiled.

With F_j and f_j distribution function and density of arm j's score and G = −Σ log F_j,

    p_i = ∫ f_i(x)/F_i(x) · e^(−G(x)) dx.

The grid starts at a point x_L to the left of which nearly nothing lies, e^(−DEPTH) of the whole, and is equally spaced
in log(x − x_L), POINTS an octave: narrow laws near x_L and wide ones further on are met with steps that fit them. For
all arms, x_L is where G = DEPTH. For one arm whose probability may be very small, it is where the arm's own integrand
has fallen by DEPTH from its largest value; the result is a logarithm. For all arms, `gumbel`, `gaussian` and `beta` are
faster: here they are done for exponential laws only.

The density of an exponential law begins at its location, so that the product vanishes at the largest of them; points
are sought on the scale of the logarithm of the distance to it. On the scale of log-odds, the left tail of a beta law is
long and its bend short: the grid's spacing is bounded there.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rightarm.formula.compile import jit
from rightarm.propensity.laws import BETA, EXPONENTIAL, height, log_cdf, mills, mode, moved_mills, peak, width

F64 = NDArray[np.float64]

POINTS = 12
STEP = math.log(2) / POINTS
DEPTH = 60.0
ALL = -1  # in place of an arm
DEAD = -60.0  # height on the right side of the mode from which F is 1 and f is 0
COARSEST = 4.0  # of a beta law's grid, over STEP


@jit
def origin(law: int, first: F64, second: F64) -> float:
    """What is taken from locations, so that points near x_L have all their digits."""
    if law == BETA:
        return 0.0
    if law == EXPONENTIAL:
        return first.max()
    return first[np.argmax(first - second * math.sqrt(2 * DEPTH))]


@jit
def point(law: int, t: float) -> float:
    """The point at t, on the scale on which points are sought."""
    return math.exp(t) if law == EXPONENTIAL else t


@jit
def depth(law: int, t: float, first: F64, second: F64, arm: int) -> float:
    """−log of the product of all distribution functions; with ``arm``, whose density stands for its own, of that."""
    x, total = point(law, t), 0.0
    for j in range(first.size):
        if j != arm:
            total -= log_cdf(law, x, first[j], second[j])
    if arm != ALL:
        total -= height(law, x, first[arm], second[arm]) + (t if law == EXPONENTIAL else 0.0)
    return total


@jit
def deepest(law: int, first: F64, second: F64, arm: int) -> tuple[float, float]:
    """About where an arm's integrand is largest, and its depth there: a convex function's least value."""
    step = 1.0 if law == EXPONENTIAL else width(law, first[arm], second[arm])
    middle = math.log(second[arm]) if law == EXPONENTIAL else mode(law, first[arm], second[arm])
    low, high = middle - step, middle + step
    here = depth(law, middle, first, second, arm)
    below, above = depth(law, low, first, second, arm), depth(law, high, first, second, arm)
    while below < here or above < here:
        step *= 2.0
        if above < here:
            low, below, middle, here = middle, here, high, above
            high = middle + step
            above = depth(law, high, first, second, arm)
        else:
            high, above, middle, here = middle, here, low, below
            low = middle - step
            below = depth(law, low, first, second, arm)
    while max(below, above) - here > 1.0:
        left = middle - low > high - middle
        t = middle - 0.4 * (middle - low) if left else middle + 0.4 * (high - middle)
        there = depth(law, t, first, second, arm)
        if there < here:
            if left:
                high, above = middle, here
            else:
                low, below = middle, here
            middle, here = t, there
        elif left:
            low, below = t, there
        else:
            high, above = t, there
        if high - low < 1e-13 * (abs(low) + abs(high)):
            break
    return middle, here


@jit
def left_point(law: int, t: float, target: float, first: F64, second: F64, arm: int) -> tuple[float, float]:
    """x_L, where the depth is between target and target + 2, and a step y from there over which it falls by 2 to 4."""
    low = high = t
    step = 1.0 if law == EXPONENTIAL else width(law, first[arm], second[arm])
    while depth(law, high, first, second, arm) > target:
        low, high, step = high, high + step, 2.0 * step
    while depth(law, low, first, second, arm) < target:
        low, high, step = low - step, low, 2.0 * step
    deep = depth(law, low, first, second, arm)
    while deep > target + 2.0 and high - low > 1e-15 * (abs(low) + abs(high)):
        middle = 0.5 * (low + high)
        there = depth(law, middle, first, second, arm)
        if there >= target:
            low, deep = middle, there
        else:
            high = middle
    x = point(law, low)
    y = point(law, high) - x
    while deep - depth_at(law, x + y, first, second, arm) < 2.0:
        y *= 2.0
    while deep - depth_at(law, x + y, first, second, arm) > 4.0:
        y *= 0.5
    return x, y


@jit
def depth_at(law: int, x: float, first: F64, second: F64, arm: int) -> float:
    """The depth at the point x."""
    return depth(law, math.log(x) if law == EXPONENTIAL else x, first, second, arm)


@jit
def spaced(law: int, y0: float, k: int) -> tuple[float, float]:
    """The distance from x_L to the k-th node, and its weight: y = y₀ 2^(k/POINTS), not faster than COARSEST allows."""
    e = y0 * 2.0 ** (k / POINTS)
    if law != BETA:
        return e, STEP * e
    return COARSEST * math.log1p(e / COARSEST), STEP * e / (1.0 + e / COARSEST)


@jit
def alive(law: int, x: float, first: F64, second: F64, arms: NDArray[np.int64], count: int) -> int:
    """Keep those of the first ``count`` arms whose distribution function is not yet 1 at x; how many there are."""
    kept = 0
    for i in range(count):
        j = arms[i]
        if x <= mode(law, first[j], second[j]) or height(law, x, first[j], second[j]) > DEAD:
            arms[kept] = j
            kept += 1
    return kept


@jit
def all_arms(law: int, first: F64, second: F64, chance: F64) -> None:
    """The probability of every arm to have the largest score; of a law with a scale, locations are about 0."""
    chance[:] = 0.0
    top = 0
    for j in range(first.size):
        if mode(law, first[j], second[j]) > mode(law, first[top], second[top]):
            top = j
    start = math.log(second[top]) if law == EXPONENTIAL else mode(law, first[top], second[top])
    x, y0 = left_point(law, start, DEPTH, first, second, ALL)
    arms = np.arange(first.size)
    count = alive(law, x, first, second, arms, arms.size)
    ratio, peaks = np.empty(first.size), np.empty(first.size)
    for i in range(count):
        j = arms[i]
        ratio[j], peaks[j] = mills(law, x, first[j], second[j]), peak(law, first[j], second[j])
    here, k = x, 0
    while count > 0:
        y, weight = spaced(law, y0, k)
        before, here, log_product = here, x + y, 0.0
        for i in range(count):
            j = arms[i]
            ratio[j] = moved_mills(law, before, ratio[j], here, first[j], second[j])
            log_product += math.log(ratio[j]) + height(law, here, first[j], second[j]) + peaks[j]
        for i in range(count):
            chance[arms[i]] += weight * math.exp(log_product) / ratio[arms[i]]
        count = alive(law, here, first, second, arms, count)
        k += 1


@jit
def log_one(law: int, first: F64, second: F64, arm: int) -> float:
    """log of the probability of one arm, however small."""
    t, least = deepest(law, first, second, arm)
    x, y0 = left_point(law, t, least + DEPTH, first, second, arm)
    largest = point(law, t)
    arms = np.arange(first.size)
    arms[arm], arms[-1] = arms[-1], arm
    count = alive(law, x, first, second, arms, arms.size - 1)
    ratio, peaks = np.empty(first.size), np.empty(first.size)
    for i in range(count):
        j = arms[i]
        ratio[j], peaks[j] = mills(law, x, first[j], second[j]), peak(law, first[j], second[j])
    here, k, total, term = x, 0, 0.0, 1.0
    while here < largest or term > 1e-18 * total:
        y, weight = spaced(law, y0, k)
        before, here = here, x + y
        log_product = height(law, here, first[arm], second[arm]) + least
        for i in range(count):
            j = arms[i]
            ratio[j] = moved_mills(law, before, ratio[j], here, first[j], second[j])
            log_product += math.log(ratio[j]) + height(law, here, first[j], second[j]) + peaks[j]
        term = weight * math.exp(log_product)
        total += term
        count = alive(law, here, first, second, arms, count)
        k += 1
    return math.log(total) - least + peak(law, first[arm], second[arm])
