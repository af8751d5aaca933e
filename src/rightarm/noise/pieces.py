"""Pieces that the compiled code of all noise laws is made of: first those of draws, then those of probabilities.

*Draws.* A quantile function turns 32 random bits into a share between 0 and 1, and that into a float32. The pieces have
no branch, so that LLVM turns a loop over a block of words into vector code.

*Probabilities.* A score that is +∞ is larger than all others: such arms share the probability, as they share a tie in a
simulation. A score of scale zero is its location: of such arms only those with the largest location can win, in equal
shares where no arm with noise is there, and among arms with noise as if their scale were very small. An arm at −∞ never
wins, unless all are.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rightarm.formula.compile import bits_of_float, float_of_bits, fma, jit
from rightarm.types import F64, I64

f32 = np.float32
i32 = np.int32
u32 = np.uint32
u64 = np.uint64

# log(1+f) = f − f²/2 + f³·P(f) on [√½ − 1, √2 − 1] with relative error 6e-9: coefficients of P, of least maximum error
# (found by Lawson's iteration).
LOG_7 = f32(-0.07634499)
LOG_6 = f32(0.12761578)
LOG_5 = f32(-0.13160183)
LOG_4 = f32(0.14201757)
LOG_3 = f32(-0.16623357)
LOG_2 = f32(0.20001227)
LOG_1 = f32(-0.2500082)
LOG_0 = f32(0.33333331)
LOG_OF_2 = f32(math.log(2))
SQRT_HALF_BITS = u32(0x3F3504F3)  # √½ as a float32
PER_WORD = f32(2.0**-32)
GOLDEN = u64(0x9E3779B97F4A7C15)  # 2⁶⁴ over the golden ratio, the step of SplitMix64: its multiples fall far apart

SMALL = 2.0**-400  # squares of numbers beyond it, or its inverse, may overflow
NOTHING = 2.0**-80  # scale over the largest one that no longer matters
LEAST = 2.0**-400  # the same for exponential noise
# Statuses in place of a number of arms: which of the two rows of numbers is wrong.
BAD_FIRST = -1
BAD_SECOND = -2


@jit
def log1p(f: f32) -> f32:
    """Return log(1 + f) for a small f, right to its last bits even where 1 + f would round."""
    p = fma(fma(fma(fma(LOG_7, f, LOG_6), f, LOG_5), f, LOG_4), f, LOG_3)
    p = fma(fma(fma(p, f, LOG_2), f, LOG_1), f, LOG_0)
    return fma(f * f, fma(p, f, f32(-0.5)), f)


@jit
def split(x: f32) -> tuple[f32, f32]:
    """Return e and f such that x = 2ᵉ·(1 + f), with 1 + f between √½ and √2."""
    bits = bits_of_float(x)
    exponent = i32(u32(bits - SQRT_HALF_BITS)) >> i32(23)
    mantissa = float_of_bits(u32(bits - (u32(exponent) << u32(23))))
    return f32(exponent), mantissa - f32(1)


@jit
def log(x: f32) -> f32:
    """Return log x; Numba's logarithm costs six times as much, because it is not vectorised."""
    exponent, f = split(x)
    return fma(exponent, LOG_OF_2, log1p(f))


@jit
def share(word: u32) -> f32:
    """Return (word + ½) / 2³², small values with all their digits."""
    return (f32(word) + f32(0.5)) * PER_WORD


@jit
def centred(word: u32) -> f32:
    """Return u − ½ at u = share(word), small values with all their digits."""
    return (f32(i32(word ^ u32(0x80000000))) + f32(0.5)) * PER_WORD


@jit
def scrambled(word: u64) -> u64:
    """Return a word whose bits all depend on all bits of ``word``: the finaliser of SplitMix64 (Steele et al. 2014)."""
    word = u64((word ^ (word >> u64(30))) * u64(0xBF58476D1CE4E5B9))
    word = u64((word ^ (word >> u64(27))) * u64(0x94D049BB133111EB))
    return word ^ (word >> u64(31))


@jit
def find_contenders(location: F64, scale: F64, arms: I64) -> int:
    """Put the arms that can have the largest score in ``arms``; return their number, or a status below 0."""
    best = -np.inf
    highest = -np.inf
    for j in range(scale.size):
        if not 0.0 <= scale[j] < np.inf:
            return BAD_SECOND
        if location[j] != location[j]:
            return BAD_FIRST
        if scale[j] == 0.0:
            best = max(best, location[j])
        highest = max(highest, location[j])
    count = 0
    for j in range(scale.size):
        if location[j] == -np.inf < highest or location[j] < np.inf == highest:
            continue
        if scale[j] > 0.0 or location[j] == best or location[j] == np.inf:
            arms[count] = j
            count += 1
    return count


@jit
def normalize(location: F64, scale: F64, nothing: float) -> bool:
    """Bring numbers to a usual size, in place; return False if all scales are zero.

    The largest score stays the same after a shift and a common factor. Locations are counted from the largest, or large
    ones would swallow small scales. A scale that is nothing beside the largest one, zero for instance, is as good as
    ``nothing`` times that.
    """
    largest = 0.0
    top = -np.inf
    for j in range(scale.size):  # loops, not max() and slices, which take long to compile; here and below
        largest = max(largest, scale[j])
        top = max(top, location[j])
    common = largest if not SMALL < largest < 1.0 / SMALL and largest > 0.0 else 1.0
    for j in range(scale.size):
        location[j] = max((location[j] * 0.5 - top * 0.5) / common * 2.0, -1.0 / SMALL)
        scale[j] = max(scale[j] / common, largest / common * nothing)
    return largest > 0.0


@jit
def solve_contenders(
    location: F64, scale: F64, chance: F64, all_arms: Callable[[F64, F64, F64], None], nothing: float = NOTHING
) -> int:
    """Leave out arms that cannot win, and have ``all_arms`` find the probabilities of the others."""
    arms = np.empty(scale.size, np.int64)
    count = find_contenders(location, scale, arms)
    if count < 0:
        return count
    first = np.empty(count)
    second = np.empty(count)
    found = np.empty(count)
    for i in range(count):
        first[i] = location[arms[i]]
        second[i] = scale[arms[i]]
        found[i] = 1.0 / count
    if math.isfinite(first[0]) and normalize(first, second, nothing):
        all_arms(first, second, found)
    for j in range(chance.size):
        chance[j] = 0.0
    for i in range(count):
        chance[arms[i]] = found[i]
    return count


@jit
def do_nothing(location: F64, scale: F64, chance: F64) -> None:
    """Do nothing: without noise, no arm has a probability that must be integrated."""


@jit
def solve_without_noise(location: F64, scale: F64, chance: F64) -> int:
    """Find the probabilities of scores without noise."""
    return solve_contenders(location, np.zeros(scale.size), chance, do_nothing)
