"""Estimators of one mean for each arm: `Mean`, `MedianOfMeans` and `Catoni`.

Catoni's estimate is kept up to date in bounded memory: a summary for each arm of each replication.

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
would otherwise round a million times the same way. The error, against the sum as the paper prints it, is below 1e-12 of
the mean absolute value.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rightarm.errors import WrongValue
from rightarm.estimators.estimator import Estimator
from rightarm.estimators.reward_statistics import two_sum
from rightarm.formula import Positive, Rule, check_number, rule_of
from rightarm.formula.compile import MachineOperation, fma, jit
from rightarm.types import F64

MOST_GROUPS = 256
Groups = Annotated[
    float, Rule(f"a whole number from 1 to {MOST_GROUPS}", lambda x: x == int(x) and 1 <= x <= MOST_GROUPS)
]


class Mean(Estimator):
    """Estimate an arm's mean by the mean of its rewards; it is worth their number of pulls.

    Parameters
    ----------
    discount : float, optional
        Every reward counts the less the more rewards came after it, by this factor for each.
    window : int, optional
        Only the last so many rewards count, of all arms together.

    Notes
    -----
    With either, the round that formulas see is one more than the rewards that count.

    References
    ----------
    Garivier and Moulines: On Upper-Confidence Bound Policies for Switching Bandit Problems, ALT 2011.

    Examples
    --------
    >>> import rightarm as ra
    >>> ra.UCB(C=0.5, estimator=ra.estimators.Mean(window=500))
    UCB(C=0.5, estimator=Mean(window=500))
    >>> ra.UCB(C=0.5, estimator=ra.estimators.Mean())
    UCB(C=0.5)
    """

    NAME = "mean"


class MedianOfMeans(Estimator):
    """Estimate an arm's mean by the median of the means of groups of its rewards, for heavy tails.

    The rewards are dealt to the groups in turn; while there are fewer rewards than groups, it is their median. With an
    even number of groups the two in the middle are averaged.

    Parameters
    ----------
    groups : float
        The number of groups, from 1 to 256.

    References
    ----------
    Bubeck, Cesa-Bianchi, Lugosi: Bandits with Heavy Tail, 2013, there with groups of successive rewards, formed anew at
    each pull.

    Examples
    --------
    >>> import rightarm as ra
    >>> ra.UCB(C=0.5, estimator=ra.estimators.MedianOfMeans(groups=9))
    UCB(C=0.5, estimator=MedianOfMeans(groups=9.0))
    """

    NAME = "median"
    KEEPS = 1 + MOST_GROUPS
    MOST: ClassVar[int] = MOST_GROUPS

    groups: Groups

    @staticmethod
    def learn(kept: F64, reward: float, groups: float) -> None:
        kept[1 + int(kept[0] % groups)] += reward
        kept[0] += 1.0

    @staticmethod
    def read(kept: F64, groups: float) -> tuple[float, float]:
        used = int(min(kept[0], groups))
        means = np.empty(max(used, 1))
        each = kept[0] // groups
        more = kept[0] % groups
        for g in range(used):
            means[g] = kept[1 + g] / (each + (1.0 if g < more else 0.0))
        means.sort()
        return (means[(used - 1) // 2] + means[used // 2]) / 2, kept[0]


# Catoni's summary, compiled.

DEGREE = 12  # coefficients of an octave's polynomial: the series converges like 13.67^−DEGREE
POWERS = np.array([1, 3, 4, 5, 7, 8, 9, 11, 12, 13, 15, 16, 17])  # the others have no part in ψ's series
COEFFICIENTS = -(2 / POWERS) * 2.0 ** (-POWERS / 2) * np.cos(3 * np.pi * POWERS / 4)
C3, C4, C5, C7, C8, C9, C11, C12, C13, C15, C16, C17 = COEFFICIENTS[1:].tolist()
TINY = 1e-8  # below, ψ(y) is y to the last digit, and higher powers would underflow

# Places in a summary, a row of numbers: 32 that every value touches, those of the small ones first ...
VALUES = 0  # their number
NEXT_LEVEL = 1  # the number of values at which e grows
BOUND = 2  # below which a value is small
LIVE = 3  # one more than the last octave that has values
FIRST = 4  # the sum of first powers
FIRST_LOST = 5  # what rounding took of it
HIGHER = 6  # the sums of the other powers
SERIES = 18  # S
LEVEL = 30  # e
FRESH = 31  # values that S took since it was made anew
ROWS = 32
# ... and 16 for each octave from 2⁻² on, the last for far values: sums of σ uʲ, then what rounding took of some. Memory
# of octaves without values is never touched.
LOWEST = -2
OCTAVES = 66
FURTHEST = LOWEST + OCTAVES
FAR = 2.0**FURTHEST
COMPENSATED = 3  # the sums for j = 1, 2, 3; that for 0 is a whole number, those beyond weigh too little
SUMS = DEGREE + COMPENSATED
ROW = 16  # whole cache lines
SIZE = ROWS + (OCTAVES + 1) * ROW
RENEWED = 1024  # values that are not small after which S is made anew from their rows, lest it drift


class Tables(NamedTuple):
    """Coefficients by which sums are multiplied."""

    series: F64  # octave b − e + 2, power of u, power of w: ψ(2^(b − e + (u − w)/2))
    powers: F64  # power of u, k: c_k 2^(k (1+u)/2), an octave's share in the sums of powers


def psi(x: ArrayLike) -> F64:
    """Return the influence function ψ(x) = sign(x) log(1 + |x| + x²/2) of each number.

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
    """Interpolate at Chebyshev's points, and put powers in place of Chebyshev polynomials.

    Powers cost fewer operations, and no digits: the series fall much faster than the polynomials' coefficients grow.
    """
    j = np.arange(DEGREE)
    angles = (2 * j + 1) * np.pi / (2 * DEGREE)
    fit = np.where(j == 0, 1, 2)[:, None] * np.cos(j[:, None] * angles) / DEGREE
    polynomials = [np.polynomial.chebyshev.cheb2poly(row) for row in np.eye(DEGREE)]
    to_powers = np.array([np.pad(row, (0, DEGREE - row.size)) for row in polynomials]).T
    u = np.cos(angles)
    offsets = LOWEST + np.arange(OCTAVES)[:, None, None]
    values = psi(2.0 ** (offsets + (u[:, None] - u) / 2))
    series = to_powers @ (fit @ values @ fit.T) @ to_powers.T  # small numbers first
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
    kept[FIRST_LOST] += lost
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
    sign = math.copysign(1.0, x)
    place = ROWS + ROW * OCTAVES
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
    offset = np.uint64(row - np.int64(kept[LEVEL]))
    place = ROWS + ROW * row
    sign = term = math.copysign(1.0, x)
    for n in range(DEGREE):
        even = SERIES_TABLE[offset, DEGREE - 2, n]
        odd = SERIES_TABLE[offset, DEGREE - 1, n]
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
    signs = kept[far]
    logs = kept[far + 1] + kept[far + DEGREE]
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
            kept[FIRST_LOST] += lost
        else:
            kept[HIGHER - 1 + i] += share
    for j in range(ROW):
        kept[place + j] = 0.0


@jit
def rise(kept: F64) -> None:
    """Set e, and what hangs on it, for a count that has reached the next power of 4; S waits to be made anew."""
    before = np.int64(kept[LEVEL])
    level = 0
    following = 4.0
    while kept[VALUES] >= following:
        level += 1
        following = 4 * following
    kept[NEXT_LEVEL] = following
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
    v = abs(x) / C
    count = kept[VALUES] + 1
    if v < kept[BOUND] and count < kept[NEXT_LEVEL]:
        kept[VALUES] = count
        add_small(x, v, kept)
    else:
        push_other(kept, x, v)


@jit
def push_other(kept: F64, x: float, v: float) -> None:
    """Take a value that is not small, or that brings a new level."""
    kept[VALUES] += 1
    if kept[VALUES] >= kept[NEXT_LEVEL]:
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
    """Return the estimate from a summary, which must have a value."""
    inverse = 1 / kept[VALUES]
    r = np.sqrt(inverse)
    a = fma(inverse, kept[HIGHER + 2], fma(r, kept[HIGHER + 1], kept[HIGHER]))
    b = fma(inverse, kept[HIGHER + 5], fma(r, kept[HIGHER + 4], kept[HIGHER + 3]))
    c = fma(inverse, kept[HIGHER + 8], fma(r, kept[HIGHER + 7], kept[HIGHER + 6]))
    d = fma(inverse, kept[HIGHER + 11], fma(r, kept[HIGHER + 10], kept[HIGHER + 9]))
    square = inverse * inverse
    higher = fma(square, fma(square, fma(square, d, c), b), a)
    total = inverse * (kept[FIRST] + fma(inverse, higher, kept[FIRST_LOST]))
    if kept[LIVE] > 0:
        w = np.log2(4 * kept[VALUES] / kept[NEXT_LEVEL]) - 1
        w2 = w * w
        even = kept[SERIES + DEGREE - 2]
        odd = kept[SERIES + DEGREE - 1]
        for n in range(DEGREE - 4, -1, -2):
            even = fma(even, w2, kept[SERIES + n])
            odd = fma(odd, w2, kept[SERIES + n + 1])
        total = fma(r, fma(odd, w, even), total)
    return C * total


@jit
def estimate_and_count(kept: F64, C: float) -> tuple[float, float]:
    """Return the estimate, and the number of values."""
    return estimate(C, kept), kept[VALUES]


@jit
def estimate_weighted(rewards: F64, weights: F64, C: float) -> float:
    """Return the estimate as the paper prints it, of rewards that count by their weights: N = Σ weights."""
    scale = 0.0
    total = 0.0
    for i in range(rewards.size):
        scale += weights[i]
    scale = np.sqrt(scale)
    for i in range(rewards.size):
        total += weights[i] * influence(rewards[i] / (C * scale))
    return C * (total / scale)


@jit
def influence(x: float) -> float:
    """Return ψ(x) of one number; see `psi`."""
    size = abs(x)
    value = 2 * np.log(size) - np.log(2.0) if size > 1e100 else np.log1p(size + size**2 / 2)
    return math.copysign(value, x)


@jit
def push_all(values: F64, C: float, kept: F64) -> None:
    """Take many values, one after the other, into the summary."""
    for i in range(values.size):
        push(kept, values[i], C)


class Catoni(Estimator):
    """Estimate an arm's mean by Catoni's method, for rewards with heavy tails.

    μ̂ = (C/√N) Σ_s ψ(X_s / (C√N)),  ψ(x) = sign(x) log(1 + |x| + x²/2)

    Values of a size much above C√N count with their logarithm only. So the mean itself must be small against C√N, or
    the estimate falls short of it: of 4,096 values near 1000, C = 1 makes 316.

    Parameters
    ----------
    C : float
        The scale: the paper takes C² for a bound on the second moment.
    discount, window : optional
        As for `Mean`. The sum then runs over the rewards that count, each with its weight, and N is the sum of the
        weights; every decision is a pass over all of them. Without, an arm takes bounded memory.

    References
    ----------
    Catoni: Challenging the empirical mean and empirical variance, 2012; section 4 of the paper.

    Examples
    --------
    >>> import rightarm as ra
    >>> ra.UCB(C=0.5, estimator=ra.estimators.Catoni(C=2.0))
    UCB(C=0.5, estimator=Catoni(C=2.0))
    """

    NAME = "catoni"
    KEEPS = SIZE
    learn = push
    read = estimate_and_count
    estimate = estimate_weighted

    C: Positive

    def estimate_mean(self, values: ArrayLike) -> float:
        """Return the estimate of the mean of some values.

        Parameters
        ----------
        values : array_like
            One or more finite numbers; all count alike.

        Raises
        ------
        WrongValue
            If there are no values, or one of them is not a finite multiple of C.

        Examples
        --------
        >>> round(Catoni(C=0.5).estimate_mean([1.0, 0.0, 0.0, 1.0]), 12)
        0.458145365937
        """
        array = np.array(values, dtype=float).ravel()
        if not array.size:
            raise WrongValue("values", "must have at least one number, got none")
        with np.errstate(over="ignore"):
            wrong = array[~np.isfinite(array / self.C)]
        if wrong.size:
            raise WrongValue("values", f"must be finite multiples of C = {self.C}, got {wrong[0]}")
        kept = np.zeros(SIZE)
        push_all(array, self.C, kept)
        return float(estimate(self.C, kept))

    def check(self, reward: float) -> None:
        """Refuse a reward that is no finite multiple of C."""
        if not math.isfinite(reward / self.C):
            raise WrongValue("reward", f"must be a finite multiple of C = {self.C}, got {reward}")

    def to_json(self, kept: F64) -> dict[str, Any]:
        """Return a summary as plain data, some kilobytes at most.

        ``powers`` are the sums of σ c_k vᵏ and ``lost`` what rounding took of the first; ``octaves`` are those with
        values, by b, each with its sums and what rounding took of them; ``series`` is S, made anew when ``fresh``
        values have come to it. The module's text has these names.
        """
        octaves = _octaves(kept)
        return {
            "version": VERSION,
            "C": self.C,
            "count": int(kept[VALUES]),
            "powers": [kept[FIRST].item(), *kept[HIGHER:SERIES].tolist()],
            "lost": kept[FIRST_LOST].item(),
            "series": kept[SERIES:LEVEL].tolist(),
            "fresh": int(kept[FRESH]),
            "octaves": {str(row + LOWEST): octaves[row, :SUMS].tolist() for row in np.flatnonzero(octaves.any(axis=1))},
        }

    def from_json(self, state: Any, count: float) -> F64:
        """Return the summary that `to_json` wrote; raise if there can be none such."""
        if not isinstance(state, Mapping):
            raise TypeError(f"state must be a mapping, as json.loads gives it, got {state!r:.80}")
        if state.get("version") != VERSION:
            raise ValueError(f"version must be {VERSION}, got {state.get('version')!r}")
        if set(state) != KEYS:
            raise ValueError(f"state must have the keys {sorted(KEYS)}, got {sorted(map(str, state))}")
        scale = check_number("C", state["C"], rule_of(Positive))
        values = _whole("count", state["count"], MOST_VALUES)
        kept = _summary(state, values)
        value = estimate(scale, kept) if values else 0.0
        if not math.isfinite(value):
            raise ValueError(f"state must have a finite value, got {value} of {values} values with C = {scale}")
        if (scale, values) != (self.C, count):
            raise ValueError(
                f"kept must be estimators with C = {self.C} of {count} rewards, got C = {scale} of {values}"
            )
        return kept


# A summary from JSON, checked.

VERSION = 2
KEYS = {"version", "C", "count", "powers", "lost", "series", "fresh", "octaves"}
MOST_VALUES = 2**53  # a float counts no further
SLACK = 1 + 1e-3  # sums that went from an octave to the powers exceed their bound a little


def _summary(state: Mapping[str, Any], values: int) -> F64:
    """Return the summary of so many values that a state describes."""
    kept = np.zeros(SIZE)
    octaves = _octaves(kept)
    kept[VALUES] = values
    if values:
        rise(kept)
    level = int(kept[LEVEL])
    most = values * COEFFICIENTS * kept[BOUND] ** POWERS
    powers = _numbers("powers", state["powers"], SLACK * np.abs(most))
    kept[FIRST] = powers[0]
    kept[HIGHER:SERIES] = powers[1:]
    kept[FIRST_LOST] = _numbers("lost", [state["lost"]], values * np.spacing(most[:1]))[0]
    _read_octaves(state["octaves"], values, level, octaves)
    kept[LIVE] = max(np.flatnonzero(octaves.any(axis=1)) + 1, default=0)
    if values:
        renew(kept)
    expected = kept[SERIES:LEVEL]
    series = _numbers("series", state["series"], np.full(DEGREE, np.inf))
    if not np.allclose(series, expected, rtol=1e-9, atol=1e-9 * values):
        raise ValueError(f"series must be what octaves amount to, {expected.tolist()}, got {series.tolist()}")
    kept[SERIES:LEVEL] = series
    if series.any():  # rounding leaves something of values that cancel
        kept[LIVE] = max(kept[LIVE], level + 1)
    kept[FRESH] = _whole("fresh", state["fresh"], RENEWED)
    return kept


def _octaves(kept: F64) -> F64:
    """Return the part of a summary that has a row for each octave."""
    return kept[ROWS:].reshape(-1, ROW)


def _whole(name: str, value: object, below: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if not 0 <= value < below:
        raise ValueError(f"{name} must be from 0 to {below - 1}, got {value}")
    return value


def _numbers(name: str, values: object, most: F64) -> F64:
    """Return ``values`` as an array of as many finite numbers as ``most`` has, each at most that in size."""
    if not isinstance(values, list | tuple) or len(values) != most.size:
        raise ValueError(f"{name} must be a list of {most.size} numbers, got {values!r}")
    array = np.array([check_number(name, value) for value in values])
    if (np.abs(array) > most).any():
        raise ValueError(f"{name} must be at most {most.tolist()} in size, got {values!r}")
    return array


def _read_octaves(given: object, values: int, level: int, octaves: F64) -> None:
    """Check the octaves of a state and copy them to ``octaves``."""
    if not isinstance(given, Mapping):
        raise TypeError(f"octaves must be a mapping, got {given!r}")
    places = {str(row + LOWEST): row for row in range(level, OCTAVES + 1)}
    for b, sums in given.items():
        if b not in places:
            raise ValueError(f"octaves must be from {level + LOWEST} to {FURTHEST}, got {b!r}")
        most = np.full(SUMS, float(values))
        most[1] *= 1024 if places[b] == OCTAVES else 1  # log₂ of a far value
        octaves[places[b], :SUMS] = _numbers(f"octaves[{b!r}]", sums, most)
