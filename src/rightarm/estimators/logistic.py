"""Logistic regression on a context: for rewards that are chances, or come or not."""

from __future__ import annotations

import math

from rightarm.errors import WrongValue
from rightarm.estimators.arrowhead import learn as learn_linear
from rightarm.estimators.arrowhead import predicted
from rightarm.estimators.linear import Linear
from rightarm.estimators.statistics import count_reward
from rightarm.formula.compile import Kernel, jit
from rightarm.types import F64

LEAST = 1e-12  # weight of a reward that teaches next to nothing
MOST_STEPS = 100  # of Newton's method, halving where that would lead astray; five are the rule


@jit
def chance(s: float) -> float:
    """1 / (1 + e⁻ˢ)."""
    return 1.0 / (1.0 + math.exp(-s)) if s > 0.0 else math.exp(s) / (1.0 + math.exp(s))


@jit
def most_likely(mean: float, variance: float, reward: float) -> float:
    """The log-odds s that are most likely after a reward: s = mean + variance (reward − chance(s)).

    The left side less the right one grows with s, at least as fast as s does.
    """
    low, high, s = mean - variance * (1.0 - reward), mean + variance * reward, mean
    for _ in range(MOST_STEPS):
        p = chance(s)
        left = s - mean - variance * (reward - p)
        low, high = (low, s) if left > 0.0 else (s, high)
        step = left / (1.0 + variance * p * (1.0 - p))
        if abs(step) <= 1e-15 * max(abs(s), 1.0):
            break
        s = s - step if low < s - step < high else 0.5 * (low + high)
    return s


@jit
def learn(row: F64, reward: float, arm: int, private: int, factor: F64, common: F64, kept: F64) -> None:
    """Learn the reward of a row of an arm, and count it in the arm's plain statistics.

    A Gaussian belief times a logistic likelihood is taken for Gaussian again, about its most likely point (Laplace).
    The likelihood changes along the row only, so that this point is found in one dimension. What is learned then is a
    reward of linear regression, s + (reward − p) / weight, of the weight p (1 − p).
    """
    mean, variance = predicted(row, arm, private, factor, common)
    s = most_likely(mean, variance, reward)
    p = chance(s)
    weight = max(p * (1.0 - p), LEAST)
    root = math.sqrt(weight)
    learn_linear(root * row, root * s + (reward - p) / root, arm, private, factor, common)
    count_reward(kept, arm, 0, reward)


class Logistic(Linear):
    """Logistic regression of rewards between 0 and 1 on a context, learned one by one: `mean` and `pulls` of log-odds.

    P[reward = 1] = 1 / (1 + e⁻ˢ),  s = row · θ,  θ ~ N(θ̂, A⁻¹),  mean = row · θ̂,  pulls = 1 / (rowᵀ A⁻¹ row)

    After each reward θ̂ is the most likely θ, and A gains p (1 − p) row rowᵀ there: Laplace's approximation, with what
    was believed before as the prior, at first N(0, 1/ridge). What a formula adds to a mean is in log-odds. The
    parameters are those of `Linear`; ``ridge`` must be positive.

    Chapelle and Li: An Empirical Evaluation of Thompson Sampling, NeurIPS 2011, there with a diagonal A.

    >>> import rightarm as ra
    >>> bandit = ra.Bandit(["red", "blue"], ra.LinTS(sigma=1.0, estimator=ra.Logistic(["hour"])), seed=1)
    >>> decision = bandit.ask(context={"hour": 21})
    >>> bandit.tell(decision, 1)
    True
    """

    FORM = "logistic:1"
    rewards = (0.0, 1.0)
    sums = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not min(self.ridges) > 0:
            raise WrongValue(
                "ridge", f"must be positive for a logistic model, got {min(self.ridges)}", code="out_of_range"
            )

    @property
    def update(self) -> Kernel:
        return learn
