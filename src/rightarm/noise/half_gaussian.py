"""The law of a Gaussian number without its sign: what noise is made of that only ever raises a score."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from rightarm.formula.compile import jit
from rightarm.noise.gaussian import log_tail
from rightarm.noise.gaussian import quantile as gaussian
from rightarm.noise.law import Law

f32 = np.float32
u32 = np.uint32

LOG_OF_2 = math.log(2)


@jit
def quantile(word: u32) -> f32:
    """Φ⁻¹((1 + u)/2) at u of the upper 31 bits: the Gaussian quantile of a word from the middle on."""
    return gaussian(u32(0x80000000) | u32(word >> u32(1)))


@jit
def log_tails(x: float) -> tuple[float, float]:
    """log P[Z ≤ x] and log P[Z > x]."""
    if x <= 0.0:
        return -np.inf, 0.0
    return math.log(math.erf(x * math.sqrt(0.5))), min(LOG_OF_2 + log_tail(x), 0.0)


class HalfGaussian(Law):
    """The law of |Z| with Z standard Gaussian.

    >>> round(HalfGaussian().cdf(1.0), 4)
    0.6827
    """

    quantile: ClassVar[Any] = quantile
    generator = staticmethod(lambda random, size: abs(random.standard_normal(size)))
    log_tails = log_tails

    def cdf(self, x: float) -> float:
        return math.erf(max(x, 0.0) / math.sqrt(2))
