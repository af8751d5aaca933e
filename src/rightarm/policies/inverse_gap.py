"""Inverse-gap weighting: the worse an arm's mean is, the less often the arm is explored."""

from __future__ import annotations

import numpy as np

from rightarm.formula import Positive
from rightarm.policies.boltzmann import Schedule, schedule
from rightarm.scores.policy import policy


@schedule
def increasing(t, arms, *, c: Positive):
    """γ_t = c √(K t): exploration falls off like 1/√t, for rewards that differ by about 1.

    >>> import rightarm as ra
    >>> ra.SquareCB(ra.increasing(c=2.0))
    SquareCB(gamma=increasing(c=2.0))
    """
    return c * np.sqrt(arms * t)


# The best arm has the share 1/K as well, and with what is left of 1 it is pulled because its mean is the largest.
@policy(explore=lambda mean, best, arms, *, gamma: 1 / (arms + gamma * (best - mean)))
def SquareCB(mean, *, gamma: Schedule):
    """Explore each arm with a probability that falls with its gap to the best mean, and pull the best one otherwise.

    P[I = i] = 1 / (K + γ_t (max_j μ̂_j − μ̂_i)) for all arms but the best one, which has the rest.

    γ is a number, `increasing` (the usual choice), or a function of t; with 0 every arm is pulled equally often. Of
    arms that tie for the best mean, each is that one equally often. Abe and Long: Associative Reinforcement Learning
    using Linear Probabilistic Concepts, ICML 1999; Foster and Rakhlin: Beyond UCB: Optimal and Efficient Contextual
    Bandits with Regression Oracles, ICML 2020 (arXiv 2002.04926), there with γ = √(K T / regret of the predictions).

    >>> import rightarm as ra
    >>> ra.SquareCB(gamma=16.0).probabilities(round=9, pulls=[4, 4], means=[0.25, 0.75])
    array([0.1, 0.9])
    """
    return mean
