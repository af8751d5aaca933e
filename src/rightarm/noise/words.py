"""From 32 random bits to a share between 0 and 1 and to its logarithm: the pieces that quantile functions are made of.

All are float32 formulas without a branch, so that LLVM turns a loop over a block of words into vector code.
"""

from __future__ import annotations

import math

import numpy as np

from rightarm.formula.compile import bits_of_float, float_of_bits, fma, jit

f32 = np.float32
i32 = np.int32
u32 = np.uint32
u64 = np.uint64

# log(1+f) = f − f²/2 + f³·P(f) on [√½ − 1, √2 − 1] with relative error 6e-9: coefficients of P, highest power first,
# of least maximum error (found by Lawson's iteration).
LOG_7, LOG_6, LOG_5, LOG_4 = f32(-0.07634499), f32(0.12761578), f32(-0.13160183), f32(0.14201757)
LOG_3, LOG_2, LOG_1, LOG_0 = f32(-0.16623357), f32(0.20001227), f32(-0.2500082), f32(0.33333331)
LOG_OF_2 = f32(math.log(2))
SQRT_HALF_BITS = u32(0x3F3504F3)  # √½ as a float32
PER_WORD = f32(2.0**-32)
GOLDEN = u64(0x9E3779B97F4A7C15)  # the steps of SplitMix64


@jit
def log1p(f: f32) -> f32:
    """log(1 + f) for a small f, right to its last bits even where 1 + f would round."""
    p = fma(fma(fma(fma(LOG_7, f, LOG_6), f, LOG_5), f, LOG_4), f, LOG_3)
    p = fma(fma(fma(p, f, LOG_2), f, LOG_1), f, LOG_0)
    return fma(f * f, fma(p, f, f32(-0.5)), f)


@jit
def split(x: f32) -> tuple[f32, f32]:
    """x = 2ᵉ·(1 + f) with 1 + f between √½ and √2: returns e and f."""
    bits = bits_of_float(x)
    exponent = i32(u32(bits - SQRT_HALF_BITS)) >> i32(23)
    mantissa = float_of_bits(u32(bits - (u32(exponent) << u32(23))))
    return f32(exponent), mantissa - f32(1)


@jit
def log(x: f32) -> f32:
    """log x; Numba's own costs six times as much, because it is not vectorised."""
    exponent, f = split(x)
    return fma(exponent, LOG_OF_2, log1p(f))


@jit
def share(word: u32) -> f32:
    """(word + ½) / 2³², small values with all their digits."""
    return (f32(word) + f32(0.5)) * PER_WORD


@jit
def centred(word: u32) -> f32:
    """u − ½ at u = share(word), small values with all their digits."""
    return (f32(i32(word ^ u32(0x80000000))) + f32(0.5)) * PER_WORD


@jit
def scrambled(word: u64) -> u64:
    """A word whose bits all depend on all bits of the given one: the finaliser of SplitMix64 (Steele et al. 2014)."""
    word = u64((word ^ (word >> u64(30))) * u64(0xBF58476D1CE4E5B9))
    word = u64((word ^ (word >> u64(27))) * u64(0x94D049BB133111EB))
    return word ^ (word >> u64(31))
