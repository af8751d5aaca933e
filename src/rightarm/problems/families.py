"""Problems with light tails: Bernoulli, Gaussian, deterministic and uniform rewards."""

from __future__ import annotations

from rightarm.formula import NonNegative, Probability
from rightarm.problems.problem import problem


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
