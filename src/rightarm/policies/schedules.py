"""Schedules: temperatures, shares and rates that depend on the round, each one formula."""

from __future__ import annotations

import numpy as np

from rightarm.formula import Count, Family, NonNegative, Positive
from rightarm.policies.family import Schedule, schedule


@schedule
def constant(*, c: NonNegative):
    """β_t = c: BE-const of section 6, there with c = C²."""
    return c


@schedule
def inverse_log(t, *, c: Positive):
    """β_t = c / log t: BE-log of section 6, there with c = C²."""
    return c / np.log(t)


@schedule
def inverse_sqrt(t, *, c: Positive):
    """β_t = c / √t: BE-sqrt of section 6, there with c = C²."""
    return c / np.sqrt(t)


@schedule
def two_phase(t, arms, *, gap: Positive, horizon: Count):
    """Theorem 3: η_t = 1 before τ = 16 e K log(T) / Δ², and η_t = log(t Δ²) / Δ from then on.

    It needs the gap Δ and the horizon T, and explores long: at Δ = 0.01, K = 10 and T = 10⁶, τ is 6·10⁷.
    """
    tau = 16 * np.e * arms * np.log(horizon) / gap**2
    # np.where computes both values: before τ, where t·Δ² may be 1, the maximum keeps the second from dividing by zero
    return np.where(t < tau, 1.0, gap / np.log(np.maximum(t * gap**2, np.e)))


@schedule
def glie(t, best, worst):
    """η_t = log t / max_i (μ̂_best − μ̂_i): every arm keeps a probability of at least 1/(K t), greedy in the limit.

    Singh, Jaakkola, Littman, Szepesvári: Convergence Results for Single-Step On-Policy Reinforcement-Learning
    Algorithms, Machine Learning 38, 2000.
    """
    return (best - worst) / np.log(t)


@schedule
def decreasing(t, arms, *, d: Positive, c: Positive = 5.0):
    """ε_t = min{1, c K / (d² t)}: the ε_n-greedy rule of Auer, Cesa-Bianchi, Fischer (2002), 0 < d ≤ least gap.

    >>> import rightarm as ra
    >>> ra.EpsilonGreedy(ra.schedules.decreasing(d=0.5))
    EpsilonGreedy(epsilon=decreasing(d=0.5, c=5.0))
    """
    return np.minimum(1.0, c * arms / (d**2 * t))


@schedule
def increasing(t, arms, *, c: Positive):
    """γ_t = c √(K t): exploration falls off like 1/√t, for rewards that differ by about 1.

    >>> import rightarm as ra
    >>> ra.SquareCB(ra.schedules.increasing(c=2.0))
    SquareCB(gamma=increasing(c=2.0))
    """
    return c * np.sqrt(arms * t)


FAMILIES = {name: value for name, value in list(globals().items()) if isinstance(value, Family)}

__all__ = ["Schedule", "schedule", *FAMILIES]
