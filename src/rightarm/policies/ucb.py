"""Upper confidence bounds, for bounded rewards and for heavy tails, and a perturbed robust mean."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from rightarm.estimators import Catoni, MedianOfMeans
from rightarm.formula import Count, Positive, Rule, check_count, check_number, rule_of
from rightarm.noise import Gumbel, HalfGaussian, Shared
from rightarm.policies.policy import Policy, policy


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


@policy(reward_range=(0, 1))
def UCB1(t, pulls, mean):
    """Add to each arm's mean the classic upper confidence bound for rewards in [0, 1].

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


@policy(reward_range=(0, 1))
def MOSS(pulls, mean, arms, *, horizon: Count):
    """Add a bonus that vanishes once an arm has had its share of the horizon: minimax optimal.

    I = arg max_i { μ̂_i + √(max{0, log(T / (K N_i))} / N_i) }

    For rewards in [0, 1]. Audibert and Bubeck: Minimax Policies for Adversarial and Stochastic Bandits, COLT 2009.

    >>> import rightarm as ra
    >>> ra.MOSS(horizon=1_000).scores(round=9, pulls=[4, 4], means=[0.25, 0.5]).round(3)
    array([1.349, 1.599])
    """
    return mean + np.sqrt(np.maximum(0.0, np.log(horizon / (arms * pulls))) / pulls)


@policy(rising=True, reward_range=(0, 1))
def AnytimeMOSS(t, pulls, mean, arms):
    """Add the bonus of MOSS with the round in place of the horizon, which it need not know.

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
    """Take an upper confidence bound on a truncated mean, for rewards of which only the second moment is bounded, by u.

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
    """Return n_m = ⌈2 log(T Δ̃²) / Δ̃²⌉ with Δ̃ = 2^−m, the arm's pulls when phase m ends; the last phase has no end."""
    squared = 0.25**phases
    end = np.ceil(2 * np.log(np.maximum(horizon * squared, np.e)) / squared)
    return np.where(horizon * squared >= np.e, end, np.inf)


def next_phase(pulls, phases, *, horizon):
    """Count a phase when the arm has had its pulls."""
    return phases + np.where(pulls >= pulls_at_end(phases, horizon), 1.0, 0.0)


def pulls_then(pulls, phases, ended, *, horizon):
    """Return the arm's pulls at the end of its last phase."""
    return np.where(pulls >= pulls_at_end(phases, horizon), pulls, ended)


def mean_then(pulls, mean, phases, mark, *, horizon):
    """Return the arm's mean at the end of its last phase, plus an offset that makes it larger than any earlier one."""
    return np.where(pulls >= pulls_at_end(phases, horizon), OFFSET * (phases + 1) + mean, mark)


def reach_then(pulls, mean, phases, reach, *, horizon):
    """Return the arm's mean plus twice its radius at that time; it is eliminated if the largest mean is above."""
    radius = np.sqrt(np.log(np.maximum(horizon * 0.25**phases, 1.0)) / (2 * pulls))
    return np.where(pulls >= pulls_at_end(phases, horizon), OFFSET * (phases + 1) + mean + 2 * radius, reach)


@policy(
    learn={"phases": next_phase, "ended": pulls_then, "mark": mean_then, "reach": reach_then},
    reward_range=(0, 1),
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


Order = Annotated[float, Rule("above 1 and at most 2", lambda x: 1 < x <= 2)]


def CatoniUCB(u: float, horizon: int) -> Policy:
    """Robust UCB with Catoni's estimate, for rewards whose second moment is at most u, and a horizon T that is known.

    μ̂_i + √(2u log(t²)/N_i), Catoni's C = √(u / (4 log T)): by his proposition 2.1 the bonus is then the error of μ̂ that
    is exceeded with probability T⁻² (at t = T). Bubeck, Cesa-Bianchi, Lugosi: Bandits with Heavy Tail, 2013, have
    √(4v log(t²)/N) for the variance v, and an estimate that is centred.

    >>> CatoniUCB(u=1.0, horizon=1_000)
    UCB(C=2.0, estimator=Catoni(C=0.1902398665508126))
    """
    u = check_number("u", u, rule_of(Positive))
    made: Policy = UCB(C=2 * math.sqrt(u), estimator=Catoni(C=math.sqrt(u / (4 * _log(horizon)))))
    return made


def MedianUCB(v: float, horizon: int, c: float = 384.0) -> Policy:
    """Robust UCB with the median of means, for rewards whose variance is at most v, and a horizon T that is known.

    μ̂_i + √(c v log(t²)/N_i) with ⌈8 log(e^{1/8} T²)⌉ groups, 256 at most; c = 384, the theorem's 32 · 12 from memory,
    which explores very much.  Bubeck, Cesa-Bianchi, Lugosi: Bandits with Heavy Tail, 2013.

    >>> MedianUCB(v=1.0, horizon=1_000, c=2.0)
    UCB(C=2.0, estimator=MedianOfMeans(groups=112.0))
    """
    v = check_number("v", v, rule_of(Positive))
    c = check_number("c", c, rule_of(Positive))
    groups = min(math.ceil(1 + 16 * _log(horizon)), MedianOfMeans.MOST)
    made: Policy = UCB(C=math.sqrt(2 * c * v), estimator=MedianOfMeans(groups=groups))
    return made


def _log(horizon: int) -> float:
    return math.log(check_count("horizon", horizon, least=2))


def tail_weight(p):
    """Return b_p = [2 q^{1−2/p} + q^{2−2/p}]^{−p/2}, q = (2−p)/(p−1): ½ at p = 2."""
    q = (2 - p) / (p - 1)
    return (2 * q ** (1 - 2 / p) + q ** (2 - 2 / p)) ** (-p / 2)


def robust_sum(pulls, total, reward, *, p, c):
    """Add c n^{1/p} ψ_p(X / (c n^{1/p})), the n-th reward X cut down to what a p-th moment allows."""
    scale = c * pulls ** (1 / p)
    x = np.abs(reward) / scale
    size = scale * np.log(1 + x + tail_weight(p) * x**p)
    return total + np.where(reward < 0, -size, size)


@policy(noise=Gumbel(), learn={"total": robust_sum})
def APE2(pulls, total, z, *, p: Order, c: Positive):
    """Perturb a robust mean by Gumbel noise, for rewards of which only the p-th moment is finite, 1 < p ≤ 2.

    I = arg max_i { μ̂_i + c / N_i^{1−1/p} · Z_i },  ψ_p(x) = sign(x) log(1 + |x| + b_p |x|^p)

    With p = 2 noise and ψ are those of Boltzmann–Gumbel exploration with Catoni's estimator, location 0. A reward is
    cut down by the n at which it came, μ̂ = Σ_n c n^{1/p} ψ_p(X_n / (c n^{1/p})) / N; the printed estimator does so
    with N for all anew, which costs O(N). Lee, Yang, Lim, Oh: Optimal Algorithms for Stochastic Multi-Armed Bandits
    with Heavy Tailed Rewards, NeurIPS 2020.

    >>> import rightarm as ra
    >>> state = dict(round=5, pulls=[1, 16], means=[0.0, 0.0], memory={"total": [0.2, 8.0]})
    >>> ra.APE2(p=2.0, c=1.0).scores(**state, z=[1.0, 1.0])
    array([1.2 , 0.75])
    """
    return total / pulls + c / pulls ** (1 - 1 / p) * z
