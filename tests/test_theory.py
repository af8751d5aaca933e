"""The bounds against the same formulas in plain Python, against the steps of the proofs, and against simulations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import rel_entr, zeta

import rightarm as ra
from rightarm import theory

GAMMA = 0.5772156649015329
GAPS = [0.0, 0.05, 0.3, 1.2]


def test_lai_robbins() -> None:
    expected = sum(2 * 0.7**2 / gap for gap in GAPS[1:]) * math.log(5_000)
    assert theory.lai_robbins(GAPS, 5_000, sigma=0.7) == pytest.approx(expected, rel=1e-12)
    means = [0.9, 0.5, 0.2, 0.9]
    divergences = [rel_entr(m, 0.9) + rel_entr(1 - m, 0.1) for m in (0.5, 0.2)]
    expected = (0.4 / divergences[0] + 0.7 / divergences[1]) * math.log(5_000)
    assert theory.lai_robbins_bernoulli(means, 5_000) == pytest.approx(expected, rel=1e-12)


def test_divergence_at_the_edges() -> None:
    assert theory.bernoulli_divergence([0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.5, 0.5]) == pytest.approx(
        [0, 0, *[math.log(2)] * 2]
    )
    assert np.isinf(theory.bernoulli_divergence(0.5, [0.0, 1.0])).all()


def test_proposition1_is_the_sum() -> None:
    gap, c = 0.3, 0.1

    def temperature(t: float) -> float:
        return c / math.log(t + 1)

    sums = np.cumsum([gap / (1 + math.exp(gap / temperature(t))) for t in range(1, 501)])
    found = theory.proposition1(gap, [1, 20, 500], lambda t: c / np.log(t + 1))
    assert found == pytest.approx(sums[[0, 19, 499]], rel=1e-12)
    assert theory.proposition1(0.5, 10, lambda t: 0.0 * t) == 0.0  # a temperature of 0 is greedy


def test_proposition1_is_what_the_simulator_plays() -> None:
    """Deterministic rewards are known from the first pull on: rounds 3 to T are the proposition's."""
    gap, horizon = 0.2, 2_000
    schedule = ra.inverse_log(0.15)
    result = ra.simulate(
        ra.Boltzmann(schedule), ra.Deterministic([gap, 0.0]), horizon=horizon, replications=256, seed=4
    )
    played = result.regret[0, :, -1] - gap  # the first pull of the worse arm

    def temperature(t: Any) -> Any:
        with np.errstate(divide="ignore"):
            return 0.15 / np.log(t)

    expected = float(np.diff(theory.proposition1(gap, [2, horizon], temperature))[0])
    z = (played.mean() - expected) / (played.std(ddof=1) / math.sqrt(played.size))
    assert abs(z) < 4.5


@pytest.mark.parametrize("c", [2.5, 3.0, 4.0, 6.0, 20.0])
def test_theorem2_starts_where_its_proof_needs_it(c: float) -> None:
    start = theory.theorem2_start(c)
    assert zeta(c / 2, start + 1) <= 0.5  # the sum of t^(-c/2) over t > t_0
    expected = 0.2 * (10_000 - start) * 0.3**start / 2 if start < 10_000 else 0.0
    assert theory.theorem2(0.2, 10_000, c) == pytest.approx(expected, rel=1e-12)


@ra.problem(mean=lambda mean, certain: mean)
def half_certain(u, *, mean: float, certain: float):  # type: ignore[no-untyped-def]
    return np.where(certain > 0, mean, 1.0 * (u < mean))


def test_theorem2_holds() -> None:
    problem = half_certain(mean=[0.75, 0.5], certain=[0, 1])
    horizons = [100, 1_000, 10_000]
    result = ra.simulate(
        ra.Boltzmann(ra.inverse_log(1 / 4)), problem, horizon=10_000, replications=512, seed=3, checkpoints=horizons
    )
    mean = result.regret[0].mean(axis=0)
    error = result.regret[0].std(axis=0, ddof=1) / math.sqrt(512)
    assert (mean + 4.5 * error > theory.theorem2(0.25, horizons, c=4.0)).all()
    assert mean[2] / mean[1] == pytest.approx(10, rel=0.1)  # linear


def naive_theorem4(gaps: list[float], horizon: float, C: float, variance: float, c: float) -> float:
    total = 0.0
    for gap in gaps:
        if gap > 0:
            log = max(0.0, math.log(horizon * gap**2 / c**2))
            total += 9 * C**2 * log**2 / gap
            total += (
                c**2 * math.exp(GAMMA) + 18 * C**2 * math.exp(variance / (2 * C**2)) * (1 + math.exp(-GAMMA))
            ) / gap
            total += gap
    return total


@pytest.mark.parametrize("C", [0.125, 0.5, 2.0])
@pytest.mark.parametrize("horizon", [1, 100, 1e9])
def test_theorem4_and_theorem6(C: float, horizon: float) -> None:
    expected = naive_theorem4(GAPS, horizon, C, 0.25, 0.5)
    assert theory.theorem4(GAPS, horizon, C, sigma=0.5) == pytest.approx(expected, rel=1e-12)
    assert theory.theorem6(GAPS, horizon, C, moment=0.25) == pytest.approx(expected, rel=1e-12)
    assert theory.theorem4(GAPS, horizon, C, 0.5, c=0.1) == pytest.approx(naive_theorem4(GAPS, horizon, C, 0.25, 0.1))


def test_the_other_bounds() -> None:
    assert theory.theorem3(0.1, 10, 1e6) == pytest.approx((16 * math.e * 10 * math.log(1e6) + 90) / 0.01)
    assert theory.corollary1(10, 1e6, 0.5) == pytest.approx(200 * 0.5 * math.sqrt(1e7) * math.log(10))
    assert theory.theorem5(10, 1e6) == pytest.approx(0.5 * math.sqrt(1e7) * math.log(10))
    assert theory.theorem5(10, 1e6, constant=0.1) == pytest.approx(0.1 * math.sqrt(1e7) * math.log(10))


def test_corollary1_follows_from_theorem4() -> None:
    """Theorem 4's bound at the gap that the corollary's proof sets is below the corollary's."""
    for arms in (2, 10, 1_000):
        for horizon in (1e4, 1e8):
            gap = 0.5 * math.sqrt(arms / horizon) * math.log(arms)
            one = theory.theorem4([gap] * (arms - 1), horizon, C=0.5, sigma=0.5)
            assert one < theory.corollary1(arms, horizon, 0.5)


def test_theorem4_holds_for_the_simulator() -> None:
    problem = ra.Bernoulli([0.6, 0.5, 0.3])
    for C in (0.125, 0.5):
        result = ra.simulate(ra.BoltzmannGumbel(C=C), problem, horizon=10_000, replications=64, seed=2)
        assert (result.regret[0].mean(axis=0) < theory.theorem4(problem.gaps, result.rounds, C, sigma=0.5)).all()


BOUNDS: dict[str, Callable[[Any], Any]] = {
    "lai_robbins": lambda T: theory.lai_robbins(GAPS, T),
    "lai_robbins_bernoulli": lambda T: theory.lai_robbins_bernoulli([0.5, 0.4], T),
    "proposition1": lambda T: theory.proposition1(0.5, T, lambda t: 1 / t),
    "theorem2": lambda T: theory.theorem2(0.2, T, 4.0),
    "theorem3": lambda T: theory.theorem3(0.2, 3, T),
    "theorem4": lambda T: theory.theorem4(GAPS, T, 0.5, 0.5),
    "theorem6": lambda T: theory.theorem6(GAPS, T, 0.5, 0.25),
    "corollary1": lambda T: theory.corollary1(3, T, 0.5),
    "theorem5": lambda T: theory.theorem5(3, T),
}


@pytest.mark.parametrize("bound", BOUNDS.values(), ids=BOUNDS)
def test_vectorised_over_horizons(bound: Callable[[Any], Any]) -> None:
    horizons = [10, 100, 1_000]
    together = bound(horizons)
    assert together.shape == (3,)
    assert together == pytest.approx([float(bound(T)) for T in horizons])
    assert (np.diff(together) >= 0).all()
    for wrong in (0, -5, math.nan, math.inf):
        with pytest.raises(ValueError, match="horizon must be at least 1, got"):
            bound(wrong)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.lai_robbins([0.0, 0.0], 10), r"gaps must be non-negative.*got \[0\.0, 0\.0\]"),
        (lambda: theory.lai_robbins([-0.1], 10), r"gaps must be non-negative.*got \[-0\.1\]"),
        (lambda: theory.lai_robbins([0.1], 10, sigma=0), r"sigma must be positive, got 0\.0"),
        (lambda: theory.bernoulli_divergence(1.5, 0.5), r"p must be between 0 and 1, got 1\.5"),
        (lambda: theory.theorem2(0.5, 10, 4.0), r"gap must be between 0 and 1/2, got 0\.5"),
        (lambda: theory.theorem2(0.2, 10, 2.0), r"c must be larger than 2, got 2\.0"),
        (lambda: theory.theorem3(0.2, 1, 10), "arms must be a whole number of at least 2, got 1"),
        (lambda: theory.theorem4([0.1], 10, C=-1, sigma=1), r"C must be positive, got -1\.0"),
        (lambda: theory.theorem4([0.1], 10, C=1, sigma=1, c=0.0), r"c must be positive, got 0\.0"),
        (lambda: theory.theorem6([0.1], 10, C=1, moment=0), r"moment must be positive, got 0\.0"),
        (lambda: theory.theorem5(100, 10), r"horizon must be at least K log²K = 2120\.8, got 10\.0"),
    ],
)
def test_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("gap", "horizon", "sigma"), [(0.5, 10_000, 1.0), (0.1, 10**6, 0.5), (1.0, 50, 2.0), (0.01, 100, 1.0)]
)
def test_exploration_solves_its_equation(gap: float, horizon: int, sigma: float) -> None:
    """n = ⌈2w/Δ²⌉ with w e^w = T²Δ⁴/(32π): Garivier, Kaufmann, Lattimore 2016."""
    from scipy.special import lambertw

    delta = gap / sigma
    w = float(lambertw(horizon**2 * delta**4 / (32 * math.pi)).real)
    assert ra.theory.exploration(gap, horizon, sigma) == math.ceil(2 * w / delta**2)
