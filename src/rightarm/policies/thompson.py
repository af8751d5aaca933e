"""Thompson sampling: draw each arm's mean from what is believed of it, and pull the largest."""

from __future__ import annotations

from typing import Any

import numpy as np

from rightarm.estimators import Logistic
from rightarm.formula import Positive
from rightarm.formula.compile import bits_of_double, elementwise, jit
from rightarm.noise import Beta, Gaussian, Joint, Uniform
from rightarm.noise.gaussian import quantile as gaussian
from rightarm.noise.pieces import GOLDEN, scrambled
from rightarm.policies.policy import Policy, policy

u64 = np.uint64


@policy(noise=Gaussian())
def GaussianThompson(pulls, mean, z, *, sigma: Positive = 1.0):
    """Perturb each arm's mean by Gaussian noise whose variance shrinks with the arm's own pulls.

    I = arg max_i { μ̂_i + σ/√(N_i + 1) · Z_i },  Z_i standard Gaussian.

    Agrawal and Goyal: Further Optimal Regret Bounds for Thompson Sampling, AISTATS 2013, there with σ = 1 for rewards
    in [0, 1] and with the sum over N_i + 1 for the mean, which draws it to 0; the paper's analysis of BGE builds
    on theirs.

    >>> import rightarm as ra
    >>> ra.GaussianThompson().scores(round=5, pulls=[3, 8], means=[0.2, 0.5], z=[1.0, -1.0]).round(3)
    array([0.7  , 0.167])
    """
    return mean + sigma / np.sqrt(pulls + 1) * z


@policy(noise=Joint())
def LinTS(pulls, mean, z, *, sigma: Positive):
    """Draw all coefficients of a linear model from what is believed of them, and pull the arm that is then the best.

    I = arg max_i row_i · θ,  θ ~ N(θ̂, σ² A⁻¹),  that is arg max_i { μ̂_i + σ/√N_i · Z_i } with Z_i correlated

    With `Linear`, μ̂_i = row_i · θ̂ and 1/N_i = row_iᵀ A⁻¹ row_i, and two of the Z_i have the correlation of the two
    predictions; `GaussianThompson` draws each by itself. Of two arms, or if all coefficients are private to arms, the
    probabilities are exact. Otherwise they are estimated, the arm is drawn from the estimate, and the decision's
    ``error`` says how far that may be off. Without contexts arms are independent. Agrawal and Goyal: Thompson Sampling
    for Contextual Bandits with Linear Payoffs, ICML 2013.

    >>> import rightarm as ra
    >>> policy = ra.LinTS(sigma=0.1, estimator=ra.estimators.Linear(2, arm_features=["price"]))
    >>> bandit = ra.Bandit(["a", "b", "c"], policy, seed=1)
    >>> decision = bandit.ask(context=[0.5, 1.0], arm_features={"a": [1.0], "b": [2.0], "c": [4.0]})
    >>> decision.exact, round(decision.error, 4)
    (False, 0.0163)
    """
    return mean + sigma / np.sqrt(pulls) * z


def LogisticThompson(features: Any, arm_features: Any = None, *, sigma: float = 1.0, **model: Any) -> Policy:
    """Thompson sampling on a logistic model, for rewards that come or not: `LinTS` with the estimator `Logistic`.

    I = arg max_i row_i · θ,  θ ~ N(θ̂, σ² A⁻¹), Laplace's approximation of what is believed of θ. ``model`` is what else
    `Logistic` may be given. Chapelle and Li: An Empirical Evaluation of Thompson Sampling, NeurIPS 2011.

    >>> import rightarm as ra
    >>> ra.policies.LogisticThompson(["hour", "age"], ridge=2.0)
    LinTS(sigma=1.0, estimator=Logistic(['hour', 'age'], ridge=2.0))
    """
    made: Policy = LinTS(sigma=sigma, estimator=Logistic(features, arm_features, **model))
    return made


def posterior(pulls, mean):
    """Return the shapes of the beta law that an arm's mean is believed to have; 1 and 1 without rewards."""
    wins = np.clip(mean, 0.0, 1.0) * pulls
    return 1 + wins, 1 + pulls - wins


@policy(noise=Uniform(), score_law=(Beta(), posterior), reward_range=(0, 1))
def BetaThompson(t, pulls, mean, z):
    """Draw each arm's mean from its posterior law under a uniform prior, and pull the largest.

    I = arg max_i θ_i,  θ_i ~ Beta(1 + S_i, 1 + N_i − S_i),  S_i = N_i μ̂_i

    For rewards 0 and 1; those between count as parts of a success. Thompson 1933; Kaufmann, Korda, Munos: Thompson
    Sampling: An Asymptotically Optimal Finite-Time Analysis, ALT 2012.

    >>> import rightarm as ra
    >>> ra.BetaThompson().scores(round=2_001, pulls=[1_000, 1_000], means=[0.2, 0.5], z=[0.5, -0.5]).round(1)
    array([0.2, 0.5])
    """
    a, b = posterior(pulls, mean)
    return beta_draw(z, t, a, b)


@jit
def first_attempt(z: float, t: float, a: float, b: float) -> float:
    """Return what `beta_draw` gives if both gamma draws are accepted at once, by a bound without logarithms; else NaN.

    The bound of Marsaglia and Tsang for all shapes, u < 1 − 0.0331 x⁴, is one for the shape 1: 1 − 0.1985 c² x⁴ holds
    for every shape from 1 on, and refuses 7% of the draws over the shape.
    """
    seed = scrambled(bits_of_double(z) ^ scrambled(bits_of_double(t)))
    x, accepted = gamma_attempt(scrambled(u64(seed + GOLDEN)), a)
    y, too = gamma_attempt(scrambled(u64(seed + GOLDEN + GOLDEN)), b)
    return x / (x + y) if accepted & too else np.nan


@jit
def gamma_attempt(word: u64, shape: float) -> tuple[float, bool]:
    """Return the first draw of `gamma_draw`, and whether it is surely accepted."""
    d = shape - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    x = np.float64(gaussian(np.uint32(word)))
    v = 1.0 + c * x
    u = (np.float64(np.uint32(word >> u64(32))) + 0.5) * 2.0**-32
    return d * (v * v * v), (u < 1.0 - 0.1985 * (c * c) * (x * x) * (x * x)) & (v > 0.0)


@elementwise(first_attempt)
def beta_draw(z: float, t: float, a: float, b: float) -> float:
    """Draw from Beta(a, b), a and b at least 1: X/(X + Y) of two gamma draws, all made from z and t.

    An arm has one noise number in a round, but a rejection method needs several. They are hashed from that number and
    the round; without the round there would be only 2³² different draws.
    """
    seed = scrambled(bits_of_double(z) ^ scrambled(bits_of_double(t)))
    x, seed = gamma_draw(seed, a)
    y, _ = gamma_draw(seed, b)
    return x / (x + y)


@jit
def gamma_draw(seed: u64, shape: float) -> tuple[float, u64]:
    """Draw from the gamma law with a shape of at least 1; return the next seed too. Marsaglia, Tsang, TOMS 26, 2000."""
    if shape != shape:  # NaN, for which the loop would not end
        return shape, seed
    d = shape - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    while True:
        seed = u64(seed + GOLDEN)
        word = scrambled(seed)
        x = np.float64(gaussian(np.uint32(word)))
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            u = (np.float64(np.uint32(word >> u64(32))) + 0.5) * 2.0**-32
            if u < 1.0 - 0.0331 * (x * x) * (x * x) or np.log(u) < 0.5 * x * x + d * (1.0 - v + np.log(v)):
                return d * v, seed
