"""Greedy policies: they pull the arm with the best mean, and explore by a rule of their own."""

from __future__ import annotations

import numpy as np

from rightarm.formula import Count
from rightarm.policies.family import Schedule
from rightarm.policies.policy import policy


@policy(explore=lambda arms, *, epsilon: epsilon / arms)
def EpsilonGreedy(mean, *, epsilon: Schedule):
    """Pull the arm with the best mean, but with probability ε_t an arm drawn uniformly at random.

    P[I = i] = ε_t / K + (1 − ε_t) 1{i = arg max_j μ̂_j}

    ε is a number (constant, then the regret grows linearly), `decreasing`, or a function of t. Auer, Cesa-Bianchi,
    Fischer: Finite-time Analysis of the Multiarmed Bandit Problem, Machine Learning 47, 2002.

    >>> import rightarm as ra
    >>> ra.EpsilonGreedy(0.1).floors(round=9, pulls=[4, 4], means=[0.25, 0.5])
    array([0.05, 0.05])
    """
    return mean


@policy
def ExploreThenCommit(t, pulls, mean, arms, *, each: Count):
    """Pull every arm equally often, then for ever the one whose mean was best at that time.

    I = arg min_i N_i while t ≤ K·each,  then arg max_i μ̂_i (of round K·each + 1)

    Garivier, Kaufmann, Lattimore: On Explore-Then-Commit Strategies, NeurIPS 2016; for two Gaussian arms, with gap and
    horizon known, `theory.exploration` gives the best ``each``.

    >>> import rightarm as ra
    >>> ra.ExploreThenCommit(each=10).scores(round=21, pulls=[10, 10], means=[0.25, 0.5])
    array([0.25, 0.5 ])
    """
    turn = arms * each
    committed = np.where(t > turn + 1, pulls, mean)  # after that round, the chosen arm is the one with the most pulls
    return np.where(t <= turn, -pulls, committed)


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
