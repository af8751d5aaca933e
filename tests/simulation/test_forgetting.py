"""Estimators that forget, and variances, in simulation: pull by pull against the oracle, on the same noise."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest

import naive
import naive_forgetting
import rightarm as ra
from bandits import agrees
from cases import PROBLEMS, gain_per_decision
from engine_oracle import SEED, engine_pulls, no_start, policy_noise, policy_shares, problem_luck
from few import some
from rightarm.noise import Gaussian, Gumbel

ROUNDS = 160


@ra.policy(noise=Gaussian())
def by_variance(pulls, mean, variance, z):  # type: ignore[no-untyped-def]
    """Steady: what it asks for changes with the arm's own pulls only."""
    return mean + np.sqrt((variance + 0.1) / pulls) * z


@ra.policy
def by_variance_and_time(t, pulls, mean, variance):  # type: ignore[no-untyped-def]
    """Clocked (UCB-V of Audibert, Munos, Szepesvári 2009, but for its last term)."""
    return mean + np.sqrt(2 * (variance + 0.01) * np.log(t) / pulls)


@ra.policy(
    noise=Gumbel(), explore=lambda variance, worst_variance, arms: np.where(variance > worst_variance, 0.1, 0) / arms
)
def by_all_variances(pulls, mean, variance, best_variance, worst_variance, z):  # type: ignore[no-untyped-def]
    return mean + (best_variance - worst_variance + 0.1) * z / np.sqrt(pulls) + 0.1 * variance


@ra.policy(
    noise=Gaussian(),
    keep={"root": lambda variance, pulls: np.sqrt((0.1 + variance) / pulls)},
    learn={"spread": lambda spread, variance, mean, reward: spread + variance * np.abs(reward - mean)},
)
def by_kept_and_learned_variance(mean, pulls, root, spread, best_root, z):  # type: ignore[no-untyped-def]
    return mean + root * z + 0.1 * spread / pulls - 0.01 * best_root


@ra.policy(noise=Gumbel(), explore=lambda arms: 0.1 / arms, learn={"gain": gain_per_decision})
def weighted(pulls, gain, z):  # type: ignore[no-untyped-def]
    return 0.5 * gain / pulls + z


MAKES: dict[str, Any] = {
    "bge": lambda estimator: ra.BoltzmannGumbel(C=0.5, estimator=estimator),
    "ucb": lambda estimator: ra.UCB(C=0.7, estimator=estimator),
    "glie": lambda estimator: ra.Boltzmann(ra.schedules.glie(), estimator=estimator),
    "kl-ucb, lazy and kept": lambda estimator: ra.KLUCB(estimator=estimator),
    "kl-ms, extremes of what is kept": lambda estimator: ra.KLMS(estimator=estimator),
    "epsilon-greedy": lambda estimator: ra.EpsilonGreedy(0.2, estimator=estimator),
    "robust ucb, with a column": lambda estimator: ra.RobustUCB(u=0.3, estimator=estimator),
    "weighted": lambda estimator: weighted(estimator=estimator),
    "variance": lambda estimator: by_variance(estimator=estimator),
    "variance and time": lambda estimator: by_variance_and_time(estimator=estimator),
    "all variances": lambda estimator: by_all_variances(estimator=estimator),
    "variance, kept and learned": lambda estimator: by_kept_and_learned_variance(estimator=estimator),
}
ESTIMATORS = {
    "all": ra.estimators.Mean(),
    "window": ra.estimators.Mean(window=23),
    "short window": ra.estimators.Mean(window=5),
    "discount": ra.estimators.Mean(discount=0.9),
    "catoni": ra.estimators.Catoni(C=0.8),
    "catoni, window": ra.estimators.Catoni(C=0.8, window=23),
    "catoni, discount": ra.estimators.Catoni(C=0.8, discount=0.9),
}


def oracle_pulls(policy: ra.Policy, problem: Any, replication: int) -> list[int]:
    arms, own = problem.problem.arms, policy.estimator
    estimate = naive_forgetting.catoni(own.C) if isinstance(own, ra.estimators.Catoni) else naive_forgetting.plain
    noise = policy_noise(policy.noise, replication, ROUNDS, arms, more=0 if policy.explore is None else 1)
    shares, luck = policy_shares(policy, replication, ROUNDS, arms), problem_luck(problem.problem, replication, ROUNDS)
    player, ties = naive_forgetting.Player(policy, arms, estimate), naive.words(SEED, replication, 2)
    return list(naive_forgetting.play(player, problem.reward, noise, shares, luck, ties))


# Each estimator with two policies, and each policy with a window or a discount.
PAIRS = {(make, estimator) for make in ("bge", "weighted") for estimator in ESTIMATORS}
PAIRS |= {(make, ("window", "discount")[i % 2]) for i, make in enumerate(MAKES)}


@pytest.mark.parametrize(("make", "estimator"), some(PAIRS, itertools.product(MAKES, ESTIMATORS)))
def test_same_pulls_on_the_same_noise(make: str, estimator: str) -> None:
    """Rewards are continuous, so that no tie hangs on the last digit of a sum."""
    policy, problem = MAKES[make](ESTIMATORS[estimator]), PROBLEMS["uniform"]
    pulls = engine_pulls(policy, problem.problem, no_start(problem.problem), ROUNDS)
    for replication in (0, 7):
        assert pulls[:, replication].tolist() == oracle_pulls(policy, problem, replication)


@pytest.mark.parametrize("estimator", [ra.estimators.Mean(window=40), ra.estimators.Mean(discount=0.95)], ids=str)
def test_live_and_simulated_choose_alike(estimator: ra.estimators.Estimator) -> None:
    """The arm of round 60: 20,480 simulations, and live bandits that are told the same kind of rewards."""
    policy, rounds, random = ra.BoltzmannGumbel(C=0.5, estimator=estimator), 60, np.random.default_rng(4)
    problem, many = ra.problems.Bernoulli([0.6, 0.4]), 20_480
    kept: dict[str, Any] = {"checkpoints": [rounds - 1, rounds], "replications": many, "seed": 5, "lanes": 2_048}
    result = ra.simulate(policy, problem, horizon=rounds, **kept)
    simulated = round(float((result.regret[0, :, 1] - result.regret[0, :, 0]).sum()) / 0.2)
    chance = []
    for seed in range(800):
        bandit = ra.Bandit([0, 1], policy, seed=seed)
        for _ in range(rounds - 1):
            bandit.tell(decision := bandit.ask(), float(random.random() < (0.4 if decision.arm else 0.6)))
        chance.append(bandit.probabilities()[1])
    share, error = simulated / many, np.std(chance) / np.sqrt(len(chance))
    assert abs(share - np.mean(chance)) / np.hypot(error, np.sqrt(share * (1 - share) / many)) < 4.5


def test_results_do_not_depend_on_lanes_or_threads() -> None:
    problem = ra.problems.Bernoulli([0.6, 0.5, 0.4])
    policies = [
        make(estimator)
        for make in MAKES.values()
        for estimator in (ra.estimators.Mean(window=30), ra.estimators.Mean(discount=0.9))
    ]
    one, other = (
        ra.simulate(policies, problem, horizon=150, replications=40, seed=1, lanes=lanes, workers=workers)
        for lanes, workers in ((32, 1), (64, 2))
    )
    np.testing.assert_array_equal(one.pulls, other.pulls)
    np.testing.assert_array_equal(one.regret, other.regret)


def test_a_window_finds_the_arm_that_has_become_the_best() -> None:
    """Where rewards change half way, forgetting earns more."""
    drifting = PROBLEMS["bernoulli"].problem.corrupted(arm=1, rounds=1_500, reward=0.0)
    policies = [ra.UCB(C=0.5), ra.UCB(C=0.5, estimator=ra.estimators.Mean(window=300))]
    result = ra.simulate(policies, drifting, horizon=3_000, replications=64, seed=3, checkpoints=[1_500, 3_000])
    late = result.regret[:, :, 1] - result.regret[:, :, 0]
    assert late[1].mean() < late[0].mean()


def test_variances_to_start_from() -> None:
    """First choices from one state, live and simulated, arm by arm."""
    state: dict[str, Any] = {"pulls": [20, 10, 5], "means": [0.5, 0.45, 0.4], "variances": [0.01, 0.2, 0.25]}
    policy, problem = by_all_variances(), ra.problems.Uniform([0.0] * 3, 1.0)
    result = ra.simulate(policy, problem, horizon=1, replications=20_480, seed=2, lanes=2_048, **state)
    taken = Counter((result.pulls[0] - np.array(state["pulls"])).argmax(axis=1).tolist())
    agrees(taken, dict(enumerate(policy.probabilities(36, **state).tolist())))
    assert result.repeat().regret.tolist() == result.regret.tolist()
    with pytest.raises(ValueError, match=r"by_all_variances\(\) asks for variance: give variances="):
        ra.simulate(policy, problem, horizon=1, pulls=[1, 1, 1], means=[0.5] * 3)
    with pytest.raises(ValueError, match="asks for variance: give variances="):
        policy.scores(36, pulls=[1, 1, 1], means=[0.5] * 3)
    with pytest.raises(
        ValueError, match=r"variances must be 3 numbers from 0 on, one per arm, got \[1\.0, -1\.0, 0\.0\]"
    ):
        policy.probabilities(36, pulls=[1, 1, 1], means=[0.5] * 3, variances=[1, -1, 0])
