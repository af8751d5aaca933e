"""Means over replications with their standard errors: of single numbers, of curves, and of paired differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from rightarm.types import F64, I64


def mean_and_error(samples: F64) -> tuple[F64, F64]:
    """The mean over the first axis, and its standard error; one replication tells no error, which is NaN then.

    >>> mean_and_error(np.array([1.0, 2.0, 3.0, 6.0]))
    (np.float64(3.0), np.float64(1.0801234497346435))
    """
    mean: F64 = samples.mean(axis=0)
    if len(samples) < 2:
        return mean, np.full_like(mean, np.nan)
    error: F64 = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    return mean, error


@dataclass(frozen=True, eq=False)
class MeanCurve:
    """Means at some points, with their standard errors: what a picture shows of a curve."""

    label: str
    x: F64 | I64
    """Where it is measured, shape (P,)."""
    mean: F64
    error: F64
    """The standard errors; NaN where a single replication tells none."""

    @classmethod
    def of(cls, label: str, x: F64 | I64, samples: F64) -> Self:
        """The curve of what was measured, replications × points."""
        return cls(label, x, *mean_and_error(samples))

    @classmethod
    def joined(cls, label: str, points: Sequence[tuple[float, MeanCurve]]) -> MeanCurve:
        """The last points of several curves, against other values of x."""
        x = np.array([value for value, _ in points], dtype=float)
        ends = np.array([(curve.mean[-1], curve.error[-1]) for _, curve in points])
        return MeanCurve(label, x, ends[:, 0], ends[:, 1])


@dataclass(frozen=True, eq=False)
class Curve(MeanCurve):
    """A quantity (regret, mostly) against another (the round, mostly), with all its replications."""

    samples: F64
    """What was measured, shape (replications, P)."""

    @classmethod
    def of(cls, label: str, x: F64 | I64, samples: F64) -> Self:
        """The curve of what was measured, replications × points."""
        return cls(label, x, *mean_and_error(samples), samples)

    def over(self, unit: ArrayLike) -> Curve:
        """The same in another unit, which may differ from point to point."""
        return Curve.of(self.label, self.x, self.samples / np.asarray(unit, dtype=float))

    @classmethod
    def of_ends(cls, label: str, curves: Sequence[Curve], x: ArrayLike | None = None) -> Curve:
        """One curve from the last points of several, against their last x unless another ``x`` is given."""
        ends = [curve.x[-1] for curve in curves] if x is None else x
        samples = np.stack([curve.samples[:, -1] for curve in curves], axis=1)
        return cls.of(label, np.asarray(ends, dtype=float), samples)
