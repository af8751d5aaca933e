"""A measured curve: one number of every replication at each of several points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rightarm.types import F64


@dataclass(frozen=True, eq=False)
class Curve:
    """A quantity (regret, mostly) against another (the horizon T, mostly), with all its replications."""

    label: str
    x: F64
    """Where it is measured, shape (P,)."""
    samples: F64
    """What was measured, shape (replications, P)."""

    @property
    def mean(self) -> F64:
        """The mean of the replications."""
        mean: F64 = self.samples.mean(axis=0)
        return mean

    @property
    def error(self) -> F64:
        """The standard error of that mean."""
        error: F64 = self.samples.std(axis=0, ddof=1) / np.sqrt(len(self.samples))
        return error

    def over(self, unit: ArrayLike) -> Curve:
        """The same in another unit, which may differ from point to point."""
        return Curve(self.label, self.x, self.samples / np.asarray(unit, dtype=float))


@dataclass(frozen=True, eq=False)
class Line:
    """A computed curve: a bound, or an exact value."""

    label: str
    x: F64
    y: F64


def joined(label: str, curves: list[Curve]) -> Curve:
    """One curve from the last points of several: for simulations that are made anew for every horizon."""
    return Curve(
        label,
        np.array([curve.x[-1] for curve in curves]),
        np.stack([curve.samples[:, -1] for curve in curves], axis=1),
    )


def standard_errors(x: F64, y: F64) -> float:
    """How much larger ``x`` is than ``y`` on average, replication by replication, in standard errors."""
    apart = x - y
    error = apart.std(ddof=1) / np.sqrt(apart.size)
    return float(apart.mean() / error) if error else float(np.copysign(np.inf, apart.mean())) if apart.any() else 0.0
