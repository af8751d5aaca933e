"""Growth laws are recovered from noisy points, and two that cannot be told apart are said to be so."""

from __future__ import annotations

import numpy as np
import pytest

from rightarm.lab.paper.growth import LAWS, best, could_be, fit
from rightarm.simulation.statistics import Curve

T = np.geomspace(1e3, 1e7, 17)


def curve(law: str, a: float = 5.0, b: float = 3.0, noise: float = 0.02, replications: int = 64) -> Curve:
    """Replications that share the law and have a luck of their own, as those of one long run do."""
    random = np.random.default_rng(7)
    exact = a + b * LAWS[law](T)
    luck = 1 + noise * (random.standard_normal((replications, 1)) + random.standard_normal((replications, T.size)))
    return Curve.of(law, T, exact * luck)


@pytest.mark.parametrize("law", LAWS)
def test_a_law_is_recovered(law: str) -> None:
    fits = fit(curve(law))
    assert fits[0].law == law
    assert abs(fits[0].b - 3.0) < 4.5 * fits[0].b_error
    assert fits[0].b_error < 0.1
    assert fits[0].residual < 3
    assert [f.residual for f in fits] == sorted(f.residual for f in fits)
    assert could_be(law, fits)
    assert not any(could_be(other, fits) for other in LAWS if other != law)
    assert best(fits).startswith(f"best fit {law}, ")


def test_the_error_of_b_is_that_of_many_repetitions() -> None:
    random = np.random.default_rng(3)
    exact = 5 + 3 * np.log(T)
    slopes, errors = [], []
    for _ in range(200):
        luck = random.standard_normal((32, 1)) * np.log(T) + random.standard_normal((32, T.size))
        (own,) = (f for f in fit(Curve.of("", T, exact + luck)) if f.law == "log T")
        slopes.append(own.b)
        errors.append(own.b_error)
    assert np.mean(errors) == pytest.approx(np.std(slopes), rel=4.5 / np.sqrt(2 * 200))
    assert abs(np.mean(slopes) - 3) < 4.5 * np.std(slopes) / np.sqrt(200)


def test_laws_that_cannot_be_told_apart() -> None:
    fits = fit(curve("log T", noise=5.0))
    assert could_be("log T", fits)
    assert could_be("log² T", fits)


def test_exact_points_are_no_trouble() -> None:
    exact = fit(curve("√T", noise=0.0))
    assert exact[0].law == "√T"
    assert exact[0].b == pytest.approx(3.0)
    assert fit(Curve.of("", T, np.zeros((2, T.size))))[0].b == 0.0


def test_too_few_points() -> None:
    with pytest.raises(ValueError, match="few: a fit needs 3 points in its later part, got 2"):
        fit(Curve.of("few", np.array([10.0, 100.0, 1000.0]), np.ones((4, 3))))
