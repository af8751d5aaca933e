"""The compiled rounds beside the oracle, on the same noise: which arm each pulls in every round."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from itertools import islice

import numpy as np

import naive
import naive_memory
import rightarm as ra
from cases import PlayerCase, PolicyCase, ProblemCase
from compiled import draws
from naive import I64
from rightarm.noise import Gaussian, Law, Shared
from rightarm.simulation.engine import Run, Start

SEED = 1729


def no_start(problem: ra.problems.Problem) -> Start:
    return Start((0,) * problem.arms, (0.0,) * problem.arms)


def engine_pulls(policy: ra.Policy, problem: ra.problems.Problem, start: Start, rounds: int, lanes: int = 32) -> I64:
    """The arm of every round and lane, read off the counts of pulls after each."""
    run = Run(policy, problem, start, SEED, 0, lanes, np.array([start.rounds + rounds]))
    counts = [run.statistics.pulls.copy()]
    for t in range(start.rounds + 1, start.rounds + rounds + 1):
        run.advance(t)
        counts.append(run.statistics.pulls.copy())
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


def problem_luck(problem: ra.problems.Problem, replication: int, rounds: int) -> Iterator[tuple[float, float, float]]:
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


def player_pulls(player: PlayerCase, problem: ProblemCase, rounds: int, replication: int) -> list[int]:
    """What a player with a state of its own does on the same noise."""
    policy, arms = player.policy, problem.problem.arms
    noise = policy_noise(policy.noise, replication, rounds, arms, more=0 if policy.explore is None else 1)
    shares, luck = policy_shares(policy, replication, rounds, arms), problem_luck(problem.problem, replication, rounds)
    ties = naive.words(SEED, replication, 2)
    return list(naive_memory.play(player.make, arms, problem.reward, noise, shares, luck, ties))


def assert_same_pulls(case: PolicyCase | PlayerCase, problem: ProblemCase, rounds: int, *replications: int) -> None:
    """Compare the engine with the oracle, from the first round on."""
    start = no_start(problem.problem)
    pulls = engine_pulls(case.policy, problem.problem, start, rounds)
    for replication in replications:
        if isinstance(case, PolicyCase):
            expected = oracle_pulls(case, problem, start, rounds, replication)
        else:
            expected = player_pulls(case, problem, rounds, replication)
        assert pulls[:, replication].tolist() == expected, f"{case.policy} on {problem.problem}: {replication=}"
