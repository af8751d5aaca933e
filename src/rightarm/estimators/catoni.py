"""Catoni's estimator of a mean, for rewards with heavy tails: of an arm's rewards, and of any stream of values.

The method, and its compiled code, are in `rightarm.estimators.sums`. The error, against the sum as the paper prints
it, is below 1e-12 of the mean absolute value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rightarm.errors import WrongValue
from rightarm.estimators import sums as catoni
from rightarm.estimators.estimator import Estimator
from rightarm.estimators.sums import psi
from rightarm.formula import Positive, check_number, rule_of
from rightarm.types import F64

__all__ = ["Catoni", "CatoniEstimator", "psi"]

VERSION = 2
KEYS = {"version", "C", "count", "powers", "lost", "series", "fresh", "octaves"}
MOST = 2**53  # values; a float counts no further
SLACK = 1 + 1e-3  # sums that went from an octave to the powers exceed their bound a little


class Catoni(Estimator):
    """Catoni's estimate of an arm's mean, for rewards with heavy tails, and the number of rewards.

    μ̂ = (C/√N) Σ_s ψ(X_s / (C√N)),  ψ(x) = sign(x) log(1 + |x| + x²/2).  C is the scale: C² bounds the second moment.

    It is kept up to date in bounded memory (`CatoniEstimator`). With ``discount`` or ``window`` (see `Mean`) the sum
    runs over the rewards that count, each with its weight, and N is the sum of the weights; every decision is then a
    pass over all of them.

    Catoni: Challenging the empirical mean and empirical variance, 2012; section 4 of the paper.

    >>> import rightarm as ra
    >>> ra.UCB(C=0.5, estimator=ra.Catoni(C=2.0))
    UCB(C=0.5, estimator=Catoni(C=2.0))
    """

    C: Positive
    KEEPS = catoni.SIZE
    learn = catoni.push
    read = catoni.estimate_and_count
    estimate = catoni.printed

    def check(self, reward: float) -> None:
        """Refuse a reward that is no finite multiple of C."""
        if not math.isfinite(reward / self.C):
            raise WrongValue("reward", f"must be a finite multiple of C = {self.C}, got {reward}")

    def to_json(self, kept: F64) -> Any:
        """The state of a `CatoniEstimator`."""
        return CatoniEstimator(self.C, kept).to_json()

    def from_json(self, state: Any, count: float) -> F64:
        made = CatoniEstimator.from_json(state)
        if (made.C, made.count) != (self.C, count):
            raise ValueError(f"kept must be estimators with C = {self.C} of {count} rewards, got {made!r}")
        return made.kept


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

    def __init__(self, C: float, kept: F64 | None = None) -> None:
        self.C = check_number("C", C, rule_of(Positive))
        self.kept = np.zeros(catoni.SIZE) if kept is None else kept  # the summary: a row of sums

    @property
    def count(self) -> int:
        """The number of values."""
        return int(self.kept[catoni.COUNT])

    def push(self, values: ArrayLike) -> None:
        """Take one value, or many; nothing is taken if one of them is not a finite number."""
        array = np.array(values, dtype=float).ravel()
        if not np.isfinite(array).all():
            raise ValueError(f"values must be finite, got {array[~np.isfinite(array)][0]}")
        largest = float(np.abs(array).max(initial=0.0))
        if not math.isfinite(largest / self.C):
            raise ValueError(f"values must be finite multiples of C = {self.C}, got {largest} in size")
        catoni.push_all(array, self.C, self.kept)

    @property
    def value(self) -> float:
        """The estimate."""
        if not self.count:
            raise ValueError("there is no estimate before the first value")
        return float(catoni.estimate(self.C, self.kept))

    def merge(self, other: CatoniEstimator) -> CatoniEstimator:
        """The estimator of both streams together; both must have the same C."""
        if not isinstance(other, CatoniEstimator):
            raise TypeError(f"other must be a CatoniEstimator, got {other!r}")
        if other.C != self.C:
            raise ValueError(f"C must be the same to merge, got {self.C} and {other.C}")
        both = CatoniEstimator(self.C)
        for part in (self, other):
            catoni.merge_into(both.kept, part.kept)
        return both

    def to_json(self) -> dict[str, Any]:
        """The whole state as plain data, some kilobytes at most.

        ``powers`` are the sums of σ c_k vᵏ and ``lost`` what rounding took of the first; ``octaves`` are those with
        values, by b, each with its sums and what rounding took of them; ``series`` is S, made anew when ``fresh``
        values have come to it. Names as in `rightarm.estimators.sums`.

        >>> sorted(CatoniEstimator(C=0.5).to_json())
        ['C', 'count', 'fresh', 'lost', 'octaves', 'powers', 'series', 'version']
        """
        near, rows = self.kept, _octaves(self.kept)
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
        near, rows = made.kept, _octaves(made.kept)
        near[catoni.COUNT] = count = _whole("count", state["count"], MOST)
        if count:
            catoni.rise(made.kept)
        level, most = int(near[catoni.LEVEL]), count * catoni.COEFFICIENTS * near[catoni.BOUND] ** catoni.POWERS
        powers = _numbers("powers", state["powers"], SLACK * np.abs(most))
        near[catoni.FIRST], near[catoni.HIGHER : catoni.SERIES] = powers[0], powers[1:]
        near[catoni.LOST] = _numbers("lost", [state["lost"]], count * np.spacing(most[:1]))[0]
        _read_octaves(state["octaves"], count, level, rows)
        near[catoni.LIVE] = max(np.flatnonzero(rows.any(axis=1)) + 1, default=0)
        if count:
            catoni.renew(made.kept)
        expected = near[catoni.SERIES : catoni.LEVEL]
        series = _numbers("series", state["series"], np.full(catoni.DEGREE, np.inf))
        if not np.allclose(series, expected, rtol=1e-9, atol=1e-9 * count):
            raise ValueError(f"series must be what octaves amount to, {expected.tolist()}, got {series.tolist()}")
        near[catoni.SERIES : catoni.LEVEL] = series
        if series.any():  # rounding leaves something of values that cancel
            near[catoni.LIVE] = max(near[catoni.LIVE], level + 1)
        near[catoni.FRESH] = _whole("fresh", state["fresh"], catoni.RENEWED)
        if count and not math.isfinite(made.value):
            raise ValueError(f"state must have a finite value, got {made.value} of {count} values with C = {made.C}")
        return made

    def __repr__(self) -> str:
        return f"<CatoniEstimator: C={self.C}, {self.count} values>"


def _octaves(kept: F64) -> F64:
    """The part of a summary that has a row for each octave."""
    return kept[catoni.ROWS :].reshape(-1, catoni.ROW)


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
