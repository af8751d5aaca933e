"""Running standardisation: each measured number less its mean so far, in units of its deviation so far.

The state is one array ``moments[3, n]`` for n measured columns, which starts at zero: how many values were taken, their
mean, and Σ (x − mean)². With a new value x, d = x − mean and n values in all, x among them,

    x − mean' = d·(n − 1)/n,    mean' = mean + d/n,    Σ' = Σ + d²·(n − 1)/n

(Welford: Note on a Method for Calculating Corrected Sums of Squares and Products, Technometrics 1962). Values that
never change have d = 0 exactly, whatever their size.
"""

from __future__ import annotations

import math

from rightarm.formula.compile import jit
from rightarm.types import F64, I64

COUNT, MEAN, SQUARES = 0, 1, 2  # the rows of the state

# A deviation below this share of the mean counts as none. Numbers that ought to be equal but were computed in different
# ways differ by up to some thousand roundings of 2⁻⁵³ ≈ 1e-16; blown up to a deviation of 1 they would be pure noise.
ROUNDING = 1e-12


@jit
def is_missing(x: F64, column: int) -> bool:
    """Whether a context's indicator says that the value is missing; column −1 stands for no indicator."""
    return column >= 0 and x[column] != 0.0


@jit
def _with(value: float, count: float, mean: float, squares: float) -> tuple[float, float, float]:
    """With the value among the others: its distance from their mean, that mean, and Σ (x − mean)²."""
    difference = value - mean
    own = difference * (count / (count + 1.0))
    return own, mean + difference / (count + 1.0), squares + difference * own


@jit
def _in_deviations(own: float, count: float, mean: float, squares: float) -> float:
    """A distance from the mean of so many values in their deviations; at most √(count − 1) in size."""
    deviation = math.sqrt(squares / count)
    return 0.0 if deviation == 0.0 or deviation < ROUNDING * abs(mean) else own / deviation


@jit
def standardised(x: F64, measured: I64, indicator: I64, moments: F64, out: F64) -> None:
    """Write an encoded context to ``out``, its measured columns standardised; the moments stay as they are.

    A measured column becomes (x − m)/s, where m and s are the mean and the deviation (the root of the mean squared
    deviation) of its values so far and this one. It is 0 where the value is missing or s is 0 but for rounding.

    >>> import numpy as np
    >>> moments, out = np.zeros((3, 1)), np.empty(2)
    >>> columns = np.array([0]), np.array([1])
    >>> take(np.array([10.0, 0.0]), *columns, moments)
    >>> standardised(np.array([12.0, 0.0]), *columns, moments, out)
    >>> out.tolist()
    [1.0, 0.0]
    """
    see(x, measured, indicator, moments.copy(), out)


@jit
def take(x: F64, measured: I64, indicator: I64, moments: F64) -> None:
    """Count an encoded context's measured values, but for missing ones, in the moments."""
    for j in range(measured.size):
        if not is_missing(x, indicator[j]):
            count = moments[COUNT, j]
            _, mean, squares = _with(x[measured[j]], count, moments[MEAN, j], moments[SQUARES, j])
            moments[COUNT, j], moments[MEAN, j], moments[SQUARES, j] = count + 1.0, mean, squares


@jit
def see(x: F64, measured: I64, indicator: I64, moments: F64, out: F64) -> None:
    """`standardised` and then `take`, in one step."""
    for i in range(x.size):  # written out: an assignment to a slice takes seconds to compile
        out[i] = x[i]
    for j in range(measured.size):
        place = measured[j]
        if is_missing(x, indicator[j]):
            out[place] = 0.0
        else:
            count = moments[COUNT, j]
            own, mean, squares = _with(x[place], count, moments[MEAN, j], moments[SQUARES, j])
            out[place] = _in_deviations(own, count + 1.0, mean, squares)
            moments[COUNT, j], moments[MEAN, j], moments[SQUARES, j] = count + 1.0, mean, squares
