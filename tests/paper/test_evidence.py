"""Verdicts against SciPy's tests, how often they err, and powers against known ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from few import few
from rightarm.paper.evidence import LEVEL, Verdict, all_of, any_of, equals, halves, is_below, is_less, power, threshold
from rightarm.simulation.panels import Curve

HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN


def test_all_and_any() -> None:
    assert [all_of(v) for v in ([HOLDS], [HOLDS, OPEN], [OPEN, FAILS, HOLDS], [])] == [HOLDS, OPEN, FAILS, OPEN]
    assert [any_of(v) for v in ([FAILS], [FAILS, OPEN], [OPEN, FAILS, HOLDS], [])] == [FAILS, OPEN, HOLDS, OPEN]


@pytest.mark.parametrize("replications", [2, 5, 64])
@pytest.mark.parametrize("comparisons", [1, 30])
def test_the_threshold_is_students(replications: int, comparisons: int) -> None:
    expected = stats.t(replications - 1).isf(LEVEL / comparisons)
    assert threshold(replications, comparisons) == pytest.approx(expected, rel=1e-9)


def test_less_is_a_paired_test() -> None:
    random = np.random.default_rng(1)
    luck, own = random.standard_normal(64), 0.1 * random.standard_normal((2, 64))
    x, y = luck + own[0], luck + own[1] + 0.1
    assert stats.ttest_rel(x, y, alternative="less").pvalue < LEVEL < stats.ttest_ind(x, y, alternative="less").pvalue
    assert (is_less(x, y), is_less(y, x), is_less(x, x[::-1].copy())) == (HOLDS, FAILS, OPEN)
    assert (is_less(np.ones(4), 2 * np.ones(4)), is_less(np.ones(4), np.ones(4))) == (HOLDS, OPEN)


def test_a_claim_at_its_very_edge_is_seldom_decided() -> None:
    random = np.random.default_rng(2)
    wrong = sum(is_below(random.standard_normal((16, 5)), 0.0) is not OPEN for _ in range(4_000))
    assert wrong <= stats.binom(4_000, 2 * LEVEL).isf(1e-5)  # all five below at once is rarer still


def test_equal_values() -> None:
    random = np.random.default_rng(3)
    samples = 5.0 + random.standard_normal((400, 3))
    assert equals(samples, 5.0)[0] is HOLDS
    assert equals(samples, np.array([5.0, 5.0, 6.0]))[0] is FAILS
    assert equals(np.full((4, 2), 3.0), 3.0) == (HOLDS, 0.0)
    assert equals(np.array([[3.0]]), 4.0)[0] is OPEN


def test_choosing_and_judging_by_halves_pays_for_the_choice() -> None:
    """Among many equal policies the best half-mean is too low; the other half's is not."""
    random = np.random.default_rng(4)
    biased, fair = [], []
    for _ in range(400):
        first, second = halves(random.standard_normal((32, 50)))
        chosen = int(first.mean(axis=0).argmin())
        biased.append(first[:, chosen].mean())
        fair.append(second[:, chosen].mean())
    assert np.mean(biased) < -0.4
    assert abs(np.mean(fair)) < 4.5 * np.std(fair, ddof=1) / 20


@pytest.mark.parametrize("exponent", few(1, [0.3, 0.5, 1.0]))
def test_a_power_is_recovered(exponent: float) -> None:
    random, x = np.random.default_rng(5), np.geomspace(1e3, 1e6, 13)
    inside = 0
    for _ in range(100):
        luck = np.exp(0.5 * np.cumsum(random.standard_normal((64, 13)), axis=1) / 4)
        found = power(Curve.of("", x, x**exponent * luck / luck.mean(axis=0)))
        inside += found.low <= exponent <= found.high
    assert inside >= 95
    exact = power(Curve.of("", x, np.tile(x**exponent, (4, 1))))
    assert exact == pytest.approx((exponent,) * 3)
    assert (exact.above(exponent - 0.1), exact.below(exponent - 0.1)) == (HOLDS, FAILS)


def test_a_power_needs_points() -> None:
    with pytest.raises(ValueError, match="few: a power needs 2 points in the last 1 decades, got 1"):
        power(Curve.of("few", np.array([10.0, 1000.0]), np.ones((4, 2))))
