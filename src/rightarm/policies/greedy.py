"""Greedy policies: they pull the arm with the best mean, and explore by a rule that does not look at means."""

from __future__ import annotations

import numpy as np

from rightarm.formula import Count, Positive
from rightarm.policies.boltzmann import Schedule, schedule
from rightarm.scores.policy import policy


@schedule
def decreasing(t, arms, *, d: Positive, c: Positive = 5.0):
    """ε_t = min{1, c K / (d² t)}: the ε_n-greedy rule of Auer, Cesa-Bianchi, Fischer (2002), 0 < d ≤ least gap.

    >>> import rightarm as ra
    >>> ra.EpsilonGreedy(ra.decreasing(d=0.5))
    EpsilonGreedy(epsilon=decreasing(d=0.5, c=5.0))
    """
    return np.minimum(1.0, c * arms / (d**2 * t))


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
