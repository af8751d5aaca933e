"""Beta–Thompson sampling: its draws are hashed from noise and round, so it is their law that is tested."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from scipy import stats

import compiled
import naive
import rightarm as ra
from naive import F64, I64
from rightarm.noise import Uniform

DRAWS = 100_000
CERTAIN = math.erfc(4.5 / math.sqrt(2))  # the level of 4.5 standard errors
SHAPES = [(1, 1), (1, 2), (2, 1), (1.25, 1.75), (3, 8), (50, 1), (1, 1_000), (300, 700), (10**6, 10**6), (10**6, 5)]


@functools.cache
def words() -> F64:
    noise = np.random.default_rng(8).integers(0, 2**32, DRAWS).astype(np.uint32)
    return compiled.draws(Uniform(), noise).astype(float)


def draws(a: float, b: float, t: int) -> F64:
    """Compiled draws from Beta(a, b), one for each word of noise; an arm with a − 1 wins in a + b − 2 pulls."""
    pulls = a + b - 2
    mean = (a - 1) / pulls if pulls else 0.0
    return compiled.scores(ra.BetaThompson(), t, [pulls] * DRAWS, [mean] * DRAWS, words())  # type: ignore[arg-type, list-item]


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_draws_follow_the_beta_law(a: float, b: float) -> None:
    sample = draws(a, b, t=max(2, int(a + b)))
    assert stats.kstest(sample, stats.beta(a, b).cdf).pvalue > CERTAIN
    n = a + b
    mean, variance = a / n, a * b / (n**2 * (n + 1))
    excess = 6 * ((a - b) ** 2 * (n + 1) - a * b * (n + 2)) / (a * b * (n + 2) * (n + 3))
    assert abs(sample.mean() - mean) / math.sqrt(variance / DRAWS) < 4.5
    error = variance * math.sqrt((excess + 2) / DRAWS)  # of a sample variance
    assert abs(((sample - mean) ** 2).mean() - variance) / error < 4.5
    assert 0 < sample.min() < sample.max() < 1


@pytest.mark.parametrize(("a", "b"), [(1, 1), (3, 8), (300, 700)])
def test_the_far_ends_of_the_law(a: float, b: float) -> None:
    """As many draws beyond the quantiles at 10⁻³ as there should be."""
    sample = draws(a, b, t=77)
    for count in ((sample < stats.beta(a, b).ppf(1e-3)).sum(), (sample > stats.beta(a, b).isf(1e-3)).sum()):
        assert abs(count - DRAWS * 1e-3) / math.sqrt(DRAWS * 1e-3) < 4.5


def test_rounds_draw_independently() -> None:
    """The same word of noise, in one round and the next, and in rounds with few bits in common or many."""
    rows = np.array([draws(3, 8, t) for t in (1_000, 1_001, 1_024, 2_048, 10**9)])
    correlations = np.corrcoef(stats.rankdata(rows, axis=1))
    assert np.abs(correlations[np.triu_indices(5, 1)]).max() * math.sqrt(DRAWS) < 4.5


def test_neighbouring_noise_draws_independently() -> None:
    noise = np.nextafter(words().astype(np.float32), np.float32(2)).astype(float)
    near = compiled.scores(ra.BetaThompson(), 12, [9] * DRAWS, [2 / 9] * DRAWS, noise)  # type: ignore[arg-type]
    here = draws(3, 8, t=12)
    assert abs(float(np.corrcoef(stats.rankdata([here, near], axis=1))[0, 1])) * math.sqrt(DRAWS) < 4.5


def test_live_draws_are_the_compiled_ones() -> None:
    z = words()[:500]
    live = ra.BetaThompson().scores(12, [9] * 500, [2 / 9] * 500, z)
    np.testing.assert_allclose(live, draws(3, 8, t=12)[:500], rtol=1e-12)


def test_rewards_outside_count_as_the_nearest() -> None:
    low, high = ra.BetaThompson().scores(2_000, [1_000, 1_000], [-3.0, 5.0], [0.25, 0.5])
    assert low < 0.02
    assert high > 0.98


# Regret, against NumPy's own beta draws.


def beta_thompson(t: int, pulls: F64, means: F64, random: np.random.Generator) -> I64:
    wins = pulls * means
    chosen: I64 = np.argmax(random.beta(1 + wins, 1 + pulls - wins), axis=1)
    return chosen


@pytest.mark.parametrize(("rounds", "theirs_of"), [(1_000, 512), pytest.param(3_000, 1_024, marks=pytest.mark.full)])
def test_regret_in_distribution(rounds: int, theirs_of: int) -> None:
    """NumPy's beta draws take all the time: few rounds see less of a difference than the many of `make test-all` do."""
    means, ours_of = [0.6, 0.5, 0.4, 0.55], 2_048
    problem = ra.problems.Bernoulli(means)
    ours = ra.simulate(ra.BetaThompson(), problem, horizon=rounds, replications=ours_of, seed=7, checkpoints=1)
    theirs = naive.regret_of_many(
        beta_thompson,
        lambda t, arm, random: np.where(random.random(arm.size) < np.array(means)[arm], 1.0, 0.0),
        problem.gaps.tolist(),
        rounds,
        theirs_of,
        np.random.default_rng(11),
    )
    mine = ours.regret[0, :, -1]
    error = math.hypot(mine.std() / math.sqrt(ours_of), theirs.std() / math.sqrt(theirs_of))
    assert abs(mine.mean() - theirs.mean()) / error < 4.5, f"{mine.mean():.2f}, by NumPy {theirs.mean():.2f}"
    assert stats.ks_2samp(mine, theirs).pvalue > CERTAIN
