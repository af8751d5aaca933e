"""Thompson sampling: draw each arm's mean from what is believed of it, and pull the largest."""

from __future__ import annotations

import numpy as np

from rightarm.formula import Positive
from rightarm.noise import Gaussian
from rightarm.policies.policy import policy


@policy(noise=Gaussian())
def GaussianThompson(pulls, mean, z, *, sigma: Positive = 1.0):
    """Perturb each arm's mean by Gaussian noise whose variance shrinks with the arm's own pulls.

    I = arg max_i { μ̂_i + σ/√(N_i + 1) · Z_i },  Z_i standard Gaussian.

    Agrawal and Goyal: Further Optimal Regret Bounds for Thompson Sampling, AISTATS 2013, there with σ = 1 for rewards
    in [0, 1]; the paper's analysis of BGE builds on theirs.

    >>> import rightarm as ra
    >>> ra.GaussianThompson().scores(round=5, pulls=[3, 8], means=[0.2, 0.5], z=[1.0, -1.0]).round(3)
    array([0.7  , 0.167])
    """
    return mean + sigma / np.sqrt(pulls + 1) * z
