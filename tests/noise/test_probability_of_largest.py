"""Exact probabilities of a perturbed arg max: against integrals of many digits, draws, symmetries and limits."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from few import few
from rightarm.noise import Beta, Exponential, Gaussian, Gumbel, Law, Uniform, probability_of_largest

LAWS: list[Law] = [Gumbel(), Gaussian(), Exponential(), Uniform()]
TENTHS = np.arange(10) / 10
SQUARES = (np.arange(10) + 1.0) ** 2


def scales(pulls: Any) -> Any:
    return 0.5 / np.sqrt(np.asarray(pulls, dtype=float))


# Reference values by mpmath with 30 digits, scale 0.5/√pulls: law, means, pulls, location of the noise, arm, value.
REFERENCES: list[tuple[Law, Any, Any, float, int, float]] = [
    (Gumbel(), [0.6, 0.5], [4, 4], 0.0, 0, 0.59868766011245198),
    (Gumbel(), [0.6, 0.5], [1, 100], 0.0, 0, 0.68396777654932802),
    (Gumbel(), [0.6, 0.5], [1, 100], 0.5772156649015329, 0, 0.85404043791727407),
    (Gumbel(), [0.5, 0.4], [1e8, 1], 0.0, 1, 0.55898813416476369),
    (Gumbel(), [0.2, 0.9], [400, 400], 0.0, 0, 6.9144001069354298e-13),
    (Gumbel(), [0.3, 0.9], [2500, 4], 0.0, 0, 2.4659912916670298e-5),
    (Gumbel(), TENTHS, SQUARES, 0.0, 0, 0.13992804742296177),
    (Gumbel(), TENTHS, SQUARES, 0.0, 9, 0.65922110495323634),
    (Gaussian(), [0.6, 0.5], [1, 100], 0.0, 0, 0.57887153687358428),
    (Gaussian(), TENTHS, SQUARES, 0.0, 0, 0.036034887422754203),
]


@pytest.mark.parametrize(("law", "means", "pulls", "shift", "arm", "value"), REFERENCES)
def test_reference_values(law: Law, means: Any, pulls: Any, shift: float, arm: int, value: float) -> None:
    scale = scales(pulls)
    location = np.asarray(means) + shift * scale
    assert probability_of_largest(law, location, scale)[arm] == pytest.approx(value, rel=1e-12)


# The naive oracle: the integral as it is written, cut where a density bends, by mpmath.

BENDS = {
    Gumbel: (-5, -4, -3, -2, -1, 0, 1, 2, 4, 8, 16, 30, 60),
    Gaussian: (-14, -10, -7, -5, -3, -1.5, 0, 1.5, 3, 5, 7, 10, 14),
    Exponential: (0, 1e-9, 1e-6, 1e-4, 1e-2, 0.1, 0.5, 1, 2, 4, 8, 16, 30, 60),
    Uniform: (-1, 1),
}


def density(law: Law, u: Any) -> Any:
    if isinstance(law, Gumbel):
        return mp.exp(-u - mp.exp(-u))
    if isinstance(law, Gaussian):
        return mp.npdf(u)
    if isinstance(law, Exponential):
        return mp.exp(-u) if u > 0 else mp.mpf(0)
    return mp.mpf(0.5) if -1 < u < 1 else mp.mpf(0)


def distribution(law: Law, u: Any) -> Any:
    if isinstance(law, Gumbel):
        return mp.exp(-mp.exp(-u))
    if isinstance(law, Gaussian):
        return mp.ncdf(u)
    if isinstance(law, Exponential):
        return -mp.expm1(-u) if u > 0 else mp.mpf(0)
    return min(mp.mpf(1), max(mp.mpf(0), (1 + u) / 2))


def naive(law: Law, location: Any, scale: Any, arm: int) -> Any:
    m, s = [mp.mpf(float(x)) for x in location], [mp.mpf(float(x)) for x in scale]

    def integrand(x: Any) -> Any:
        value = density(law, (x - m[arm]) / s[arm]) / s[arm]
        for j in range(len(m)):
            value *= 1 if j == arm else distribution(law, (x - m[j]) / s[j])
        return value

    bends = BENDS[type(law)]
    ends = (m[arm] + bends[0] * s[arm], m[arm] + bends[-1] * s[arm])
    low = max([ends[0], *(m[j] + bends[0] * s[j] for j in range(len(m)))]) if not isinstance(law, Gaussian) else ends[0]
    cuts = {m[j] + bend * s[j] for j in range(len(m)) for bend in bends}
    points = [low, *sorted(cut for cut in cuts if low < cut < ends[1]), ends[1]]
    return mp.quad(integrand, points) if low < ends[1] else mp.mpf(0)


def nasty(seed: int) -> tuple[Any, Any]:
    """Pulls from 1 to 10⁹ in one problem, means near and far."""
    random = np.random.default_rng(seed)
    arms = int(random.integers(2, 4))
    pulls = np.exp(random.uniform(0, math.log(1e9), arms)).round()
    return random.normal(0.0, random.choice([1e-5, 1e-3, 0.1, 1.0]), arms), scales(pulls)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("seed", few(3, range(8)))
def test_against_many_digits(law: Law, seed: int) -> None:
    location, scale = nasty(seed)
    found = probability_of_largest(law, location, scale)
    assert abs(found.sum() - 1) < 1e-12
    with mp.workdps(20):
        for arm in range(location.size):
            expected = naive(law, location, scale, arm)
            assert abs(found[arm] - expected) < 1e-12
            if expected > 1e-12:
                assert abs(found[arm] / expected - 1) < 1e-8


def beta_pair(a: tuple[int, int], b: tuple[int, int]) -> Any:
    """log P[a beta variable of shapes b is larger than one of shapes a], a sum over b's first shape."""

    def log_beta(x: int, y: int) -> Any:
        return mp.loggamma(x) + mp.loggamma(y) - mp.loggamma(x + y)

    terms = (
        mp.exp(log_beta(a[0] + i, a[1] + b[1]) - mp.log(b[1] + i) - log_beta(1 + i, b[1]) - log_beta(*a))
        for i in range(b[0])
    )
    return mp.log(mp.fsum(terms))


@pytest.mark.parametrize("seed", range(20))
def test_two_beta_laws(seed: int) -> None:
    random = np.random.default_rng(seed)
    large = [int(x) for x in np.exp(random.uniform(0, math.log(1e9), 3))]
    a, b = (large[0], large[1]), (int(random.integers(1, 100)), large[2])
    with mp.workdps(40):
        expected = beta_pair(a, b)
    shapes = [a[0], b[0]], [a[1], b[1]]
    found = probability_of_largest(Beta(), *shapes)
    assert abs(found[1] - mp.exp(expected)) < 1e-12
    assert abs(found.sum() - 1) < 1e-10


def test_three_beta_laws() -> None:
    a, b = [3, 1, 40], [5, 1, 60]
    found = probability_of_largest(Beta(), a, b)
    with mp.workdps(20):
        for i in range(3):
            others = [j for j in range(3) if j != i]

            def integrand(x: Any, i: int = i, others: list[int] = others) -> Any:
                value = x ** (a[i] - 1) * (1 - x) ** (b[i] - 1) / mp.beta(a[i], b[i])
                return value * mp.fprod(mp.betainc(a[j], b[j], 0, x, regularized=True) for j in others)

            assert abs(found[i] / mp.quad(integrand, [0, 0.2, 0.4, 0.6, 1]) - 1) < 1e-11


@pytest.mark.parametrize(("a", "b"), [(5e8, 5e8), (1.0, 1e9), (1e9, 1.0), (1.0, 1.0), (0.5, 0.5)])
def test_equal_beta_laws_share(a: float, b: float) -> None:
    np.testing.assert_allclose(probability_of_largest(Beta(), [a] * 4, [b] * 4), 0.25, rtol=1e-10)


def test_beta_laws_of_small_shapes() -> None:
    """On the scale of log-odds they are long: e^(x/100) for thousands of units."""
    np.testing.assert_allclose(probability_of_largest(Beta(), [0.01] * 3, [0.01] * 3), 1 / 3, rtol=1e-10)


# Symmetries.

arms = st.integers(2, 12)


@st.composite
def problems(draw: Any) -> tuple[Law, Any, Any]:
    law = draw(st.sampled_from(LAWS))
    count = draw(arms)
    numbers = st.floats(-2.0, 2.0, allow_subnormal=False)
    location = draw(st.lists(numbers, min_size=count, max_size=count))
    exponents = draw(st.lists(st.floats(0.0, 9.0), min_size=count, max_size=count))
    return law, np.array(location), scales(10.0 ** np.round(np.array(exponents), 1))


@given(problems(), st.randoms(use_true_random=False))
def test_relabelling_arms_relabels_probabilities(problem: Any, random: Any) -> None:
    law, location, scale = problem
    order = random.sample(range(location.size), location.size)
    found = probability_of_largest(law, location, scale)
    assert abs(found.sum() - 1) < 1e-10
    np.testing.assert_allclose(
        probability_of_largest(law, location[order], scale[order]), found[order], rtol=1e-9, atol=1e-13
    )


@given(problems(), st.floats(0.0, 1.0))
def test_a_larger_mean_has_a_larger_probability(problem: Any, more: float) -> None:
    law, location, scale = problem
    raised = location.copy()
    raised[0] += more
    before, after = probability_of_largest(law, location, scale), probability_of_largest(law, raised, scale)
    assert after[0] >= before[0] - 1e-13
    assert (after[1:] <= before[1:] + 1e-13).all()


@given(problems(), st.sampled_from([-4.0, 0.5, 8.0]), st.sampled_from([2.0**-10, 0.25, 2.0**20]))
def test_shift_and_common_scale_change_nothing(problem: Any, shift: float, factor: float) -> None:
    law, location, scale = problem
    location = np.round(location, 6)
    found = probability_of_largest(law, location, scale)
    moved = probability_of_largest(law, factor * (location + shift), factor * scale)
    np.testing.assert_allclose(moved, found, atol=1e-9)  # the shift rounds locations, and scales go down to 1.6e-5


# Scales of zero, ties, and many arms.


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_scales_of_zero(law: Law) -> None:
    """Score 0.3 for sure, twice, against one noisy arm: it wins if its score is above."""
    found = probability_of_largest(law, [0.3, 0.2, 0.3, 0.1], [0.0, 0.5, 0.0, 0.0])
    below = law.cdf((0.3 - 0.2) / 0.5)
    np.testing.assert_allclose(found, [below / 2, 1 - below, below / 2, 0.0], rtol=1e-12)


def test_gaussian_scales_whose_inverse_is_infinite() -> None:
    found = probability_of_largest(Gaussian(), [0.3, 0.3, 0.3], [1e-310, 1e-310, 1.0])
    np.testing.assert_allclose(found, [0.25, 0.25, 0.5], rtol=1e-12)


@pytest.mark.parametrize("law", [*LAWS, None], ids=str)
def test_fair_ties_without_noise(law: Law | None) -> None:
    assert probability_of_largest(law, [1.0, 2.0, 2.0, -math.inf], [0.0] * 4).tolist() == [0.0, 0.5, 0.5, 0.0]
    assert probability_of_largest(law, [-math.inf, 2.0, 2.0], [0.0, 1.0, 1.0]).tolist() == pytest.approx(
        [0.0, 0.5, 0.5], abs=1e-12
    )
    assert probability_of_largest(law, [-math.inf] * 2, [0.0, 1.0]).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_many_arms(law: Law) -> None:
    random = np.random.default_rng(1)
    count = 300
    pulls = random.integers(1, 40, count).astype(float)
    found = probability_of_largest(law, random.random(count), scales(pulls))
    assert abs(found.sum() - 1) < 1e-10
    np.testing.assert_allclose(probability_of_largest(law, np.zeros(count), np.ones(count)), 1 / count, rtol=1e-10)


def test_equal_scales_may_be_merged() -> None:
    """A scale changed in its last digit is not merged, and the probabilities are the same."""
    random = np.random.default_rng(2)
    location, pulls = random.random(50), random.integers(1, 6, 50).astype(float)
    scale = scales(pulls)
    apart = scale * (1 + 1e-15 * np.arange(50))
    np.testing.assert_allclose(
        probability_of_largest(Gumbel(), location, scale), probability_of_largest(Gumbel(), location, apart), rtol=1e-11
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((Gumbel(), [0.0, 1.0], [1.0]), "two rows of one length"),
        ((Gumbel(), [0.0, 1.0], [1.0, -1.0]), r"scale must be finite and not negative, got \[1.0, -1.0\]"),
        ((Gumbel(), [0.0, math.nan], [1.0, 1.0]), "location must be a number"),
        ((Beta(), [1.0, 0.0], [1.0, 1.0]), "first shapes of beta laws must be positive"),
    ],
)
def test_errors_say_what_is_wrong(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        probability_of_largest(*arguments)


def test_unknown_laws() -> None:
    class Other(Law):
        pass

    with pytest.raises(TypeError, match=r"Other\(\): its probabilities cannot be computed, because it has no cdf"):
        probability_of_largest(Other(), [0.0], [1.0])
    with pytest.raises(TypeError, match=r"law must be Gumbel\(\), .* got 'Gumbel'"):
        probability_of_largest("Gumbel", [0.0], [1.0])  # type: ignore[arg-type]


@pytest.mark.parametrize("law", [Gumbel(), Gaussian(), Exponential(), Uniform()], ids=str)
def test_any_sizes_of_locations_and_scales_give_probabilities(law: Law) -> None:
    """Zeros, subnormal numbers and giants beside usual ones; large locations beside scales that rounding swallows."""
    random = np.random.default_rng(9)
    sizes = [0.0, 1e-320, 1e-200, 1e-10, 5e-4, 0.3, 1.0, 1e15, 1e200]
    for _ in range(300):
        arms = int(random.integers(2, 6))
        location = random.choice([-1.0, 1.0], arms) * random.choice(sizes, arms)
        scale = random.choice(sizes, arms)
        found = probability_of_largest(law, location, scale)
        assert abs(found.sum() - 1) < 1e-9, (location, scale, found)
    assert probability_of_largest(law, [3e14, 3e14], [2.4e-4, 6.7e-13]).sum() == pytest.approx(1, abs=1e-9)
    assert probability_of_largest(law, [0.3, 0.0], [5e-4, 0.0]).tolist() == pytest.approx([1.0, 0.0], abs=1e-9)


def test_exponential_scales_over_hundreds_of_decades() -> None:
    """Of three arms from one point on, by inclusion and exclusion; sums in many other states."""
    for scale in ([1.0, 1e-60, 1e30], [1e-200, 1e-120, 1e-150], [1e100, 1e99, 1e-5]):
        found = probability_of_largest(Exponential(), [0.0, 0.0, 0.0], scale)
        for i in range(3):
            s = [mp.mpf(scale[i]), *(mp.mpf(x) for j, x in enumerate(scale) if j != i)]
            parts = [1 / (s[0] * (1 / s[0] + rate)) for rate in (1 / s[1], 1 / s[2], 1 / s[1] + 1 / s[2])]
            with mp.workdps(300):
                expected = 1 - parts[0] - parts[1] + parts[2]
            assert abs(found[i] - expected) < 1e-12
    random = np.random.default_rng(12)
    for _ in range(2_000):
        arms, size = int(random.integers(2, 7)), random.choice([5, 30, 150, 290])
        location = random.choice([-1, 0, 1], arms) * 10.0 ** random.uniform(-size, size, arms)
        spread = 10.0 ** random.uniform(-size, size, arms)
        found = probability_of_largest(Exponential(), location, spread)
        assert abs(found.sum() - 1) < 1e-12, (location, spread, found)


@pytest.mark.parametrize("law", [*LAWS, None], ids=str)
def test_infinite_scores_share(law: Law | None) -> None:
    assert probability_of_largest(law, [math.inf, 1.0, math.inf, -math.inf], [0.0, 1.0, 2.0, 1.0]).tolist() == [
        0.5,
        0.0,
        0.5,
        0.0,
    ]


# Beta laws: sums, and what a live bandit keeps.


@pytest.mark.parametrize("arms", [1, 2, 10, 300])
def test_probabilities_of_beta_laws_add_up_to_one(arms: int) -> None:
    random = np.random.default_rng(13)
    for least, most in ((0, 1), (0, 4), (0, 9), (-1, 0), (-2, 1)):
        for _ in range(4):
            a, b = 10.0 ** random.uniform(least, most, (2, arms))
            for shapes in ((a, b), (np.full(arms, a[0]), np.full(arms, b[0]))):
                found = probability_of_largest(Beta(), *shapes)
                assert abs(found.sum() - 1) < 1e-10
                assert found.max() <= 1.0
            np.testing.assert_allclose(found, 1 / arms, rtol=1e-9)


def naive_beta(a: Any, b: Any, arm: int) -> Any:
    """The integral over θ as it is written, cut where densities bend."""

    def integrand(x: Any) -> Any:
        value = x ** (a[arm] - 1) * (1 - x) ** (b[arm] - 1) / mp.beta(a[arm], b[arm])
        return value * mp.fprod(mp.betainc(a[j], b[j], 0, x, regularized=True) for j in range(len(a)) if j != arm)

    cuts = {0.0, 1.0}
    for first, second in zip(a, b, strict=True):
        mean = first / (first + second)
        width = math.sqrt(mean * (1 - mean) / (first + second + 1))
        cuts |= {x for x in (mean + k * width for k in (-9, -5, -2, 0, 2, 5, 9)) if 0 < x < 1}
    return mp.quad(integrand, sorted(cuts))


@pytest.mark.parametrize("seed", few(1, range(4)))
def test_beta_laws_against_many_digits(seed: int) -> None:
    random = np.random.default_rng(seed)
    pulls = np.exp(random.uniform(0, math.log(300), 3))
    wins = pulls * random.random(3)
    a, b = (1 + wins).tolist(), (1 + pulls - wins).tolist()
    found = probability_of_largest(Beta(), a, b)
    with mp.workdps(20):
        for arm in range(3):
            expected = naive_beta(a, b, arm)
            assert abs(found[arm] - expected) < 1e-11
            assert expected < 1e-12 or abs(found[arm] / expected - 1) < 1e-8


def test_what_is_kept_of_beta_laws_is_never_seen() -> None:
    """The same to the last bit as without, whatever was asked before: wins and losses, parts of them, other arms."""
    random = np.random.default_rng(14)
    solver = Beta().cached_solver()
    a, b = np.ones(6), np.ones(6)
    for t in range(400):
        count = 6 if t % 50 < 45 else 4
        arm, won = int(random.integers(count)), random.random() if t % 7 == 0 else float(random.random() < 0.6)
        a[arm] += won
        b[arm] += 1 - won
        if t % 90 == 89:
            a, b = 1 + 0.5 * (a - 1), 1 + 0.5 * (b - 1)
        found = np.empty(count)
        assert solver(a[:count].copy(), b[:count].copy(), found) == count
        assert found.tolist() == probability_of_largest(Beta(), a[:count], b[:count]).tolist()
