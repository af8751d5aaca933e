"""The Gaussian law, and that of its absolute value: draws, and the probabilities of arms with such noise, compiled.

For all arms from one grid: with u_j = (x − m_j)/s_j, P[all scores ≤ x] = Π Φ(u_j), and

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

from rightarm.formula.compile import fma, jit
from rightarm.formula.elementary import exp
from rightarm.formula.elementary import log as log64
from rightarm.noise.law import Law
from rightarm.noise.pieces import centred, log, log1p, share, solve_contenders
from rightarm.types import F64, I64

f32 = np.float32
u32 = np.uint32

TAIL = f32(6.0)  # −log(4q(1−q)) from which the second polynomial of the quantile is used: q < 0.0006
LOG_2PI = math.log(2 * math.pi)
LOG_OF_2 = math.log(2)
DEPTH = 54.0
SLACK = 4.0  # of the depth of x_L
LEFT = math.sqrt(2 * DEPTH)  # Φ(−LEFT) is e^(−DEPTH − 3.3)
FAR = 11.0
LEAST = 1e-200  # scale, where the largest is above 1e-151: the inverse of a smaller one may be infinite
MOST_STEPS = 100  # of Newton's method; four are the rule
POINTS = 12
LANES = 16
STEP = LOG_OF_2 / POINTS
STARTS = 2.0 ** (np.arange(LANES) / POINTS)
ROW = 2.0 ** (LANES / POINTS)


@jit
def quantile(word: u32) -> f32:
    """Return Φ⁻¹(u) at u = share(word), as (u − ½)·P(w) with w = −log(4u(1−u)) (the variable of Giles 2010)."""
    below = share(word)
    above = share(u32(~word))
    tail = below if below < above else above
    middle = centred(word)
    w_centre = -log1p(f32(-4) * middle * middle)
    w_tail = -log(f32(4) * tail * (f32(1) - tail))
    w = w_centre if tail > f32(0.25) else w_tail
    x = w - f32(3)
    p = fma(fma(fma(f32(9.5248765e-07), x, f32(-5.5653013e-06)), x, f32(-3.3811742e-05)), x, f32(5.5426819e-04))
    p = fma(fma(fma(fma(p, x, f32(-2.3703941e-03)), x, f32(-1.6233757e-02)), x, f32(6.8343747e-01)), x, f32(4.5920711))
    y = np.sqrt(w) - f32(3.5)
    q = fma(fma(fma(f32(-5.4189871e-04), y, f32(1.5639042e-03)), y, f32(-2.0529970e-03)), y, f32(2.8831353e-03))
    q = fma(fma(fma(fma(q, y, f32(-5.7850913e-03)), y, f32(9.3125617e-03)), y, f32(2.8492646)), y, f32(9.4341764))
    return middle * (p if w < TAIL else q)


# All arms.


@jit
def upper_tail(a: float, bell: float) -> float:
    """Return 1 − Φ(a) for 0 ≤ a ≤ 12, with ``bell`` = e^(−a²/2); their quotient is rational to 14 digits."""
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
def bell_and_below(u: float) -> tuple[float, float]:
    """Return √(2π)·φ(u) and Φ(u) for −12 ≤ u ≤ 12."""
    bell = exp(-0.5 * u * u)
    below = upper_tail(abs(u), bell)
    return bell, (below if u < 0.0 else 1.0 - below)


@jit
def drop_far(m: F64, s: F64, x: float, arms: I64) -> int:
    """Leave those of ``arms`` that are not FAR below x; return how many there are."""
    left = 0
    for i in range(arms.size):
        j = arms[i]
        if x < m[j] + FAR * s[j]:
            arms[left] = j
            left += 1
    return left


@jit
def find_left_point(m: F64, s: F64, x: float) -> tuple[float, float]:
    """Return x_L and the slope of −log Π Φ(u_j) there, from a point x on its left, by Newton's method for its root.

    That is convex, about linear on the left, and the method comes from there without overshooting.
    """
    minus_log = np.empty(m.size)
    ratio = np.empty(m.size)
    slope = 1.0
    for _ in range(MOST_STEPS):
        for j in range(m.size):
            bell, below = bell_and_below(min((x - m[j]) / s[j], FAR))
            minus_log[j] = -log64(below)
            ratio[j] = bell / (below * s[j])
        depth = 0.0
        slope = 0.0
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
        bell, below = bell_and_below(min((y * STARTS[n] - m) * inverse, FAR))
        ratio[n] = bell / below
        product[n] *= below


@jit
def integrate(m: F64, s: F64, y: float, chance: F64) -> None:
    """Integrate by the trapezoidal rule in log y, from y on; m is measured from x_L."""
    arms = np.arange(m.size)
    ratio = np.empty(LANES * m.size)
    sums = np.zeros(LANES * m.size)
    product = np.empty(LANES)
    count = drop_far(m, s, y, arms)
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
        count = drop_far(m, s, y, arms[:count])
    for j in range(m.size):
        chance[j] = sums[LANES * j : LANES * (j + 1)].sum() / (s[j] * math.sqrt(2 * math.pi))


@jit
def all_arms(location: F64, scale: F64, chance: F64) -> None:
    """Find the probability of every arm to have the largest location + scale·z, z Gaussian, scales positive."""
    s = np.maximum(scale, LEAST)
    nearest = np.argmax(location - LEFT * s)
    m = location - location[nearest]  # small numbers, with all digits that matter
    left = -LEFT * s[nearest]
    arms = np.arange(m.size)
    some = arms[: drop_far(m, s, left, arms)]
    m = m[some]
    s = s[some]
    found = np.empty(some.size)
    x, slope = find_left_point(m, s, left)
    integrate(m - x, s, 2.0 / slope, found)
    chance[:] = 0.0
    chance[some] = found


@jit
def solve(location: F64, scale: F64, chance: F64) -> int:
    """Find the probability of every arm; the law is symmetric, so that −z is as good as z."""
    return solve_contenders(location, np.abs(scale), chance, all_arms)


@jit
def log_tail(a: float) -> float:
    """Return log P[Z > a] for a ≥ 0; erfc underflows from 38 on, and far out Laplace's continued fraction is exact."""
    if a < 30.0:
        return math.log(0.5 * math.erfc(a * math.sqrt(0.5)))
    x = a
    for k in range(14, 0, -1):
        x = a + k / x
    return -math.log(x) - 0.5 * (a * a + LOG_2PI)


@jit
def log_tails(x: float) -> tuple[float, float]:
    """Return log P[Z ≤ x] and log P[Z > x]."""
    smaller = log_tail(abs(x))
    larger = math.log1p(-math.exp(smaller))
    return (larger, smaller) if x > 0.0 else (smaller, larger)


class Gaussian(Law):
    """The standard Gaussian law.

    >>> Gaussian().cdf(0.0)
    0.5
    """

    word_quantile = quantile
    kernel = solve
    generator = staticmethod(lambda random, size: random.standard_normal(size))
    log_tails = log_tails

    def cdf(self, x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2


# The absolute value.


@jit
def half_quantile(word: u32) -> f32:
    """Return Φ⁻¹((1 + u)/2) at u of the upper 31 bits: the Gaussian quantile of a word from the middle on."""
    return quantile(u32(0x80000000) | u32(word >> u32(1)))


@jit
def half_log_tails(x: float) -> tuple[float, float]:
    """Return log P[|Z| ≤ x] and log P[|Z| > x]."""
    if x <= 0.0:
        return -np.inf, 0.0
    return math.log(math.erf(x * math.sqrt(0.5))), min(LOG_OF_2 + log_tail(x), 0.0)


class HalfGaussian(Law):
    """The law of |Z| with Z standard Gaussian: noise that only ever raises a score.

    >>> round(HalfGaussian().cdf(1.0), 4)
    0.6827
    """

    word_quantile = half_quantile
    generator = staticmethod(lambda random, size: abs(random.standard_normal(size)))
    log_tails = half_log_tails

    def cdf(self, x: float) -> float:
        return math.erf(max(x, 0.0) / math.sqrt(2))
