"""Which law a curve grows by: least squares of a + b·g(T) for a few laws g."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rightarm.simulation.statistics import Curve, mean_and_error
from rightarm.types import F64

LAWS: dict[str, Callable[[F64], F64]] = {
    "log T": np.log,
    "log² T": lambda T: np.log(T) ** 2,
    "√T": np.sqrt,
    "T": lambda T: T,
}
LATER = 0.6  # the part of the logarithmic range that is fitted: beginnings follow no law
UNDECIDED = 0.5  # standard errors between residuals within which two laws are as good


@dataclass(frozen=True)
class Fit:
    """a + b·g(T), the standard error of b from replication to replication, and how far the points are from it."""

    law: str
    a: float
    b: float
    b_error: float
    residual: float
    """Root mean square distance of the means from the law, in their standard errors."""


def fit(curve: Curve) -> list[Fit]:
    """All laws fitted to the later part of ``curve``, the best first.

    The points of one long run share their luck, so a residual below 1 is usual for the right law. The error of b does
    not suffer from that: every replication has its own b.
    """
    x, samples, weight = _later(curve)
    fits = [_fit_law(law, g(x), samples, weight) for law, g in LAWS.items()]
    return sorted(fits, key=lambda fitted: fitted.residual)


def could_be(law: str, fits: list[Fit]) -> bool:
    """Whether ``law`` fits best, or so nearly so that the points cannot tell."""
    (own,) = (fitted.residual for fitted in fits if fitted.law == law)
    return own < fits[0].residual + UNDECIDED


def best(fits: list[Fit]) -> str:
    """The two best laws in words."""
    first, second, *_ = fits
    return f"best fit {first.law}, residual {short(first)}; then {second.law}, {short(second)}"


def short(fitted: Fit) -> str:
    """The residual in few digits."""
    return f"{fitted.residual:.2g}" if fitted.residual < 100 else f"{fitted.residual:,.0f}"


def _later(curve: Curve) -> tuple[F64, F64, F64]:
    """Points, samples and weights (one over the standard error) of the part that is fitted."""
    logarithm = np.log(curve.x)
    later = logarithm >= logarithm[-1] - LATER * (logarithm[-1] - logarithm[0]) - 1e-9
    if later.sum() < 3:  # two points lie on every law
        raise ValueError(f"{curve.label}: a fit needs 3 points in its later part, got {later.sum()}")
    error = curve.error[later]
    least = 1e-9 * np.abs(curve.mean[later]).max() or 1.0  # exact points would weigh infinitely
    return curve.x[later], curve.samples[:, later], 1 / np.maximum(error, least)


def _fit_law(law: str, g: F64, samples: F64, weight: F64) -> Fit:
    design = np.stack([np.ones_like(g), g], axis=1) * weight[:, None]
    coefficients, *_ = np.linalg.lstsq(design, samples.T * weight[:, None])
    (a, b), (_, error) = mean_and_error(coefficients.T.astype(float))
    apart = (samples.mean(axis=0) - a - b * g) * weight
    return Fit(law, float(a), float(b), float(error), float(np.sqrt(np.mean(apart**2))))
