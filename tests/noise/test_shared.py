"""Noise that all arms share: the upper envelope of lines, against exact arithmetic, draws, symmetries and limits."""

from __future__ import annotations

import json
import math
import pickle
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import Logistic, StudentT
from scipy import stats

import rightarm as ra
from few import few
from rightarm.formula import from_specification
from rightarm.noise import Exponential, Gaussian, Gumbel, HalfGaussian, Law, Shared, Uniform, probability_of_largest

LAWS: dict[Law, Any] = {
    Gaussian(): lambda x: mp.ncdf(x),
    HalfGaussian(): lambda x: mp.erf(x / mp.sqrt(2)) if x > 0 else mp.mpf(0),
    Gumbel(): lambda x: mp.exp(-mp.exp(-x)),
    Exponential(): lambda x: -mp.expm1(-x) if x > 0 else mp.mpf(0),
    Uniform(): lambda x: min(mp.mpf(1), max(mp.mpf(0), (1 + x) / 2)),
}


def naive(law: Law, location: Any, scale: Any) -> list[Any]:
    """Every line against every other, in exact arithmetic: between which points it is the largest, and P of that."""
    m, s = [Fraction(float(x)) for x in location], [Fraction(float(x)) for x in scale]
    lines, found = list(zip(m, s, strict=True)), []
    for i, (own, slope) in enumerate(lines):
        left = [(other - own) / (slope - steep) for other, steep in lines if steep < slope]
        right = [(own - other) / (steep - slope) for other, steep in lines if steep > slope]
        beaten = any(steep == slope and other > own for other, steep in lines)
        low, high = max(left, default=None), min(right, default=None)
        with mp.workdps(60):
            at = [None if x is None else mp.mpf(x.numerator) / x.denominator for x in (low, high)]
            below = mp.mpf(0) if at[0] is None else LAWS[law](at[0])
            above = mp.mpf(1) if at[1] is None else LAWS[law](at[1])
            empty = beaten or (low is not None and high is not None and low >= high)
            found.append(mp.mpf(0) if empty else (above - below) / lines.count(lines[i]))
    return found


def compare(law: Law, location: Any, scale: Any) -> None:
    """Each probability to 1e-12 of itself, but for what rounding of the two points where a line crosses others does."""
    stated, expected = probability_of_largest(Shared(law), location, scale), naive(law, location, scale)
    for arm, p in enumerate(expected):
        assert stated[arm] == pytest.approx(float(p), rel=1e-11, abs=1e-15)
    assert abs(stated.sum() - 1) < 1e-12


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("seed", few(4, range(12)))
def test_against_exact_arithmetic(law: Law, seed: int) -> None:
    random = np.random.default_rng(seed)
    arms = int(random.integers(1, 40))
    scale = 0.5 / np.sqrt(1 + np.floor(10 ** random.uniform(0, 6, arms)))
    compare(law, random.random(arms), scale)
    compare(law, random.random(arms) * scale, scale)  # close: many arms have a part of the envelope
    compare(law, -(scale**2), scale)  # each line touches a parabola: all are on the envelope
    compare(law, random.standard_normal(arms), random.standard_normal(arms))  # slopes of either sign


small = st.lists(st.tuples(st.integers(-3, 3), st.integers(-2, 2)), min_size=1, max_size=7)


@given(small, st.sampled_from(list(LAWS)))
def test_ties_and_touching_lines(lines: list[tuple[int, int]], law: Law) -> None:
    """Small whole numbers: lines that are equal, parallel, or meet in one point."""
    location, scale = (np.array(row, dtype=float) for row in zip(*lines, strict=True))
    compare(law, location, scale)


@pytest.mark.parametrize("law", [Gaussian(), HalfGaussian(), Gumbel(), Exponential()], ids=str)
def test_far_tails_have_their_digits(law: Law) -> None:
    """The second arm wins where z is beyond 5, 20, 30 and 37."""
    for far in (5.0, 20.0, 30.0, 37.0):
        location, scale = [0.0, -far], [0.0, 1.0]
        with mp.workdps(600):
            exact = 1 - LAWS[law](mp.mpf(far))
            assert probability_of_largest(Shared(law), location, scale)[1] == pytest.approx(float(exact), rel=1e-11)


def test_an_interval_far_out_on_both_sides() -> None:
    location, scale = [0.0, -30.0, -61.0], [0.0, 1.0, 2.0]
    with mp.workdps(600):
        expected = mp.ncdf(31) - mp.ncdf(30), 1 - mp.ncdf(31)
    assert probability_of_largest(Shared(Gaussian()), location, scale)[1:] == pytest.approx(
        [float(p) for p in expected], rel=1e-11
    )
    mirrored = probability_of_largest(Shared(Gaussian()), location, [0.0, -1.0, -2.0])[1:]
    assert mirrored == pytest.approx([float(p) for p in expected], rel=1e-11)


def test_limits() -> None:
    law, half = Shared(Gaussian()), Shared(HalfGaussian())
    assert probability_of_largest(law, [3.0], [0.0]).tolist() == [1.0]
    assert probability_of_largest(law, [1.0, 2.0, 2.0], [0.0] * 3).tolist() == [0.0, 0.5, 0.5]
    assert probability_of_largest(law, [np.inf, 2.0, np.inf], [0.0, 1.0, 5.0]).tolist() == [0.5, 0.0, 0.5]
    assert probability_of_largest(law, [-np.inf, 2.0], [9.0, 1.0]).tolist() == [0.0, 1.0]
    assert probability_of_largest(law, [-np.inf, -np.inf], [1.0, 2.0]).tolist() == [0.5, 0.5]
    assert probability_of_largest(law, [0.0, 0.0], [1.0, -1.0]) == pytest.approx([0.5, 0.5], abs=1e-15)
    assert probability_of_largest(law, [1.7e308, -1.7e308], [0.0, 1.0]).tolist() == [1.0, 0.0]
    assert probability_of_largest(law, [0.0, 0.0, 0.0], [0.0, 1e-300, 2e-300]) == pytest.approx(
        [0.5, 0.0, 0.5], abs=1e-15
    )
    assert probability_of_largest(half, [0.5, 0.5, 0.4], [0.1, 0.2, 0.05]).tolist() == [0.0, 1.0, 0.0]
    assert probability_of_largest(half, [0.5, 0.5], [0.1, 0.2]).tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match=r"location must be a number, got \[nan, 0.0\]"):
        probability_of_largest(law, [np.nan, 0.0], [1.0, 1.0])
    with pytest.raises(ValueError, match=r"scale must be finite, got \[inf, 1.0\]"):
        probability_of_largest(law, [0.0, 0.0], [np.inf, 1.0])


STATES = {
    "few pulls": ([1, 2, 3, 1], [0.5, 0.6, 0.2, 0.5]),
    "unequal": ([1, 30, 1_000, 1_000_000_000], [0.2, 0.45, 0.5, 0.51]),
    "the best known least": ([3, 400, 50, 50, 9], [0.9, 0.1, 0.5, 0.5, 0.89]),
}


@pytest.mark.parametrize(("pulls", "means"), STATES.values(), ids=STATES)
@pytest.mark.parametrize("name", ["randucb", "gaussian", "logistic"])
def test_a_million_draws(name: str, pulls: list[int], means: list[float]) -> None:
    size, scale, random = 1_000_000, 0.5 / np.sqrt(pulls), np.random.default_rng(5)
    if name == "randucb":
        policy, z = ra.RandUCB(C=0.5), np.abs(random.standard_normal(size))
    else:
        law: Law = Gaussian() if name == "gaussian" else Logistic()
        policy = ra.PerturbedMean(Shared(law), scale=0.5)
        z = random.standard_normal(size) if name == "gaussian" else random.logistic(size=size)
    stated = policy.probabilities(sum(pulls) + 1, pulls, means)
    scores = np.array(means)[:, None] + scale[:, None] * z
    largest = scores == scores.max(axis=0)
    counts = (largest / largest.sum(axis=0)).sum(axis=1)  # ties count in parts, which makes the spread no larger
    for count, p in zip(counts, stated, strict=True):
        assert abs(count - size * p) < 4.5 * math.sqrt(size * p * (1 - p)) + 1


def test_users_laws() -> None:
    """By their cdf."""
    law = Shared(StudentT(df=4))
    expected = stats.t(4).sf(2.0)
    assert probability_of_largest(law, [0.0, -2.0], [0.0, 1.0]) == pytest.approx([1 - expected, expected], abs=1e-12)


class NoCdf(Law):
    def quantile(self, u: Any) -> Any:
        return u


def test_errors() -> None:
    with pytest.raises(TypeError, match=r"law must be a noise law such as .*, got 3"):
        Shared(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"law must be a noise law .* call it with its parameters first"):
        Shared(Gaussian)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"NoCdf\(\): its probabilities cannot be computed"):
        probability_of_largest(Shared(NoCdf()), [0.0, 1.0], [1.0, 2.0])
    with pytest.raises(TypeError, match="learn asks for probability, which is known for scores location"):

        @ra.policy(
            noise=Shared(Gumbel()), learn={"gain": lambda gain, reward, probability: gain + reward / probability}
        )
        def weighted(gain, z):  # type: ignore[no-untyped-def]
            return gain + z


def test_as_a_value() -> None:
    law = Shared(StudentT(df=4))
    assert law == Shared(StudentT(df=4)) != Shared(StudentT(df=5))
    assert law != Shared(Gaussian()) == Shared(law=Gaussian())
    assert repr(law) == "Shared(law=StudentT(df=4.0))"
    assert len({law, Shared(StudentT(df=4)), Shared(Gaussian())}) == 2
    assert pickle.loads(pickle.dumps(law)) == law
    assert from_specification(json.loads(json.dumps(law.specification()))) == law
    saved = law.specification() | {"parameters": {"law": StudentT(df=5).specification()}}
    assert from_specification(saved) != law
    policy = ra.PerturbedMean(noise=law)
    assert from_specification(json.loads(json.dumps(policy.specification()))) == policy


def test_a_live_decision_states_the_exact_probability() -> None:
    policy = ra.RandUCB(C=0.5)
    bandit = ra.Bandit(["a", "b", "c"], policy, seed=1, floor=0.01)
    for arm, reward in (("a", 1.0), ("b", 0.0), ("c", 0.75), ("c", 0.25)):
        bandit.tell(arm=arm, reward=reward)
    decision = bandit.ask()
    exact = 0.01 + 0.97 * policy.probabilities(5, [1, 1, 2], [1.0, 0.0, 0.5])
    assert decision.propensity == pytest.approx(dict(zip("abc", exact, strict=True))[str(decision.arm)], abs=1e-12)
    assert ra.Bandit.from_json(bandit.to_json()).ask() == bandit.ask()
