"""Upper confidence bounds: optimism instead of noise."""

from __future__ import annotations

import numpy as np

from rightarm.formula import Count, Positive
from rightarm.policies.policy import policy


@policy
def UCB(t, pulls, mean, *, C: Positive):
    """Add to each arm's mean a bonus that grows slowly with time and shrinks with the arm's own pulls.

    I = arg max_i { μ̂_i + √(C² log t / N_i) }

    The form of the paper's section 6. UCB1 of Auer, Cesa-Bianchi, Fischer (2002) is C = √2.

    >>> import rightarm as ra
    >>> ra.UCB(C=0.5).scores(round=9, pulls=[4, 4], means=[0.25, 0.5]).round(3)
    array([0.621, 0.871])
    """
    return mean + C * np.sqrt(np.log(t) / pulls)


@policy
def UCB1(t, pulls, mean):
    """The classic upper confidence bound for rewards in [0, 1].

    I = arg max_i { μ̂_i + √(2 log t / N_i) }

    Auer, Cesa-Bianchi, Fischer: Finite-time Analysis of the Multiarmed Bandit Problem, Machine Learning 47, 2002.

    >>> import rightarm as ra
    >>> ra.UCB1().scores(round=9, pulls=[4, 4], means=[0.25, 0.5]).round(3)
    array([1.298, 1.548])
    """
    return mean + np.sqrt(2 * np.log(t) / pulls)


@policy
def MOSS(pulls, mean, arms, *, horizon: Count):
    """A bonus that vanishes once an arm has had its share of the horizon: minimax optimal.

    I = arg max_i { μ̂_i + √(max{0, log(T / (K N_i))} / N_i) }

    Audibert and Bubeck: Minimax Policies for Adversarial and Stochastic Bandits, COLT 2009.

    >>> import rightarm as ra
    >>> ra.MOSS(horizon=1_000).scores(round=9, pulls=[4, 4], means=[0.25, 0.5]).round(3)
    array([1.349, 1.599])
    """
    return mean + np.sqrt(np.maximum(0.0, np.log(horizon / (arms * pulls))) / pulls)


@policy
def AnytimeMOSS(t, pulls, mean, arms):
    """MOSS with the round in place of the horizon, which it need not know.

    I = arg max_i { μ̂_i + √(max{0, log(t / (K N_i))} / N_i) }

    Degenne and Perchet: Anytime Optimal Algorithms in Stochastic Multi-Armed Bandits, ICML 2016, there with a factor
    (1 + α)/2 before the logarithm; here it is 1, as in MOSS.

    >>> import rightarm as ra
    >>> ra.AnytimeMOSS().scores(round=100, pulls=[4, 60], means=[0.25, 0.5]).round(3)
    array([1.045, 0.5  ])
    """
    return mean + np.sqrt(np.maximum(0.0, np.log(t / (arms * pulls))) / pulls)
