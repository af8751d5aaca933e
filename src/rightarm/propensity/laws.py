"""What the integrals need to know of a law, compiled: its density, and its distribution function over its density.

A law has two numbers for each arm: location and scale, or the two shapes of a beta law, which is taken on the scale of
log(θ/(1−θ)). There all these laws are log-concave, and so is every integrand that is made of them.
"""

from __future__ import annotations

import math

import numpy as np

from rightarm.formula.compile import jit

GUMBEL, GAUSSIAN, EXPONENTIAL, BETA = 0, 1, 2, 3

LOG_2PI = math.log(2 * math.pi)
TAIL_STEP, TAIL_FIRST = 0.1, -3.8  # of a trapezoidal rule
# Gauss and Legendre's rule with 8 points, on (0, 1)
LEGENDRE = np.polynomial.legendre.leggauss(8)
NODES, WEIGHTS = (1 + LEGENDRE[0]) / 2, LEGENDRE[1] / 2


@jit
def mode(law: int, first: float, second: float) -> float:
    """Where the density is largest."""
    return math.log(first / second) if law == BETA else first


@jit
def width(law: int, first: float, second: float) -> float:
    """How far the law spreads about its mode."""
    return math.sqrt(1.0 / first + 1.0 / second) if law == BETA else second


@jit
def gumbel_rate(u: float) -> float:
    """e⁻ᵘ; where it would overflow, a smaller number that still falls with u, so that a search finds its way."""
    return math.exp(min(-u, 600.0)) * (1.0 + max(-u - 600.0, 0.0))


@jit
def height(law: int, x: float, first: float, second: float) -> float:
    """log of the density over the density at the mode."""
    if law == BETA:
        if first > second:  # the smaller share loses fewer digits
            first, second, x = second, first, -x
        share, w = first / (first + second), x - math.log(first / second)
        if w > 700.0:
            return -second * w + (first + second) * (-math.log(share))
        return (first + second) * (share * w - math.log1p(share * math.expm1(w)))
    u = (x - first) / second
    if law == GUMBEL:
        return 1.0 - u - gumbel_rate(u)
    if law == GAUSSIAN:
        return -0.5 * u * u
    return -u if u >= 0.0 else -np.inf


@jit
def peak(law: int, first: float, second: float) -> float:
    """log of the density at the mode."""
    if law == BETA:
        scale = 0.5 * (math.log(first / (first + second)) + math.log(second) - LOG_2PI)
        return scale - stirling(first) - stirling(second) + stirling(first + second)
    if law == GUMBEL:
        return -1.0 - math.log(second)
    if law == GAUSSIAN:
        return -0.5 * LOG_2PI - math.log(second)
    return -math.log(second)


@jit
def stirling(a: float) -> float:
    """log Γ(a) − (a − ½) log a + a − ½ log 2π, of which large numbers keep nothing if it is done as it stands."""
    if a < 10.0:
        return math.lgamma(a) - (a - 0.5) * math.log(a) + a - 0.5 * LOG_2PI
    s = 1.0 / (a * a)
    return (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * (691 / 360360)))))) / a


@jit
def gaussian_mills(u: float) -> float:
    """Φ(u)/φ(u); far below zero by the continued fraction of Laplace, where the two quotients would underflow."""
    if u > -5.0:
        return 0.5 * math.erfc(-u * math.sqrt(0.5)) * math.exp(0.5 * (u * u + LOG_2PI))
    x = -u
    for k in range(14, 0, -1):
        x = -u + k / x
    return 1.0 / x


@jit
def mills(law: int, x: float, first: float, second: float) -> float:
    """P[X ≤ x] over the density at x."""
    if law == BETA:
        return beta_mills(x, first, second)
    u = (x - first) / second
    if law == GUMBEL:
        return second * math.exp(min(u, 700.0))
    if law == GAUSSIAN:
        return second * gaussian_mills(u)
    return second * math.expm1(u)


@jit
def beta_mills(x: float, first: float, second: float) -> float:
    """The same for the logarithm of a beta variable's odds; on the right of the mode from what is above."""
    if x <= mode(BETA, first, second):
        return beta_tail(x, first, second)
    density = math.exp(height(BETA, x, first, second) + peak(BETA, first, second))
    return 1.0 / density - beta_tail(-x, second, first)


@jit
def beta_tail(x: float, first: float, second: float) -> float:
    """∫ f(x − y)/f(x) dy on the left of the mode: the trapezoidal rule in s, y = W e^(s − e^(−s))."""
    here = height(BETA, x, first, second)
    share = 1.0 / (1.0 + math.exp(min(-x, 700.0)))
    slope = max(first - (first + second) * share, 0.0)
    W = 1.0 / (slope + 1.0 / width(BETA, first, second))
    total, s = 0.0, TAIL_FIRST
    while True:
        rise = math.exp(-s)
        y = W * math.exp(s - rise)
        term = y * (1.0 + rise) * math.exp(height(BETA, x - y, first, second) - here)
        total += term
        s += TAIL_STEP
        if s > 1.0 and not term >= 1e-18 * total:
            return TAIL_STEP * total


@jit
def moved_mills(law: int, before: float, mills_before: float, x: float, first: float, second: float) -> float:
    """P[X ≤ x] over the density at x, given the same at a point a little to the left.

    A beta law's distribution function has no short formula that holds for all shapes, its density has: what lies
    between the two points is added.
    """
    if law != BETA:
        return mills(law, x, first, second)
    here = height(law, x, first, second)
    risen = here - height(law, before, first, second)
    if risen > 3.0:  # too steep for the rule
        return mills(law, x, first, second)
    between = 0.0
    for k in range(NODES.size):
        between += WEIGHTS[k] * math.exp(height(law, before + NODES[k] * (x - before), first, second) - here)
    return mills_before * math.exp(-risen) + between * (x - before)


@jit
def log_cdf(law: int, x: float, first: float, second: float) -> float:
    """log P[X ≤ x]; for a beta law an approximation, of which the error is a small part of its value."""
    if law == BETA:
        root = math.sqrt(max(-2.0 * height(law, x, first, second), 0.0))
        return gaussian_log_cdf(root if x > mode(law, first, second) else -root)
    u = (x - first) / second
    if law == GUMBEL:
        return -gumbel_rate(u)
    if law == GAUSSIAN:
        return gaussian_log_cdf(u)
    return math.log(-math.expm1(-u)) if u > 0.0 else -np.inf


@jit
def gaussian_log_cdf(u: float) -> float:
    """log Φ(u)."""
    if u > -5.0:
        return math.log1p(-0.5 * math.erfc(u * math.sqrt(0.5)))
    return math.log(gaussian_mills(u)) - 0.5 * (u * u + LOG_2PI)
