"""Exponential weights on importance-weighted rewards, for rewards that an adversary may choose; kept as logarithms."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from rightarm.formula import Positive, Rule
from rightarm.noise import Gumbel
from rightarm.scores.policy import policy

Share = Annotated[float, Rule("above 0 and at most 1", lambda x: 0 < x <= 1)]


def estimated_gain(gain, reward, probability):
    """Add the reward over the probability of its decision: right on average, however rarely the arm is pulled."""
    return gain + reward / probability


def estimated_loss(loss, reward, probability):
    """Add the loss 1 − reward over the probability of its decision."""
    return loss + (1 - reward) / probability


@policy(noise=Gumbel(), explore=lambda arms, *, gamma: gamma / arms, learn={"gain": estimated_gain}, rewards=(0, 1))
def EXP3(arms, gain, z, *, gamma: Share):
    """Choose by exponential weights on estimated gains, mixed with a uniform choice.

    P[I = i] = (1 − γ) e^(γ Ĝ_i / K) / Σ_j e^(γ Ĝ_j / K) + γ / K,  Ĝ_i = Σ_s X_s 1{I_s = i} / P[I_s = i]

    For rewards in [0, 1]. With the horizon T known, γ = min{1, √(K log K / ((e − 1) T))}. Auer, Cesa-Bianchi, Freund,
    Schapire: The Nonstochastic Multiarmed Bandit Problem, SIAM Journal on Computing 32, 2002.

    >>> import rightarm as ra
    >>> ra.EXP3(gamma=0.2).scores(round=9, pulls=[4, 4], means=[0.0, 0.0], memory={"gain": [10.0, 5.0]})
    array([1. , 0.5])
    """
    return gamma / arms * gain + z


def softmix_share(t, arms, d):
    """γ_t = min{1, 5 K log(t − 1) / (d² (t − 1))}, and 1 in the first rounds."""
    past = np.maximum(t - 1, np.e)
    return np.minimum(1.0, 5 * arms * np.log(past) / (d**2 * past))


@policy(
    noise=Gumbel(),
    explore=lambda t, arms, *, d: softmix_share(t, arms, d) / arms,
    learn={"gain": estimated_gain},
    rewards=(0, 1),
)
def SoftMix(t, arms, gain, z, *, d: Share):
    """Exponential weights on estimated gains, with exploration and learning rate made for stochastic rewards.

    P[I = i] = (1 − γ_t) e^(η_t Ĝ_i) / Σ_j e^(η_t Ĝ_j) + γ_t / K,  γ_t = min{1, 5 K log(t−1) / (d² (t−1))},
    η_t = log(1 + d (1 + K/γ_t) / (2 K/γ_t − d²)) / (1 + K/γ_t)

    For rewards in [0, 1] and 0 < d < least gap. Cesa-Bianchi and Fischer: Finite-time Regret Bounds for the Multiarmed
    Bandit Problem, ICML 1998.

    >>> import rightarm as ra
    >>> ra.SoftMix(d=0.5).floors(1_000, pulls=[400, 599], means=[0.5, 0.5], memory={"gain": [9.0, 9.0]}).round(4)
    array([0.1383, 0.1383])
    """
    spread = arms / softmix_share(t, arms, d)
    eta = np.log(1 + d * (1 + spread) / (2 * spread - d**2)) / (1 + spread)
    return eta * gain + z


def exp3pp_rate(t, arms):
    """β_t = ½ √(log K / (t K))."""
    return 0.5 * np.sqrt(np.log(arms) / (t * arms))


def exp3pp_floor(t, arms, loss, worst_loss, *, c):
    """ε_i = min{1/(2K), β_t, ξ_i} with ξ_i = c log(t)² / (t Δ̂_i²) and Δ̂_i = min{1, (L̂_i − min_j L̂_j) / (t−1)}."""
    gap = np.minimum(1.0, (loss - worst_loss) / np.maximum(t - 1, 1.0))
    # with a gap of zero ξ is huge, and the other two limits decide
    xi = c * np.log(t) ** 2 / np.maximum(t * gap**2, 1e-300)
    return np.minimum(np.minimum(1 / (2 * arms), exp3pp_rate(t, arms)), xi)


@policy(noise=Gumbel(), explore=exp3pp_floor, learn={"loss": estimated_loss}, rewards=(0, 1))
def EXP3PlusPlus(t, arms, loss, z, *, c: Positive = 18.0):
    """Exponential weights on estimated losses, whose exploration of an arm shrinks with its estimated gap.

    P[I = i] = (1 − Σ_j ε_j) e^(−β_t L̂_i) / Σ_j e^(−β_t L̂_j) + ε_i,  β_t = ½ √(log K / (t K)),
    ε_i = min{1/(2K), β_t, c log(t)² / (t Δ̂_i²)},  Δ̂_i = min{1, (L̂_i − min_j L̂_j) / (t−1)}

    For rewards in [0, 1]; good against an adversary and with stochastic rewards, without knowing which. Seldin and
    Slivkins: One Practical Algorithm for Both Stochastic and Adversarial Bandits, ICML 2014.

    >>> import rightarm as ra
    >>> state = dict(round=100, pulls=[40, 59], means=[0.5, 0.5], memory={"loss": [30.0, 40.0]})
    >>> ra.EXP3PlusPlus().scores(**state).round(4)
    array([-0.8831, -1.1774])
    """
    return -exp3pp_rate(t, arms) * loss + z
