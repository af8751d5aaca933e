"""Policies for heavy tails beside `RobustUCB`: UCB on robust estimates, and perturbation with a p-th moment only."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from rightarm.estimators import Catoni, MedianOfMeans
from rightarm.formula import Positive, Rule, check_count, check_number, rule_of
from rightarm.noise import Gumbel
from rightarm.policies.ucb import UCB
from rightarm.scores.policy import Policy, policy

Order = Annotated[float, Rule("above 1 and at most 2", lambda x: 1 < x <= 2)]


def catoni_ucb(u: float, horizon: int) -> Policy:
    """Robust UCB with Catoni's estimate, for rewards whose second moment is at most u, and a horizon T that is known.

    μ̂_i + √(2u log(t²)/N_i), Catoni's C = √(u / (4 log T)): by his proposition 2.1 the bonus is then the error of μ̂ that
    is exceeded with probability T⁻² (at t = T). Bubeck, Cesa-Bianchi, Lugosi: Bandits with Heavy Tail, 2013, have
    √(4v log(t²)/N) for the variance v, and an estimate that is centred.

    >>> catoni_ucb(u=1.0, horizon=1_000)
    UCB(C=2.0, estimator=Catoni(C=0.1902398665508126))
    """
    u = check_number("u", u, rule_of(Positive))
    made: Policy = UCB(C=2 * math.sqrt(u), estimator=Catoni(C=math.sqrt(u / (4 * _log(horizon)))))
    return made


def median_ucb(v: float, horizon: int, c: float = 384.0) -> Policy:
    """Robust UCB with the median of means, for rewards whose variance is at most v, and a horizon T that is known.

    μ̂_i + √(c v log(t²)/N_i) with ⌈8 log(e^{1/8} T²)⌉ groups, 256 at most; c = 384, the theorem's 32 · 12 from memory,
    which explores very much.  Bubeck, Cesa-Bianchi, Lugosi: Bandits with Heavy Tail, 2013.

    >>> median_ucb(v=1.0, horizon=1_000, c=2.0)
    UCB(C=2.0, estimator=MedianOfMeans(groups=112.0))
    """
    v, c = check_number("v", v, rule_of(Positive)), check_number("c", c, rule_of(Positive))
    groups = min(math.ceil(1 + 16 * _log(horizon)), MedianOfMeans.MOST)
    made: Policy = UCB(C=math.sqrt(2 * c * v), estimator=MedianOfMeans(groups=groups))
    return made


def _log(horizon: int) -> float:
    return math.log(check_count("horizon", horizon, least=2))


def tail_weight(p):
    """b_p = [2 q^{1−2/p} + q^{2−2/p}]^{−p/2}, q = (2−p)/(p−1): ½ at p = 2."""
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
