"""The compiled rounds against the oracle: pull by pull on the same noise, and in distribution on noise of their own.

That every policy pulls what the oracle pulls, on two problems, is part of the contract in `tests/policies`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

import naive
import rightarm as ra
from cases import PLAYERS, POLICIES, PROBLEMS, ROUNDS, PlayerCase, PolicyCase, ProblemCase
from engine_oracle import SEED, assert_same_pulls, engine_pulls, no_start, oracle_pulls, player_pulls
from few import few, some
from naive import F64, I64

EVERY: dict[str, PolicyCase | PlayerCase] = {**POLICIES, **PLAYERS}

# The ways through a round, with a policy for each. What a problem pays comes after, the same for all.
PATHS: dict[str, PolicyCase | PlayerCase] = {
    "a location and a scale of each arm": POLICIES["gumbel"],
    "a location and a scale, and a clock": POLICIES["ucb"],
    "only the arms whose bounds are large": POLICIES["kl-ucb"],
    "whole scores": POLICIES["glie"],
    "a location of each arm, and probabilities": PLAYERS["exp3"],
    "whole scores, and probabilities": PLAYERS["exp3++"],
    "an estimator called by its address": PLAYERS["scaled gumbel"],
}


def path_of(policy: ra.Policy) -> tuple[bool, ...]:
    return (policy.by_arm, policy.clocked, policy.lazy, policy.weighted)


def test_the_paths_are_all_there() -> None:
    """Each way in which a policy chooses an arm, and both answers to each question that the engine asks besides."""
    chosen = [case.policy for case in PATHS.values()]
    assert {path_of(policy) for policy in chosen} == {path_of(case.policy) for case in EVERY.values()}
    assert {policy.estimator.plain and not policy.asks_variance for policy in chosen} == {True, False}
    assert {policy.explore is None for policy in chosen} == {True, False}
    assert {policy.memory_names == () for policy in chosen} == {True, False}
    assert {policy.noise is None for policy in chosen} == {True, False}


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.parametrize("case", PATHS.values(), ids=PATHS)
def test_every_problem_on_every_path(case: PolicyCase | PlayerCase, problem: ProblemCase) -> None:
    assert_same_pulls(case, problem, ROUNDS, 0, 7)


@pytest.mark.full
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.parametrize("case", EVERY.values(), ids=EVERY)
def test_every_policy_on_every_problem(case: PolicyCase | PlayerCase, problem: ProblemCase) -> None:
    assert_same_pulls(case, problem, ROUNDS, 0, 7, 15)


@pytest.mark.full
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_same_pulls_for_long(policy: PolicyCase) -> None:
    problem, rounds = PROBLEMS["restless"], 20_000
    pulls = engine_pulls(policy.policy, problem.problem, no_start(problem.problem), rounds)
    assert pulls[:, 4].tolist() == oracle_pulls(policy, problem, no_start(problem.problem), rounds, 4)


@pytest.mark.full
@pytest.mark.parametrize("player", PLAYERS.values(), ids=PLAYERS)
def test_same_pulls_of_players_for_long(player: PlayerCase) -> None:
    problem, rounds = PROBLEMS["twelve arms"], 4_000
    pulls = engine_pulls(player.policy, problem.problem, no_start(problem.problem), rounds)
    assert pulls[:, 4].tolist() == player_pulls(player, problem, rounds, 4)


@pytest.mark.parametrize("name", ["gumbel", "glie", "ucb"])
def test_simulate_plays_what_the_oracle_plays(name: str) -> None:
    """The same through the public function, in blocks of many rounds: pulls, and regret at every checkpoint."""
    case, problem, rounds = POLICIES[name], PROBLEMS["corrupted by rounds"], 3_000
    checkpoints = [1, 2, 3, 10, 777, 3_000]
    result = ra.simulate(
        case.policy, problem.problem, horizon=rounds, replications=3, seed=SEED, checkpoints=checkpoints
    )
    for replication in range(3):
        arms = oracle_pulls(case, problem, no_start(problem.problem), rounds, replication)
        assert result.pulls[0, replication].tolist() == [arms.count(k) for k in range(3)]
        lost = np.cumsum(problem.problem.means.max() - problem.problem.means[arms])
        np.testing.assert_allclose(result.regret[0, replication], lost[np.array(checkpoints) - 1], rtol=1e-12)


def test_noise_that_is_cut_off_far_out_is_not_taken_for_affine() -> None:
    """A score that is affine wherever noise usually falls, and not beyond."""

    @ra.policy(noise=ra.noise.Gumbel())
    def clipped(pulls, mean, z, *, C: float = 1.0):  # type: ignore[no-untyped-def]
        return mean + C / np.sqrt(pulls) * np.minimum(z, 8.0)

    case = PolicyCase(clipped(), lambda t, n, mean, z, means: mean + min(z, 8.0) / math.sqrt(n))
    problem = PROBLEMS["bernoulli"]
    pulls = engine_pulls(case.policy, problem.problem, no_start(problem.problem), 200)
    assert pulls[:, 0].tolist() == oracle_pulls(case, problem, no_start(problem.problem), 200, 0)


# In distribution.

ENGINE, ORACLE, HORIZON = 2_048, 512, 4_000  # the oracle takes all the time; more rounds would see more


def gumbel(location: float) -> Callable[[np.random.Generator, tuple[int, int]], F64]:
    return lambda random, shape: random.gumbel(location, size=shape)


CHOICES: dict[str, tuple[ra.Policy, naive.Choice]] = {
    "constant": (ra.Boltzmann(0.1), naive.softmax(naive.constant(0.1))),
    "inverse_log": (ra.Boltzmann(ra.schedules.inverse_log(0.5)), naive.softmax(naive.inverse_log(0.5))),
    "inverse_sqrt": (ra.Boltzmann(ra.schedules.inverse_sqrt(2.0)), naive.softmax(naive.inverse_sqrt(2.0))),
    "two_phase": (ra.Boltzmann(ra.schedules.two_phase(1.0, HORIZON)), naive.softmax(naive.two_phase(1.0, HORIZON))),
    "glie": (ra.Boltzmann(ra.schedules.glie()), naive.softmax(naive.glie())),
    "gumbel": (
        ra.BoltzmannGumbel(C=0.5),
        naive.perturbed(lambda pulls: 0.5 / np.sqrt(pulls), gumbel(np.euler_gamma)),
    ),
    "gumbel at 0": (
        ra.BoltzmannGumbel(C=0.5, location=0.0),
        naive.perturbed(lambda pulls: 0.5 / np.sqrt(pulls), gumbel(0.0)),
    ),
    "ucb": (ra.UCB(C=0.5), naive.optimistic(0.5)),
    "thompson": (
        POLICIES["thompson"].policy,
        naive.perturbed(lambda pulls: 0.6 / np.sqrt(pulls + 1), lambda random, shape: random.standard_normal(shape)),
    ),
}


def bernoulli_b(means: Sequence[float], rounds: int) -> Callable[[int, I64, np.random.Generator], F64]:
    """Arm 0 pays nothing in the first rounds."""

    def reward(t: int, arm: I64, random: np.random.Generator) -> F64:
        paid = random.random(arm.size) < np.array(means)[arm]
        return np.where(paid & ((arm != 0) | (t > rounds)), 1.0, 0.0)

    return reward


def gaussian(means: Sequence[float], sigma: float) -> Callable[[int, I64, np.random.Generator], F64]:
    return lambda t, arm, random: random.normal(np.array(means)[arm], sigma)


FIELDS = {
    "bernoulli": (ra.problems.Bernoulli([0.6, 0.5, 0.4]).corrupted(0, rounds=50), bernoulli_b([0.6, 0.5, 0.4], 50)),
    "gaussian": (ra.problems.Gaussian([0.2, 0.5, 0.4, 0.3, 0.0], sigma=0.5), gaussian([0.2, 0.5, 0.4, 0.3, 0.0], 0.5)),
}


@pytest.mark.parametrize("field", few(1, FIELDS))
@pytest.mark.parametrize("name", some(["glie", "gumbel", "ucb"], CHOICES))
def test_same_regret_in_distribution(name: str, field: str) -> None:
    (policy, choice), (problem, reward) = CHOICES[name], FIELDS[field]
    ours = ra.simulate(policy, problem, horizon=HORIZON, replications=ENGINE, seed=7, checkpoints=1).regret[0, :, -1]
    theirs = naive.regret_of_many(choice, reward, problem.gaps.tolist(), HORIZON, ORACLE, np.random.default_rng(11))
    z = (ours.mean() - theirs.mean()) / math.hypot(ours.std() / math.sqrt(ENGINE), theirs.std() / math.sqrt(ORACLE))
    assert abs(z) < 4.5, f"regret {ours.mean():.2f}, by the oracle {theirs.mean():.2f}"
