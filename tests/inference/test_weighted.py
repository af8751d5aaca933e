"""Two arms compared by weighted decisions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from few import few
from rightarm.inference import weighted_difference
from rightarm.inference.sequences import joint_lower_bound


def naive_robust(arms: list[int], chances: list[float], rewards: list[float]) -> list[float]:
    """The doubly robust differences, in a loop; q is the mean of an arm's rewards before and one of 1/2."""
    found, seen = [], {0: [0.5], 1: [0.5], 2: [0.5]}
    for arm, p, reward in zip(arms, chances, rewards, strict=True):
        q = {one: sum(values) / len(values) for one, values in seen.items()}
        value = q[0] - q[1]
        value += (reward - q[0]) / p if arm == 0 else -(reward - q[1]) / p if arm == 1 else 0.0
        found.append(value)
        seen[arm].append(reward)
    return found


def test_doubly_robust_with_a_floor() -> None:
    random, law = np.random.default_rng(1), np.array([0.2, 0.3, 0.5])
    arms = random.choice(3, 300, p=law)
    rewards = (random.random(300) < np.array([0.3, 0.1, 0.5])[arms]).astype(float)
    found = weighted_difference(arms, law[arms], 5 + 2 * rewards, (5, 7), floor=0.2)
    robust = np.array(naive_robust(arms.tolist(), law[arms].tolist(), rewards.tolist()))
    assert robust.min() >= -1 / 0.2
    up, down = (arms == 0) / law[arms], (arms == 1) / law[arms]
    low = joint_lower_bound([(up * rewards + down * (1 - rewards), 0.0), (1 + robust, 4.0)], 0.975) - 1
    high = 1 - joint_lower_bound([(down * rewards + up * (1 - rewards), 0.0), (1 - robust, 4.0)], 0.975)
    assert (found.low, found.high) == pytest.approx((2 * low, 2 * high))


@pytest.mark.parametrize("floor", few(1, [0.05, 0.0]))
def test_both_forms_have_the_mean_of_the_difference(floor: float) -> None:
    """Whatever the probabilities are: means of 10,000 decisions, in standard errors."""
    random = np.random.default_rng(2)
    chances = random.dirichlet([1, 1, 1], 10_000) * 0.85 + 0.05
    arms = (chances.cumsum(axis=1) < random.random((10_000, 1))).sum(axis=1)
    own = chances[np.arange(10_000), arms]
    rewards = (random.random(10_000) < np.array([0.6, 0.2, 0.9])[arms]).astype(float)
    robust = np.array(naive_robust(arms.tolist(), own.tolist(), rewards.tolist()))
    plain = ((arms == 0) * rewards + (arms == 1) * (1 - rewards)) / own - 1
    for values in (robust, plain):
        assert abs(values.mean() - 0.4) / (values.std() / math.sqrt(values.size)) < 4.5
    found = weighted_difference(arms, own, rewards, (0, 1), floor=floor)
    assert found.low < 0.4 < found.high
    assert found.low < found.estimate < found.high


def test_errors_and_nothing() -> None:
    assert weighted_difference([], [], [], (0, 1)).lacking == "no reward of the first or of the second"
    assert weighted_difference([], [], [], (0, 1)).better is None
    with pytest.raises(ValueError, match=r"propensities must be from 0.2 to 1, got 0.1 to 0.5"):
        weighted_difference([0, 1], [0.1, 0.5], [1, 1], (0, 1), floor=0.2)
    with pytest.raises(ValueError, match=r"rewards must be in reward_range, 0.0 to 1.0"):
        weighted_difference([0, 1], [0.1, 0.5], [1, 2], (0, 1))
    with pytest.raises(ValueError, match="columns must be of one length"):
        weighted_difference([0], [0.1, 0.5], [1, 2], (0, 1))
