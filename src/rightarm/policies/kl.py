"""Policies that measure how far apart two means are by the Kullback–Leibler divergence, not by their difference."""

from __future__ import annotations

import numpy as np

from rightarm.formula import NonNegative, Positive
from rightarm.noise import Gumbel
from rightarm.scores.policy import policy

TINY = 1e-300  # keeps a logarithm or a quotient finite where it is multiplied by zero


LOG_OF_NOTHING = -690.0  # above log TINY, and below the logarithm of every mean that rewards can have


def plogp(p):
    """p log p, and 0 at p = 0."""
    return p * np.log(np.maximum(p, TINY))


def bernoulli_upper(p, entropy, level):
    """The largest q with kl(p, q) = p log(p/q) + (1−p) log((1−p)/(1−q)) ≤ level, given p log p + (1−p) log(1−p).

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
    """One step of Halley's method towards kl(p, 1 − e⁻ˣ) = level."""
    below = np.exp(-x)
    q = np.maximum(1 - below, TINY)
    gap = np.maximum(q - p, TINY)
    step = (entropy - p * np.log(q) + rest * x - level) * q / gap
    return x - step / np.maximum(1 - 0.5 * step * p * below / (q * gap), 0.5)


def negative_entropy(mean):
    """μ̂ log μ̂ + (1−μ̂) log(1−μ̂)."""
    p = np.clip(mean, 0.0, 1.0)
    return plogp(p) + plogp(1 - p)


@policy(keep={"entropy": negative_entropy}, rising=True, rewards=(0, 1))
def KLUCB(t, pulls, mean, entropy, *, c: NonNegative = 0.0):
    """The largest mean that an arm may have by its rewards, measured by the divergence of Bernoulli laws.

    I = arg max_i max{ q : N_i kl(μ̂_i, q) ≤ log t + c log log t }

    For rewards in [0, 1]; c = 3 in the theorem, 0 in practice. Cappé, Garivier, Maillard, Munos, Stoltz:
    Kullback–Leibler Upper Confidence Bounds for Optimal Sequential Allocation, Annals of Statistics 41, 2013.

    >>> import rightarm as ra
    >>> ra.KLUCB().scores(round=9, pulls=[4, 4], means=[0.25, 0.5]).round(3)
    array([0.75 , 0.908])
    """
    log_t = np.log(t)
    level = (log_t + c * np.log(np.maximum(log_t, 1.0))) / pulls
    return bernoulli_upper(np.clip(mean, 0.0, 1.0), entropy, level)


@policy
def GaussianKLUCB(t, pulls, mean, *, sigma: Positive = 0.5, c: NonNegative = 0.0):
    """The largest mean that an arm may have by its rewards, measured by the divergence of Gaussian laws.

    I = arg max_i { μ̂_i + √(2σ² (log t + c log log t) / N_i) }

    The divergence is (q − μ̂)² / (2σ²). Reference as for `KLUCB`; σ = 1/2 for rewards in [0, 1].

    >>> import rightarm as ra
    >>> ra.GaussianKLUCB().scores(round=9, pulls=[4, 4], means=[0.25, 0.5]).round(3)
    array([0.774, 1.024])
    """
    log_t = np.log(t)
    return mean + sigma * np.sqrt(2 * (log_t + c * np.log(np.maximum(log_t, 1.0))) / pulls)


def log_mean(mean):
    """log μ̂, finite also at μ̂ = 0, where it is multiplied by zero."""
    return np.log(np.clip(mean, TINY, 1.0))


def log_rest(mean):
    """log(1 − μ̂), finite also at μ̂ = 1, where it is multiplied by zero."""
    return np.log(np.clip(1 - mean, TINY, 1.0))


@policy(noise=Gumbel(), keep={"log_mean": log_mean, "log_rest": log_rest}, rewards=(0, 1))
def KLMS(pulls, mean, log_mean, log_rest, best_log_mean, worst_log_rest, z):
    """Maillard sampling for rewards in [0, 1], measured by the divergence of Bernoulli laws.

    P[I = i] ∝ exp(−N_i kl(μ̂_i, max_j μ̂_j)), drawn by the Gumbel–softmax trick.

    Qin, Jun, Zhang: Kullback–Leibler Maillard Sampling for Multi-armed Bandits with Bounded Rewards, NeurIPS 2023
    (arXiv 2304.14989).

    >>> import rightarm as ra
    >>> ra.KLMS().scores(round=9, pulls=[4, 4], means=[0.25, 0.75]).round(4)
    array([-2.1972,  0.    ])
    """
    # The best mean has the largest log μ̂ and the smallest log(1 − μ̂) of all arms.
    p = np.clip(mean, 0.0, 1.0)
    divergence = p * (log_mean - best_log_mean) + (1 - p) * (log_rest - worst_log_rest)
    failed = (p < 1) & (worst_log_rest < LOG_OF_NOTHING)  # the best mean is 1, and this arm has paid less than 1 once
    return -pulls * np.where(failed, np.inf, np.maximum(divergence, 0.0)) + z
