"""Beta laws of scores, with any shapes: the probabilities of arms, compiled.

For all arms from one grid: on the scale x = log(θ/(1−θ)), with densities f_j and distribution functions F_j,

    p_i = ∫ f_i(x)/F_i(x) · Π_j F_j(x) dx

by the grid of `gaussian`, whose spacing is bounded here: on this scale a law's left tail is long and its bend short.
Distribution functions have no short formula that holds for all shapes, densities have: F_j is found at the left point,
and what lies between two points of the grid is added to it. log F_j is concave and at least −DEPTH − SLACK at the left
point, so that over a step it rises by less than 4, which Gauss and Legendre's rule is good for.

A row of LANES points is what a loop goes over, so that it becomes vector code: see `gumbel`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rightarm.formula.compile import jit
from rightarm.formula.elementary import exp, expm1, log, log1p
from rightarm.noise.contenders import BAD_FIRST, BAD_SECOND
from rightarm.noise.gaussian import DEPTH, FAR, LANES, LOG_2PI, SLACK, STEP, bell_and_below, standard_log_cdf
from rightarm.noise.law import ScoreLaw
from rightarm.noise.log_concave import POINTS, Axis, LogConcave, log_one, no_stretch, same
from rightarm.types import F64, I64

TAIL_STEP, TAIL_FIRST = 0.1, -3.8  # of a trapezoidal rule
# Gauss and Legendre's rule with 8 points, on (0, 1)
LEGENDRE = np.polynomial.legendre.leggauss(8)
NODES, WEIGHTS = (1 + LEGENDRE[0]) / 2, LEGENDRE[1] / 2
COARSEST = 4.0  # of the grid, over STEP
LEAST_SHAPE, LARGEST_SHAPE = 1e-3, 1e15
NOTHING = -100.0  # as a logarithm; not yet a subnormal number
LONGEST = 2e4  # grid, over COARSEST: shapes below 1e-3 ask for more, in vain


@jit
def mode(a: float, b: float) -> float:
    """Where the density of the log-odds is largest."""
    return math.log(a / b)


@jit
def width(a: float, b: float) -> float:
    """How far the law spreads about its mode."""
    return math.sqrt(1.0 / a + 1.0 / b)


@jit
def peak(a: float, b: float) -> float:
    """log of the density at the mode."""
    scale = 0.5 * (math.log(a / (a + b)) + math.log(b) - LOG_2PI)
    return scale - stirling(a) - stirling(b) + stirling(a + b)


@jit
def stirling(a: float) -> float:
    """log Γ(a) − (a − ½) log a + a − ½ log 2π, of which large numbers keep nothing if it is done as it stands."""
    if a < 10.0:
        return math.lgamma(a) - (a - 0.5) * math.log(a) + a - 0.5 * LOG_2PI
    s = 1.0 / (a * a)
    return (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * (691 / 360360)))))) / a


# All arms.


@jit
def height(x: float, a: float, b: float, middle: float) -> float:
    """log of the density over the density at its mode, ``middle``."""
    share, w = min(a, b) / (a + b), (x - middle if a <= b else middle - x)  # the smaller share loses fewer digits
    inside = min(max(w, -700.0), 600.0)
    return (a + b) * (share * w - log1p(share * expm1(inside)) - max(w - inside, 0.0))


@jit
def depth(x: float, a: F64, b: F64, middle: F64, parts: F64) -> float:
    """About −log Π F_j(x): that of Gaussian laws with densities as high."""
    for j in range(a.size):
        root = math.sqrt(max(-2.0 * height(x, a[j], b[j], middle[j]), 0.0))
        _, below = bell_and_below(min(root, FAR) if x > middle[j] else -min(root, FAR))
        parts[j] = -log(below)
    return parts.sum()


@jit
def left_of_all(a: F64, b: F64, middle: F64) -> tuple[float, float]:
    """x_L, where the depth is between DEPTH and DEPTH + SLACK, and a step from there over which it falls by 2 to 4."""
    top = np.argmax(middle)
    low = high = middle[top]
    step = width(a[top], b[top])
    parts = np.empty(a.size)
    while depth(high, a, b, middle, parts) > DEPTH:
        low, high, step = high, high + step, 2.0 * step
    deep = depth(low, a, b, middle, parts)
    while deep < DEPTH:
        low, high, step = low - step, low, 2.0 * step
        deep = depth(low, a, b, middle, parts)
    while deep > DEPTH + SLACK and high - low > 1e-15 * (abs(low) + abs(high)):
        between = 0.5 * (low + high)
        there = depth(between, a, b, middle, parts)
        if there >= DEPTH:
            low, deep = between, there
        else:
            high = between
    y = high - low
    while deep - depth(low + y, a, b, middle, parts) < 2.0:
        y *= 2.0
    while deep - depth(low + y, a, b, middle, parts) > 4.0:
        y *= 0.5
    return low, y


@jit
def alive(x: float, a: F64, b: F64, middle: F64, arms: I64) -> int:
    """Keep those of ``arms`` whose distribution function is not yet 1 at x; how many there are."""
    kept = 0
    for i in range(arms.size):
        j = arms[i]
        if x <= middle[j] or height(x, a[j], b[j], middle[j]) > -0.5 * FAR * FAR:
            arms[kept] = j
            kept += 1
    return kept


@jit
def cdf(x: float, a: float, b: float, middle: float) -> float:
    """P[X ≤ x], on the right of the mode from what is above: the trapezoidal rule in s, y = W e^(s − e^(−s))."""
    side = 1.0 if x <= middle else -1.0
    slope = abs(a - (a + b) / (1.0 + math.exp(min(-x, 700.0))))
    W = 1.0 / (slope + 1.0 / width(a, b))
    terms, here = np.empty(LANES), height(x, a, b, middle)
    total, s = 0.0, TAIL_FIRST
    while True:
        for n in range(LANES):
            rise = exp(-s - n * TAIL_STEP)
            y = W * exp(s + n * TAIL_STEP - rise)
            terms[n] = y * (1.0 + rise) * exp(max(height(x - side * y, a, b, middle) - here, NOTHING))
        total += terms.sum()
        s += LANES * TAIL_STEP
        if s > 1.0 and not terms[-1] >= 1e-18 * total:
            break
    beyond = TAIL_STEP * total * math.exp(here + peak(a, b))
    return beyond if side > 0.0 else 1.0 - beyond


@jit
def multiply(x: F64, dx: F64, a: float, b: float, F: float, ratio: F64, product: F64) -> float:
    """Multiply the product by an arm's F at a row of points, and ``ratio`` gets f/F; F at the last of them.

    ``dx`` are the distances to the points before, of which the first has the given F.
    """
    middle, top = mode(a, b), peak(a, b)
    between = np.zeros(LANES)
    for k in range(NODES.size):
        for n in range(LANES):
            f = exp(max(height(x[n] - NODES[k] * dx[n], a, b, middle) + top, NOTHING))
            between[n] += WEIGHTS[k] * dx[n] * f
    for n in range(LANES):
        ratio[n] = exp(max(height(x[n], a, b, middle) + top, NOTHING))
    for n in range(LANES):
        F += between[n]
        ratio[n] /= F
        product[n] *= F
    return F


@jit
def spaced(t: float, y: F64, dy: F64, weight: F64) -> None:
    """A row of distances from x_L, C log(1 + eᵗ) with C = COARSEST, and of the distances to the points before."""
    before = y[LANES - 1]
    for n in range(LANES):
        at = t + n * STEP
        small = exp(-abs(at))
        y[n] = COARSEST * (max(at, 0.0) + log1p(small))
        weight[n] = STEP * COARSEST * (1.0 if at > 0.0 else small) / (1.0 + small)
    for n in range(LANES):
        before, dy[n] = y[n], y[n] - before


@jit
def all_arms(a: F64, b: F64, chance: F64) -> None:
    """The probability of every arm to have the largest score, of shapes a and b."""
    middle = np.log(a / b)
    left, first = left_of_all(a, b, middle)
    arms = np.arange(a.size)
    arms = arms[: alive(left, a, b, middle, arms)]
    F, ratio = np.empty(a.size), np.empty(LANES * a.size)
    for j in arms:
        F[j] = cdf(left, a[j], b[j], middle[j])
    t = math.log(math.expm1(first / COARSEST))
    y, dy, product, weight = np.zeros(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES)
    chance[:] = 0.0
    while arms.size and t < LONGEST:
        spaced(t, y, dy, weight)
        x = left + y
        product[:] = 1.0
        for i in range(arms.size):
            j = arms[i]
            F[j] = multiply(x, dy, a[j], b[j], F[j], ratio[LANES * i : LANES * (i + 1)], product)
        for i in range(arms.size):
            for n in range(LANES):
                chance[arms[i]] += weight[n] * product[n] * ratio[LANES * i + n]
        t += LANES * STEP
        arms = arms[: alive(x[-1], a, b, middle, arms)]
    chance[arms] = np.nan


@jit
def of_largest(a: F64, b: F64, chance: F64) -> int:
    """The probability of every arm, or what is wrong with the shapes."""
    for j in range(a.size):
        if not LEAST_SHAPE <= a[j] <= LARGEST_SHAPE:
            return BAD_FIRST
        if not LEAST_SHAPE <= b[j] <= LARGEST_SHAPE:
            return BAD_SECOND
    all_arms(a, b, chance)
    return a.size


# One arm.


@jit
def height_at(x: float, a: float, b: float) -> float:
    """log of the density over the density at its mode; slower than `height`, with a few digits more."""
    if a > b:  # the smaller share loses fewer digits
        a, b, x = b, a, -x
    share, w = a / (a + b), x - math.log(a / b)
    if w > 700.0:
        return -b * w + (a + b) * (-math.log(share))
    return (a + b) * (share * w - math.log1p(share * math.expm1(w)))


@jit
def mills(x: float, a: float, b: float) -> float:
    """P[X ≤ x] over the density at x; on the right of the mode from what is above."""
    if x <= mode(a, b):
        return lower_tail(x, a, b)
    density = math.exp(height_at(x, a, b) + peak(a, b))
    return 1.0 / density - lower_tail(-x, b, a)


@jit
def lower_tail(x: float, a: float, b: float) -> float:
    """∫ f(x − y)/f(x) dy on the left of the mode: the trapezoidal rule in s, y = W e^(s − e^(−s))."""
    here = height_at(x, a, b)
    share = 1.0 / (1.0 + math.exp(min(-x, 700.0)))
    slope = max(a - (a + b) * share, 0.0)
    W = 1.0 / (slope + 1.0 / width(a, b))
    total, s = 0.0, TAIL_FIRST
    while True:
        rise = math.exp(-s)
        y = W * math.exp(s - rise)
        term = y * (1.0 + rise) * math.exp(height_at(x - y, a, b) - here)
        total += term
        s += TAIL_STEP
        if s > 1.0 and not term >= 1e-18 * total:
            return TAIL_STEP * total


@jit
def moved_mills(mills: Any, before: float, mills_before: float, x: float, a: float, b: float) -> float:
    """P[X ≤ x] over the density at x, given the same at a point a little to the left.

    The distribution function has no short formula that holds for all shapes, the density has: what lies between the
    two points is added.
    """
    here = height_at(x, a, b)
    risen = here - height_at(before, a, b)
    if risen > 3.0:  # too steep for the rule
        return mills(x, a, b)
    between = 0.0
    for k in range(NODES.size):
        between += WEIGHTS[k] * math.exp(height_at(before + NODES[k] * (x - before), a, b) - here)
    return mills_before * math.exp(-risen) + between * (x - before)


@jit
def log_cdf(x: float, a: float, b: float) -> float:
    """log P[X ≤ x]: an approximation, whose error is a small part of its value."""
    root = math.sqrt(max(-2.0 * height_at(x, a, b), 0.0))
    return standard_log_cdf(root if x > mode(a, b) else -root)


@jit
def bounded(y0: float, k: int) -> tuple[float, float]:
    """The distance from x_L to the k-th point, y = y₀ 2^(k/POINTS), not faster than COARSEST allows, and its weight."""
    e = y0 * 2.0 ** (k / POINTS)
    return COARSEST * math.log1p(e / COARSEST), STEP * e / (1.0 + e / COARSEST)


@jit
def log_of_one(a: F64, b: F64, arm: int) -> float:
    """The logarithm of the probability of one arm."""
    axis = Axis(same, same, no_stretch, mode, width)
    law = LogConcave(mode, width, height_at, peak, mills, moved_mills, log_cdf, bounded, axis)
    return log_one(law, a, b, arm)


class Beta(ScoreLaw):
    """The beta law of a score, which has no location and scale but two shapes: density ∝ θ^(a−1) (1−θ)^(b−1).

    >>> from rightarm.propensity import of_largest
    >>> of_largest(Beta(), [1.0, 2.0], [1.0, 1.0]).round(4)
    array([0.3333, 0.6667])
    """

    kernel = of_largest

    def log_of_one(self, first: F64, second: F64, arm: int) -> float:
        self.check(self.chances()(first, second, np.empty(first.size)), first, second)
        return float(log_of_one(first, second, arm))

    def complaint(self, row: str) -> str:
        return f"the {row} shapes of beta laws must be positive, from {LEAST_SHAPE:g} to {LARGEST_SHAPE:g}"

    def __repr__(self) -> str:
        return "Beta()"
