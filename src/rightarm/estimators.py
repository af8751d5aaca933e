"""Catoni's estimator of a mean, for rewards with heavy tails, kept up to date in bounded memory.

The paper's section 4 has μ̂ = β Σ_s ψ(X_s / (βN)) with β = C/√N: the scale changes with every reward, so that the sum as
printed must be computed anew each time. Here only sums are kept from which it can be had at any scale:

- of values that are small for good, |x| < C·2^(e−2) with e = ⌊log₄ N⌋: sums of their powers, ψ having a power series;
- of the others, for each octave of |x|: sums of Chebyshev polynomials in log₂|x|, ψ(2^s) being analytic in s.

The error, against the sum as printed, is below 1e-12 of the mean absolute value.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rightarm.formula import Positive, check_number, rule_of

DEGREE = 12  # Chebyshev polynomials of an octave: the series converges like 13.67^−DEGREE
POWERS = np.array([1, 3, 4, 5, 7, 8, 9, 11, 12, 13, 15, 16, 17])  # the others have no part in ψ's series
COEFFICIENTS = -(2 / POWERS) * 2.0 ** (-POWERS / 2) * np.cos(3 * np.pi * POWERS / 4)
VERSION = 1
BLOCK = 1 << 16  # values taken at once
HUGE = 1e100

_ANGLES = (2 * np.arange(DEGREE) + 1) * np.pi / (2 * DEGREE)
_NODES = (1 + np.cos(_ANGLES)) / 2  # Chebyshev's points, on [0, 1]
_FIT = np.where(np.arange(DEGREE) == 0, 1, 2)[:, None] * np.cos(np.arange(DEGREE)[:, None] * _ANGLES) / DEGREE
_POWERS_FIT = _FIT @ 2.0 ** (_NODES[:, None] * POWERS)  # v ↦ vᵏ on an octave, as a Chebyshev series: degree × powers


def psi(x: ArrayLike) -> NDArray[np.float64]:
    """The influence function: ψ(x) = sign(x) log(1 + |x| + x²/2).

    Catoni, Challenging the empirical mean and empirical variance, 2012; section 4 of the paper.

    >>> psi([-1.0, 0.0, 1.0]).round(4)
    array([-0.9163,  0.    ,  0.9163])
    """
    size = np.abs(np.asarray(x, dtype=float))
    moderate = np.minimum(size, HUGE)  # whose square is finite; beyond, log(1 + x + x²/2) is 2 log x − log 2
    value = np.where(size > HUGE, 2 * np.log(np.maximum(size, 1.0)) - np.log(2), np.log1p(moderate + moderate**2 / 2))
    return np.asarray(np.sign(x) * value)


class CatoniEstimator:
    """Catoni's estimate of a mean from a stream of values.

    μ̂ = (C/√N) Σ_s ψ(X_s / (C√N)).  C is the scale: the paper takes C² for a bound on the second moment.

    >>> estimator = CatoniEstimator(C=0.5)
    >>> estimator.push([1.0, 0.0, 0.0, 1.0])
    >>> round(estimator.value, 12)
    0.458145365937
    """

    def __init__(self, C: float) -> None:
        self.C = check_number("C", C, rule_of(Positive))
        self.count = 0
        self._powers = np.zeros(POWERS.size)
        self._lost = 0.0  # what rounding took from the first power's sum (Neumaier)
        self._octaves: dict[int, NDArray[np.float64]] = {}

    def push(self, values: ArrayLike) -> None:
        """Take one value, or many; nothing is taken if one of them is not a finite number."""
        array = np.asarray(values, dtype=float).ravel()
        if not np.isfinite(array).all():
            raise ValueError(f"values must be finite, got {array[~np.isfinite(array)][0]}")
        with np.errstate(over="ignore"):
            if not np.isfinite(array / self.C).all():
                raise ValueError(
                    f"values must be finite multiples of C = {self.C}, got {array[np.abs(array).argmax()]}"
                )
        for start in range(0, array.size, BLOCK):
            self._push(array[start : start + BLOCK])

    def _push(self, values: NDArray[np.float64]) -> None:
        self.count += values.size
        self._collapse()
        size, sign = np.abs(values) / self.C, np.sign(values)
        small = size < 2.0 ** (_level(self.count) - 2)
        self._add_powers(np.sign(values[small]) @ _power_rows(size[small]), math.fsum(values[small] / self.C))
        if not small.all():
            octave = np.frexp(size[~small])[1] - 1
            place = 2 * (np.log2(size[~small]) - octave) - 1
            rows = sign[~small, None] * np.cos(np.arange(DEGREE) * np.arccos(np.clip(place, -1, 1))[:, None])
            for b in np.unique(octave).tolist():
                self._octaves[b] = self._octaves.get(b, np.zeros(DEGREE)) + rows[octave == b].sum(axis=0)

    def _add_powers(self, higher: NDArray[np.float64], first: float) -> None:
        """Add power sums; the first power, which carries the mean, without loss."""
        before = float(self._powers[0])
        total = before + first
        self._lost += (before - total) + first if abs(before) >= abs(first) else (first - total) + before
        self._powers = self._powers + higher
        self._powers[0] = total

    def _collapse(self) -> None:
        """Turn octaves that have become small for good into sums of powers."""
        for b in [b for b in self._octaves if b <= _level(self.count) - 3]:
            sums = 2.0 ** (b * POWERS) * (self._octaves.pop(b) @ _POWERS_FIT)
            self._add_powers(sums, float(sums[0]))

    @property
    def value(self) -> float:
        """The estimate."""
        if not self.count:
            raise ValueError("there is no estimate before the first value")
        level, root = _level(self.count), math.sqrt(self.count)
        sums = self._powers.copy()
        sums[0] += self._lost
        total = math.fsum(COEFFICIENTS * root ** (-POWERS.astype(float)) * sums)
        where = math.log2(self.count / 4**level) - 1
        scale = np.cos(np.arange(DEGREE) * math.acos(min(1.0, max(-1.0, where))))
        total += math.fsum(float(scale @ _table(b - level) @ row) for b, row in self._octaves.items())
        return self.C / root * total

    def merge(self, other: CatoniEstimator) -> CatoniEstimator:
        """The estimator of both streams together; both must have the same C."""
        if other.C != self.C:
            raise ValueError(f"C must be the same to merge, got {self.C} and {other.C}")
        both = CatoniEstimator(self.C)
        both.count = self.count + other.count
        for part in (self, other):
            both._add_powers(part._powers, float(part._powers[0]))
            both._lost += part._lost
            for b, row in part._octaves.items():
                both._octaves[b] = both._octaves.get(b, np.zeros(DEGREE)) + row
        both._collapse()
        return both

    def to_json(self) -> dict[str, Any]:
        """The whole state as plain data, some kilobytes at most."""
        octaves = {str(b): row.tolist() for b, row in sorted(self._octaves.items())}
        return {
            "version": VERSION,
            "C": self.C,
            "count": self.count,
            "powers": self._powers.tolist(),
            "lost": self._lost,
            "octaves": octaves,
        }

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> CatoniEstimator:
        """The estimator that `to_json` described."""
        if state.get("version") != VERSION:
            raise ValueError(f"version must be {VERSION}, got {state.get('version')!r}")
        made = cls(state["C"])
        made.count, made._lost = int(state["count"]), float(state["lost"])
        made._powers = np.array(state["powers"], dtype=float)
        made._octaves = {int(b): np.array(row, dtype=float) for b, row in state["octaves"].items()}
        shapes = {row.shape for row in made._octaves.values()} | {(DEGREE,)}
        if made.count < 0 or made._powers.shape != POWERS.shape or shapes != {(DEGREE,)}:
            raise ValueError(f"the state is not one of a CatoniEstimator: {dict(state)}")
        return made

    def __repr__(self) -> str:
        return f"<CatoniEstimator: C={self.C}, {self.count} values>"


def _level(count: int) -> int:
    """e = ⌊log₄ N⌋."""
    return (count.bit_length() - 1) // 2


def _power_rows(size: NDArray[np.float64]) -> NDArray[np.float64]:
    """v, v³, v⁴, ... for each value; of tiny ones only the first matters, and the others may underflow to 0."""
    with np.errstate(under="ignore"):
        return np.asarray(size[:, None] ** POWERS)


@functools.cache
def _table(offset: int) -> NDArray[np.float64]:
    """ψ(2^(offset + ξ − η)) on the unit square of ξ (the value's octave) and η (the count's), as a Chebyshev series."""
    return np.asarray(_FIT @ psi(2.0 ** (offset + _NODES[None, :] - _NODES[:, None])) @ _FIT.T)
