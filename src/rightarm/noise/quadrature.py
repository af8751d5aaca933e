"""The probabilities of a perturbed arg max for any continuous law, from its distribution function alone, compiled.

With F_j the distribution function of arm j's score, F_j(x) = F((x − location_j)/scale_j), and G_i = Π_{j≠i} F_j,

    p_i = ∫ G_i dF_i.

- *Intervals*: on each, all F_j are interpolated at Chebyshev's points. Of the interpolating polynomials the integral is
  a bilinear form in their values, so that no density is needed.
- *Trust*: F_i and G_i rise, so that what an interval adds to p_i is between ΔF_i·G_i(left) and ΔF_i·G_i(right). Where
  these agree to SURE, nothing else is asked. Where not, every second point must give the same to AGREED, and F_i must
  not rise by more than half between two neighbouring points, or the interval is cut in two. So a narrow law is not
  overlooked, and a kink costs some 25 cuts.
- *Cuts* are made at the location and the ends of a law if they are inside, else in the middle.
- *Digits*: x is counted from an anchor, one of the locations. Where a scale is small beside the distance from the first
  anchor, the arm's location is one too.

The error of a probability is below 1e-11. A law whose distribution function jumps, so that ties have a probability, or
falls, ends in an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rightarm.formula.compile import jit
from rightarm.noise.pieces import find_contenders
from rightarm.types import F64, I64

CUT = 1e-14  # probability that is left out at either end of a law
SURE = 1e-15
AGREED = 1e-13
STEEP = 0.5  # part of its rise that a function may have between two neighbouring points
NARROW = 2.0**-7  # scale over the distance from the first anchor, below which an arm's location is an anchor
SHORTEST = 2.0**-49  # interval, over the numbers that it is computed from
DEEP = 2_500  # intervals waiting
MOST = 100_000  # intervals in all
# Statuses in place of a number of arms.
UNRESOLVED = -3
FALLING = -4
COMPLAINTS = {
    UNRESOLVED: "its probabilities could not be found to 11 digits; its cdf must be continuous, without jumps",
    FALLING: "its cdf must rise from 0 to 1 and be a number everywhere",
}


class Continuous(NamedTuple):
    """A law in compiled code."""

    cdf: Callable[[F64, F64], None]  # a pointer: the code here is compiled once for all laws
    low: float  # below which the cdf is 0
    high: float  # from which on it is 1


def chebyshev(degree: int) -> tuple[F64, F64]:
    """Return points on [0, 1] and W such that Σ G_k W_km F_m = ∫ G dF for polynomials of that degree."""
    points = (1 - np.cos(np.arange(degree + 1) * np.pi / degree)) / 2
    weights = (-1.0) ** np.arange(degree + 1)  # of barycentric interpolation
    weights[[0, -1]] /= 2
    apart = points[:, None] - points[None, :] + np.eye(degree + 1)
    derivative = weights[None, :] / weights[:, None] / apart
    derivative -= np.eye(degree + 1)  # its diagonal, which is still 1
    derivative -= np.diag(derivative.sum(axis=1))
    x, w = np.polynomial.legendre.leggauss(degree + 1)
    basis = weights / ((x[:, None] + 1) / 2 - points)
    basis /= basis.sum(axis=1, keepdims=True)
    return points, (basis * (w / 2)[:, None]).T @ basis @ derivative


DEGREE = 16
POINTS, FINE = chebyshev(DEGREE)
_, COARSE = chebyshev(DEGREE // 2)


def find_end(beyond: Callable[[float], float], inside: float, step: float) -> float:
    """Return where ``beyond``, the probability of what lies further out, falls to CUT; search from a point inside."""
    outside = inside
    while not beyond(outside) <= CUT:
        inside = outside
        outside += step
        step *= 2
        if not np.isfinite(outside):
            raise ValueError("the cdf must come within 1e-14 of 0 and 1 at its ends")
    for _ in range(60):
        middle = (inside + outside) / 2
        if beyond(middle) <= CUT:
            outside = middle
        else:
            inside = middle
    return outside


@jit
def evaluate_cdf(law: Continuous, u: F64, F: F64) -> bool:
    """Find the distribution function of the noise at a row of rising numbers; return whether it rises."""
    first = 0
    last = u.size
    for k in range(u.size):
        F[k] = 1.0
        if u[k] <= law.low:
            first = k + 1
            F[k] = 0.0
        elif u[k] >= law.high:
            last = min(last, k)
    if first < last:
        law.cdf(u[first:last], F[first:last])
    rises = 0.0 <= F[0] <= 1.0
    for k in range(1, u.size):
        rises = rises and F[k - 1] - 1e-12 <= F[k] <= 1.0
    return rises


@jit
def evaluate_interval(law: Continuous, m: F64, s: F64, anchor: float, a: float, b: float, arms: I64, F: F64) -> int:
    """Find all F_j at the points of an interval, but for those that are 1; return how many arms, or FALLING."""
    u = np.empty(DEGREE + 1)
    count = 0
    for j in range(m.size):
        away = anchor - m[j]
        if (a + away) / s[j] >= law.high:
            continue
        for k in range(DEGREE):
            u[k] = (a + (b - a) * POINTS[k] + away) / s[j]
        u[DEGREE] = (b + away) / s[j]
        if not evaluate_cdf(law, u, F[count]):
            return FALLING
        arms[count] = j
        count += 1
    return count


@jit
def bilinear(G: F64, W: F64, F: F64, stride: int) -> float:
    """Return Σ G_k W_km F_m over every ``stride``-th point, F being counted from its left end."""
    total = 0.0
    for k in range(W.shape[0]):
        row = 0.0
        for n in range(W.shape[0]):
            row += W[k, n] * (F[stride * n] - F[0])
        total += G[stride * k] * row
    return total


@jit
def integrate_interval(F: F64, above: F64, count: int, parts: F64) -> bool:
    """Find what an interval adds to the probabilities; return False if it must be cut. ``above`` is for products."""
    above[count] = 1.0
    for i in range(count - 1, -1, -1):
        for k in range(DEGREE + 1):
            above[i, k] = above[i + 1, k] * F[i, k]
    G = np.empty(DEGREE + 1)
    before = np.ones(DEGREE + 1)
    for i in range(count):
        steepest = 0.0
        for k in range(DEGREE + 1):
            G[k] = before[k] * above[i + 1, k]
            before[k] *= F[i, k]
            if k > 0:
                steepest = max(steepest, F[i, k] - F[i, k - 1])
        rise = F[i, DEGREE] - F[i, 0]
        if rise * (G[DEGREE] - G[0]) <= SURE:
            parts[i] = rise * 0.5 * (G[DEGREE] + G[0])
            continue
        parts[i] = bilinear(G, FINE, F[i], 1)
        if steepest > STEEP * rise or not abs(parts[i] - bilinear(G, COARSE, F[i], 2)) <= AGREED:
            return False
    return True


@jit
def find_cut(law: Continuous, m: F64, s: F64, anchor: float, a: float, b: float, arms: I64, F: F64) -> float:
    """Return where to cut an interval: at the place, inside, of a kink that a law may have, nearest to the middle.

    NaN if the interval is so short that rounding decides what lies in it: then two distribution functions jump there.
    """
    middle = 0.5 * (a + b)
    size = max(abs(a), abs(b))
    best = np.inf
    found = middle
    for i in range(arms.size):
        if F[i, DEGREE] - F[i, 0] > SURE:
            size = max(size, abs(anchor - m[arms[i]]))
            for edge in (0.0, law.low, law.high):
                t = (m[arms[i]] - anchor) + s[arms[i]] * edge
                if a < t < b and abs(t - middle) < best:
                    best = abs(t - middle)
                    found = t
    return found if b - a > SHORTEST * size else np.nan


@jit
def integrate(law: Continuous, m: F64, s: F64, anchor: float, left: float, right: float, chance: F64) -> int:
    """Add what lies between two points, counted from an anchor, to the probabilities; return a status."""
    F = np.empty((m.size, DEGREE + 1))
    above = np.empty((m.size + 1, DEGREE + 1))
    arms = np.empty(m.size, np.int64)
    parts = np.empty(m.size)
    stack = np.empty((DEEP, 2))
    stack[0, 0] = left
    stack[0, 1] = right
    waiting = 1
    intervals = 0
    while waiting:
        waiting -= 1
        intervals += 1
        a = stack[waiting, 0]
        b = stack[waiting, 1]
        count = evaluate_interval(law, m, s, anchor, a, b, arms, F)
        if count < 0:
            return count
        if integrate_interval(F, above, count, parts):
            for i in range(count):
                chance[arms[i]] += parts[i]
            continue
        middle = find_cut(law, m, s, anchor, a, b, arms[:count], F)
        if not a < middle < b or waiting + 2 > DEEP or intervals > MOST:
            return UNRESOLVED
        stack[waiting, 0] = middle
        stack[waiting, 1] = b
        stack[waiting + 1, 0] = a
        stack[waiting + 1, 1] = middle
        waiting += 2
    return 1


@jit
def find_anchors(m: F64, s: F64, first: float, start: float) -> F64:
    """Return the anchors, in their order: the first one, and the locations of narrow laws beyond the start."""
    anchors = np.empty(m.size + 1)
    count = 1
    anchors[0] = first
    for j in range(m.size):
        if s[j] < NARROW * abs(m[j] - first) and m[j] - first > start:
            anchors[count] = m[j]
            count += 1
    return np.unique(anchors[:count])


@jit
def solve_noisy(law: Continuous, m: F64, s: F64, fixed: float, chance: F64) -> int:
    """Find the probabilities of arms with noise to be the largest, and larger than ``fixed``."""
    chance[:] = 0.0
    lowest = np.argmax(m + s * law.low)
    highest = np.argmax(m + s * law.high)
    first = m[lowest]
    start = s[lowest] * law.low
    if not first + start > fixed:
        first = fixed
        start = 0.0
    anchors = find_anchors(m, s, first, start)
    last = anchors.size - 1
    left = (first - anchors[0]) + start
    for i in range(anchors.size):
        far = (m[highest] - anchors[i]) + s[highest] * law.high
        right = 0.5 * (anchors[i + 1] - anchors[i]) if i < last else far
        if left < right:
            status = integrate(law, m, s, anchors[i], left, right, chance)
            if status < 0:
                return status
        if i < last:
            left = right - (anchors[i + 1] - anchors[i])
    return 1


@jit
def solve(cdf: Callable[[F64, F64], None], low: float, high: float, location: F64, scale: F64, chance: F64) -> int:
    """Find the probability of every arm to have the largest location + scale·z; return a status."""
    law = Continuous(cdf, low, high)
    names = np.empty(scale.size, np.int64)
    count = find_contenders(location, scale, names)
    if count < 0:
        return count
    chance[:] = 0.0
    arms = names[:count]
    noisy = arms[scale[arms] > 0.0]
    fixed = arms[scale[arms] == 0.0]
    if np.isinf(location[arms[0]]) or noisy.size == 0:
        chance[arms] = 1.0 / count
        return count
    m = location[noisy]
    s = scale[noisy]
    found = np.empty(noisy.size)
    value = location[fixed[0]] if fixed.size else -np.inf
    status = solve_noisy(law, m, s, value, found)
    if status < 0:
        return status
    chance[noisy] = found
    if fixed.size:
        u = np.empty(1)
        F = np.empty(1)
        chance[fixed] = 1.0 / fixed.size
        for j in range(m.size):
            u[0] = (value - m[j]) / s[j]
            if not evaluate_cdf(law, u, F):
                return FALLING
            chance[fixed] *= F[0]
    return count
