"""Catoni's estimates of many arms and lanes at once, against one estimator for each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rightarm.estimators.catoni import CatoniEstimator
from rightarm.estimators.simulated import catoni_lanes
from rightarm.estimators.sums import empty, tables

ARMS, LANES, ROUNDS = 3, 8, 600
LAWS: dict[str, Any] = {
    "bernoulli": lambda random, shape: 1.0 * (random.random(shape) < 0.3),
    "student": lambda random, shape: random.standard_t(2.1, shape),
    "everything": lambda random, shape: random.choice([-1.0, 1.0], shape) * 10.0 ** random.uniform(-30, 40, shape),
}


class Lanes:
    """The arrays of a simulation that the kernel works on."""

    def __init__(self, C: float) -> None:
        self.C = C
        self.sums = empty(ARMS, LANES)
        self.total, self.mean, self.new_mean = np.zeros((ARMS, LANES)), np.zeros((ARMS, LANES)), np.zeros(LANES)

    def take(self, arm: Any, reward: Any) -> None:
        outputs = (self.total, self.mean, self.new_mean)
        catoni_lanes(np.array(arm), np.array(reward), self.C, *self.sums, *tables(), *outputs)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_equals_one_estimator_for_each_arm_and_lane(law: Any) -> None:
    random = np.random.default_rng(7)
    arms, rewards = random.choice(ARMS, (ROUNDS, LANES), p=[0.8, 0.15, 0.05]), law(random, (ROUNDS, LANES))
    lanes, single = Lanes(0.5), [[CatoniEstimator(0.5) for _ in range(LANES)] for _ in range(ARMS)]
    total = np.zeros((ARMS, LANES))
    for arm, reward in zip(arms, rewards, strict=True):
        lanes.take(arm, reward)
        for lane in range(LANES):
            one = single[arm[lane]][lane]
            one.push(reward[lane])
            total[arm[lane], lane] += reward[lane]
            assert lanes.mean[arm[lane], lane] == lanes.new_mean[lane] == one.value
    assert (lanes.total == total).all()
    assert (lanes.mean == [[one.value for one in row] for row in single]).all()


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, 1e308])
def test_what_is_no_finite_multiple_of_the_scale_leaves_no_number(wrong: float) -> None:
    lanes = Lanes(0.01)
    for reward in (1.0, wrong, 1.0, 2.0):
        lanes.take([0, 1] * (LANES // 2), [1.0, reward] * (LANES // 2))
    assert np.isfinite(lanes.mean[0, ::2]).all()
    assert np.isnan(lanes.mean[1, 1::2]).all()
