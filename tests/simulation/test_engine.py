"""The compiled rounds against the oracle: pull by pull on the same noise, and in distribution on noise of their own."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np
import pytest

import naive
import naive_memory
import rightarm as ra
from cases import PLAYERS, POLICIES, PROBLEMS, ROUNDS, PlayerCase, PolicyCase, ProblemCase
from compiled import draws
from naive import F64, I64
from rightarm.noise import Gaussian, Law, Shared
from rightarm.simulation.engine import Run, Start

SEED = 1729


def no_start(problem: ra.Problem) -> Start:
    return Start((0,) * problem.arms, (0.0,) * problem.arms)


def engine_pulls(policy: ra.Policy, problem: ra.Problem, start: Start, rounds: int, lanes: int = 32) -> I64:
    """The arm of every round and lane, read off the counts of pulls after each."""
    run = Run(policy, problem, start, SEED, 0, lanes, np.array([start.rounds + rounds]))
    counts = [run.known.pulls.copy()]
    for t in range(start.rounds + 1, start.rounds + rounds + 1):
        run.advance(t)
        counts.append(run.known.pulls.copy())
    steps = np.diff(counts, axis=0)
    assert (steps.sum(axis=1) == 1).all()
    arms: I64 = np.argmax(steps, axis=1)
    return arms


@functools.cache
def stream(replication: int, role: int, size: int) -> tuple[int, ...]:
    return tuple(islice(naive.words(SEED, replication, role), size))


def policy_noise(law: Law | None, replication: int, rounds: int, arms: int, more: int = 0) -> list[list[float]]:
    """The noise of every round and arm, of a stream that has some words ``more`` in every round."""
    if law is None:
        return [[math.nan] * arms] * rounds
    words = np.array(stream(replication, 0, rounds * (arms + more)), np.uint32)
    noise = draws(law.drawn, words).astype(float).reshape(rounds, -1)[:, :arms]
    if isinstance(law, Shared):  # all arms have the draw of the first
        noise[:] = noise[:, :1]
    return list(noise.tolist())


def policy_shares(policy: ra.Policy, replication: int, rounds: int, arms: int) -> list[float]:
    """The uniform number that a policy explores by: the last word of every round."""
    if policy.explore is None:
        return [math.nan] * rounds
    per_round = 1 if policy.noise is None else arms + 1
    words = stream(replication, 0, rounds * per_round)
    return [(word + 0.5) / 2**32 for word in words[per_round - 1 :: per_round]]


def problem_luck(problem: ra.Problem, replication: int, rounds: int) -> Iterator[tuple[float, float, float]]:
    """u of two words, v of two, then w of one, as far as the problem asks for them."""
    uniform = [name for name in ("u", "v") if name in problem.inputs]
    per_round = 2 * len(uniform) + ("w" in problem.inputs)
    words = np.array(stream(replication, 1, rounds * per_round), np.uint32).reshape(rounds, per_round)
    normal = draws(Gaussian(), words[:, -1].copy()).tolist() if "w" in problem.inputs else [math.nan] * rounds
    for row, w in zip(words.tolist(), normal, strict=True):
        drawn = {name: naive.uniform_of(row[2 * i], row[2 * i + 1]) for i, name in enumerate(uniform)}
        yield drawn.get("u", math.nan), drawn.get("v", math.nan), w


def oracle_pulls(policy: PolicyCase, problem: ProblemCase, start: Start, rounds: int, replication: int) -> list[int]:
    noise = policy_noise(policy.policy.noise, replication, rounds, problem.problem.arms)
    luck = problem_luck(problem.problem, replication, rounds)
    ties = naive.words(SEED, replication, 2)
    return list(naive.play(policy.score, problem.reward, noise, luck, ties, start.pulls, start.means))


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_same_pulls_on_the_same_noise(policy: PolicyCase, problem: ProblemCase) -> None:
    start = no_start(problem.problem)
    pulls = engine_pulls(policy.policy, problem.problem, start, ROUNDS)
    for replication in (0, 7, 15):
        assert pulls[:, replication].tolist() == oracle_pulls(policy, problem, start, ROUNDS, replication)


def player_pulls(player: PlayerCase, problem: ProblemCase, rounds: int, replication: int) -> list[int]:
    """What a player with a state of its own does on the same noise."""
    policy, arms = player.policy, problem.problem.arms
    noise = policy_noise(policy.noise, replication, rounds, arms, more=0 if policy.explore is None else 1)
    shares, luck = policy_shares(policy, replication, rounds, arms), problem_luck(problem.problem, replication, rounds)
    ties = naive.words(SEED, replication, 2)
    return list(naive_memory.play(player.make, arms, problem.reward, noise, shares, luck, ties))


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.parametrize("player", PLAYERS.values(), ids=PLAYERS)
def test_same_pulls_of_players_with_a_state(player: PlayerCase, problem: ProblemCase) -> None:
    pulls = engine_pulls(player.policy, problem.problem, no_start(problem.problem), ROUNDS)
    for replication in (0, 7):
        assert pulls[:, replication].tolist() == player_pulls(player, problem, ROUNDS, replication)


STARTS = {
    "all pulled": Start((3, 1, 5), (0.25, 0.75, 0.5)),
    "one never pulled": Start((3, 0, 5), (0.25, 0.0, 0.5)),
    "two never pulled": Start((0, 4, 0), (0.0, 0.5, 0.0)),
    "long known": Start((10**9, 10**6, 10), (0.5, 0.6, 0.4)),
}


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_same_pulls_from_given_statistics(policy: PolicyCase, start: Start) -> None:
    problem = PROBLEMS["corrupted by rounds"]
    pulls = engine_pulls(policy.policy, problem.problem, start, 100)
    for replication in (0, 3):
        assert pulls[:, replication].tolist() == oracle_pulls(policy, problem, start, 100, replication)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_same_pulls_for_long(policy: PolicyCase) -> None:
    problem, rounds = PROBLEMS["restless"], 20_000
    pulls = engine_pulls(policy.policy, problem.problem, no_start(problem.problem), rounds)
    assert pulls[:, 4].tolist() == oracle_pulls(policy, problem, no_start(problem.problem), rounds, 4)


@pytest.mark.slow
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
    "inverse_log": (ra.Boltzmann(ra.inverse_log(0.5)), naive.softmax(naive.inverse_log(0.5))),
    "inverse_sqrt": (ra.Boltzmann(ra.inverse_sqrt(2.0)), naive.softmax(naive.inverse_sqrt(2.0))),
    "two_phase": (ra.Boltzmann(ra.two_phase(1.0, HORIZON)), naive.softmax(naive.two_phase(1.0, HORIZON))),
    "glie": (ra.Boltzmann(ra.glie()), naive.softmax(naive.glie())),
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
    "bernoulli": (ra.Bernoulli([0.6, 0.5, 0.4]).corrupted(0, rounds=50), bernoulli_b([0.6, 0.5, 0.4], 50)),
    "gaussian": (ra.Gaussian([0.2, 0.5, 0.4, 0.3, 0.0], sigma=0.5), gaussian([0.2, 0.5, 0.4, 0.3, 0.0], 0.5)),
}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("name", CHOICES)
def test_same_regret_in_distribution(name: str, field: str) -> None:
    (policy, choice), (problem, reward) = CHOICES[name], FIELDS[field]
    ours = ra.simulate(policy, problem, horizon=HORIZON, replications=ENGINE, seed=7, checkpoints=1).regret[0, :, -1]
    theirs = naive.regret_of_many(choice, reward, problem.gaps.tolist(), HORIZON, ORACLE, np.random.default_rng(11))
    z = (ours.mean() - theirs.mean()) / math.hypot(ours.std() / math.sqrt(ENGINE), theirs.std() / math.sqrt(ORACLE))
    assert abs(z) < 4.5, f"regret {ours.mean():.2f}, by the oracle {theirs.mean():.2f}"
