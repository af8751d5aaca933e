"""Gaussian noise with any locations and scales: the probabilities of all arms from one grid, compiled.

With u_j = (x − m_j)/s_j, P[all scores ≤ x] = Π Φ(u_j), and

    p_i = ∫ φ(u_i)/(s_i Φ(u_i)) · Π_j Φ(u_j) dx.

- *Left point*: x_L with −log Π Φ(u_j) a little above DEPTH; what lies to its left has probability e^(−DEPTH). From
  there on the product is a number that does not underflow, so that no logarithms are needed.
- *Grid*: x = x_L + y, equally spaced in log y, POINTS an octave. An arm that matters has m_j at most √(2·DEPTH) s_j
  from x_L. There the trapezoidal rule converges geometrically, at a rate free of locations and scales.
- *Few arms*: those more than FAR scales below x_L win less often than e^(−FAR²/2) and are left out; others as soon as
  the grid is that far above them.
- *Errors*: of a probability p about 1e-14, and 1e-10 p for all p above 1e-12.

A row of LANES points is what a loop goes over, so that it becomes vector code: see `gumbel`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rightarm.formula.compile import fma, jit
from rightarm.formula.elementary import exp, log

F64 = NDArray[np.float64]

DEPTH = 54.0
SLACK = 4.0  # of the depth of x_L
LEFT = math.sqrt(2 * DEPTH)  # Φ(−LEFT) is e^(−DEPTH − 3.3)
FAR = 11.0
LEAST = 1e-200  # scale, where the largest is above 1e-151: the inverse of a smaller one may be infinite
MOST_STEPS = 100  # of Newton's method; four are the rule
POINTS, LANES = 12, 16
STEP = math.log(2) / POINTS
STARTS = 2.0 ** (np.arange(LANES) / POINTS)
ROW = 2.0 ** (LANES / POINTS)


@jit
def tail(a: float, bell: float) -> float:
    """1 − Φ(a) for 0 ≤ a ≤ 12, with ``bell`` = e^(−a²/2): its quotient by that is rational but for 1e-14 of itself."""
    p = 2.930766571789456e-05
    p = fma(p, a, 0.0006107851522048432)
    p = fma(p, a, 0.0060714400608868095)
    p = fma(p, a, 0.03683621915288008)
    p = fma(p, a, 0.14671903746834136)
    p = fma(p, a, 0.3848841267537493)
    p = fma(p, a, 0.6233902561725279)
    p = fma(p, a, 0.5)
    q = 7.346342590381348e-05
    q = fma(q, a, 0.0015310111275299149)
    q = fma(q, a, 0.015292315056083392)
    q = fma(q, a, 0.09386551001546652)
    q = fma(q, a, 0.38284571268144363)
    q = fma(q, a, 1.0539851963078946)
    q = fma(q, a, 1.9011749474078055)
    q = fma(q, a, 2.0446650731470544)
    q = fma(q, a, 1.0)
    return bell * p / q


@jit
def law(u: float) -> tuple[float, float]:
    """√(2π)·φ(u) and Φ(u) for −12 ≤ u ≤ 12."""
    bell = exp(-0.5 * u * u)
    below = tail(abs(u), bell)
    return bell, (below if u < 0.0 else 1.0 - below)


@jit
def contenders(m: F64, s: F64, x: float, arms: NDArray[np.int64]) -> int:
    """Keep those of ``arms`` that are not FAR below x; how many there are."""
    kept = 0
    for i in range(arms.size):
        j = arms[i]
        if x < m[j] + FAR * s[j]:
            arms[kept] = j
            kept += 1
    return kept


@jit
def left_of_all(m: F64, s: F64, x: float) -> tuple[float, float]:
    """x_L and the slope of −log Π Φ(u_j) there, from a point x on its left, by Newton's method for its root.

    That is convex, about linear on the left, and the method comes from there without overshooting.
    """
    minus_log, ratio = np.empty(m.size), np.empty(m.size)
    slope = 1.0
    for _ in range(MOST_STEPS):
        for j in range(m.size):
            bell, below = law(min((x - m[j]) / s[j], FAR))
            minus_log[j], ratio[j] = -log(below), bell / (below * s[j])
        depth, slope = 0.0, 0.0
        for j in range(m.size):
            depth += minus_log[j]
            slope += ratio[j]
        slope /= math.sqrt(2 * math.pi)
        if depth < DEPTH + SLACK:
            break
        x += 2.0 * (depth - math.sqrt(depth * DEPTH)) / slope
    return x, slope


@jit
def multiply(y: float, m: float, inverse: float, ratio: F64, product: F64) -> None:
    """Multiply the product by an arm's Φ(u) at a row of points; ``ratio`` gets √(2π)·φ(u)/Φ(u)."""
    for n in range(LANES):
        bell, below = law(min((y * STARTS[n] - m) * inverse, FAR))
        ratio[n] = bell / below
        product[n] *= below


@jit
def integrals(m: F64, s: F64, y: float, chance: F64) -> None:
    """The trapezoidal rule in log y, from y on; m is measured from x_L."""
    arms = np.arange(m.size)
    ratio, sums = np.empty(LANES * m.size), np.zeros(LANES * m.size)
    product = np.empty(LANES)
    count = contenders(m, s, y, arms)
    while count:
        product[:] = 1.0
        for i in range(count):
            multiply(y, m[arms[i]], 1.0 / s[arms[i]], ratio[LANES * i : LANES * (i + 1)], product)
        for n in range(LANES):
            product[n] *= STEP * y * STARTS[n]
        for i in range(count):
            for n in range(LANES):
                sums[LANES * arms[i] + n] += product[n] * ratio[LANES * i + n]
        y *= ROW
        count = contenders(m, s, y, arms[:count])
    for j in range(m.size):
        chance[j] = sums[LANES * j : LANES * (j + 1)].sum() / (s[j] * math.sqrt(2 * math.pi))


@jit
def all_arms(location: F64, scale: F64, chance: F64) -> None:
    """The probability of every arm to have the largest location + scale·z, z Gaussian, scales positive."""
    s = np.maximum(scale, LEAST)
    nearest = np.argmax(location - LEFT * s)
    m, left = location - location[nearest], -LEFT * s[nearest]  # small numbers, with all digits that matter
    arms = np.arange(m.size)
    some = arms[: contenders(m, s, left, arms)]
    m, s, found = m[some], s[some], np.empty(some.size)
    x, slope = left_of_all(m, s, left)
    integrals(m - x, s, 2.0 / slope, found)
    chance[:] = 0.0
    chance[some] = found
