"""Maillard sampling: softmax done right in another way, with a closed form of its probabilities."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from rightarm.formula import Positive, Rule
from rightarm.noise import Gumbel
from rightarm.scores.policy import policy

Part = Annotated[float, Rule("at least 0 and below 1", lambda x: 0 <= x < 1)]
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
def LinMED(mean, best, gap_variance, arms, z, *, sigma: Positive = 0.5, alpha: Part = 0.5):
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
    >>> policy = ra.LinMED(sigma=0.1, estimator=ra.Linear(2))
    >>> bandit = ra.Bandit(["a", "b"], policy, seed=1)
    >>> bandit.ask(context=[0.5, 1.0]).propensity
    0.5
    """
    weight = (1 - alpha) / arms + np.where(mean == best, alpha, 0.0)
    return np.log(weight) - (best - mean) ** 2 / (2 * sigma**2 * np.maximum(gap_variance, LEAST)) + z
