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
from numpy.typing import NDArray

from rightarm.formula.compile import fma, jit

F64 = NDArray[np.float64]

DEGREE = 12  # coefficients of an octave's polynomial: the series converges like 13.67^−DEGREE
POWERS = np.array([1, 3, 4, 5, 7, 8, 9, 11, 12, 13, 15, 16, 17])  # the others have no part in ψ's series
COEFFICIENTS = -(2 / POWERS) * 2.0 ** (-POWERS / 2) * np.cos(3 * np.pi * POWERS / 4)
C3, C4, C5, C7, C8, C9, C11, C12, C13, C15, C16, C17 = COEFFICIENTS[1:].tolist()
TINY = 1e-8  # below, ψ(y) is y to the last digit, and higher powers would underflow

# One summary: 32 numbers that every value touches, those of the small ones first ...
COUNT, NEXT, BOUND, LIVE, FIRST, LOST, HIGHER, SERIES, LEVEL, FRESH = 0, 1, 2, 3, 4, 5, 6, 18, 30, 31
NEAR = 32
# ... and a row for each octave from 2⁻² on, the last one for far values: sums of σ uʲ, then what rounding took of some.
LOWEST, OCTAVES = -2, 66
FURTHEST = LOWEST + OCTAVES
FAR = 2.0**FURTHEST
COMPENSATED = 3  # the sums for j = 1, 2, 3; that for 0 is a whole number, those beyond weigh too little
SUMS = DEGREE + COMPENSATED
ROW = 16  # whole cache lines
RENEWED = 1024  # values that are not small after which S is made anew from their rows, lest it drift


class Tables(NamedTuple):
    """What the sums are multiplied with."""

    series: F64  # octave b − e + 2, power of u, power of w: ψ(2^(b − e + (u − w)/2))
    powers: F64  # power of u, k: c_k 2^(k (1+u)/2), an octave's share in the sums of powers


class Summary(NamedTuple):
    """The sums of all arms and lanes; octaves first, so that memory for those without values is never touched."""

    near: F64  # arms × lanes × NEAR
    rows: F64  # (OCTAVES + 1) × arms × lanes × ROW


def empty(arms: int, lanes: int) -> Summary:
    """The summaries of arms × lanes streams without values."""
    return Summary(np.zeros((arms, lanes, NEAR)), np.zeros((OCTAVES + 1, arms, lanes, ROW)))


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


@jit
def two_sum(a: float, b: float) -> tuple[float, float]:
    """a + b, and what rounding took of it (Knuth's, which asks no question about sizes)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@jit
def add_small(x: float, v: float, near: F64, k: int, lane: int) -> None:
    """Add one value's powers to the sums; without a branch, for who can foretell a reward."""
    first, lost = two_sum(near[k, lane, FIRST], math.copysign(v, x))
    near[k, lane, FIRST] = first
    near[k, lane, LOST] += lost
    y = v if v > TINY else 0.0
    y2 = y * y
    y4 = y2 * y2
    y8 = y4 * y4
    y12 = y8 * y4
    s3 = math.copysign(y2 * y, x)
    s4 = math.copysign(y4, x)
    s5 = s4 * y
    near[k, lane, HIGHER] += C3 * s3
    near[k, lane, HIGHER + 1] += C4 * s4
    near[k, lane, HIGHER + 2] += C5 * s5
    near[k, lane, HIGHER + 3] += C7 * (s3 * y4)
    near[k, lane, HIGHER + 4] += C8 * (s4 * y4)
    near[k, lane, HIGHER + 5] += C9 * (s5 * y4)
    near[k, lane, HIGHER + 6] += C11 * (s3 * y8)
    near[k, lane, HIGHER + 7] += C12 * (s4 * y8)
    near[k, lane, HIGHER + 8] += C13 * (s5 * y8)
    near[k, lane, HIGHER + 9] += C15 * (s3 * y12)
    near[k, lane, HIGHER + 10] += C16 * (s4 * y12)
    near[k, lane, HIGHER + 11] += C17 * (s5 * y12)


@jit
def add_far(x: float, v: float, near: F64, rows: F64, k: int, lane: int) -> None:
    """Add a far value: log₂ N = 1 + w + 2e makes its ψ a line in w. One that is infinite or no number leaves NaN."""
    sign = math.copysign(1.0, x)
    size = sign * (np.log2(v) + (v - v))
    rows[OCTAVES, k, lane, 0] += sign
    logs, lost = two_sum(rows[OCTAVES, k, lane, 1], size)
    rows[OCTAVES, k, lane, 1] = logs
    rows[OCTAVES, k, lane, DEGREE] += lost
    near[k, lane, SERIES] += math.log(2) * 2 * (size - sign * (near[k, lane, LEVEL] + 1))
    near[k, lane, SERIES + 1] -= math.log(2) * sign
    near[k, lane, LIVE] = OCTAVES + 1
    near[k, lane, FRESH] += 1


@jit
def add_octave(x: float, v: float, near: F64, rows: F64, k: int, lane: int, series: F64) -> None:
    """Add a value to its octave's sums and to S."""
    part, exponent = math.frexp(v)
    row = np.uint64(exponent - 1 - LOWEST)
    u = 2 * np.log2(part) + 1
    offset = np.uint64(np.int64(row) - np.int64(near[k, lane, LEVEL]))
    sign = term = math.copysign(1.0, x)
    for n in range(DEGREE):
        even, odd = series[offset, DEGREE - 2, n], series[offset, DEGREE - 1, n]
        for j in range(DEGREE - 4, -1, -2):
            even = fma(even, u * u, series[offset, j, n])
            odd = fma(odd, u * u, series[offset, j + 1, n])
        near[k, lane, SERIES + n] = fma(sign, fma(odd, u, even), near[k, lane, SERIES + n])
    for j in range(DEGREE):
        if 1 <= j <= COMPENSATED:
            total, lost = two_sum(rows[row, k, lane, j], term)
            rows[row, k, lane, j] = total
            rows[row, k, lane, DEGREE - 1 + j] += lost
        else:
            rows[row, k, lane, j] += term
        term *= u
    near[k, lane, LIVE] = max(near[k, lane, LIVE], np.float64(row + 1))
    near[k, lane, FRESH] += 1


@jit
def renew(near: F64, rows: F64, k: int, lane: int, series: F64) -> None:
    """Make S from the octaves' sums."""
    level = np.int64(near[k, lane, LEVEL])
    for n in range(DEGREE):
        near[k, lane, SERIES + n] = 0.0
    for row in range(level, np.int64(min(near[k, lane, LIVE], OCTAVES))):
        for j in range(DEGREE):
            total = rows[row, k, lane, j]
            if 1 <= j <= COMPENSATED:
                total += rows[row, k, lane, DEGREE - 1 + j]
            for n in range(DEGREE):
                near[k, lane, SERIES + n] = fma(total, series[row - level, j, n], near[k, lane, SERIES + n])
    signs = rows[OCTAVES, k, lane, 0]
    logs = rows[OCTAVES, k, lane, 1] + rows[OCTAVES, k, lane, DEGREE]
    near[k, lane, SERIES] += math.log(2) * 2 * (logs - signs * (level + 1))
    near[k, lane, SERIES + 1] -= math.log(2) * signs
    near[k, lane, FRESH] = 0.0


@jit
def collapse(near: F64, rows: F64, k: int, lane: int, row: int, powers: F64) -> None:
    """Turn an octave's sums into sums of powers: its values are small from now on."""
    for i in range(POWERS.size):
        share = 0.0
        for j in range(DEGREE):
            total = rows[row, k, lane, j]
            if 1 <= j <= COMPENSATED:
                total += rows[row, k, lane, DEGREE - 1 + j]
            share += powers[j, i] * total
        share *= 2.0 ** (POWERS[i] * (row + LOWEST))
        if i == 0:
            first, lost = two_sum(near[k, lane, FIRST], share)
            near[k, lane, FIRST] = first
            near[k, lane, LOST] += lost
        else:
            near[k, lane, HIGHER - 1 + i] += share
    for j in range(ROW):
        rows[row, k, lane, j] = 0.0


@jit
def rise(near: F64, rows: F64, k: int, lane: int, powers: F64) -> None:
    """Set e, and what hangs on it, for a count that has reached the next power of 4; S waits to be made anew."""
    before, level, following = np.int64(near[k, lane, LEVEL]), 0, 4.0
    while near[k, lane, COUNT] >= following:
        level, following = level + 1, 4 * following
    near[k, lane, NEXT] = following
    near[k, lane, BOUND] = 2.0 ** (level - 2)
    near[k, lane, LEVEL] = level
    for row in range(before, min(level, OCTAVES)):
        collapse(near, rows, k, lane, row, powers)
    if near[k, lane, LIVE] <= level:
        near[k, lane, LIVE] = 0.0
    near[k, lane, FRESH] = RENEWED


@jit
def push(x: float, C: float, near: F64, rows: F64, k: int, lane: int, series: F64, powers: F64) -> None:
    """Take one value into the summary of arm k in a lane."""
    count = near[k, lane, COUNT] + 1
    near[k, lane, COUNT] = count
    if count >= near[k, lane, NEXT]:
        rise(near, rows, k, lane, powers)
    v = abs(x) / C
    if v < near[k, lane, BOUND]:
        add_small(x, v, near, k, lane)
    elif v < FAR:
        add_octave(x, v, near, rows, k, lane, series)
    else:
        add_far(x, v, near, rows, k, lane)
    if near[k, lane, FRESH] >= RENEWED:
        renew(near, rows, k, lane, series)


@jit
def estimate(C: float, near: F64, k: int, lane: int) -> float:
    """The estimate from the summary of arm k in a lane, which must have a value."""
    inverse = 1 / near[k, lane, COUNT]
    r = np.sqrt(inverse)
    a = fma(inverse, near[k, lane, HIGHER + 2], fma(r, near[k, lane, HIGHER + 1], near[k, lane, HIGHER]))
    b = fma(inverse, near[k, lane, HIGHER + 5], fma(r, near[k, lane, HIGHER + 4], near[k, lane, HIGHER + 3]))
    c = fma(inverse, near[k, lane, HIGHER + 8], fma(r, near[k, lane, HIGHER + 7], near[k, lane, HIGHER + 6]))
    d = fma(inverse, near[k, lane, HIGHER + 11], fma(r, near[k, lane, HIGHER + 10], near[k, lane, HIGHER + 9]))
    square = inverse * inverse
    higher = fma(square, fma(square, fma(square, d, c), b), a)
    total = inverse * (near[k, lane, FIRST] + fma(inverse, higher, near[k, lane, LOST]))
    if near[k, lane, LIVE] > 0:
        w = np.log2(4 * near[k, lane, COUNT] / near[k, lane, NEXT]) - 1
        w2 = w * w
        even, odd = near[k, lane, SERIES + DEGREE - 2], near[k, lane, SERIES + DEGREE - 1]
        for n in range(DEGREE - 4, -1, -2):
            even = fma(even, w2, near[k, lane, SERIES + n])
            odd = fma(odd, w2, near[k, lane, SERIES + n + 1])
        total = fma(r, fma(odd, w, even), total)
    return C * total


@jit
def push_all(values: F64, C: float, near: F64, rows: F64, series: F64, powers: F64) -> None:
    """Take many values, one after the other, into the one summary there is."""
    for i in range(values.size):
        push(values[i], C, near, rows, 0, 0, series, powers)


@jit
def merge_into(near: F64, rows: F64, other_near: F64, other_rows: F64, series: F64, powers: F64) -> None:
    """Add the other's one summary to the one there is."""
    for i in (FIRST, LOST):
        first, lost = two_sum(near[0, 0, FIRST], other_near[0, 0, i])
        near[0, 0, FIRST] = first
        near[0, 0, LOST] += lost
    for i in range(HIGHER, SERIES):
        near[0, 0, i] += other_near[0, 0, i]
    for row in range(OCTAVES + 1):
        for j in range(ROW):
            if 1 <= j <= COMPENSATED:
                total, lost = two_sum(rows[row, 0, 0, j], other_rows[row, 0, 0, j])
                rows[row, 0, 0, j] = total
                rows[row, 0, 0, DEGREE - 1 + j] += lost
            else:
                rows[row, 0, 0, j] += other_rows[row, 0, 0, j]
    near[0, 0, COUNT] += other_near[0, 0, COUNT]
    near[0, 0, LIVE] = max(near[0, 0, LIVE], other_near[0, 0, LIVE])
    near[0, 0, LEVEL] = min(near[0, 0, LEVEL], other_near[0, 0, LEVEL])  # from where rows may have to be collapsed
    rise(near, rows, 0, 0, powers)
    renew(near, rows, 0, 0, series)
