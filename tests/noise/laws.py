"""Noise laws as a user would write them, beside SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

import rightarm as ra
from rightarm.noise import Law


class Logistic(Law):
    def quantile(self, u: Any) -> Any:
        return np.log(u / (1 - u))

    def cdf(self, x: Any) -> Any:
        return 1 / (1 + np.exp(-x))


class Cauchy(Law):
    def quantile(self, u: Any) -> Any:
        return np.tan(np.pi * (u - 0.5))

    def cdf(self, x: Any) -> Any:
        return 0.5 + np.arctan(x) / np.pi


class Laplace(Law):
    """Its density has a kink at 0."""

    def quantile(self, u: Any) -> Any:
        return np.where(u < 0.5, np.log(2 * u), -np.log(2 * (1 - u)))

    def cdf(self, x: Any) -> Any:
        return np.where(x < 0, 0.5 * np.exp(-np.abs(x)), 1 - 0.5 * np.exp(-np.abs(x)))


class Triangular(Law):
    """Bounded; with branches, as code for single numbers may have them."""

    def quantile(self, u: Any) -> Any:
        if u < 0.5:
            return np.sqrt(2 * u) - 1
        return 1 - np.sqrt(2 * (1 - u))

    def cdf(self, x: Any) -> Any:
        if x < 0:
            return 0.5 * max(1 + x, 0.0) ** 2
        return 1 - 0.5 * max(1 - x, 0.0) ** 2


def student_cdf(x: float, df: float) -> Any:
    """P[T ≤ x] for a whole number of degrees of freedom: Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    theta = np.arctan(x / np.sqrt(df))
    sine, cosine = np.sin(theta), np.cos(theta)
    if df % 2 == 1:
        term, total = cosine, 0.0
        for k in range(1, int(df) - 1, 2):
            total += term
            term *= cosine * cosine * (k + 1) / (k + 2)
        return 0.5 + (theta + sine * total) / np.pi
    term, total = 1.0, 0.0
    for k in range(0, int(df) - 1, 2):
        total += term
        term *= cosine * cosine * (k + 1) / (k + 2)
    return 0.5 + 0.5 * sine * total


class StudentT(Law):
    """With a parameter, and a quantile that is found by bisection: code of one's own may be anything that compiles."""

    df: ra.policies.Count = 3.0

    def quantile(self, u: Any) -> Any:
        low, high = -1.0, 1.0
        while student_cdf(low, self.df) > u:
            low *= 2
        while student_cdf(high, self.df) < u:
            high *= 2
        for _ in range(45):
            middle = 0.5 * (low + high)
            if student_cdf(middle, self.df) < u:
                low = middle
            else:
                high = middle
        return 0.5 * (low + high)

    def cdf(self, x: Any) -> Any:
        return student_cdf(x, self.df)


THEIRS: dict[Law, Any] = {
    ra.noise.HalfGaussian(): stats.halfnorm,
    Logistic(): stats.logistic,
    Cauchy(): stats.cauchy,
    Laplace(): stats.laplace,
    Triangular(): stats.triang(0.5, -1, 2),
    StudentT(): stats.t(3),
    StudentT(df=8): stats.t(8),
}
