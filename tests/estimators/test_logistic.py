"""Logistic regression, learned one by one, against Laplace's approximation as it is written, by a general minimiser."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special, stats

import rightarm as ra
from naive import F64
from rightarm.estimators.linear import chance, most_likely
from rightarm.estimators.ridge_regression import predicted
from rightarm.formula import from_specification


class Laplace:
    """θ ~ N(centre, A⁻¹); after a reward, the mode of the posterior law and the curvature of its logarithm there."""

    def __init__(self, ridges: list[float]) -> None:
        self.A, self.centre = np.diag(ridges), np.zeros(len(ridges))

    def learn(self, row: F64, reward: float) -> None:
        def loss(theta: F64) -> float:
            s, away = row @ theta, theta - self.centre
            return float(0.5 * away @ self.A @ away + np.logaddexp(0, s) - reward * s)

        def slope(theta: F64) -> F64:
            found: F64 = self.A @ (theta - self.centre) + (special.expit(row @ theta) - reward) * row
            return found

        found = optimize.minimize(loss, self.centre, jac=slope, method="BFGS", options={"gtol": 1e-10})
        self.centre = found.x
        p = special.expit(row @ self.centre)
        self.A = self.A + p * (1 - p) * np.outer(row, row)


@pytest.mark.parametrize("shared", [False, True])
def test_against_the_definition(shared: bool) -> None:
    """Two arms, whose probabilities are exact: what is believed of both, after 80 rewards, some of them parts."""
    random = np.random.default_rng(1)
    linear: Any = {"arm_features": 2, "interactions": False} if shared else {}
    policy = ra.LinTS(sigma=0.8, estimator=ra.estimators.Logistic(2, standardise=False, ridge=0.5, **linear))
    bandit = ra.Bandit(["a", "b"], policy, seed=2)
    dense = Laplace([0.5] * (5 if shared else 6))
    for n in range(100):
        x, features = random.standard_normal(2), random.standard_normal((2, 2))
        given = {"a": features[0].tolist(), "b": features[1].tolist()} if shared else None
        if shared:
            rows = np.array([[1.0, *x, *features[k]] for k in range(2)])
        else:
            rows = np.array([[1.0, *x, 0, 0, 0], [0, 0, 0, 1.0, *x]])
        if n >= 80:
            mean, covariance = rows @ dense.centre, rows @ np.linalg.solve(dense.A, rows.T)
            apart = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
            expected = stats.norm.cdf((mean[0] - mean[1]) / (0.8 * math.sqrt(apart)))
            found = bandit.probabilities(x.tolist(), arm_features=given)["a"]
            assert found == pytest.approx(expected, abs=1e-6)  # the minimiser's error
        decision = bandit.ask(context=x.tolist(), arm_features=given)
        assert decision.exact
        arm = ["a", "b"].index(decision.arm)
        reward = 0.25 if n % 7 == 0 else float(random.random() < special.expit(x[0] + arm))
        bandit.tell(decision, reward)
        dense.learn(rows[arm], reward)


@pytest.mark.parametrize("mean", [0.0, -3.0, 800.0, -800.0])
@pytest.mark.parametrize("variance", [1e-12, 0.5, 40.0, 1e6])
@pytest.mark.parametrize("reward", [0.0, 0.3, 1.0])
def test_most_likely(mean: float, variance: float, reward: float) -> None:
    """A root, by halving."""
    low, high = mean - variance, mean + variance
    for _ in range(200):
        middle = (low + high) / 2
        below = middle < mean + variance * (reward - special.expit(middle))
        low, high = (middle, high) if below else (low, middle)
    assert most_likely(mean, variance, reward) == pytest.approx(low, rel=1e-12, abs=1e-12)


def test_chances_do_not_overflow() -> None:
    for s in (-1e6, -700.0, -1.0, 0.0, 1.0, 700.0, 1e6):
        assert chance(s) == pytest.approx(float(special.expit(s)), rel=1e-14)


def test_many_rewards_that_are_all_alike_keep_it_sound() -> None:
    """Nothing tells how far the log-odds are from 0 then: Laplace's approximation stays wide, and right in its sign."""
    bandit = ra.Bandit(["a", "b"], ra.LinTS(sigma=1.0, estimator=ra.estimators.Logistic(1, standardise=False)), seed=1)
    for _ in range(3_000):
        bandit.tell(arm="a", reward=1, context=[1e3])
        bandit.tell(arm="b", reward=0, context=[1e3])
    assert 0.7 < bandit.probabilities([1e3])["a"] < 0.8
    assert bandit.probabilities([-1e3])["a"] == pytest.approx(1 - bandit.probabilities([1e3])["a"], abs=0.01)


def test_it_learns_the_true_coefficients() -> None:
    """With 4,000 rewards of one arm: each coefficient within 4.5 posterior deviations, most within two."""
    random, truth = np.random.default_rng(5), np.array([-0.5, 1.0, -2.0])
    bandit = ra.Bandit(["a", "b"], ra.LinTS(sigma=1.0, estimator=ra.estimators.Logistic(2, standardise=False)), seed=1)
    for _ in range(4_000):
        x = random.standard_normal(2)
        bandit.tell(arm="a", reward=random.random() < special.expit(truth @ [1.0, *x]), context=x.tolist())
    known: Any = bandit._state.arms
    for row in np.eye(3):
        mean, variance = predicted(row, 0, 3, known.factor, known.common)
        assert abs(mean - truth @ row) < 4.5 * math.sqrt(variance)
        assert variance < 0.01


def test_what_it_refuses() -> None:
    with pytest.raises(ValueError, match=r"ridge must be positive for a logistic model, got 0\.0"):
        ra.estimators.Logistic(2, ridge=0.0)
    with pytest.raises(TypeError, match=r"KLUCB is for means from 0 to 1, which those of Logistic\(2\) are not"):
        ra.KLUCB(estimator=ra.estimators.Logistic(2))
    bandit = ra.Bandit(["a", "b"], ra.LinTS(sigma=1.0, estimator=ra.estimators.Logistic(2)), seed=1)
    decision = bandit.ask(context=[0.0, 1.0])
    with pytest.raises(ValueError, match=r"reward must be .*0.* 1.*, got 2\.0"):
        bandit.tell(decision, 2.0)


def test_rewards_of_another_range_are_scaled() -> None:
    one = ra.Bandit(["a", "b"], ra.LinTS(sigma=1.0, estimator=ra.estimators.Logistic(1)), seed=1)
    other = ra.Bandit(
        ["a", "b"], ra.LinTS(sigma=1.0, estimator=ra.estimators.Logistic(1)), seed=1, reward_range=(-5, 5)
    )
    for x, reward in ((0.5, 1.0), (-1.0, 0.0), (2.0, 0.5)):
        one.tell(arm="a", reward=reward, context=[x])
        other.tell(arm="a", reward=10 * reward - 5, context=[x])
    assert one.probabilities([1.0]) == other.probabilities([1.0])


def test_as_a_value() -> None:
    estimator = ra.estimators.Logistic(["hour"], ridge=2.0)
    assert repr(estimator) == "Logistic(['hour'], ridge=2.0)"
    assert estimator != ra.estimators.Linear(["hour"], ridge=2.0)
    assert from_specification(json.loads(json.dumps(estimator.specification()))) == estimator
    assert estimator.specification()["code"] != ra.estimators.Linear(["hour"], ridge=2.0).specification()["code"]
    bandit = ra.Bandit(["a", "b"], ra.LinTS(sigma=1.0, estimator=estimator), seed=1)
    bandit.tell(bandit.ask(context={"hour": 3}), 1)
    again = ra.Bandit.from_json(bandit.to_json())
    assert again.probabilities({"hour": 4}) == bandit.probabilities({"hour": 4})
