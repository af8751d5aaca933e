"""Promises of every noise law of the library, found by its file: a new law is tested here by itself."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest
from scipy import stats

import rightarm as ra
from compiled import draws
from naive import F64
from rightarm.formula import from_specification
from rightarm.noise import LAWS, Gaussian, Joint, Law, Shared, probability_of_largest
from rightarm.policies.text import read_policy
from rightarm.testing import check_policy

EVERY: list[Law] = [kind(Gaussian()) if "law" in kind.parameters() else kind() for kind in LAWS.values()]
PLAIN = [law for law in EVERY if law.drawn is law]  # one draw for each arm, independent of the others
WORDS = np.arange(0, 1 << 32, 4_999_999, dtype=np.uint64).astype(np.uint32)
SURE = math.erfc(4.5 / math.sqrt(2))


def without_kernel(law: Law) -> Law:
    """Return a law with the same draws and cdf, whose probabilities are found by quadrature."""
    names = {"word_quantile": law._inherited("word_quantile"), "cdf": type(law).cdf}
    if names["word_quantile"] is None:
        names = {"quantile": type(law).quantile, "cdf": type(law).cdf}
    bare: type[Law] = type(f"Bare{type(law).__name__}", (Law,), names)
    return bare()


def test_laws_are_found_by_their_files() -> None:
    assert {"Exponential", "Gaussian", "Gumbel", "HalfGaussian", "Joint", "Shared", "Uniform"} <= LAWS.keys()
    assert LAWS.keys() <= set(ra.noise.__all__)
    assert all(getattr(ra.noise, name) is law for name, law in LAWS.items())
    assert len(set(EVERY)) == len(EVERY)


@pytest.mark.parametrize("law", EVERY, ids=str)
def test_saved_and_read_again(law: Law) -> None:
    assert law.specification()["law"] == f"rightarm.noise:{type(law).__name__}"  # whatever file it stands in
    assert from_specification(json.loads(json.dumps(law.specification()))) == law
    assert pickle.loads(pickle.dumps(law)) == law
    policy = ra.PerturbedMean(noise=law, scale=0.5)
    assert read_policy(repr(policy)) == policy


@pytest.mark.parametrize("law", PLAIN, ids=str)
def test_cdf_inverts_draws(law: Law) -> None:
    shares = [law.cdf(float(z)) for z in draws(law, WORDS)]
    np.testing.assert_allclose(shares, (WORDS + 0.5) / 2**32, atol=2e-6)


@pytest.mark.parametrize("law", EVERY, ids=str)
def test_live_draws_follow_the_cdf(law: Law) -> None:
    cdf = np.vectorize(law.cdf)
    random = np.random.default_rng(1)
    if isinstance(law, Shared):
        sample = np.array([law.sample(random, 1)[0] for _ in range(5_000)])
        assert len(set(law.sample(random, 4).tolist())) == 1
    else:
        sample = law.sample(random, 20_000)
    assert sample.dtype == np.float64
    assert stats.kstest(sample, cdf).pvalue > SURE


def numbers(seed: int) -> tuple[F64, F64]:
    """Return locations and scales, some of them equal, some scales zero."""
    random = np.random.default_rng(seed)
    arms = int(random.integers(2, 8))
    location = random.normal(0.0, random.choice([1e-3, 0.1, 1.0]), arms)
    scale = 10.0 ** random.uniform(-3.0, 0.0, arms)
    if seed % 3 == 0:
        location[0] = location[1]
    if seed % 4 == 0:
        scale[-1] = 0.0
    return location, scale


@pytest.mark.parametrize("law", PLAIN, ids=str)
def test_probabilities_are_those_of_the_cdf(law: Law) -> None:
    bare = without_kernel(law)
    for seed in range(25):
        location, scale = numbers(seed)
        expected = probability_of_largest(bare, location, scale)
        np.testing.assert_allclose(probability_of_largest(law, location, scale), expected, atol=2e-11)


@pytest.mark.parametrize("law", EVERY, ids=str)
def test_probabilities_add_up_and_equal_arms_share(law: Law) -> None:
    for seed in range(25):
        assert probability_of_largest(law, *numbers(seed)).sum() == pytest.approx(1, abs=1e-10)
    np.testing.assert_allclose(probability_of_largest(law, [0.3] * 7, [0.2] * 7), 1 / 7, atol=1e-11)
    assert probability_of_largest(law, [2.0, 2.0, 1.0], [0.0] * 3).tolist() == [0.5, 0.5, 0.0]


@pytest.mark.parametrize("law", [law for law in EVERY if not isinstance(law, Joint)], ids=str)
def test_policies_with_it_keep_their_promises(law: Law) -> None:
    check_policy(ra.PerturbedMean(noise=law, scale=0.5))
