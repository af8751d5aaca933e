"""Boltzmann exploration, which everybody uses and which fails, and Boltzmann–Gumbel exploration, which repairs it."""

from __future__ import annotations

import numpy as np

from rightarm.formula import Positive
from rightarm.noise import Gumbel, Law
from rightarm.policies.family import Schedule
from rightarm.policies.policy import policy


@policy(noise=Gumbel())
def Boltzmann(mean, z, *, temperature: Schedule):
    """Choose an arm with a probability proportional to the exponential of its mean over the temperature.

    P[I = i] ∝ e^(μ̂_i / β_t), drawn as arg max_i { μ̂_i + β_t Z_i } with Z_i Gumbel (the Gumbel–softmax trick).

    Equation (1) of the paper. The temperature is the same for all arms, however often each was pulled, and that is why
    it fails (Theorem 2). It is a schedule, a number or a function of t.

    >>> import rightarm as ra
    >>> policy = ra.Boltzmann(ra.schedules.inverse_log(0.25))
    >>> policy.scores(round=10, pulls=[5, 5], means=[0.2, 0.5], z=[1.0, 0.0]).round(3)
    array([0.309, 0.5  ])
    """
    return mean + temperature * z


@policy(noise=Gumbel())
def BoltzmannGumbel(pulls, mean, z, *, C: Positive, location: float = np.euler_gamma):
    """Perturb each arm's mean by Gumbel noise whose scale shrinks with the arm's own pulls.

    I = arg max_i { μ̂_i + β_i Z_i },  β_i = √(C² / N_i),  Z_i Gumbel with the given location.

    The paper's "standard" Gumbel law has the CDF exp(−e^(−x+γ)), that is location +γ, and its theorems are stated for
    that; it is the default. The location does not cancel: it is a bonus of location·C/√N. Location 0 is the usual
    standard Gumbel law, −γ has mean zero. Theorem 4 is for C = σ with σ²-subgaussian rewards, 1/2 for rewards in
    [0, 1]. In simulations a third of the deviation that rewards really have is near the best on average, but not safe
    everywhere: a coin of 0.95 beside a sure 0.9 is given up in 3 to 4% of the runs (docs/which-policy.md).

    For heavy tails, ``estimator="catoni"`` takes for μ̂_i Catoni's estimate β_i Σ_s ψ(X_s / (β_i N_i)) with the same C,
    the root of a bound on the second moment (section 4 and Theorem 6): the same as ``estimator=Catoni(C)``.

    Cesa-Bianchi, Gentile, Lugosi, Neu: Boltzmann Exploration Done Right, NeurIPS 2017, equation (6) and Theorem 4.

    >>> import rightarm as ra
    >>> ra.BoltzmannGumbel(C=0.5).scores(round=5, pulls=[1, 4], means=[0.2, 0.5], z=[1.0, 1.0]).round(3)
    array([0.989, 0.894])
    """
    beta = C / np.sqrt(pulls)
    return mean + beta * (location + z)


def spread(pulls, variance):
    """Return Σ (x − μ̂)² / (N + 2), the variance of an arm, drawn to 0 while it has few rewards."""
    return variance * pulls / (pulls + 2)


@policy(noise=Gumbel(), keep={"spread": spread})
def ScaledGumbel(pulls, mean, best, best_spread, arms, z):
    """Explore without a parameter: Boltzmann–Gumbel noise whose scale is read off the rewards.

    I = arg max_i { μ̂_i + σ̂_i / (2 K^(1/6) √N_i) · Z_i },  Z_i Gumbel with location 0,
    σ̂_i² = V + a g_i⁴ / (g_i² + a V),  a = 6,  g_i = max_j μ̂_j − μ̂_i,
    V = max_j S_j / (N_j + 2),  S_j = Σ (x − μ̂_j)² over the rewards of arm j

    In place of C in the paper's equation (6) stands about a third of σ̂_i, which has two parts. V is the largest
    variance that any arm has shown; an arm's own would starve arms whose first rewards happen to be equal. The rest
    matters where an arm is further behind than V explains: perhaps it is noisy and had bad luck, which quiet arms
    beside it cannot show. Then σ̂_i is at least 1.35 g_i, so that every arm is tried again and again, whatever it paid.

    It needs neither the range of rewards nor the horizon, and chooses the same if all rewards are multiplied or
    shifted. Rewards so rare that none was seen are beyond any such rule: there, give C or a floor. What was measured,
    where it fails and what is proved: docs/which-policy.md.

    >>> import rightarm as ra
    >>> state = dict(round=10, pulls=[4, 5], means=[0.25, 0.5], variances=[0.1875, 0.25])
    >>> ra.ScaledGumbel().scores(**state, z=[1.0, 0.0]).round(4)
    array([0.3494, 0.5   ])
    """
    gap = (best - mean) ** 2
    doubt = 6 * gap * (gap / np.maximum(gap + 6 * best_spread, 5e-324))  # 0 where all rewards were equal, not 0/0
    return mean + np.sqrt((best_spread + doubt) / pulls) / (2 * arms ** (1 / 6)) * z


@policy(noise=Gumbel(), keep={"spread": spread})
def ResidualGumbel(pulls, mean, best_spread, arms, z):
    """Explore by contexts without a parameter: noise in the scale of what predictions have left unexplained.

    I = arg max_i { μ̂_i + √(V / N_i) / (2 K^(1/6)) · Z_i },  Z_i Gumbel with location 0,
    V = max_j S_j / (N_j + 2),  S_j = Σ (x − μ̂)² over the rewards of arm j

    This is the paper's equation (6) with C read off the residuals, or `ScaledGumbel` without its doubt about arms that
    are far behind. By contexts arms are far behind for a good reason, and to doubt each of them in every direction of
    a context costs most of the reward where columns are many (docs/contexts.md). Without contexts take `ScaledGumbel`:
    this one may stay with a quiet arm beside a noisy one that is better. A floor mends that here.

    >>> import rightarm as ra
    >>> state = dict(round=10, pulls=[4, 5], means=[0.25, 0.5], variances=[0.1875, 0.25])
    >>> ra.ResidualGumbel().scores(**state, z=[1.0, 0.0]).round(4)
    array([0.3441, 0.5   ])
    """
    return mean + np.sqrt(best_spread / pulls) / (2 * arms ** (1 / 6)) * z


@policy
def PerturbedMean(pulls, mean, z, *, noise: Law, scale: Positive = 1.0):
    """Perturb each arm's mean by noise of any law, whose scale shrinks with the arm's own pulls.

    I = arg max_i { μ̂_i + scale/√N_i · Z_i },  Z_i of the given law.

    Boltzmann–Gumbel exploration with location 0 is ``noise=Gumbel()``. Kim and Tewari: On the Optimality of
    Perturbations in Stochastic and Adversarial Multi-armed Bandit Problems, NeurIPS 2019 (arXiv 1902.00610).

    >>> import rightarm as ra
    >>> policy = ra.PerturbedMean(ra.noise.Exponential(), scale=0.5)
    >>> policy.scores(round=5, pulls=[1, 4], means=[0.2, 0.5], z=[1.0, 1.0])
    array([0.7 , 0.75])
    """
    return mean + scale / np.sqrt(pulls) * z
