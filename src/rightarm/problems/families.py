"""The problems without contexts: every arm pays by one formula, with light tails or with heavy ones."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from rightarm.formula import NonNegative, Positive, Probability, Rule
from rightarm.problems.problem import problem
from rightarm.types import F64


@problem(mean=lambda mean: mean, second_moment=lambda mean: mean, support=lambda mean: (0.0, 1.0))
def Bernoulli(u, *, mean: Probability):
    """Pay 1 with probability ``mean``, else 0.

    >>> Bernoulli([0.75, 0.5]).gaps
    array([0.  , 0.25])
    """
    return 1.0 * (u < mean)


@problem(mean=lambda mean, sigma: mean, second_moment=lambda mean, sigma: mean**2 + sigma**2)
def Gaussian(w, *, mean: float, sigma: NonNegative = 1.0):
    """Pay ``mean`` plus Gaussian noise with standard deviation ``sigma``.

    >>> Gaussian([0.0, 1.0], sigma=0.5)
    Gaussian(mean=[0.0, 1.0], sigma=[0.5, 0.5])
    """
    return mean + sigma * w


@problem(mean=lambda mean: mean, second_moment=lambda mean: mean**2, support=lambda mean: (mean, mean))
def Deterministic(*, mean: float):
    """Pay ``mean``, always.

    >>> Deterministic([0.5, 1.0]).best_arm
    1
    """
    return mean


@problem(
    mean=lambda low, high: (low + high) / 2,
    second_moment=lambda low, high: ((low + high) / 2) ** 2 + (high - low) ** 2 / 12,
    require=("low ≤ high", lambda low, high: low <= high),
    support=lambda low, high: (low, high),
)
def Uniform(u, *, low: float, high: float):
    """Pay uniformly between ``low`` and ``high``.

    >>> Uniform(low=[0.0, 0.5], high=1.0).means
    array([0.5 , 0.75])
    """
    return low + (high - low) * u


AboveOne = Annotated[float, Rule("above 1", lambda x: x > 1)]


def _ratio_above_two(x: F64) -> F64:
    """Return x / (x − 2), and infinite up to 2: from there on a power of x has a second moment."""
    finite = x > 2
    return np.where(finite, x / np.where(finite, x - 2, 1.0), np.inf)


@problem(
    mean=lambda alpha, scale: scale * alpha / (alpha - 1),
    second_moment=lambda alpha, scale: scale**2 * _ratio_above_two(alpha),
)
def Pareto(u, *, alpha: AboveOne, scale: Positive = 1.0):
    """Pay at least ``scale``, and more than x with probability (scale / x)^alpha.

    x = scale · u^(−1/alpha), with mean scale·alpha / (alpha − 1). The second moment is infinite for alpha up to 2. With
    alpha near 1 most of the mean comes from rewards that are too rare for any simulation: at 1.01, 70% of it from
    rewards of probability below 10⁻¹⁶.

    >>> Pareto(alpha=[3.0, 1.5], scale=1.0).means
    array([1.5, 3. ])
    >>> Pareto(alpha=[3.0, 1.5], scale=1.0).second_moments
    array([ 3., inf])
    """
    return scale * u ** (-1 / alpha)


@problem(
    mean=lambda mean, df, scale: mean,
    second_moment=lambda mean, df, scale: mean**2 + scale**2 * _ratio_above_two(df),
)
def StudentT(u, v, *, mean: float, df: AboveOne, scale: Positive = 1.0):
    """Pay ``mean`` plus ``scale`` times Student's t with ``df`` degrees of freedom, not necessarily a whole number.

    x = mean + scale · √(df·(u^(−2/df) − 1)) · cos(2πv), which for df → ∞ is Box and Muller's formula for a Gaussian.
    The second moment is infinite for df up to 2.

    Bailey (1994), Polar generation of random variates with the t-distribution.

    >>> StudentT(mean=[0.5, 0.0], df=3.0).second_moments
    array([3.25, 3.  ])
    """
    # expm1 keeps all digits where u^(−2/df) is next to 1: for u near 1, and for many degrees of freedom
    return mean + scale * np.sqrt(df * np.expm1(-2 / df * np.log(u))) * np.cos(2 * np.pi * v)


@problem(
    mean=lambda mu, sigma: np.exp(mu + sigma**2 / 2),
    second_moment=lambda mu, sigma: np.exp(2 * mu + 2 * sigma**2),
)
def LogNormal(w, *, mu: float, sigma: NonNegative = 1.0):
    """Pay exp(mu + sigma·w), w a standard Gaussian: the mean is exp(mu + sigma²/2), the median exp(mu).

    All moments are finite, but for a large sigma they come from rewards that are too rare for any simulation.

    >>> LogNormal(mu=[0.0, 1.0], sigma=1.0).means.round(3)
    array([1.649, 4.482])
    """
    return np.exp(mu + sigma * w)


@problem(
    mean=lambda mean, sigma, share, spread: mean,
    second_moment=lambda mean, sigma, share, spread: mean**2 + sigma**2 * (1 - share) + share * (sigma * spread) ** 2,
)
def Contaminated(u, w, *, mean: float, sigma: NonNegative, share: Probability, spread: NonNegative):
    """Pay ``mean`` plus Gaussian noise, whose deviation ``sigma`` is ``spread`` times as large in a ``share`` of pulls.

    Tukey (1960), A survey of sampling from contaminated distributions.

    >>> Contaminated(mean=[0.5, 0.0], sigma=1.0, share=0.1, spread=3.0).second_moments
    array([2.05, 1.8 ])
    """
    return mean + sigma * np.where(u < share, spread, 1.0) * w
