"""Replay: what a policy earns on a log collected evenly at random is what it earns live."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rightarm as ra
from adaptive_logs import LAW, MEANS, Log, adaptive_logs, even_log, z
from rightarm.evaluation import replay


@pytest.fixture
def adaptive() -> list[Log]:
    return adaptive_logs()


def live(policy: ra.Policy, rounds: int, seed: int) -> float:
    """The mean reward of a policy that plays for itself."""
    random, earned = np.random.default_rng(1_000 + seed), 0.0
    pulls, means, memory = np.zeros(3), np.zeros(3), {name: np.zeros(3) for name in policy.columns}
    for t in range(1, rounds + 1):
        probability = policy.probabilities(t, pulls, means, memory) if policy.weighted else np.ones(3)
        arm = policy.choose(t, pulls, means, random, memory)
        reward = float(random.random() < MEANS[arm])
        earned, pulls[arm] = earned + reward, pulls[arm] + 1
        means[arm] += (reward - means[arm]) / pulls[arm]
        own = {name: float(column[arm]) for name, column in memory.items()}
        p = float(probability[arm])
        for name, value in policy.learned(t, int(pulls[arm]), means[arm], reward, own, 3, p).items():
            memory[name][arm] = value
    return earned / rounds


@pytest.mark.parametrize("policy", [ra.UCB(C=0.5), ra.GaussianThompson(), ra.EXP3(gamma=0.2)], ids=str)
def test_replay_earns_what_the_policy_earns_live(policy: ra.Policy) -> None:
    rounds, replayed, played = 30, [], []
    for seed in range(50):
        result = replay(even_log(seed, 180), policy, seed=seed)
        assert result.rounds == len(result.rewards) == sum(result.pulls.values())
        assert result.rounds > rounds
        replayed.append(float(result.rewards[:rounds].mean()))
        played.append(live(policy, rounds, seed))
    difference = np.array(replayed) - np.array(played)
    assert abs(z(difference.tolist(), 0.0)) < 4.5
    assert np.mean(replayed) > MEANS.mean()


def test_replay_of_a_fixed_law_and_its_interval() -> None:
    missed, truth = 0, float(sum(LAW[a] * m for a, m in zip("abc", MEANS, strict=True)))
    for seed in range(60):
        result = replay(even_log(seed, 300), LAW, seed=seed)
        missed += not result.low <= truth <= result.high
    assert missed <= 60 * 0.05 + 4.5 * math.sqrt(60 * 0.05 * 0.95)
    assert result.high - result.low < 0.5


def test_replay_thins_a_log_that_is_not_even(adaptive: list[Log]) -> None:
    with pytest.raises(
        ValueError, match=r"replay needs a log collected evenly at random, got propensities from 0\.\d+"
    ):
        replay(adaptive[0], "uniform")
    kept = [replay(log, "uniform", floor=0.05, seed=seed) for seed, log in enumerate(adaptive)]
    assert abs(z([one.rounds / one.rows for one in kept], 0.05)) < 4.5
    assert abs(z([one.pulls["b"] / one.rows for one in kept], 0.05 / 3)) < 4.5


def test_replay_wants_all_arms() -> None:
    log = {"arm": ["a", "b"], "propensity": [0.25, 0.25], "reward": [0.0, 1.0]}
    with pytest.raises(ValueError, match=r"a propensity of 0.25 in every row means about 4 arms, got 2; say which"):
        replay(log, "uniform")
    assert replay(log, {"a": 1.0}, arms=["a", "b", "c", "d"]).rounds == 1
    with pytest.raises(ValueError, match="agreed with none of the log's 2 rows"):
        replay(log, {"c": 1.0}, arms=["a", "b", "c", "d"])


def test_replay_notices_an_arm_too_many() -> None:
    log = {"arm": list(range(34)) * 3, "propensity": [1 / 34] * 102, "reward": [0.0] * 102}
    with pytest.raises(ValueError, match="about 34 arms, got 35"):
        ra.evaluation.replay(log, ra.UCB(C=0.5), arms=range(35))
