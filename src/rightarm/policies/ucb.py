"""Upper confidence bounds: optimism instead of noise."""

from __future__ import annotations

import numpy as np

from rightarm.formula import Count, Positive
from rightarm.noise import HalfGaussian, Shared
from rightarm.scores.policy import policy


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


@policy(rewards=(0, 1))
def UCB1(t, pulls, mean):
    """The classic upper confidence bound for rewards in [0, 1].

    I = arg max_i { μ̂_i + √(2 log t / N_i) }

    Auer, Cesa-Bianchi, Fischer: Finite-time Analysis of the Multiarmed Bandit Problem, Machine Learning 47, 2002.

    >>> import rightarm as ra
    >>> ra.UCB1().scores(round=9, pulls=[4, 4], means=[0.25, 0.5]).round(3)
    array([1.298, 1.548])
    """
    return mean + np.sqrt(2 * np.log(t) / pulls)


@policy(noise=Shared(HalfGaussian()))
def RandUCB(pulls, mean, z, *, C: Positive):
    """Upper confidence bounds whose width is drawn anew for each decision, one draw for all arms.

    I = arg max_i { μ̂_i + C Z / √N_i },  Z = |standard Gaussian|, the same for all arms.

    An arm is chosen where its line μ̂_i + C Z / √N_i is the highest: its exact probability is that of an interval of Z,
    and zero if the line is nowhere the highest. The paper takes Z from a grid between 0 and an end U, with the weights
    of a Gaussian law of deviation σ; here it is any number from 0 on, and C is σ. Vaswani, Mehrabian, Durand, Kveton:
    Old Dog Learns New Tricks: Randomized UCB for Bandit Problems, AISTATS 2020 (arXiv 1910.04928).

    >>> import rightarm as ra
    >>> ra.RandUCB(C=0.5).probabilities(round=102, pulls=[1, 100], means=[0.25, 0.5]).round(4)
    array([0.5785, 0.4215])
    """
    return mean + C / np.sqrt(pulls) * z


@policy(rewards=(0, 1))
def MOSS(pulls, mean, arms, *, horizon: Count):
    """A bonus that vanishes once an arm has had its share of the horizon: minimax optimal.

    I = arg max_i { μ̂_i + √(max{0, log(T / (K N_i))} / N_i) }

    For rewards in [0, 1]. Audibert and Bubeck: Minimax Policies for Adversarial and Stochastic Bandits, COLT 2009.

    >>> import rightarm as ra
    >>> ra.MOSS(horizon=1_000).scores(round=9, pulls=[4, 4], means=[0.25, 0.5]).round(3)
    array([1.349, 1.599])
    """
    return mean + np.sqrt(np.maximum(0.0, np.log(horizon / (arms * pulls))) / pulls)


@policy(rising=True, rewards=(0, 1))
def AnytimeMOSS(t, pulls, mean, arms):
    """MOSS with the round in place of the horizon, which it need not know.

    I = arg max_i { μ̂_i + √(max{0, log(t / (K N_i))} / N_i) }

    For rewards in [0, 1]. Degenne and Perchet: Anytime Optimal Algorithms in Stochastic Multi-Armed Bandits, ICML
    2016, there with a factor (1 + α)/2 before the logarithm; here it is 1, as in MOSS.

    >>> import rightarm as ra
    >>> ra.AnytimeMOSS().scores(round=100, pulls=[4, 60], means=[0.25, 0.5]).round(3)
    array([1.045, 0.5  ])
    """
    return mean + np.sqrt(np.maximum(0.0, np.log(t / (arms * pulls))) / pulls)


def truncated_sum(t, pulls, arms, total, reward, *, u):
    """Add a reward unless it is larger than √(u N / log t²); t is at least K + 1, which treats first pulls alike."""
    level = 2 * np.log(np.maximum(t, arms + 1))
    return total + np.where(np.abs(reward) * np.sqrt(level) <= np.sqrt(u * pulls), reward, 0.0)


@policy(learn={"total": truncated_sum})
def RobustUCB(t, pulls, total, *, u: Positive):
    """An upper confidence bound on a truncated mean, for rewards of which only the second moment is known to be ≤ u.

    I = arg max_i { Σ_s X_s 1{|X_s| ≤ √(u s / log t²)} / N_i + 4 √(u log t² / N_i) },  s = 1 ... N_i

    With the truncated mean and ε = 1. A reward is truncated by the t of its own round, not anew in each later one, so
    that a pull costs the same however many there were. Bubeck, Cesa-Bianchi, Lugosi: Bandits with Heavy Tail, IEEE
    Transactions on Information Theory 59, 2013.

    >>> import rightarm as ra
    >>> state = dict(round=9, pulls=[4, 4], means=[0.25, 0.5], memory={"total": [1.0, 2.0]})
    >>> ra.RobustUCB(u=0.25).scores(**state).round(3)
    array([2.346, 2.596])
    """
    return total / pulls + 4 * np.sqrt(2 * u * np.log(t) / pulls)


OFFSET = 64.0  # above every mean of rewards in [0, 1] plus twice its confidence radius


def pulls_at_end(phases, horizon):
    """n_m = ⌈2 log(T Δ̃²) / Δ̃²⌉ with Δ̃ = 2^−m, the arm's pulls when phase m ends; the last phase has no end."""
    squared = 0.25**phases
    end = np.ceil(2 * np.log(np.maximum(horizon * squared, np.e)) / squared)
    return np.where(horizon * squared >= np.e, end, np.inf)


def next_phase(pulls, phases, *, horizon):
    """Count a phase when the arm has had its pulls."""
    return phases + np.where(pulls >= pulls_at_end(phases, horizon), 1.0, 0.0)


def pulls_then(pulls, phases, ended, *, horizon):
    """The arm's pulls at the end of its last phase."""
    return np.where(pulls >= pulls_at_end(phases, horizon), pulls, ended)


def mean_then(pulls, mean, phases, mark, *, horizon):
    """The arm's mean at the end of its last phase, plus an offset that makes it larger than any of an earlier phase."""
    return np.where(pulls >= pulls_at_end(phases, horizon), OFFSET * (phases + 1) + mean, mark)


def reach_then(pulls, mean, phases, reach, *, horizon):
    """The arm's mean plus twice its confidence radius at that time; it is eliminated if the largest mean is above."""
    radius = np.sqrt(np.log(np.maximum(horizon * 0.25**phases, 1.0)) / (2 * pulls))
    return np.where(pulls >= pulls_at_end(phases, horizon), OFFSET * (phases + 1) + mean + 2 * radius, reach)


@policy(
    learn={"phases": next_phase, "ended": pulls_then, "mark": mean_then, "reach": reach_then},
    rewards=(0, 1),
)
def UCBImproved(pulls, ended, reach, best_mark, *, horizon: Count):
    """Pull all arms equally often, and after every phase eliminate those that are worse than the best by confidence.

    Phase m ends when all arms left have n_m = ⌈2 log(T Δ̃²)/Δ̃²⌉ pulls, Δ̃ = 2^−m; eliminated is then every arm with
    μ̂_i + r < max_j μ̂_j − r,  r = √(log(T Δ̃²) / (2 n_m)).

    For rewards in [0, 1]. Auer and Ortner: UCB Revisited: Improved Regret Bounds for the Stochastic Multi-Armed Bandit
    Problem, Periodica Mathematica Hungarica 61, 2010.

    >>> import rightarm as ra
    >>> memory = {"phases": [1, 1], "ended": [14, 14], "mark": [64.25, 64.9], "reach": [64.5, 65.2]}
    >>> ra.UCBImproved(horizon=1_000).scores(round=29, pulls=[14, 14], means=[0.25, 0.9], memory=memory)
    array([-inf, -14.])
    """
    # An arm that was not eliminated has been pulled again before another one ends its next phase.
    return np.where((pulls == ended) & (reach < best_mark), -np.inf, -pulls)
