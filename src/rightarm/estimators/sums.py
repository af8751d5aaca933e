"""Catoni's estimate kept up to date, compiled: a summary of bounded size for each arm of each replication.

μ̂ = (C/√N) Σ_s ψ(X_s / (C√N)), ψ(y) = sign(y) log(1 + |y| + y²/2): the scale changes with every reward. So only sums
are kept from which the estimate can be had at any scale. Let v = |x|/C, σ = sign x and e = ⌊log₄ N⌋.

- *Small* values, v < 2^(e−2): v/√N stays below ¼ for good, where ψ(y) = Σ_k c_k yᵏ, c_k = −(2/k) 2^(−k/2) cos(3πk/4).
  Kept are the sums of σ c_k vᵏ; of the powers up to 17 four vanish.
- *Others*: ψ(2ˢ) is analytic for |Im s| log 2 < 3π/4, so that on an octave, v = 2^(b + (1+u)/2) with −1 ≤ u < 1, a
  polynomial of degree 11 in u will do; as a function of N the same, with N = 4ᵉ 2^(1+w). Kept are Σ σ uʲ for each
  octave b, and S, the polynomial in w that they amount to while e lasts.
- *Far* values, v ≥ 2^64: ψ(y) = 2 log y − log 2 to the last digits. Kept are Σ σ and Σ σ log₂ v.

When N reaches 4^(e+1), octaves that have become small go to the sums of powers, and S is made anew. A summary of all
zeros is that of no values. Sums that carry the leading digits are compensated (Neumaier): a million equal values
would otherwise round a million times the same way.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from rightarm.estimators.statistics import two_sum
from rightarm.formula.compile import MachineOperation, fma, jit
from rightarm.types import F64

DEGREE = 12  # coefficients of an octave's polynomial: the series converges like 13.67^−DEGREE
POWERS = np.array([1, 3, 4, 5, 7, 8, 9, 11, 12, 13, 15, 16, 17])  # the others have no part in ψ's series
COEFFICIENTS = -(2 / POWERS) * 2.0 ** (-POWERS / 2) * np.cos(3 * np.pi * POWERS / 4)
C3, C4, C5, C7, C8, C9, C11, C12, C13, C15, C16, C17 = COEFFICIENTS[1:].tolist()
TINY = 1e-8  # below, ψ(y) is y to the last digit, and higher powers would underflow

# One summary is a row of numbers: 32 that every value touches, those of the small ones first ...
COUNT, NEXT, BOUND, LIVE, FIRST, LOST, HIGHER, SERIES, LEVEL, FRESH = 0, 1, 2, 3, 4, 5, 6, 18, 30, 31
ROWS = 32
# ... and 16 for each octave from 2⁻² on, the last for far values: sums of σ uʲ, then what rounding took of some. Memory
# of octaves without values is never touched.
LOWEST, OCTAVES = -2, 66
FURTHEST = LOWEST + OCTAVES
FAR = 2.0**FURTHEST
COMPENSATED = 3  # the sums for j = 1, 2, 3; that for 0 is a whole number, those beyond weigh too little
SUMS = DEGREE + COMPENSATED
ROW = 16  # whole cache lines
SIZE = ROWS + (OCTAVES + 1) * ROW
RENEWED = 1024  # values that are not small after which S is made anew from their rows, lest it drift


class Tables(NamedTuple):
    """What the sums are multiplied with."""

    series: F64  # octave b − e + 2, power of u, power of w: ψ(2^(b − e + (u − w)/2))
    powers: F64  # power of u, k: c_k 2^(k (1+u)/2), an octave's share in the sums of powers


def psi(x: Any) -> F64:
    """The influence function: ψ(x) = sign(x) log(1 + |x| + x²/2).

    Catoni, Challenging the empirical mean and empirical variance, 2012; section 4 of the paper.

    >>> psi([-1.0, 0.0, 1.0]).round(4)
    array([-0.9163,  0.    ,  0.9163])
    """
    size = np.abs(np.asarray(x, dtype=float))
    moderate = np.minimum(size, 1e100)  # whose square is finite; beyond, log(1 + x + x²/2) is 2 log x − log 2
    value = np.where(size > 1e100, 2 * np.log(np.maximum(size, 1.0)) - np.log(2), np.log1p(moderate + moderate**2 / 2))
    return np.asarray(np.sign(x) * value)


@functools.cache
def tables() -> Tables:
    """Interpolation at Chebyshev's points, then powers in place of Chebyshev polynomials.

    Powers cost fewer operations, and no digits: the series fall much faster than the polynomials' coefficients grow.
    """
    j = np.arange(DEGREE)
    angles = (2 * j + 1) * np.pi / (2 * DEGREE)
    fit = np.where(j == 0, 1, 2)[:, None] * np.cos(j[:, None] * angles) / DEGREE
    polynomials = [np.polynomial.chebyshev.cheb2poly(row) for row in np.eye(DEGREE)]
    to_powers = np.array([np.pad(row, (0, DEGREE - row.size)) for row in polynomials]).T
    u = np.cos(angles)
    offsets = LOWEST + np.arange(OCTAVES)[:, None, None]
    series = (
        to_powers @ (fit @ psi(2.0 ** (offsets + (u[:, None] - u) / 2)) @ fit.T) @ to_powers.T
    )  # small numbers first
    powers = to_powers @ (fit @ (COEFFICIENTS * 2.0 ** (POWERS * (1 + u[:, None]) / 2)))
    return Tables(np.ascontiguousarray(series), np.ascontiguousarray(powers))


# In compiled code these are arrays; they are made when something is compiled first, to keep ``import rightarm`` quick.
SERIES_TABLE: Any = MachineOperation(lambda: tables().series)
POWERS_TABLE: Any = MachineOperation(lambda: tables().powers)


@jit
def add_small(x: float, v: float, kept: F64) -> None:
    """Add one value's powers to the sums; branch-free: rewards are unpredictable."""
    first, lost = two_sum(kept[FIRST], math.copysign(v, x))
    kept[FIRST] = first
    kept[LOST] += lost
    y = v if v > TINY else 0.0
    y2 = y * y
    y4 = y2 * y2
    y8 = y4 * y4
    y12 = y8 * y4
    s3 = math.copysign(y2 * y, x)
    s4 = math.copysign(y4, x)
    s5 = s4 * y
    kept[HIGHER] += C3 * s3
    kept[HIGHER + 1] += C4 * s4
    kept[HIGHER + 2] += C5 * s5
    kept[HIGHER + 3] += C7 * (s3 * y4)
    kept[HIGHER + 4] += C8 * (s4 * y4)
    kept[HIGHER + 5] += C9 * (s5 * y4)
    kept[HIGHER + 6] += C11 * (s3 * y8)
    kept[HIGHER + 7] += C12 * (s4 * y8)
    kept[HIGHER + 8] += C13 * (s5 * y8)
    kept[HIGHER + 9] += C15 * (s3 * y12)
    kept[HIGHER + 10] += C16 * (s4 * y12)
    kept[HIGHER + 11] += C17 * (s5 * y12)


@jit
def add_far(x: float, v: float, kept: F64) -> None:
    """Add a far value: log₂ N = 1 + w + 2e makes its ψ a line in w. One that is infinite or no number leaves NaN."""
    sign, place = math.copysign(1.0, x), ROWS + ROW * OCTAVES
    size = sign * (np.log2(v) + (v - v))
    kept[place] += sign
    logs, lost = two_sum(kept[place + 1], size)
    kept[place + 1] = logs
    kept[place + DEGREE] += lost
    kept[SERIES] += math.log(2) * 2 * (size - sign * (kept[LEVEL] + 1))
    kept[SERIES + 1] -= math.log(2) * sign
    kept[LIVE] = OCTAVES + 1
    kept[FRESH] += 1


@jit
def add_octave(x: float, v: float, kept: F64) -> None:
    """Add a value to its octave's sums and to S."""
    part, exponent = math.frexp(v)
    row = exponent - 1 - LOWEST
    u = 2 * np.log2(part) + 1
    offset, place = np.uint64(row - np.int64(kept[LEVEL])), ROWS + ROW * row
    sign = term = math.copysign(1.0, x)
    for n in range(DEGREE):
        even, odd = SERIES_TABLE[offset, DEGREE - 2, n], SERIES_TABLE[offset, DEGREE - 1, n]
        for j in range(DEGREE - 4, -1, -2):
            even = fma(even, u * u, SERIES_TABLE[offset, j, n])
            odd = fma(odd, u * u, SERIES_TABLE[offset, j + 1, n])
        kept[SERIES + n] = fma(sign, fma(odd, u, even), kept[SERIES + n])
    for j in range(DEGREE):
        if 1 <= j <= COMPENSATED:
            total, lost = two_sum(kept[place + j], term)
            kept[place + j] = total
            kept[place + DEGREE - 1 + j] += lost
        else:
            kept[place + j] += term
        term *= u
    kept[LIVE] = max(kept[LIVE], np.float64(row + 1))
    kept[FRESH] += 1


@jit
def renew(kept: F64) -> None:
    """Make S from the octaves' sums."""
    level = np.int64(kept[LEVEL])
    for n in range(DEGREE):
        kept[SERIES + n] = 0.0
    for row in range(level, np.int64(min(kept[LIVE], OCTAVES))):
        place = ROWS + ROW * row
        for j in range(DEGREE):
            total = kept[place + j]
            if 1 <= j <= COMPENSATED:
                total += kept[place + DEGREE - 1 + j]
            for n in range(DEGREE):
                kept[SERIES + n] = fma(total, SERIES_TABLE[row - level, j, n], kept[SERIES + n])
    far = ROWS + ROW * OCTAVES
    signs, logs = kept[far], kept[far + 1] + kept[far + DEGREE]
    kept[SERIES] += math.log(2) * 2 * (logs - signs * (level + 1))
    kept[SERIES + 1] -= math.log(2) * signs
    kept[FRESH] = 0.0


@jit
def collapse(kept: F64, row: int) -> None:
    """Turn an octave's sums into sums of powers: its values are small from now on."""
    place = ROWS + ROW * row
    for i in range(POWERS.size):
        share = 0.0
        for j in range(DEGREE):
            total = kept[place + j]
            if 1 <= j <= COMPENSATED:
                total += kept[place + DEGREE - 1 + j]
            share += POWERS_TABLE[j, i] * total
        share *= 2.0 ** (POWERS[i] * (row + LOWEST))
        if i == 0:
            first, lost = two_sum(kept[FIRST], share)
            kept[FIRST] = first
            kept[LOST] += lost
        else:
            kept[HIGHER - 1 + i] += share
    for j in range(ROW):
        kept[place + j] = 0.0


@jit
def rise(kept: F64) -> None:
    """Set e, and what hangs on it, for a count that has reached the next power of 4; S waits to be made anew."""
    before, level, following = np.int64(kept[LEVEL]), 0, 4.0
    while kept[COUNT] >= following:
        level, following = level + 1, 4 * following
    kept[NEXT] = following
    kept[BOUND] = 2.0 ** (level - 2)
    kept[LEVEL] = level
    for row in range(before, min(level, OCTAVES)):
        collapse(kept, row)
    if kept[LIVE] <= level:
        kept[LIVE] = 0.0
    kept[FRESH] = RENEWED


@jit
def push(kept: F64, x: float, C: float) -> None:
    """Take one value into the summary: here the ordinary case, a small value that brings no new level."""
    v, count = abs(x) / C, kept[COUNT] + 1
    if v < kept[BOUND] and count < kept[NEXT]:
        kept[COUNT] = count
        add_small(x, v, kept)
    else:
        push_other(kept, x, v)


@jit
def push_other(kept: F64, x: float, v: float) -> None:
    """Take a value that is not small, or that brings a new level."""
    kept[COUNT] += 1
    if kept[COUNT] >= kept[NEXT]:
        rise(kept)
    if v < kept[BOUND]:
        add_small(x, v, kept)
    elif v < FAR:
        add_octave(x, v, kept)
    else:
        add_far(x, v, kept)
    if kept[FRESH] >= RENEWED:
        renew(kept)


@jit
def estimate(C: float, kept: F64) -> float:
    """The estimate from a summary, which must have a value."""
    inverse = 1 / kept[COUNT]
    r = np.sqrt(inverse)
    a = fma(inverse, kept[HIGHER + 2], fma(r, kept[HIGHER + 1], kept[HIGHER]))
    b = fma(inverse, kept[HIGHER + 5], fma(r, kept[HIGHER + 4], kept[HIGHER + 3]))
    c = fma(inverse, kept[HIGHER + 8], fma(r, kept[HIGHER + 7], kept[HIGHER + 6]))
    d = fma(inverse, kept[HIGHER + 11], fma(r, kept[HIGHER + 10], kept[HIGHER + 9]))
    square = inverse * inverse
    higher = fma(square, fma(square, fma(square, d, c), b), a)
    total = inverse * (kept[FIRST] + fma(inverse, higher, kept[LOST]))
    if kept[LIVE] > 0:
        w = np.log2(4 * kept[COUNT] / kept[NEXT]) - 1
        w2 = w * w
        even, odd = kept[SERIES + DEGREE - 2], kept[SERIES + DEGREE - 1]
        for n in range(DEGREE - 4, -1, -2):
            even = fma(even, w2, kept[SERIES + n])
            odd = fma(odd, w2, kept[SERIES + n + 1])
        total = fma(r, fma(odd, w, even), total)
    return C * total


@jit
def estimate_and_count(kept: F64, C: float) -> tuple[float, float]:
    """The estimate, and the number of values."""
    return estimate(C, kept), kept[COUNT]


@jit
def printed(rewards: F64, weights: F64, C: float) -> float:
    """The estimate as the paper prints it, of rewards that count by their weights: N = Σ weights."""
    scale, total = 0.0, 0.0
    for i in range(rewards.size):
        scale += weights[i]
    scale = np.sqrt(scale)
    for i in range(rewards.size):
        total += weights[i] * influence(rewards[i] / (C * scale))
    return C * (total / scale)


@jit
def influence(x: float) -> float:
    """ψ(x) of one number; see `psi`."""
    size = abs(x)
    value = 2 * np.log(size) - np.log(2.0) if size > 1e100 else np.log1p(size + size**2 / 2)
    return math.copysign(value, x)


@jit
def push_all(values: F64, C: float, kept: F64) -> None:
    """Take many values, one after the other, into the summary."""
    for i in range(values.size):
        push(kept, values[i], C)


@jit
def merge_into(kept: F64, other: F64) -> None:
    """Add another summary to a summary."""
    for i in (FIRST, LOST):
        first, lost = two_sum(kept[FIRST], other[i])
        kept[FIRST] = first
        kept[LOST] += lost
    for i in range(HIGHER, SERIES):
        kept[i] += other[i]
    for row in range(OCTAVES + 1):
        place = ROWS + ROW * row
        for j in range(ROW):
            if 1 <= j <= COMPENSATED:
                total, lost = two_sum(kept[place + j], other[place + j])
                kept[place + j] = total
                kept[place + DEGREE - 1 + j] += lost
            else:
                kept[place + j] += other[place + j]
    kept[COUNT] += other[COUNT]
    kept[LIVE] = max(kept[LIVE], other[LIVE])
    kept[LEVEL] = min(kept[LEVEL], other[LEVEL])  # from where rows may have to be collapsed
    rise(kept)
    renew(kept)
