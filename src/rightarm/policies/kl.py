"""Policies that follow the Kullback-Leibler divergence: KL-UCB and Maillard sampling."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from rightarm.formula import NonNegative, Positive, Rule
from rightarm.noise import Gumbel
from rightarm.policies.policy import policy

TINY = 1e-300  # keeps a logarithm or a quotient finite where it is multiplied by zero
ENOUGH = 1e6  # level from which on the largest q is 1 to the last digit, whatever the mean is
NEAR = 0.04  # |s| up to which `series` is right to the last digit


def plogp(p):
    """Return p log p, and 0 at p = 0."""
    return p * np.log(np.maximum(p, TINY))


def bernoulli_upper(p, entropy, level):
    """Return the largest q with kl(p, q) = p log(p/q) + (1−p) log((1−p)/(1−q)) ≤ level, given p log p + (1−p) log(1−p).

    Halley's method for x = −log(1 − q), in which kl is convex, from the least of four bounds that lie above: Pinsker's
    kl ≥ 2(q−p)², kl ≥ (q−p)²/(2(1−p)), kl ≥ (q−p)²/(2q), and kl ≥ p log p + (1−p) log((1−p)/(1−q)).
    """
    rest = np.maximum(1 - p, TINY)
    q = p + np.minimum(np.sqrt(np.minimum(0.5, 2 * rest) * level), level + np.sqrt(level * (level + 2 * p)))
    x = np.minimum(-np.log(np.maximum(1 - q, TINY)), (level - entropy) / rest)
    # Three steps are right to 1e-11 at all means and levels; written out, because a loop would not be vectorised.
    x = closer(closer(closer(x, p, rest, entropy, level), p, rest, entropy, level), p, rest, entropy, level)
    return np.maximum(1 - np.exp(-x), p)


def closer(x, p, rest, entropy, level):
    """Take one step of Halley's method towards kl(p, 1 − e⁻ˣ) = level."""
    below = np.exp(-x)
    q = np.maximum(1 - below, TINY)
    gap = np.maximum(q - p, TINY)
    step = (entropy - p * np.log(q) + rest * x - level) * q / gap
    return x - step / np.maximum(1 - 0.5 * step * p * below / np.maximum(q * gap, TINY), 0.5)


def negative_entropy(mean):
    """Return μ̂ log μ̂ + (1−μ̂) log(1−μ̂)."""
    p = np.clip(mean, 0.0, 1.0)
    return plogp(p) + plogp(1 - p)


@policy(keep={"entropy": negative_entropy}, rising=True, reward_range=(0, 1))
def KLUCB(t, pulls, mean, entropy, *, c: NonNegative = 0.0):
    """Score an arm by the largest mean that it may have, by its rewards and the divergence of Bernoulli laws.

    I = arg max_i max{ q : N_i kl(μ̂_i, q) ≤ log t + c log log t }

    For rewards in [0, 1]; c = 3 in the theorem, 0 in practice. Cappé, Garivier, Maillard, Munos, Stoltz:
    Kullback–Leibler Upper Confidence Bounds for Optimal Sequential Allocation, Annals of Statistics 41, 2013.

    >>> import rightarm as ra
    >>> ra.KLUCB().scores(round=9, pulls=[4, 4], means=[0.25, 0.5]).round(3)
    array([0.75 , 0.908])
    """
    log_t = np.log(t)
    level = np.minimum((log_t + c * np.log(np.maximum(log_t, 1.0))) / pulls, ENOUGH)
    return bernoulli_upper(np.clip(mean, 0.0, 1.0), entropy, level)


@policy
def GaussianKLUCB(t, pulls, mean, *, sigma: Positive = 0.5, c: NonNegative = 0.0):
    """Score an arm by the largest mean that it may have, by its rewards and the divergence of Gaussian laws.

    I = arg max_i { μ̂_i + √(2σ² (log t + c log log t) / N_i) }

    The divergence is (q − μ̂)² / (2σ²). Reference as for `KLUCB`; σ = 1/2 for rewards in [0, 1].

    >>> import rightarm as ra
    >>> ra.GaussianKLUCB().scores(round=9, pulls=[4, 4], means=[0.25, 0.5]).round(3)
    array([0.774, 1.024])
    """
    log_t = np.log(t)
    return mean + sigma * np.sqrt(2 * (log_t + c * np.log(np.maximum(log_t, 1.0))) / pulls)


def log_mean(mean):
    """Return log μ̂, finite also at μ̂ = 0, where it is multiplied by zero."""
    return np.log(np.clip(mean, TINY, 1.0))


def log_rest(mean):
    """Return log(1 − μ̂), with what 1 − μ̂ is rounded by; finite also at μ̂ = 1, where it is multiplied by zero."""
    p = np.clip(mean, 0.0, 1.0)
    rest = 1 - p
    return np.log(np.maximum(rest, TINY)) + ((1 - rest) - p) / np.maximum(rest, TINY)


def series(w):
    """Return (log(1 + x) − 2s) / 2s³ with s = x/(2 + x) and w = s²: 1/3 + w/5 + w²/7 + ..., for |s| ≤ NEAR."""
    return 1 / 3 + w * (1 / 5 + w * (1 / 7 + w * (1 / 9 + w * (1 / 11))))


def near_divergence(p, q, up, down):
    """Return kl(p, q) of means that are near each other, up = (q−p)/(p+q) and down = (q−p)/(2−p−q) being small.

    kl = p (x − log(1+x)) + (1−p) (y − log(1+y)) with x = (q−p)/p and y = (p−q)/(1−p): no large numbers cancel.
    """
    third = (1 - up) * (up * up) * series(up * up) - (1 + down) * (down * down) * series(down * down)
    return (q - p) * (up + down - third)


@policy(noise=Gumbel(), keep={"log_mean": log_mean, "log_rest": log_rest}, reward_range=(0, 1))
def KLMS(pulls, mean, best, log_mean, log_rest, best_log_mean, worst_log_rest, z):
    """Maillard sampling for rewards in [0, 1], measured by the divergence of Bernoulli laws.

    P[I = i] ∝ exp(−N_i kl(μ̂_i, max_j μ̂_j)), drawn by the Gumbel–softmax trick.

    Qin, Jun, Zhang: Kullback–Leibler Maillard Sampling for Multi-armed Bandits with Bounded Rewards, NeurIPS 2023
    (arXiv 2304.14989).

    >>> import rightarm as ra
    >>> ra.KLMS().scores(round=9, pulls=[4, 4], means=[0.25, 0.75]).round(4)
    array([-2.1972,  0.    ])
    """
    p = np.clip(mean, 0.0, 1.0)
    q = np.clip(best, 0.0, 1.0)
    both = p + q
    rest = (1 - p) + (1 - q)
    share = (q - p) / np.maximum(both * rest, TINY)
    up = share * rest
    down = share * both
    # The best mean has the largest log μ̂ and the smallest log(1 − μ̂) of all arms.
    far = p * (log_mean - best_log_mean) + (1 - p) * (log_rest - worst_log_rest)
    divergence = np.where(np.maximum(up, down) < NEAR, near_divergence(p, q, up, down), far)
    failed = (p < 1) & (q >= 1)  # the best mean is 1, and this arm has paid less than 1 once
    return -pulls * np.where(failed, np.inf, np.maximum(divergence, 0.0)) + z


BelowOne = Annotated[float, Rule("at least 0 and below 1", lambda x: 0 <= x < 1)]
LEAST = 1e-300  # in place of an uncertainty of zero: that of the best arm's gap, which is zero


@policy(noise=Gumbel())
def Maillard(pulls, mean, best, z, *, sigma: Positive = 0.5):
    """Choose an arm with a probability that falls with its gap to the best mean and with how well the gap is known.

    P[I = i] ∝ exp(−N_i (max_j μ̂_j − μ̂_i)² / (2σ²)), drawn by the Gumbel–softmax trick.

    For σ²-subgaussian rewards: 1/2 for rewards in [0, 1]. Maillard 2013; Bian and Jun: Maillard Sampling: Boltzmann
    Exploration Done Optimally, AISTATS 2022 (arXiv 2111.03290).

    >>> import rightarm as ra
    >>> ra.Maillard().scores(round=9, pulls=[4, 4], means=[0.25, 0.75], z=[0.5, 0.0])
    array([-1.5,  0. ])
    """
    return -pulls * (best - mean) ** 2 / (2 * sigma**2) + z


@policy(noise=Gumbel())
def LinMED(mean, best, gap_variance, arms, z, *, sigma: Positive = 0.5, alpha: BelowOne = 0.5):
    """Maillard sampling that measures a gap by how uncertain the gap itself is, for arms that have something in common.

    P[I = i] ∝ q_i exp(−(μ̂_best − μ̂_i)² / (2σ² V_i)),  V_i = |row_i − row_best|² in the norm of A⁻¹,
    q_best = α + (1 − α)/K, and (1 − α)/K for the others

    With `Linear` the means are predictions μ̂_i = row_i · θ̂, and V_i is the variance of the difference of two of them
    over that of one reward, which is small where the two arms share what is uncertain. Without contexts it is 1/N_i +
    1/N_best. The paper has for 2σ² a bound that grows like log t, and gives a small part of q to an optimal design, for
    arms that lie in few directions; its authors try α up to 0.99, which explores very little here. Balagopalan and Jun:
    Minimum Empirical Divergence for Sub-Gaussian Linear Bandits, AISTATS 2025 (arXiv 2411.00229).

    >>> import rightarm as ra
    >>> ra.LinMED().probabilities(round=9, pulls=[4, 4], means=[0.25, 0.75]).round(4)
    array([0.1092, 0.8908])
    >>> policy = ra.LinMED(sigma=0.1, estimator=ra.estimators.Linear(2))
    >>> bandit = ra.Bandit(["a", "b"], policy, seed=1)
    >>> bandit.ask(context=[0.5, 1.0]).propensity
    0.5
    """
    weight = (1 - alpha) / arms + np.where(mean == best, alpha, 0.0)
    return np.log(weight) - (best - mean) ** 2 / (2 * sigma**2 * np.maximum(gap_variance, LEAST)) + z
