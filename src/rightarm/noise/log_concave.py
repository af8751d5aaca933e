"""The probabilities of a perturbed arg max for any log-concave law: a graded trapezoidal rule, compiled.

With F_j and f_j distribution function and density of arm j's score and G = −Σ log F_j,

    p_i = ∫ f_i(x)/F_i(x) · e^(−G(x)) dx.

The grid starts at a point x_L to the left of which nearly nothing lies, e^(−DEPTH) of the whole, and is equally spaced
in log(x − x_L), POINTS an octave: narrow laws near x_L and wide ones further on are met with steps that fit them. For
all arms, x_L is where G = DEPTH. For one arm whose probability may be very small, it is where the arm's own integrand
has fallen by DEPTH from its largest value; the result is a logarithm.

A law hands in its functions as a `LogConcave`; each takes the two numbers of an arm, location and scale or two shapes.
Which functions they are is known when the code is compiled, so that they are inlined.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rightarm.formula.compile import jit
from rightarm.types import F64, I64

POINTS = 12
STEP = math.log(2) / POINTS
DEPTH = 60.0
ALL = -1  # in place of an arm
DEAD = -60.0  # height on the right side of the mode from which F is 1 and f is 0
DEEPEST = 1e13  # −log of a density beyond which differences of depth are rounding, and its peak and width say it all
MOST_STEPS = 2_000  # of a search; some tens are the rule


class Axis(NamedTuple):
    """The scale t on which the ends of the grid are sought, for a law that is smooth on another scale than x."""

    point: Any  # t ↦ x
    place: Any  # x ↦ t
    stretch: Any  # t ↦ log dx/dt
    start: Any  # where the search for an arm begins
    step: Any  # and its first step


class LogConcave(NamedTuple):
    """What the integrals ask of a law: compiled functions, all but the last two of an arm's two numbers."""

    mode: Any  # where the density is largest
    width: Any  # how far the law spreads about its mode
    height: Any  # log of the density at x over the density at the mode
    peak: Any  # log of the density at the mode
    mills: Any  # P[X ≤ x] over the density at x
    moved_mills: Any  # the same from `mills` itself, a point a little to the left, and the value there
    log_cdf: Any  # log P[X ≤ x], at least roughly
    spaced: Any  # the distance from x_L to the k-th point of the grid, and its weight
    axis: Axis


@jit
def location_of(first: float, second: float) -> float:
    """The mode of a law whose density is largest at 0."""
    return first


@jit
def scale_of(first: float, second: float) -> float:
    """The width of a law with a scale."""
    return second


@jit
def same(x: float) -> float:
    """x itself: both `point` and `place` of an axis on which t is x."""
    return x


@jit
def no_stretch(t: float) -> float:
    """log dx/dt = 0, on an axis on which t is x."""
    return 0.0


@jit
def octaves(y0: float, k: int) -> tuple[float, float]:
    """The distance from x_L to the k-th point, y = y₀ 2^(k/POINTS), and its weight."""
    e = y0 * 2.0 ** (k / POINTS)
    return e, STEP * e


@jit
def mills_anew(mills: Any, before: float, mills_before: float, x: float, first: float, second: float) -> float:
    """`moved_mills` of a law whose formula for `mills` is so short that the point before saves nothing."""
    return mills(x, first, second)


@jit
def nearest(first: F64, second: F64) -> float:
    """A location near x_L: with it taken from all locations, points near x_L have all their digits."""
    return first[np.argmax(first - second * math.sqrt(2 * DEPTH))]


@jit
def depth(law: LogConcave, t: float, first: F64, second: F64, arm: int) -> float:
    """−log of the product of all distribution functions; with ``arm``, whose density stands for its own, of that."""
    x, total = law.axis.point(t), 0.0
    for j in range(first.size):
        if j != arm:
            total -= law.log_cdf(x, first[j], second[j])
    if arm != ALL:
        total -= law.height(x, first[arm], second[arm]) + law.axis.stretch(t)
    return total


@jit
def deepest(law: LogConcave, first: F64, second: F64, arm: int) -> tuple[float, float, float]:
    """About where an arm's integrand is largest, its depth there, a convex function's least value, and its width."""
    start, step = law.axis.start(first[arm], second[arm]), law.axis.step(first[arm], second[arm])
    low, high = start - step, start + step
    for j in range(first.size):  # beyond, all other distribution functions are nearly 1
        high = max(high, law.axis.start(first[j], second[j]) + 12.0 * law.axis.step(first[j], second[j]))
    middle = low + 0.5 * (high - low)
    below, above = depth(law, low, first, second, arm), depth(law, high, first, second, arm)
    here = depth(law, middle, first, second, arm)
    while above < here:
        middle, here, high = high, above, high + 2.0 * (high - low)
        above = depth(law, high, first, second, arm)
    while below < here:
        middle, here, low = low, below, low - 2.0 * (high - low)
        below = depth(law, low, first, second, arm)
    for _ in range(MOST_STEPS):
        left = middle - low > high - middle
        t = middle - 0.4 * (middle - low) if left else middle + 0.4 * (high - middle)
        if max(below, above) - here <= 1.0 or not low < t < high or t == middle:
            break
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
    return middle, here, high - low


@jit
def left_point(law: LogConcave, t: float, target: float, first: F64, second: F64, arm: int) -> tuple[float, float]:
    """x_L, where the depth is between target and target + 2, and a step y from there over which it falls by 2 to 4."""
    low = high = t
    step = law.axis.step(first[arm], second[arm])
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
    x = law.axis.point(low)
    y = law.axis.point(high) - x
    while deep - depth_at(law, x + y, first, second, arm) < 2.0:
        y *= 2.0
    while deep - depth_at(law, x + y, first, second, arm) > 4.0:
        y *= 0.5
    return x, y


@jit
def depth_at(law: LogConcave, x: float, first: F64, second: F64, arm: int) -> float:
    """The depth at the point x."""
    return depth(law, law.axis.place(x), first, second, arm)


@jit
def alive(law: LogConcave, x: float, first: F64, second: F64, arms: I64, count: int) -> int:
    """Keep those of the first ``count`` arms whose distribution function is not yet 1 at x; how many there are."""
    kept = 0
    for i in range(count):
        j = arms[i]
        if x <= law.mode(first[j], second[j]) or law.height(x, first[j], second[j]) > DEAD:
            arms[kept] = j
            kept += 1
    return kept


@jit
def all_arms(law: LogConcave, first: F64, second: F64, chance: F64) -> None:
    """The probability of every arm to have the largest score; of a law with a scale, locations are about 0."""
    chance[:] = 0.0
    top = 0
    for j in range(first.size):
        if law.mode(first[j], second[j]) > law.mode(first[top], second[top]):
            top = j
    start = law.axis.start(first[top], second[top])
    x, y0 = left_point(law, start, DEPTH, first, second, ALL)
    arms = np.arange(first.size)
    count = alive(law, x, first, second, arms, arms.size)
    ratio, peaks = np.empty(first.size), np.empty(first.size)
    for i in range(count):
        j = arms[i]
        ratio[j], peaks[j] = law.mills(x, first[j], second[j]), law.peak(first[j], second[j])
    here, k = x, 0
    while count > 0:
        y, weight = law.spaced(y0, k)
        before, here, log_product = here, x + y, 0.0
        count = alive(law, here, first, second, arms, count)  # first: beyond, an arm's `mills` may be infinite
        for i in range(count):
            j = arms[i]
            ratio[j] = law.moved_mills(law.mills, before, ratio[j], here, first[j], second[j])
            log_product += math.log(ratio[j]) + law.height(here, first[j], second[j]) + peaks[j]
        for i in range(count):
            chance[arms[i]] += weight * math.exp(log_product) / ratio[arms[i]]
        k += 1


@jit
def log_one(law: LogConcave, first: F64, second: F64, arm: int) -> float:
    """log of the probability of one arm, however small."""
    t, least, width = deepest(law, first, second, arm)
    if not least < DEEPEST:
        return law.peak(first[arm], second[arm]) + math.log(width) - least
    x, y0 = left_point(law, t, least + DEPTH, first, second, arm)
    largest = law.axis.point(t)
    arms = np.arange(first.size)
    arms[arm], arms[-1] = arms[-1], arm
    count = alive(law, x, first, second, arms, arms.size - 1)
    ratio, peaks = np.empty(first.size), np.empty(first.size)
    for i in range(count):
        j = arms[i]
        ratio[j], peaks[j] = law.mills(x, first[j], second[j]), law.peak(first[j], second[j])
    here, k, total, term = x, 0, 0.0, 1.0
    while here < largest or term > 1e-18 * total:
        y, weight = law.spaced(y0, k)
        before, here = here, x + y
        count = alive(law, here, first, second, arms, count)
        log_product = law.height(here, first[arm], second[arm]) + least
        for i in range(count):
            j = arms[i]
            ratio[j] = law.moved_mills(law.mills, before, ratio[j], here, first[j], second[j])
            log_product += math.log(ratio[j]) + law.height(here, first[j], second[j]) + peaks[j]
        term = weight * math.exp(log_product)
        total += term
        k += 1
    return math.log(total) - least + law.peak(first[arm], second[arm])


@jit
def log_one_with_scale(height: Any, peak: Any, mills: Any, log_cdf: Any, location: F64, scale: F64, arm: int) -> float:
    """`log_one` of a law with location and scale, whose density is smooth and largest at the location."""
    axis = Axis(same, same, no_stretch, location_of, scale_of)
    law = LogConcave(location_of, scale_of, height, peak, mills, mills_anew, log_cdf, octaves, axis)
    away = location - nearest(location, scale)
    largest, _, _ = deepest(law, away, scale, arm)
    origin = location[np.argmin(np.abs(away - largest))]  # from where points near the largest value have all digits
    return log_one(law, location - origin, scale, arm)
