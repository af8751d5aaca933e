"""Rows of a linear model, compiled: encoded contexts are standardised, and their columns become private or shared ones.

Columns are standardised by one array ``moments[3, n]`` for n measured columns, which starts at zero: how many values
were taken, their mean, and Σ (x − mean)². With a new value x, d = x − mean and n values in all, x among them,

    x − mean' = d·(n − 1)/n,    mean' = mean + d/n,    Σ' = Σ + d²·(n − 1)/n

(Welford: Note on a Method for Calculating Corrected Sums of Squares and Products, Technometrics 1962). Values that
never change have d = 0 exactly, whatever their size.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rightarm.formula.compile import jit
from rightarm.types import F64, I64

# The rows of ``moments``.
MOMENT_COUNT = 0
MOMENT_MEAN = 1
MOMENT_SQUARES = 2

# A deviation below this share of the mean counts as none. Numbers that ought to be equal but were computed in different
# ways differ by up to some thousand roundings of 2⁻⁵³ ≈ 1e-16; blown up to a deviation of 1 they would be pure noise.
ROUNDING = 1e-12
INTERCEPT = -1  # stands among the numbers of columns for a column of ones


@jit
def is_missing(x: F64, column: int) -> bool:
    """Return whether a context's indicator says that the value is missing; column −1 stands for no indicator."""
    return column >= 0 and x[column] != 0.0


@jit
def _with(value: float, count: float, mean: float, squares: float) -> tuple[float, float, float]:
    """Return, with the value among the others, its distance from their mean, that mean, and Σ (x − mean)²."""
    difference = value - mean
    distance = difference * (count / (count + 1.0))
    return distance, mean + difference / (count + 1.0), squares + difference * distance


@jit
def _in_deviations(distance: float, count: float, mean: float, squares: float) -> float:
    """Return a distance from the mean of so many values in their deviations; at most √(count − 1) in size."""
    deviation = math.sqrt(squares / count)
    return 0.0 if deviation == 0.0 or deviation < ROUNDING * abs(mean) else distance / deviation


@jit
def standardise(x: F64, measured: I64, indicator: I64, moments: F64, out: F64) -> None:
    """Write an encoded context to ``out``, its measured columns standardised; the moments stay as they are.

    A measured column becomes (x − m)/s, where m and s are the mean and the deviation (the root of the mean squared
    deviation) of its values so far and this one. It is 0 where the value is missing or s is 0 but for rounding.

    >>> import numpy as np
    >>> moments, out = np.zeros((3, 1)), np.empty(2)
    >>> columns = np.array([0]), np.array([1])
    >>> count_values(np.array([10.0, 0.0]), *columns, moments)
    >>> standardise(np.array([12.0, 0.0]), *columns, moments, out)
    >>> out.tolist()
    [1.0, 0.0]
    """
    standardise_and_count(x, measured, indicator, moments.copy(), out)


@jit
def count_values(x: F64, measured: I64, indicator: I64, moments: F64) -> None:
    """Count an encoded context's measured values, but for missing ones, in the moments."""
    for j in range(measured.size):
        if not is_missing(x, indicator[j]):
            count = moments[MOMENT_COUNT, j]
            _, mean, squares = _with(x[measured[j]], count, moments[MOMENT_MEAN, j], moments[MOMENT_SQUARES, j])
            moments[MOMENT_COUNT, j] = count + 1.0
            moments[MOMENT_MEAN, j] = mean
            moments[MOMENT_SQUARES, j] = squares


@jit
def standardise_and_count(x: F64, measured: I64, indicator: I64, moments: F64, out: F64) -> None:
    """Do what `standardise` does and then `count_values`, in one step."""
    for i in range(x.size):  # written out: an assignment to a slice takes seconds to compile
        out[i] = x[i]
    for j in range(measured.size):
        place = measured[j]
        if is_missing(x, indicator[j]):
            out[place] = 0.0
        else:
            count = moments[MOMENT_COUNT, j]
            distance, mean, squares = _with(x[place], count, moments[MOMENT_MEAN, j], moments[MOMENT_SQUARES, j])
            out[place] = _in_deviations(distance, count + 1.0, mean, squares)
            moments[MOMENT_COUNT, j] = count + 1.0
            moments[MOMENT_MEAN, j] = mean
            moments[MOMENT_SQUARES, j] = squares


class Design(NamedTuple):
    """The columns of a row, in compiled code's terms."""

    private: I64
    """For each private column the column of the context, or −1 for the intercept."""
    shared: I64
    """The same for those shared columns that are of the context."""
    arm: int
    """The number of features of an arm: shared columns after these."""
    crossed: int
    """The number of context features by which each of an arm's is multiplied: the last shared columns."""
    own: int
    """Private columns in all."""
    joint: int
    """Shared columns in all."""


@jit
def make_rows(x: F64, private: I64, shared: I64, arm: int, crossed: int, own: F64, joint: F64) -> None:
    """Make the rows of all arms in a context: ``own`` gets private columns, ``joint`` shared ones, one for each arm.

    ``x`` is the standardised context. The features of arms are in their ``arm`` rows of ``joint`` already, behind those
    of the context.
    """
    for j in range(private.size):
        own[j] = 1.0 if private[j] < 0 else x[private[j]]
    for j in range(shared.size):
        value = 1.0 if shared[j] < 0 else x[shared[j]]
        for k in range(joint.shape[1]):
            joint[j, k] = value
    place = shared.size + arm
    for i in range(crossed if arm else 0):
        for a in range(arm):
            for k in range(joint.shape[1]):
                joint[place, k] = x[i] * joint[shared.size + a, k]
            place += 1


@jit
def make_context_rows(
    x: F64,
    measured: I64,
    indicator: I64,
    moments: F64,
    private: I64,
    shared: I64,
    arm: int,
    crossed: int,
    own: F64,
    joint: F64,
) -> None:
    """Make the rows of all arms in a context that was encoded; ``moments`` become those with this context."""
    z = np.empty(x.size)
    standardise_and_count(x, measured, indicator, moments, z)
    make_rows(z, private, shared, arm, crossed, own, joint)


@jit
def standardise_arms(given: F64, members: I64, measured: I64, indicator: I64, moments: F64, out: F64) -> None:
    """Write the standardised features of some arms, a row of ``given`` each, to their columns of ``out``.

    ``moments`` become those with all of them, by which each is standardised: mean and squares of the new ones, merged
    with what there was (Chan, Golub and LeVeque 1979).
    """
    count = members.size
    values = np.empty(count)
    here = np.ones(count)
    for a in range(given.shape[1]):
        for i in range(count):
            out[a, members[i]] = given[i, a]
    for j in range(measured.size):
        a = measured[j]
        n = float(count)
        for i in range(count):
            values[i] = given[i, a]
        if indicator[j] >= 0:
            for i in range(count):
                here[i] = 1.0 if given[i, indicator[j]] == 0.0 else 0.0
                values[i] *= here[i]
            n = total(here)
        mean = total(values) / max(n, 1.0)
        merge(moments, j, n, mean, squares_about(values, mean, here))
        centre = moments[MOMENT_MEAN, j]
        deviation = math.sqrt(moments[MOMENT_SQUARES, j] / max(moments[MOMENT_COUNT, j], 1.0))
        inverse = 0.0 if deviation <= ROUNDING * abs(centre) else 1.0 / deviation
        for i in range(count):
            out[a, members[i]] = (values[i] - centre) * inverse * here[i]
        if indicator[j] >= 0:
            for i in range(count):
                here[i] = 1.0


@jit
def total(values: F64) -> float:
    """Return the sum, in four parts, which a processor adds side by side."""
    a = b = c = d = 0.0
    whole = values.size // 4 * 4
    for i in range(0, whole, 4):
        a += values[i]
        b += values[i + 1]
        c += values[i + 2]
        d += values[i + 3]
    for i in range(whole, values.size):
        a += values[i]
    return (a + b) + (c + d)


@jit
def squares_about(values: F64, mean: float, weights: F64) -> float:
    """Return Σ weight · (x − mean)², in four parts."""
    a = b = c = d = 0.0
    whole = values.size // 4 * 4
    for i in range(0, whole, 4):
        a += weights[i] * (values[i] - mean) ** 2
        b += weights[i + 1] * (values[i + 1] - mean) ** 2
        c += weights[i + 2] * (values[i + 2] - mean) ** 2
        d += weights[i + 3] * (values[i + 3] - mean) ** 2
    for i in range(whole, values.size):
        a += weights[i] * (values[i] - mean) ** 2
    return (a + b) + (c + d)


@jit
def merge(moments: F64, j: int, n: float, mean: float, squares: float) -> None:
    """Count n values of a column, with their mean and Σ (x − mean)², in its moments."""
    before = moments[MOMENT_COUNT, j]
    if n > 0.0:
        difference = mean - moments[MOMENT_MEAN, j]
        share = n / (before + n)
        moments[MOMENT_COUNT, j] = before + n
        moments[MOMENT_MEAN, j] += difference * share
        moments[MOMENT_SQUARES, j] += squares + difference * difference * before * share
