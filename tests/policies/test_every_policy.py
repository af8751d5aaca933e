"""What every policy promises, checked policy by policy, so that each is compiled once.

Every policy in `rightarm.policies` is checked as soon as it is there. With a row in `tests/cases.py` it is
compared with an independent oracle as well.
"""

from __future__ import annotations

import contextlib
import json
import math
import pickle
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import compiled
import naive
import naive_memory
import rightarm as ra
from cases import PLAYERS, POLICIES, PROBLEMS, ROUNDS, PlayerCase, PolicyCase
from engine_oracle import assert_same_pulls, engine_pulls, oracle_pulls
from rightarm.formula.specification import from_specification
from rightarm.policies import FAMILIES
from rightarm.policies.family import PolicyFamily
from rightarm.simulation.engine import Start
from rightarm.testing import check_policy

TWO_PROBLEMS = ["corrupted by pulls", "restless"]  # rewards of 0 and 1, with many ties, and any other numbers


EVERY: dict[str, PolicyCase | PlayerCase] = {**POLICIES, **PLAYERS}
FIRST = {case.policy.family.name: name for name, case in reversed(EVERY.items())}  # the first row of each family
WITHOUT_ORACLE = [name for name in FAMILIES if name not in FIRST]  # the draws of BetaThompson have tests of their own


@pytest.mark.parametrize("name", POLICIES)
def test_contract(name: str) -> None:
    case = POLICIES[name]
    check_description(case.policy)
    check_first_pulls(case.policy)
    check_scores(case)
    check_totals(case.policy)
    check_pulls_from_a_start(case)
    for problem in TWO_PROBLEMS:
        assert_same_pulls(case, PROBLEMS[problem], ROUNDS, 0, 7, 15)
    if name == FIRST[case.policy.family.name]:
        check_policy(case.policy)


@pytest.mark.parametrize("name", PLAYERS)
def test_contract_of_policies_that_explore_or_remember(name: str) -> None:
    case = PLAYERS[name]
    check_description(case.policy)
    check_remembering_scores(case)
    for problem in TWO_PROBLEMS:
        assert_same_pulls(case, PROBLEMS[problem], ROUNDS, 0, 7)
    if case.policy.estimator.plain:
        for problem in ("uniform", "twelve arms"):
            check_live_game(case, problem)
    if name == FIRST[case.policy.family.name]:
        check_policy(case.policy)


@pytest.mark.parametrize("name", WITHOUT_ORACLE)
def test_contract_without_an_oracle(name: str) -> None:
    policy = example(FAMILIES[name])
    check_description(policy)
    check_policy(policy)


def example(family: PolicyFamily) -> ra.Policy:
    """Return a policy of the family, with the first number or law that each parameter without a default accepts."""
    needed = [parameter.name for parameter in family.parameters if parameter.default is parameter.empty]
    made: ra.Policy = family(**{name: accepted(family, name) for name in needed})
    return made


def accepted(family: PolicyFamily, name: str) -> Any:
    annotation = family.annotations.get(name)
    for value in (0.5, 2.0, 20.0, ra.noise.Gumbel()):
        with contextlib.suppress(TypeError, ValueError):
            return ra.Policy.check(name, value, annotation)
    raise AssertionError(f"{family.name}: give the parameter {name} a default, or the policy a row in tests/cases.py")


@pytest.mark.parametrize("name", FAMILIES)
def test_an_example_of_every_policy_can_be_made(name: str) -> None:
    """So a new policy needs no row to be checked."""
    assert example(FAMILIES[name]).family is FAMILIES[name]
    assert getattr(ra, name) is FAMILIES[name]


@pytest.mark.full
@pytest.mark.parametrize("name", EVERY)
def test_contract_at_length(name: str) -> None:
    """Check the same with many states, and the exported check of every policy."""
    case = EVERY[name]
    if isinstance(case, PolicyCase):
        check_scores(case, examples=200)
    else:
        check_remembering_scores(case, examples=200)
    check_policy(case.policy)


# Checks of both kinds of policies.


def check_description(policy: ra.Policy) -> None:
    """A policy is the same after it was written as JSON, or pickled."""
    described = json.loads(json.dumps(policy.specification()))
    for again in (from_specification(described), pickle.loads(pickle.dumps(policy))):
        assert again == policy
        assert hash(again) == hash(policy)
        for part in ("noise", "estimator", "columns"):
            assert getattr(again, part) == getattr(policy, part), part


# Checks of policies that know pulls and means only.


@st.composite
def states(draw: st.DrawFn) -> tuple[int, list[int], list[float], list[float]]:
    """A round, and pulls, means and noise of some arms; multiples of 1/1024, so that adding a whole number is exact."""
    arms = draw(st.integers(1, 8))

    def row(least: int, largest: int) -> list[int]:
        return draw(st.lists(st.integers(least, largest), min_size=arms, max_size=arms))

    pulls = row(1, 10**6)
    means, z = ([k / 1024 for k in row(*ends)] for ends in ((-2048, 2048), (-3072, 20480)))
    return draw(st.integers(max(2, sum(pulls) + 1), 10**8)), pulls, means, z


def check_scores(case: PolicyCase, examples: int = 20) -> None:
    """Scores are the formula, live and compiled; relabelled arms have relabelled scores; only differences matter."""
    policy = case.policy

    @given(states(), st.randoms(use_true_random=False), st.integers(-1000, 1000), st.integers(0, 2**32))
    @settings(max_examples=examples)
    def check(state: Any, random: Any, shift: int, seed: int) -> None:
        t, pulls, means, z = state
        live = policy.scores(*state)
        exact = [case.score(t, n, mean, noise, means) for n, mean, noise in zip(pulls, means, z, strict=True)]
        np.testing.assert_allclose(live, exact, rtol=case.error, atol=case.error, err_msg="live scores")
        again = compiled.scores(policy, *state)
        np.testing.assert_allclose(again, live, rtol=1e-12, atol=1e-12, err_msg="compiled scores")
        order = random.sample(range(len(pulls)), len(pulls))
        moved_pulls, moved_means, moved_z = ([row[i] for i in order] for row in (pulls, means, z))
        relabelled = policy.scores(t, moved_pulls, moved_means, moved_z)
        np.testing.assert_allclose(relabelled, live[order], rtol=1e-14, err_msg="relabelled arms")
        if case.shifts:
            shifted = [mean + shift for mean in means]
            one, other = (policy.choose(t, pulls, row, np.random.default_rng(seed)) for row in (means, shifted))
            assert one == other, "a shift of all means changes the choice"

    check()


def check_first_pulls(policy: ra.Policy) -> None:
    """An arm never pulled goes first, live by chance and simulated in order, and its formula is not asked.

    The formula would divide by its pulls.
    """
    random = np.random.default_rng(1)
    assert {policy.choose(1, [0, 0, 0], [0.0, 0.0, 0.0], random) for _ in range(50)} == {0, 1, 2}
    assert {policy.choose(6, [5, 0, 0], [9.0, math.nan, math.nan], random) for _ in range(50)} == {1, 2}
    assert policy.choose(10, [5, 4, 0], [9.0, 5.0, -1.0], random) == 2
    result = ra.simulate(policy, ra.problems.Bernoulli([0.5] * 5), horizon=3, replications=1, seed=1)
    assert result.pulls.tolist() == [[[1, 1, 1, 0, 0]]]


def check_totals(policy: ra.Policy) -> None:
    """Pulls add up to the rounds, and regret to the gaps of what was pulled."""

    @given(
        means=st.lists(st.integers(0, 16).map(lambda k: k / 16), min_size=1, max_size=6),
        horizon=st.integers(1, 40),
        replications=st.integers(1, 5),
        seed=st.integers(0, 2**64),
    )
    @settings(max_examples=8)
    def check(means: list[float], horizon: int, replications: int, seed: int) -> None:
        problem = ra.problems.Bernoulli(means)
        rounds = range(1, horizon + 1)
        result = ra.simulate(policy, problem, horizon=horizon, replications=replications, seed=seed, checkpoints=rounds)
        assert result.pulls.shape == (1, replications, len(means))
        assert result.regret.shape == (1, replications, horizon)
        assert (result.pulls.sum(axis=2) == horizon).all()
        assert (result.pulls[:, :, :horizon] >= 1).all()
        assert (result.pulls[:, :, horizon:] == 0).all()
        assert (result.regret >= 0).all()
        steps = np.diff(result.regret, axis=2, prepend=0.0)
        assert np.isin(steps, problem.gaps).all()  # sixteenths add up exactly
        np.testing.assert_array_equal(result.regret[:, :, -1], result.pulls @ problem.gaps)

    check()


STARTS = {
    "all pulled": Start((3, 1, 5), (0.25, 0.75, 0.5)),
    "one never pulled": Start((3, 0, 5), (0.25, 0.0, 0.5)),
    "two never pulled": Start((0, 4, 0), (0.0, 0.5, 0.0)),
    "long known": Start((10**9, 10**6, 10), (0.5, 0.6, 0.4)),
}


def check_pulls_from_a_start(case: PolicyCase) -> None:
    """The engine goes on from given statistics as the oracle does."""
    problem = PROBLEMS["corrupted by rounds"]
    for name, start in STARTS.items():
        pulls = engine_pulls(case.policy, problem.problem, start, 100)
        for replication in (0, 3):
            expected = oracle_pulls(case, problem, start, 100, replication)
            assert pulls[:, replication].tolist() == expected, f"{name}: {replication=}"


# Checks of policies that explore or remember.


@st.composite
def remembered(draw: st.DrawFn) -> tuple[int, dict[str, Any], list[list[float]]]:
    """A round, pulls, means and noise of some arms, and four columns."""
    arms = draw(st.integers(1, 6))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    pulls = (1 + random.integers(0, 10 ** draw(st.integers(0, 6)), arms)).tolist()
    columns = (random.random((4, arms)) * 10.0 ** draw(st.integers(-3, 6))).tolist()
    state = {"pulls": pulls, "means": random.random(arms).tolist(), "z": (random.integers(-9, 50, arms) / 8).tolist()}
    return sum(pulls) + 1, state, columns


def check_remembering_scores(case: PlayerCase, examples: int = 20) -> None:
    """Scores are the same compiled and relabelled, and what is explored are probabilities."""
    policy = case.policy

    @given(remembered(), st.randoms(use_true_random=False))
    @settings(max_examples=examples)
    def check(given_state: Any, random: Any) -> None:
        t, state, columns = given_state
        memory = dict(zip(policy.columns, columns, strict=False))
        state |= {"variances": columns[-1]} if policy.asks_variance else {}
        live = policy.scores(t, **state, memory=memory)
        again = compiled.scores(policy, t, **state, memory=memory)
        np.testing.assert_allclose(again, live, rtol=1e-11, atol=1e-11, err_msg="compiled scores")
        order = random.sample(range(live.size), live.size)
        moved = {name: [row[i] for i in order] for name, row in state.items()}
        columns_moved = {name: [column[i] for i in order] for name, column in memory.items()}
        relabelled = policy.scores(t, **moved, memory=columns_moved)
        np.testing.assert_allclose(relabelled, live[order], rtol=1e-14, err_msg="relabelled arms")
        floors = policy.floors(t, state["pulls"], state["means"], memory, state.get("variances"))
        assert (floors >= 0).all()
        assert floors.sum() <= 1 + 1e-12

    check()


def decision_probability(policy: ra.Policy, arm: int, t: int, pulls: Any, means: Any, memory: Any) -> float:
    """Softmax of the scores without noise, and the floors; no such policy asks for variances."""
    if not policy.weighted or (policy.needs_pulls and 0 in pulls):
        return 1.0
    floors, scores = policy.floors(t, pulls, means, memory), policy.scores(t, pulls, means, 0.0, memory)
    weights = np.exp(scores - scores.max())
    return float(floors[arm] + (1 - floors.sum()) * weights[arm] / weights.sum())


def live_game(
    policy: ra.Policy,
    arms: int,
    reward: naive.Reward,
    noise: Sequence[Sequence[float]],
    shares: Sequence[float],
    luck: Sequence[Sequence[float]],
    ties: Iterator[int],
) -> Iterator[int]:
    """A game in which the policy's own `scores`, `floors` and `learned` are used for every decision."""
    pulls, sums, rewards = [0] * arms, [0.0] * arms, [list[float]() for _ in range(arms)]
    memory = {name: [0.0] * arms for name in policy.columns}
    for t, (z, share, (u, v, w)) in enumerate(zip(noise, shares, luck, strict=True), start=1):
        means = [total / max(1, n) for total, n in zip(sums, pulls, strict=True)]
        if policy.needs_pulls and 0 in pulls:
            arm = pulls.index(0)
        else:
            spread = [np.var(own) for own in rewards] if policy.asks_variance else None
            heights = np.cumsum(policy.floors(t, pulls, means, memory, spread))
            arm = naive.pick(policy.scores(t, pulls, means, z, memory, spread).tolist(), ties)
            arm = int((heights <= share).sum()) if share < heights[-1] else arm
        p = decision_probability(policy, arm, t, pulls, means, memory)
        pulls[arm] += 1
        paid = reward(t, pulls[arm], arm, u, v, w)
        sums[arm] += paid
        rewards[arm].append(paid)
        before = {name: column[arm] for name, column in memory.items()}
        for name, value in policy.learned(t, pulls[arm], sums[arm] / pulls[arm], paid, before, arms, p).items():
            memory[name][arm] = value
        yield arm


LIVE_ROUNDS = 120


def check_live_game(case: PlayerCase, name: str) -> None:
    """A game decided by the policy's own methods is the oracle's."""
    problem = PROBLEMS[name]
    random, arms = np.random.default_rng(5), problem.problem.arms
    noise = random.gumbel(size=(LIVE_ROUNDS, arms)).tolist()
    shares, luck = random.random(LIVE_ROUNDS).tolist(), random.random((LIVE_ROUNDS, 3)).tolist()
    words = list(islice(naive.words(1, 0, 2), LIVE_ROUNDS))
    game = (arms, problem.reward, noise, shares, luck)
    played = list(live_game(case.policy, *game, iter(words)))
    assert played == list(naive_memory.play(case.make, *game, iter(words))), f"a live game on {name}"
