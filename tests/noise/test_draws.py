"""The laws of noise: every one of the 2³² draws against the exact quantile, and streams of draws against the law."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import special, stats

import rightarm as ra
from compiled import U32, draws
from naive import F64
from rightarm.noise import Exponential, Gaussian, Gumbel, Law, Uniform
from rightarm.streams import draw_words, initial_streams

WORDS = 1 << 32
BLOCK = 1 << 22
LAWS: list[Law] = [Gumbel(), Gaussian(), Exponential(), Uniform()]
# Of a draw: one unit in the last place of 22.9, the largest of two laws, four of 6.3, and half of one just below 1.
ERROR = {Gumbel(): 2.0**-19, Gaussian(): 2.0**-19, Exponential(): 2.0**-19, Uniform(): 2.0**-24}
# Units in the last place by which the next word may fall behind.
DOWNWARD_STEP = {Gumbel(): 0, Gaussian(): 2, Exponential(): 1, Uniform(): 0}
THRESHOLDS = {
    Gumbel(): (5.0, 10.0, 15.0),
    Gaussian(): (2.0, 3.0, 4.0, 5.0),
    Exponential(): (5.0, 10.0, 15.0),
    Uniform(): (0.5, 0.9995, 0.99995),
}
CDFS = {
    Gumbel(): stats.gumbel_r.cdf,
    Gaussian(): stats.norm.cdf,
    Exponential(): stats.expon.cdf,
    Uniform(): stats.uniform(-1, 2).cdf,
}


def span(first: int, end: int, step: int = 1) -> U32:
    return np.arange(first, end, step, dtype=np.uint64).astype(np.uint32)


def exact_quantiles(law: Law, words: U32) -> F64:
    """The quantile at (word + ½) / 2³², in float64; the upper half from 1 − u, which has more digits there."""
    below = (words.astype(float) + 0.5) / WORDS
    above = (WORDS - 0.5 - words.astype(float)) / WORDS
    halves: dict[Law, Callable[[], tuple[F64, F64]]] = {
        Gumbel(): lambda: (-np.log(-np.log(below)), -np.log(-np.log1p(-above))),
        Gaussian(): lambda: (special.ndtri(below), -special.ndtri(above)),
        Exponential(): lambda: (-np.log1p(-below), -np.log(above)),
        Uniform(): lambda: (2 * below - 1, 1 - 2 * above),
    }
    exact: F64 = np.where(below < 0.5, *halves[law]())
    return exact


def tail(law: Law, z: float) -> float:
    """P[Z > z], small values with all their digits."""
    return {
        Gumbel(): -math.expm1(-math.exp(-z)),
        Gaussian(): math.erfc(z / math.sqrt(2)) / 2,
        Exponential(): math.exp(-z),
        Uniform(): (1 - z) / 2,
    }[law]


def density(law: Law, z: float) -> float:
    return {
        Gumbel(): math.exp(-z - math.exp(-z)),
        Gaussian(): math.exp(-z * z / 2) / math.sqrt(2 * math.pi),
        Exponential(): math.exp(-z),
        Uniform(): 0.5,
    }[law]


def check_block(law: Law, words: U32) -> dict[float, int]:
    """A block of successive words is near the exact quantiles and does not fall; returns how many exceed thresholds."""
    z = draws(law, words)
    assert np.abs(z - exact_quantiles(law, words)).max() < ERROR[law]
    assert (np.diff(z) >= -DOWNWARD_STEP[law] * np.spacing(np.abs(z[1:]))).all()
    return {threshold: int(np.count_nonzero(z > threshold)) for threshold in THRESHOLDS[law]}


def check_tail_count(law: Law, threshold: float, count: int) -> None:
    """As many words as the law says, but for one, and those nearer to the threshold than the error of a draw."""
    expected = WORDS * tail(law, threshold)
    assert abs(count - expected) <= WORDS * density(law, threshold) * ERROR[law] + 1
    assert abs(count - expected) <= 0.01 * expected


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_draws_are_quantiles(law: Law) -> None:
    """All words of both tails, the middle, the places where the formula changes its branch, and every 1009th word."""
    check_block(law, span(0, WORDS, 1009))
    quarter = WORDS // 4
    for middle in (quarter, 2 * quarter, 3 * quarter):
        check_block(law, span(middle - BLOCK // 8, middle + BLOCK // 8))
    check_block(law, span(0, BLOCK))
    counts = check_block(law, span(WORDS - BLOCK, WORDS))
    inside = [threshold for threshold in THRESHOLDS[law] if WORDS * tail(law, threshold) < BLOCK / 2]
    assert len(inside) == 2
    for threshold in inside:
        check_tail_count(law, threshold, counts[threshold])


@pytest.mark.full
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_all_draws_are_quantiles(law: Law) -> None:
    """All 2³² of them; blocks overlap by a word, so that no step between two is left out."""
    totals = dict.fromkeys(THRESHOLDS[law], 0)
    draws(law, span(0, 1))  # compiles

    def check(first: int) -> dict[float, int]:
        words = span(first, min(first + BLOCK + 1, WORDS))
        counts = check_block(law, words)
        return counts if words.size == BLOCK else {x: n - int(draws(law, words[-1:])[0] > x) for x, n in counts.items()}

    with ThreadPoolExecutor(2) as pool:
        for counts in pool.map(check, range(0, WORDS, BLOCK)):
            for threshold, count in counts.items():
                totals[threshold] += count
    for threshold, count in totals.items():
        check_tail_count(law, threshold, count)


def test_tails_reach_the_last_word() -> None:
    ends = np.array([0, WORDS - 1], np.uint32)
    assert draws(Gumbel(), ends).tolist() == pytest.approx(
        [-math.log(33 * math.log(2)), 33 * math.log(2)], abs=2.0**-19
    )
    low, high = draws(Gaussian(), ends).tolist()
    assert low == -high
    assert high == pytest.approx(-special.ndtri(2.0**-33), abs=2.0**-19)
    assert draws(Exponential(), ends).tolist() == pytest.approx([2.0**-33, 33 * math.log(2)], rel=1e-7)
    assert draws(Uniform(), ends).tolist() == [-1.0, 1.0]  # the nearest of float32
    assert draws(Uniform(), np.array([WORDS // 2 - 1, WORDS // 2], np.uint32)).tolist() == [-(2.0**-32), 2.0**-32]


def test_small_exponential_draws_have_all_their_digits() -> None:
    words = np.unique(np.geomspace(1, WORDS // 2, 100_000).astype(np.uint32))
    np.testing.assert_allclose(draws(Exponential(), words), exact_quantiles(Exponential(), words), rtol=2.0**-22)


# Of every 1009th word and both ends, at the first release of each law: results of old seeds must not change.
DIGESTS = {Gumbel(): "e0021a8fe23c3ae0", Gaussian(): "9ff4bbebc1d6623a"}


@pytest.mark.parametrize("law", DIGESTS, ids=str)
def test_draws_are_what_they_were(law: Law) -> None:
    words = np.concatenate([span(0, WORDS, 1009), span(0, 1 << 16), span(WORDS - (1 << 16), WORDS)])
    assert hashlib.sha256(draws(law, words).tobytes()).hexdigest()[:16] == DIGESTS[law]


# Streams, as the simulator draws them.

LANES, ROWS = 64, 1 << 13


def count_above(law: Law, seed: int, first: int, blocks: int) -> list[int]:
    """How many of blocks × LANES × ROWS successive draws of replications ``first`` on exceed the law's thresholds."""
    state, words = initial_streams(seed, first, LANES).policy, np.empty((ROWS, LANES), np.uint32)
    counts = [0] * len(THRESHOLDS[law])
    for _ in range(blocks):
        draw_words(state, words)
        z = draws(law, words)
        counts = [count + int(np.count_nonzero(z > x)) for count, x in zip(counts, THRESHOLDS[law], strict=True)]
    return counts


def check_stream_tails(law: Law, draws_per_thread: int, threads: int = 2) -> None:
    blocks = math.ceil(draws_per_thread / (LANES * ROWS))
    count_above(law, 1, 0, 1)  # compiles
    with ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(lambda i: count_above(law, 99, i * LANES, blocks), range(threads)))
    size = threads * blocks * LANES * ROWS
    for threshold, count in zip(THRESHOLDS[law], np.sum(parts, axis=0), strict=True):
        p = tail(law, threshold)
        assert abs(count - size * p) / math.sqrt(size * p * (1 - p)) < 4.5, (
            f"beyond {threshold}: {count}, not {size * p}"
        )


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_tails_of_streams(law: Law) -> None:
    """Enough draws for a standard error of a percent at z = 10 (Gumbel) and z = 4 (Gaussian)."""
    check_stream_tails(law, 125 * 10**6)


@pytest.mark.full
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_far_tails_of_streams(law: Law) -> None:
    """Enough draws for a standard error of a percent at z = 15 (Gumbel) and z = 5 (Gaussian)."""
    check_stream_tails(law, 18 * 10**9)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_streams_follow_the_law(law: Law) -> None:
    """Kolmogorov and Smirnov's distance, at the level of 4.5 standard errors."""
    words = np.empty((1 << 16, LANES), np.uint32)
    draw_words(initial_streams(3, 0, LANES).policy, words)
    assert stats.kstest(draws(law, words).ravel().astype(float), CDFS[law]).pvalue > math.erfc(4.5 / math.sqrt(2))


# P[arm 0 has the largest score] for means (0.6, 0.5), pulls (1, 100), scale 0.5/√pulls: by mpmath or by hand.
TWO_ARMS = {
    "gumbel at 0": (Gumbel(), 0.0, 0.68396777654932802),
    "gumbel at γ": (Gumbel(), 0.5772156649015329, 0.85404043791727407),
    "gaussian": (Gaussian(), 0.0, 0.57887153687358428),
    "exponential": (Exponential(), 0.0, 1 - math.exp(-2) / 11),  # P[E' < 2 + 10 E]
    "uniform": (Uniform(), 0.0, 0.6),  # P[U > (U' − 2) / 10]
}


@pytest.mark.parametrize(("law", "location", "probability"), TWO_ARMS.values(), ids=TWO_ARMS)
def test_arg_max_of_draws_has_its_exact_probability(law: Law, location: float, probability: float) -> None:
    words = np.empty((1 << 18, LANES), np.uint32)
    draw_words(initial_streams(5, 0, LANES).policy, words)
    z = draws(law, words).astype(float) + location
    first = 0.6 + 0.5 * z[0::2] > 0.5 + 0.05 * z[1::2]
    assert abs(first.mean() - probability) * math.sqrt(first.size / (probability * (1 - probability))) < 4.5


# The laws as Python objects.


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_cdf_inverts_the_quantile(law: Law) -> None:
    words = span(0, WORDS, WORDS // 1000)
    levels = [law.cdf(float(x)) for x in exact_quantiles(law, words)]
    np.testing.assert_allclose(levels, (words + 0.5) / WORDS, rtol=1e-10)


def test_laws_compare_by_kind() -> None:
    assert ra.noise.Gumbel() == Gumbel() != Gaussian()
    assert len({Gumbel(), Gumbel(), Gaussian()}) == 2
    assert [repr(law) for law in LAWS] == ["Gumbel()", "Gaussian()", "Exponential()", "Uniform()"]
    assert len(set(LAWS)) == len(LAWS)
