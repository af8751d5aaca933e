"""Compiled estimators of many arms and lanes at once, against one estimator for each and against naive sums."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import pytest

import rightarm as ra
from naive import F64
from rightarm.estimators.compiled_estimators import average, simulated_estimator
from rightarm.estimators.means import SIZE, estimate, push
from rightarm.estimators.reward_statistics import COUNT, OWN, SPREAD, SUM

ARMS, LANES, ROUNDS = 3, 8, 600
LAWS: dict[str, Any] = {
    "bernoulli": lambda random, shape: 1.0 * (random.random(shape) < 0.3),
    "student": lambda random, shape: random.standard_t(2.1, shape),
    "everything": lambda random, shape: random.choice([-1.0, 1.0], shape) * 10.0 ** random.uniform(-30, 40, shape),
}


@numba.njit
def _call(function: Any, arguments: Any) -> None:
    function(*arguments)


class Lanes:
    """The arrays of a simulation that the compiled functions work on."""

    def __init__(self, estimator: ra.estimators.Estimator, variance: bool = False) -> None:
        self.learn, self.numbers = simulated_estimator(estimator).learn, estimator.numbers
        self.discount = estimator.discount or 1.0
        self.kept = np.zeros((ARMS, LANES, OWN + estimator.size))
        self.pulls, self.mean = np.zeros((ARMS, LANES)), np.zeros((ARMS, LANES))
        self.variance = np.zeros((ARMS, LANES)) if variance else np.zeros((0, 0))
        self.new_pulls, self.new_mean = np.zeros(LANES), np.zeros(LANES)

    def take(self, arm: Any, reward: Any) -> None:
        outputs = (self.pulls, self.mean, self.variance, self.new_pulls, self.new_mean)
        _call(self.learn, (np.array(arm), np.array(reward), self.discount, self.numbers, self.kept, *outputs))


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_catoni_equals_one_estimator_for_each_arm_and_lane(law: Any) -> None:
    random = np.random.default_rng(7)
    arms, rewards = random.choice(ARMS, (ROUNDS, LANES), p=[0.8, 0.15, 0.05]), law(random, (ROUNDS, LANES))
    lanes = Lanes(ra.estimators.Catoni(0.5))
    single = np.zeros((ARMS, LANES, SIZE))
    pulls = np.zeros((ARMS, LANES))
    total = np.zeros((ARMS, LANES))
    for arm, reward in zip(arms, rewards, strict=True):
        lanes.take(arm, reward)
        for lane in range(LANES):
            one = single[arm[lane], lane]
            push(one, reward[lane], 0.5)
            pulls[arm[lane], lane] += 1
            total[arm[lane], lane] += reward[lane]
            assert lanes.mean[arm[lane], lane] == lanes.new_mean[lane] == estimate(0.5, one)
            assert lanes.pulls[arm[lane], lane] == lanes.new_pulls[lane] == pulls[arm[lane], lane]
    assert (lanes.kept[:, :, SUM] == total).all()
    assert (lanes.mean == [[estimate(0.5, one) for one in row] for row in single]).all()


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, 1e308])
def test_what_is_no_finite_multiple_of_the_scale_leaves_no_number(wrong: float) -> None:
    lanes = Lanes(ra.estimators.Catoni(0.01))
    for reward in (1.0, wrong, 1.0, 2.0):
        lanes.take([0, 1] * (LANES // 2), [1.0, reward] * (LANES // 2))
    assert np.isfinite(lanes.mean[0, ::2]).all()
    assert np.isnan(lanes.mean[1, 1::2]).all()


@pytest.mark.parametrize(
    "estimator", [ra.estimators.Mean(), ra.estimators.Mean(discount=0.9), ra.estimators.Catoni(C=1e9)], ids=str
)
def test_plain_statistics_against_sums(estimator: ra.estimators.Estimator) -> None:
    """Rewards of 10⁸ and a little: pulls, mean and variance are right to many digits of the little."""
    random, ages = np.random.default_rng(8), np.arange(ROUNDS)[::-1]
    arms, small = random.integers(0, ARMS, (ROUNDS, LANES)), random.normal(0.0, 1.0, (ROUNDS, LANES))
    rewards = 1e8 + small
    lanes = Lanes(estimator, variance=True)
    for arm, reward in zip(arms, rewards, strict=True):
        lanes.take(arm, reward)
    exact = rewards - 1e8
    for k in range(ARMS):
        for lane in range(LANES):
            weights = np.where(arms[:, lane] == k, (estimator.discount or 1.0) ** ages, 0.0)
            count = math.fsum(weights)
            mean = math.fsum(weights * exact[:, lane]) / count
            spread = math.fsum(weights * (exact[:, lane] - mean) ** 2)
            assert lanes.pulls[k, lane] == pytest.approx(count, rel=1e-12)
            assert lanes.kept[k, lane, COUNT] == pytest.approx(count, rel=1e-12)
            assert lanes.variance[k, lane] == pytest.approx(spread / count, rel=1e-6)
            assert lanes.kept[k, lane, SPREAD] == pytest.approx(spread, rel=1e-6)
            if isinstance(estimator, ra.estimators.Mean):
                assert lanes.mean[k, lane] - 1e8 == pytest.approx(mean, abs=1e-7)  # some neighbours of 10⁸


def test_the_plain_mean_of_the_loop_is_that_of_the_rows() -> None:
    """The loop over rounds has its own plain mean, a vector over lanes; both must be the same to the last bit."""
    random, lanes = np.random.default_rng(9), Lanes(ra.estimators.Mean())
    total, lost, mean, new_mean = (np.zeros((ARMS, LANES)) for _ in range(4))
    pulls: F64 = np.zeros((ARMS, LANES))
    for _ in range(ROUNDS):
        arm, reward = random.integers(0, ARMS, LANES), 10.0 ** random.uniform(-3, 12, LANES)
        lanes.take(arm, reward)
        pulls[arm, np.arange(LANES)] += 1
        average(arm, pulls[arm, np.arange(LANES)], reward, total, lost, mean, new_mean[0])
        np.testing.assert_array_equal(lanes.mean, mean)
        np.testing.assert_array_equal(lanes.pulls, pulls)


def test_a_simulated_window_is_right_as_soon_as_very_large_rewards_have_left_it() -> None:
    window = 12
    lanes, random = Lanes(ra.estimators.Mean(window=window), variance=True), np.random.default_rng(5)
    forget, recent = simulated_estimator(ra.estimators.Mean(window=window)).forget, np.zeros((window + 1, LANES, 2))
    rewards = random.normal(1.0, 0.5, 80)
    rewards[[1, 2, 40]] = [1e33, 1.7e33, -3e25]
    arms = random.integers(0, ARMS, 80)
    for t in range(1, 81):
        lanes.take([arms[t - 1]] * LANES, [rewards[t - 1]] * LANES)
        recent[t % (window + 1), :, 0], recent[t % (window + 1), :, 1] = arms[t - 1], rewards[t - 1]
        known = (lanes.kept, recent, np.zeros((0, ARMS, LANES)), lanes.pulls, lanes.mean, lanes.variance)
        _call(forget, (t, 0, lanes.numbers, *known))
        counting = slice(max(0, t - window), t)
        for k in range(ARMS):
            left = rewards[counting][arms[counting] == k]
            if left.size and np.abs(left).max() < 100:
                np.testing.assert_allclose(lanes.mean[k], left.mean(), rtol=1e-12)
                np.testing.assert_allclose(lanes.variance[k], left.var(), rtol=1e-9, atol=1e-12)
