"""Catoni's estimator of a mean, for rewards with heavy tails, kept up to date in bounded memory.

The method, and the compiled code that the simulator shares, are in `rightarm.estimators.sums`. The error, against
the sum as the paper prints it, is below 1e-12 of the mean absolute value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rightarm.estimators import sums as catoni
from rightarm.estimators.sums import F64, psi
from rightarm.formula import Positive, check_number, rule_of

__all__ = ["CatoniEstimator", "psi"]

VERSION = 2
KEYS = {"version", "C", "count", "powers", "lost", "series", "fresh", "octaves"}
MOST = 2**53  # values; a float counts no further
SLACK = 1 + 1e-3  # sums that went from an octave to the powers exceed their bound a little


class CatoniEstimator:
    """Catoni's estimate of a mean from a stream of values.

    μ̂ = (C/√N) Σ_s ψ(X_s / (C√N)).  C is the scale: the paper takes C² for a bound on the second moment.

    Values of a size much above C√N count with their logarithm only. So the mean itself must be small against C√N, or
    the estimate falls short of it: of 4,096 values near 1000, C = 1 makes 316.

    >>> estimator = CatoniEstimator(C=0.5)
    >>> estimator.push([1.0, 0.0, 0.0, 1.0])
    >>> round(estimator.value, 12)
    0.458145365937
    """

    def __init__(self, C: float) -> None:
        self.C = check_number("C", C, rule_of(Positive))
        self._sums = catoni.empty(1, 1)

    @property
    def count(self) -> int:
        """The number of values."""
        return int(self._sums.near[0, 0, catoni.COUNT])

    def push(self, values: ArrayLike) -> None:
        """Take one value, or many; nothing is taken if one of them is not a finite number."""
        array = np.array(values, dtype=float).ravel()
        if not np.isfinite(array).all():
            raise ValueError(f"values must be finite, got {array[~np.isfinite(array)][0]}")
        largest = float(np.abs(array).max(initial=0.0))
        if not math.isfinite(largest / self.C):
            raise ValueError(f"values must be finite multiples of C = {self.C}, got {largest} in size")
        catoni.push_all(array, self.C, *self._sums, *catoni.tables())

    @property
    def value(self) -> float:
        """The estimate."""
        if not self.count:
            raise ValueError("there is no estimate before the first value")
        return float(catoni.estimate(self.C, self._sums.near, 0, 0))

    def merge(self, other: CatoniEstimator) -> CatoniEstimator:
        """The estimator of both streams together; both must have the same C."""
        if not isinstance(other, CatoniEstimator):
            raise TypeError(f"other must be a CatoniEstimator, got {other!r}")
        if other.C != self.C:
            raise ValueError(f"C must be the same to merge, got {self.C} and {other.C}")
        both = CatoniEstimator(self.C)
        for part in (self, other):
            catoni.merge_into(*both._sums, *part._sums, *catoni.tables())
        return both

    def to_json(self) -> dict[str, Any]:
        """The whole state as plain data, some kilobytes at most.

        ``powers`` are the sums of σ c_k vᵏ and ``lost`` what rounding took of the first; ``octaves`` are those with
        values, by b, each with its sums and what rounding took of them; ``series`` is S, made anew when ``fresh``
        values have come to it. Names as in `rightarm.estimators.sums`.

        >>> sorted(CatoniEstimator(C=0.5).to_json())
        ['C', 'count', 'fresh', 'lost', 'octaves', 'powers', 'series', 'version']
        """
        near, rows = self._sums.near[0, 0], self._sums.rows[:, 0, 0]
        return {
            "version": VERSION,
            "C": self.C,
            "count": self.count,
            "powers": [near[catoni.FIRST].item(), *near[catoni.HIGHER : catoni.SERIES].tolist()],
            "lost": near[catoni.LOST].item(),
            "series": near[catoni.SERIES : catoni.LEVEL].tolist(),
            "fresh": int(near[catoni.FRESH]),
            "octaves": {
                str(row + catoni.LOWEST): rows[row, : catoni.SUMS].tolist() for row in np.flatnonzero(rows.any(axis=1))
            },
        }

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> CatoniEstimator:
        """The estimator that `to_json` described; an error if there can be none such."""
        if not isinstance(state, Mapping):
            raise TypeError(f"state must be a mapping, as json.loads gives it, got {state!r:.80}")
        if state.get("version") != VERSION:
            raise ValueError(f"version must be {VERSION}, got {state.get('version')!r}")
        if set(state) != KEYS:
            raise ValueError(f"state must have the keys {sorted(KEYS)}, got {sorted(map(str, state))}")
        made = cls(state["C"])
        near, rows = made._sums.near[0, 0], made._sums.rows[:, 0, 0]
        near[catoni.COUNT] = count = _whole("count", state["count"], MOST)
        if count:
            catoni.rise(*made._sums, 0, 0, catoni.tables().powers)
        level, most = int(near[catoni.LEVEL]), count * catoni.COEFFICIENTS * near[catoni.BOUND] ** catoni.POWERS
        powers = _numbers("powers", state["powers"], SLACK * np.abs(most))
        near[catoni.FIRST], near[catoni.HIGHER : catoni.SERIES] = powers[0], powers[1:]
        near[catoni.LOST] = _numbers("lost", [state["lost"]], count * np.spacing(most[:1]))[0]
        _read_octaves(state["octaves"], count, level, rows)
        near[catoni.LIVE] = max(np.flatnonzero(rows.any(axis=1)) + 1, default=0)
        if count:
            catoni.renew(*made._sums, 0, 0, catoni.tables().series)
        expected = near[catoni.SERIES : catoni.LEVEL]
        series = _numbers("series", state["series"], np.full(catoni.DEGREE, np.inf))
        if not np.allclose(series, expected, rtol=1e-9, atol=1e-9 * count):
            raise ValueError(f"series must be what octaves amount to, {expected.tolist()}, got {series.tolist()}")
        near[catoni.SERIES : catoni.LEVEL] = series
        if series.any():  # rounding leaves something of values that cancel
            near[catoni.LIVE] = max(near[catoni.LIVE], level + 1)
        near[catoni.FRESH] = _whole("fresh", state["fresh"], catoni.RENEWED)
        return made

    def __repr__(self) -> str:
        return f"<CatoniEstimator: C={self.C}, {self.count} values>"


def _whole(name: str, value: Any, below: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if not 0 <= value < below:
        raise ValueError(f"{name} must be from 0 to {below - 1}, got {value}")
    return value


def _numbers(name: str, values: Any, most: F64) -> F64:
    """``values`` as an array of as many finite numbers as ``most`` has, each at most that in size."""
    if not isinstance(values, list | tuple) or len(values) != most.size:
        raise ValueError(f"{name} must be a list of {most.size} numbers, got {values!r}")
    array = np.array([check_number(name, value) for value in values])
    if (np.abs(array) > most).any():
        raise ValueError(f"{name} must be at most {most.tolist()} in size, got {values!r}")
    return array


def _read_octaves(octaves: Any, count: int, level: int, rows: F64) -> None:
    """Check the rows of ``octaves`` and copy them to ``rows``."""
    if not isinstance(octaves, Mapping):
        raise TypeError(f"octaves must be a mapping, got {octaves!r}")
    places = {str(row + catoni.LOWEST): row for row in range(level, catoni.OCTAVES + 1)}
    for b, values in octaves.items():
        if b not in places:
            raise ValueError(f"octaves must be from {level + catoni.LOWEST} to {catoni.FURTHEST}, got {b!r}")
        most = np.full(catoni.SUMS, float(count))
        most[1] *= 1024 if places[b] == catoni.OCTAVES else 1  # log₂ of a far value
        rows[places[b], : catoni.SUMS] = _numbers(f"octaves[{b!r}]", values, most)
