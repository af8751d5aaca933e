"""Growth laws are recovered from noisy points that share their luck, wrong ones rejected, and doubt is told."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rightarm.paper.evidence import LAWS, TERMS, Verdict, chance_of_zero, describe_fits, fit, grows_at_most
from rightarm.simulation.panels import Curve

T = np.geomspace(1e3, 1e7, 17)
HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN


def curve(
    law: str, a: float = 5.0, b: float = 3.0, noise: float = 0.02, replications: int = 64, seed: int = 7
) -> Curve:
    """Replications that share the law and have a luck of their own, as those of one long run do."""
    random = np.random.default_rng(seed)
    exact = a + b * TERMS[law](T)
    walk = np.cumsum(random.standard_normal((replications, T.size)), axis=1) / np.sqrt(T.size)
    return Curve.of(law, T, exact * (1 + noise * walk))


@pytest.mark.parametrize("law", LAWS)
def test_a_law_is_recovered(law: str) -> None:
    fits = {found.law: found for found in fit(curve(law))}
    assert abs(fits[law].coefficients[-1] - 3.0) < 4.5 * fits[law].error
    fitting = {name for name, found in fits.items() if not found.is_rejected}
    assert fitting == ({"log T", "log² T"} if law == "log T" else {law})  # log² T includes log T
    assert f"fits {law} (p = " in describe_fits(list(fits.values()))


def test_the_order_of_growth() -> None:
    order = list(LAWS)
    for place, law in enumerate(order):
        fits = fit(curve(law))
        for other in order:
            assert grows_at_most(other, fits) is (HOLDS if order.index(other) >= place else FAILS), (law, other)


def test_noise_decides_nothing() -> None:
    fits = fit(curve("log T", noise=50.0, seed=1))
    assert grows_at_most("log T", fits) is OPEN
    few = fit(curve("log T", replications=6))
    assert all(np.isnan(found.p) for found in few)
    assert grows_at_most("log T", few) is OPEN


def test_a_curve_that_no_law_fits() -> None:
    wave = Curve.of("", T, 1_000 * (1 + np.sin(np.log(T)))[None] * curve("log T").samples)
    assert "fits none of the laws" in describe_fits(fit(wave))
    assert grows_at_most("T", fit(wave)) is OPEN


def test_a_right_law_is_rejected_as_seldom_as_said() -> None:
    """With points as strongly correlated as those of a random walk: p-values are uniform."""
    chances = [fit(curve("√T", seed=seed))[2].p for seed in range(300)]
    assert stats.kstest(chances, "uniform").pvalue > 1e-4


def test_the_chance_of_zero_is_hotellings() -> None:
    random = np.random.default_rng(1)
    samples = random.standard_normal((40, 3)) @ random.standard_normal((3, 3)) + 0.2
    mean, spread = samples.mean(axis=0), np.cov(samples.T)
    squared = 40 * mean @ np.linalg.inv(spread) @ mean
    expected = stats.f(3, 37).sf(squared * 37 / (3 * 39))
    assert chance_of_zero(samples, scale=1.0) == pytest.approx(expected, rel=1e-6)
    one = random.standard_normal((30, 1)) + 0.3
    assert chance_of_zero(one, scale=1.0) == pytest.approx(stats.ttest_1samp(one[:, 0], 0).pvalue, rel=1e-6)


def test_exact_points_are_no_trouble() -> None:
    exact = {found.law: found for found in fit(curve("√T", noise=0.0))}
    assert not exact["√T"].is_rejected
    assert exact["√T"].coefficients == pytest.approx((5.0, 3.0))
    assert exact["T"].is_rejected
    assert fit(Curve.of("", T, np.zeros((12, T.size))))[0].coefficients == (0.0, 0.0)


def test_too_few_points() -> None:
    with pytest.raises(ValueError, match="few: a fit needs 4 points in its later part, got 2"):
        fit(Curve.of("few", np.array([10.0, 100.0, 1000.0]), np.ones((4, 3))))
