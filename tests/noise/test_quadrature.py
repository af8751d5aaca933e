"""Probabilities from a distribution function alone: against mpmath, SciPy, the laws of the library, and draws."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from laws import THEIRS, Cauchy, Laplace, Logistic, StudentT, Triangular

import rightarm as ra
from few import few
from naive import F64
from rightarm.noise import Exponential, Gaussian, Gumbel, Law, Uniform, probability_of_largest, quadrature
from rightarm.noise.law import draws

ERROR = 1e-11


def problem(seed: int, decades: float) -> tuple[F64, F64]:
    """Locations near and far, some of them equal, and scales over some decades."""
    random = np.random.default_rng(seed)
    arms = int(random.integers(2, 5))
    location = random.normal(0.0, random.choice([1e-3, 0.1, 1.0]), arms)
    if seed % 3 == 0:
        location[1] = location[0]
    return location, 10.0 ** random.uniform(-decades, 0.0, arms)


# The integral as it is written, p_i = ∫ f_i Π F_j, cut where a law may bend.

BENDS = {
    Logistic: (-80, -40, -20, -10, -5, -2, 0, 2, 5, 10, 20, 40, 80),
    Laplace: (-80, -40, -20, -10, -5, -2, 0, 2, 5, 10, 20, 40, 80),
    Triangular: (-1, 0, 1),
    Cauchy: (*(-(10.0**k) for k in range(9, -2, -1)), 0, *(10.0**k for k in range(-1, 10))),
}
DENSITY: dict[type, Any] = {
    Logistic: lambda u: mp.exp(-abs(u)) / (1 + mp.exp(-abs(u))) ** 2,
    Laplace: lambda u: mp.exp(-abs(u)) / 2,
    Triangular: lambda u: max(1 - abs(u), mp.mpf(0)),
    Cauchy: lambda u: 1 / (mp.pi * (1 + u * u)),
}
BELOW: dict[type, Any] = {
    Logistic: lambda u: 1 / (1 + mp.exp(-u)),
    Laplace: lambda u: mp.exp(u) / 2 if u < 0 else 1 - mp.exp(-u) / 2,
    Triangular: lambda u: max(1 + u, mp.mpf(0)) ** 2 / 2 if u < 0 else 1 - max(1 - u, mp.mpf(0)) ** 2 / 2,
    Cauchy: lambda u: mp.atan(u) / mp.pi + mp.mpf(1) / 2,
}


def naive(law: Law, location: F64, scale: F64, arm: int) -> float:
    m, s = [mp.mpf(float(x)) for x in location], [mp.mpf(float(x)) for x in scale]

    def integrand(x: Any) -> Any:
        value = DENSITY[type(law)]((x - m[arm]) / s[arm]) / s[arm]
        for j in range(len(m)):
            value *= 1 if j == arm else BELOW[type(law)]((x - m[j]) / s[j])
        return value

    bends = BENDS[type(law)]
    points = sorted({m[j] + mp.mpf(bend) * s[j] for j in range(len(m)) for bend in bends})
    ends = [-mp.inf, *points, mp.inf] if isinstance(law, Cauchy) else points
    return float(mp.quad(integrand, ends))


@pytest.mark.parametrize("law", [Logistic(), Cauchy(), Laplace(), Triangular()], ids=str)
@pytest.mark.parametrize("seed", few(1, range(3)))
def test_against_many_digits(law: Law, seed: int) -> None:
    location, scale = problem(seed, decades=2.0 + 2 * (seed % 2))
    found = probability_of_largest(law, location, scale)
    with mp.workdps(20):
        for arm in range(location.size):
            assert abs(found[arm] - naive(law, location, scale, arm)) < ERROR
    assert abs(found.sum() - 1) < ERROR


@pytest.mark.parametrize("law", [StudentT(), StudentT(df=8)], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_against_scipy(law: Law, seed: int) -> None:
    """The same by SciPy's densities and Gauss's rule with 60 points between many cuts."""
    location, scale = problem(seed, decades=1.5)
    theirs, found = THEIRS[law], probability_of_largest(law, location, scale)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    steps = [0.0, *np.geomspace(0.5, 1e6 if law == StudentT() else 1e4, 40)]
    cuts = np.unique(
        [m + sign * s * u for m, s in zip(location, scale, strict=True) for u in steps for sign in (-1, 1)]
    )
    half = np.diff(cuts)[:, None] / 2
    x, weight = cuts[:-1, None] + half * (1 + nodes), half * weights
    below = [theirs.cdf((x - m) / s) for m, s in zip(location, scale, strict=True)]
    for arm in range(location.size):
        others = math.prod(below[j] for j in range(location.size) if j != arm)
        density = theirs.pdf((x - location[arm]) / scale[arm]) / scale[arm]
        assert abs(found[arm] - (weight * density * others).sum()) < ERROR


class OwnGumbel(Law):
    def quantile(self, u: Any) -> Any:
        return -np.log(-np.log(u))

    def cdf(self, x: Any) -> Any:
        return np.exp(-np.exp(-x))


class OwnExponential(Law):
    def quantile(self, u: Any) -> Any:
        return -np.log1p(-u)

    def cdf(self, x: Any) -> Any:
        return -np.expm1(-np.maximum(x, 0.0))


class OwnUniform(Law):
    def quantile(self, u: Any) -> Any:
        return 2 * u - 1

    def cdf(self, x: Any) -> Any:
        return np.clip((1 + x) / 2, 0.0, 1.0)


class OwnGaussian(Law):
    word_quantile = Gaussian.word_quantile

    def cdf(self, x: Any) -> Any:
        return 0.5 * math.erfc(-x / math.sqrt(2))


PAIRS = [
    (OwnGumbel(), Gumbel()),
    (OwnExponential(), Exponential()),
    (OwnUniform(), Uniform()),
    (OwnGaussian(), Gaussian()),
]


@pytest.mark.parametrize(("own", "ours"), PAIRS, ids=str)
def test_against_the_laws_of_the_library(own: Law, ours: Law) -> None:
    """Scales over nine decades, scales of zero, ties, arms at −∞, one arm and many."""
    random = np.random.default_rng(4)
    for case in range(200):
        arms = int(random.integers(1, 12)) if case % 20 else 60
        location = random.normal(0.0, random.choice([1e-5, 1e-3, 0.1, 1.0]), arms)
        scale = 10.0 ** random.uniform(-9, 0, arms)
        if case % 3 == 0:
            location[: arms // 2] = location[0]
        if case % 5 == 0:
            scale[:] = scale[0]
        if case % 7 == 0:
            scale[random.random(arms) < 0.3] = 0.0
        if case % 11 == 0:
            location[random.random(arms) < 0.3] = -np.inf
        np.testing.assert_allclose(
            probability_of_largest(own, location, scale), probability_of_largest(ours, location, scale), atol=ERROR
        )


@pytest.mark.parametrize("law", THEIRS, ids=str)
def test_equal_arms_share(law: Law) -> None:
    np.testing.assert_allclose(probability_of_largest(law, [0.3] * 7, [0.2] * 7), 1 / 7, atol=ERROR)
    np.testing.assert_allclose(probability_of_largest(law, [1e9, 1e9], [1e-3, 1e-3]), 0.5, atol=ERROR)
    assert probability_of_largest(law, [2.0, 2.0, 1.0], [0.0] * 3).tolist() == [0.5, 0.5, 0.0]


@pytest.mark.parametrize("law", THEIRS, ids=str)
@pytest.mark.parametrize("narrow", [1e-9, 1e-15, 1e-30, 1e-200])
def test_narrow_arms_at_one_place_beside_a_wide_one(law: Law, narrow: float) -> None:
    """They share what the wide one leaves, in shares that depend on the quotient of their scales only."""
    found = probability_of_largest(law, [0.3, 0.3, 0.5], [narrow, narrow / 4, 0.7])
    below = float(np.asarray(law.cdf((0.3 - 0.5) / 0.7)))
    pair = probability_of_largest(law, [0.0, 0.0], [1.0, 0.25])
    slack = ERROR + (1e-3 * narrow**0.5 if isinstance(law, Cauchy | StudentT) else 2 * narrow * 40)
    np.testing.assert_allclose(found, [pair[0] * below, pair[1] * below, 1 - below], atol=slack)


def test_two_narrow_laws_between_two_points_are_not_overlooked() -> None:
    """In an interval of 1, both rise between the same two points; by their values alone one would say one half."""
    found = probability_of_largest(Logistic(), [0.0, 1e-6, -50.0], [1e-9, 1e-9, 1.0])
    np.testing.assert_allclose(found, [0.0, 1.0, 0.0], atol=ERROR)


@pytest.mark.parametrize("law", few(2, THEIRS), ids=str)
def test_against_draws_of_the_simulator(law: Law) -> None:
    location, scale, count = np.array([0.0, 0.3, 0.5, 0.5]), np.array([1.0, 0.5, 0.01, 0.1]), 1_000_000
    if isinstance(law, StudentT):
        count //= 4  # its quantile takes its time
    words = np.random.default_rng(11).integers(0, 2**32, (4, count), dtype=np.uint32)
    winners = np.argmax(location[:, None] + scale[:, None] * draws(law, words), axis=0)
    for arm, p in enumerate(probability_of_largest(law, location, scale)):
        assert abs((winners == arm).mean() - p) / math.sqrt(p * (1 - p) / count) < 4.5


class Coin(Law):
    """−1 or 1."""

    def quantile(self, u: Any) -> Any:
        return np.where(u < 0.5, -1.0, 1.0)

    def cdf(self, x: Any) -> Any:
        return np.where(x < -1, 0.0, np.where(x < 1, 0.5, 1.0))


class Grains(Law):
    """A uniform law in small grains."""

    def quantile(self, u: Any) -> Any:
        return np.floor(u * 8192) / 8192

    def cdf(self, x: Any) -> Any:
        return np.clip((np.floor(x * 8192) + 1) / 8192, 0.0, 1.0)


class Atom(Law):
    """Uniform on both sides of ½, which has a probability of 1e-3 of its own."""

    def quantile(self, u: Any) -> Any:
        return np.where(u < 0.5, u, 0.5 + np.maximum(u - 0.501, 0.0) * (0.5 / 0.499))

    def cdf(self, x: Any) -> Any:
        return np.clip(np.where(x < 0.5, x, 0.501 + (x - 0.5) * (0.499 / 0.5)), 0.0, 1.0)


class Crossed(Logistic):
    def cdf(self, x: Any) -> Any:
        return 1 / (1 + np.exp(-2 * x))


class Wavy(Logistic):
    """Its cdf falls by less than shows where it is compared with the quantile."""

    def cdf(self, x: Any) -> Any:
        return 1 / (1 + np.exp(-x)) + 5e-7 * np.exp(-x * x) * np.sin(1e6 * x)


class Endless(Law):
    def quantile(self, u: Any) -> Any:
        return np.where(u < 0.25, -np.inf, u)

    def cdf(self, x: Any) -> Any:
        return np.clip(x, 0.0, 1.0)


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (Coin(), r"Coin\(\): quantile and cdf must be inverse to each other, without jumps, but at u = "),
        (Grains(), r"Grains\(\): quantile and cdf must be inverse to each other, without jumps"),
        (Atom(), r"Atom\(\): its probabilities could not be found to 11 digits; its cdf must be continuous"),
        (Crossed(), r"Crossed\(\): quantile and cdf must be inverse"),
        (Wavy(), r"Wavy\(\): its cdf must rise from 0 to 1"),
        (Endless(), r"Endless\(\): quantile\(u\) must be finite for all u between 0 and 1, got \[-inf"),
    ],
    ids=str,
)
def test_laws_that_are_none_are_refused(law: Law, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        probability_of_largest(law, [0.0, 0.25], [1.0, 0.5])


def test_interpolation_is_exact_for_polynomials() -> None:
    points, form = quadrature.chebyshev(8)
    for n in range(9):
        for k in range(9):
            assert points**k @ form @ points**n == pytest.approx(n / (n + k) if n else 0.0, abs=1e-13)


def test_scales_and_locations_are_checked() -> None:
    with pytest.raises(ValueError, match=r"scale must be finite and not negative, got \[1.0, -1.0\]"):
        probability_of_largest(Logistic(), [0.0, 0.0], [1.0, -1.0])
    with pytest.raises(ValueError, match="location must be a number"):
        ra.noise.probability_of_largest(Logistic(), [0.0, math.nan], [1.0, 1.0])
