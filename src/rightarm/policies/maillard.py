"""Maillard sampling: softmax done right in another way, with a closed form of its probabilities."""

from __future__ import annotations

from rightarm.formula import Positive
from rightarm.noise import Gumbel
from rightarm.scores.policy import policy


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
