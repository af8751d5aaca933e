"""The uniform law: its draws, and the probabilities of arms with uniform noise, compiled.

Between two upper ends the integrand is a polynomial, and Gauss's rule integrates it.

Let l_j and u_j be the ends of arm j's scores. Above the largest l_j, where alone the largest score can lie,

    p_i = ∫ 1/(x − l_i) Π_j F_j(x) dx  over x < u_i,   F_j(x) = (min{x, u_j} − l_j) / (u_j − l_j).

Panels are laid from the right to the left, each ending at the next u_j or where the product may have fallen by e⁻⁴ (of
many arms it is a polynomial of a high degree), until it has fallen by e^(−DEPTH).
"""

from __future__ import annotations

import math

import numpy as np

from rightarm.formula.compile import jit
from rightarm.noise.law import Law
from rightarm.noise.pieces import centred, solve_contenders
from rightarm.types import F64

f32 = np.float32
u32 = np.uint32

DEPTH = 50.0
NODES, WEIGHTS = np.polynomial.legendre.leggauss(20)  # exact for polynomials of degree 39


@jit
def quantile(word: u32) -> f32:
    """Return 2u − 1 at u = share(word)."""
    return f32(2) * centred(word)


@jit
def find_ends(location: F64, scale: F64) -> tuple[F64, F64]:
    """Return the ends of uniform scores, the largest lower one being 0.

    An arm whose upper end is not above that cannot win, and has it for both ends: a narrow law far below would have its
    width lost in rounding.
    """
    highest = np.argmax(location - scale)
    lower = (location - location[highest]) - (scale - scale[highest])
    upper = lower + 2 * scale
    for j in range(lower.size):
        if upper[j] <= 0.0:
            lower[j] = -1.0
            upper[j] = 0.0
    return lower, upper


@jit
def add_panel(lower: F64, upper: F64, left: float, right: float, chance: F64) -> float:
    """Add what lies between two points to the integrals; return the product of the F_j at the left."""
    half = 0.5 * (right - left)
    centre = 0.5 * (right + left)
    for k in range(NODES.size):
        x = centre + half * NODES[k]
        product = half * WEIGHTS[k]
        for j in range(lower.size):
            product *= (min(x, upper[j]) - lower[j]) / (upper[j] - lower[j])
        for j in range(lower.size):
            if upper[j] >= right:
                chance[j] += product / (x - lower[j])
    product = 1.0
    for j in range(lower.size):
        product *= (min(left, upper[j]) - lower[j]) / (upper[j] - lower[j])
    return product


@jit
def all_arms(location: F64, scale: F64, chance: F64) -> None:
    """Put the probability of every arm to have the largest location + scale·z in ``chance``; scales are positive."""
    lower, upper = find_ends(location, scale)
    chance[:] = 0.0
    right = upper.max()
    product = 1.0
    while right > 0.0 and product > math.exp(-DEPTH):
        left = 0.0
        slope = 0.0
        for j in range(lower.size):
            if upper[j] >= right:
                slope += 1.0 / (right - lower[j])
            else:
                left = max(left, upper[j])
        left = max(left, right - 4.0 / slope)
        left = left if left < right else 0.0  # a step below rounding would not end
        product = add_panel(lower, upper, left, right, chance)
        right = left


@jit
def solve(location: F64, scale: F64, chance: F64) -> int:
    """Find the probability of every arm; the law is symmetric, so that −z is as good as z."""
    return solve_contenders(location, np.abs(scale), chance, all_arms)


@jit
def log_tails(x: float) -> tuple[float, float]:
    """Return log P[Z ≤ x] and log P[Z > x]."""
    return np.log(0.5 + 0.5 * min(max(x, -1.0), 1.0)), np.log(0.5 - 0.5 * min(max(x, -1.0), 1.0))


class Uniform(Law):
    """The uniform law on (−1, 1).

    >>> Uniform().cdf(0.5)
    0.75
    """

    word_quantile = quantile
    kernel = solve
    generator = staticmethod(lambda random, size: random.uniform(-1.0, 1.0, size))
    log_tails = log_tails

    def cdf(self, x: float) -> float:
        return min(1.0, max(0.0, (1 + x) / 2))
