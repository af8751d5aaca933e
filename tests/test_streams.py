"""Random words: the published generator, seeded so that no two streams are alike."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
import pytest
from scipy import stats

import naive
import rightarm as ra
from compiled import U32
from naive import F64
from rightarm.noise import Gaussian
from rightarm.noise.law import compiled_law
from rightarm.simulation.engine import Run, Start
from rightarm.streams import ROLES, Streams, draw_words, fill_luck, initial_state, initial_stream, initial_streams


def first_words(state: U32, size: int) -> U32:
    """The first words of every lane, a column for each; the state itself is left alone."""
    out = np.empty((size, state.shape[1]), np.uint32)
    draw_words(state.copy(), out)
    return out


def test_the_generator_is_the_published_one() -> None:
    """From the authors' C code, started at 1, 2, 3, 4."""
    published = [
        641,
        1573767,
        3222811527,
        3517856514,
        836907274,
        4247214768,
        3867114732,
        1355841295,
        495546011,
        621204420,
    ]
    assert list(islice(naive.xoshiro128([1, 2, 3, 4]), 10)) == published
    state = np.repeat(np.array([[1], [2], [3], [4]], np.uint32), 16, axis=1)
    assert (first_words(state, 10) == np.array(published)[:, None]).all()


@pytest.mark.parametrize("role", range(3), ids=Streams._fields)
def test_words_are_those_of_the_seed_tree(role: int) -> None:
    words = first_words(initial_streams(2017, 100, 32)[role], 50)
    for lane in (0, 9, 31):
        assert words[:, lane].tolist() == list(islice(naive.words(2017, 100 + lane, role), 50))


@pytest.mark.parametrize("seed", [0, 5, 2**32 - 1, 2**32, 2**127 + 3, 2**128, 2**200 + 11])
@pytest.mark.parametrize("first", [0, 2**32 - 4, 2**32 - 2, 2**40])
def test_states_are_those_of_the_seed_tree(seed: int, first: int) -> None:
    """By NumPy's SeedSequence, whether they are made together or, from 2³² on, one by one."""
    for number, role in enumerate(ROLES):
        states = initial_stream(seed, role, first, 4)
        for lane in range(4):
            tree = np.random.SeedSequence(seed, spawn_key=(first + lane, number))
            assert states[:, lane].tolist() == tree.generate_state(4).tolist()


def test_a_stream_goes_on_where_it_stopped() -> None:
    state = initial_streams(1, 0, 16).policy
    whole = first_words(state, 30)
    parts = np.empty_like(whole)
    for first, end in ((0, 1), (1, 18), (18, 30)):
        draw_words(state, parts[first:end])
    np.testing.assert_array_equal(parts, whole)


def test_no_two_streams_share_a_window() -> None:
    """The first 1,000 words of all roles of 2,000 replications: no pair of successive words occurs twice.

    There are 8·10⁶ pairs of 64 bits, so two would be equal by chance with probability 2·10⁻⁶.
    """
    streams = [initial_stream(12345, role, 0, 2_000) for role in ROLES]
    words = np.concatenate([first_words(state, 1_000) for state in streams], axis=1).astype(np.uint64)
    pairs = np.sort((words[:-1] << np.uint64(32) | words[1:]).ravel())
    assert (np.diff(pairs) > 0).all()


def test_seeds_do_not_collide() -> None:
    """Neighbouring, large, and wrapped-round seeds start every replication and role differently."""
    seeds = [*range(60), 2**32, 2**32 + 1, 2**64, 2**64 - 1, 2**96, 2**127 + 1, 2**128]
    states = {
        initial_state(seed, replication, role).tobytes()
        for seed in seeds
        for replication in (*range(20), 2**31)
        for role in ROLES
    }
    assert len(states) == len(seeds) * 21 * len(ROLES)


def correlations(x: F64, y: F64) -> F64:
    """√n times the correlation of each column of x with that of y: standard Gaussian if they are independent."""
    variance = 1 / 12
    z: F64 = ((x - 0.5) * (y - 0.5)).mean(axis=0) * math.sqrt(len(x)) / variance
    return z


def check_correlations(z: F64) -> None:
    """Neither their sum nor the sum of their squares, χ², is out of the ordinary."""
    assert abs(z.sum()) / math.sqrt(z.size) < 4.5
    assert abs((z**2).sum() - z.size) / math.sqrt(2 * z.size) < 4.5


@pytest.mark.parametrize("role", range(3), ids=Streams._fields)
def test_words_are_uncorrelated(role: int) -> None:
    """Along a stream at several lags, between all pairs of 64 replications."""
    u = first_words(initial_streams(8, 0, 64)[role], 50_000) / 2.0**32
    for lag in (1, 2, 3, 10):
        check_correlations(correlations(u[lag:], u[:-lag]))
    for distance in range(1, 64):
        check_correlations(correlations(u[:, distance:], u[:, :-distance]))


def test_roles_are_uncorrelated() -> None:
    policy, problem, ties = (first_words(state, 20_000) / 2.0**32 for state in initial_streams(9, 0, 64))
    for x, y in ((policy, problem), (policy, ties), (problem, ties)):
        check_correlations(correlations(x, y))


def test_bits_are_fair() -> None:
    words = first_words(initial_streams(10, 0, 64).policy, 20_000)
    share = np.array([((words >> np.uint32(bit)) & np.uint32(1)).mean() for bit in range(32)])
    assert (np.abs(share - 0.5) * 2 * math.sqrt(words.size) < 4.5).all()


def luck(rounds: int, lanes: int) -> F64:
    """The simulator's uniform numbers."""
    state, words = initial_streams(4, 0, lanes).problem, np.empty((rounds, 2, lanes), np.uint32)
    uniform, w = np.empty((rounds, 2, lanes)), np.empty((rounds, lanes), np.float32)
    fill_luck(rounds, state, compiled_law(Gaussian()), True, False, False, words, uniform, w)
    return uniform[:, 0]


def test_uniform_numbers() -> None:
    u = luck(20_000, 64)
    assert u.min() > 0
    assert u.max() < 1
    assert stats.kstest(u.ravel(), "uniform").pvalue > math.erfc(4.5 / math.sqrt(2))
    check_correlations(correlations(u[1:], u[:-1]))
    words = list(islice(naive.words(4, 5, 1), 6))
    assert u[:3, 5].tolist() == [naive.uniform_of(*words[i : i + 2]) for i in (0, 2, 4)]


def test_certain_rewards_are_certain() -> None:
    """u is strictly between 0 and 1, so a mean of 0 never pays and a mean of 1 always does."""
    problem = ra.problems.Bernoulli([0.0, 1.0])
    run = Run(ra.Boltzmann(1e9), problem, Start((0, 0), (0.0, 0.0)), 6, 0, 64, np.array([10_000]))
    run.advance(10_000)
    assert 0 < naive.uniform_of(0, 0) < naive.uniform_of(2**32 - 1, 2**32 - 1) < 1
    assert (run.statistics.total[0] == 0).all()
    assert (run.statistics.total[1] == run.statistics.pulls[1]).all()
    assert run.statistics.pulls.min() > 4_000
