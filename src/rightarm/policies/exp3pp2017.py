"""EXP3++ with the parameters of 2017: gaps are those between confidence bounds on plain means."""

from __future__ import annotations

import numpy as np

from rightarm.formula import Positive
from rightarm.noise import Gumbel
from rightarm.policies.exponential import estimated_loss, exp3pp_rate
from rightarm.scores.policy import policy


def radius(t, pulls, arms, alpha):
    """√(α log(t K^{1/α}) / (2N)): the confidence radius of a mean loss."""
    return np.sqrt((alpha * np.log(t) + np.log(arms)) / (2 * pulls))


def upper_loss(t, pulls, mean, arms, upper, *, alpha):
    """The upper confidence bound on an arm's mean loss at its last pull."""
    return np.minimum(1.0, 1 - mean + radius(t, pulls, arms, alpha))


def floor(t, pulls, mean, arms, worst_upper, *, alpha, beta):
    """ε_i = min{1/(2K), ½√(log K/(tK)), β log(t) / (t Δ̂_i²)} with Δ̂_i = max{0, LCB_i − min_j UCB_j}."""
    lower = np.maximum(0.0, 1 - mean - radius(t, pulls, arms, alpha))
    gap = np.maximum(0.0, lower - worst_upper)
    # with a gap of zero ξ is huge, and the other two limits decide
    xi = beta * np.log(t) / np.maximum(t * gap**2, 1e-300)
    return np.minimum(np.minimum(1 / (2 * arms), exp3pp_rate(t, arms)), xi)


@policy(noise=Gumbel(), explore=floor, learn={"loss": estimated_loss, "upper": upper_loss}, rewards=(0, 1))
def EXP3PlusPlus2017(t, arms, loss, z, *, alpha: Positive = 3.0, beta: Positive = 256.0):
    """EXP3++ whose exploration follows gaps between confidence bounds on the arms' mean losses: regret of order log² T.

    P[I = i] = (1 − Σ_j ε_j) e^(−η_t L̃_i) / Σ_j e^(−η_t L̃_j) + ε_i,  η_t = ½ √(log K / (t K)),
    ε_i = min{1/(2K), η_t, β log(t) / (t Δ̂_i²)},  Δ̂_i = max{0, LCB_i − min_j UCB_j},
    LCB and UCB: the mean loss ∓ √(α log(t K^{1/α}) / (2N_i))

    For rewards in [0, 1]. Every arm is pulled once first. The UCB of an arm is that of its last pull, not computed anew
    in each round; for the best arm, which has the smallest, that is nearly the same. With β = 256 the term with the gap
    is the smallest of the three from about 3·10⁸ rounds on at the earliest, two arms and a gap of 1; before that, ε_i
    does not depend on the gaps. Seldin and Lugosi: An Improved Parametrization and Analysis of the EXP3++ Algorithm,
    COLT 2017.

    >>> import rightarm as ra
    >>> memory = {"loss": [900.0, 40_000.0], "upper": [0.15, 0.8]}
    >>> state = dict(round=10**6, pulls=[900_000, 100_000], means=[0.9, 0.25], memory=memory)
    >>> ra.EXP3PlusPlus2017(beta=0.5).floors(**state).round(7)
    array([2.944e-04, 2.020e-05])
    """
    return -exp3pp_rate(t, arms) * loss + z
