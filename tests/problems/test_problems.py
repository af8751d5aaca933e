"""Problems: their means and gaps, their rewards compiled and live, corruption, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import compiled
import rightarm as ra
from cases import PROBLEMS, ProblemCase, restless, second, threefold
from rightarm.simulation.engine import Run, Start

every_problem = pytest.mark.parametrize("case", PROBLEMS.values(), ids=PROBLEMS)


# Means.

MEANS = {
    "Bernoulli": (ra.problems.Bernoulli([0.5, 0.75, 0.25]), [0.5, 0.75, 0.25]),
    "Gaussian": (ra.problems.Gaussian([1.0, -2.0], sigma=3.0), [1.0, -2.0]),
    "Deterministic": (ra.problems.Deterministic([1e6, 1e6 + 1]), [1e6, 1e6 + 1]),
    "Uniform": (ra.problems.Uniform(low=[0.0, -1.0], high=[1.0, 5.0]), [0.5, 2.0]),
    "one number for all arms": (ra.problems.Uniform(low=0.0, high=[1.0, 2.0]), [0.5, 1.0]),
    "user's own": (restless([0.1, 0.2]), [0.1, 0.2]),
    "corrupted": (ra.problems.Bernoulli([0.5, 0.4]).corrupted(0, rounds=10**9), [0.5, 0.4]),
}


@pytest.mark.parametrize(("problem", "means"), MEANS.values(), ids=MEANS)
def test_means(problem: ra.problems.Problem, means: list[float]) -> None:
    assert problem.means.tolist() == means
    assert problem.arms == len(means)
    assert problem.best_arm == means.index(max(means))
    np.testing.assert_allclose(problem.gaps, [max(means) - mean for mean in means])


@ra.problems.problem
def power(u, *, exponent: float):  # type: ignore[no-untyped-def]
    """E[U^a] = 1 / (a + 1)."""
    return u**exponent


@ra.problems.problem
def lognormal(w, *, sigma: float):  # type: ignore[no-untyped-def]
    """E[exp(σW)] = exp(σ²/2)."""
    return np.exp(sigma * w)


@ra.problems.problem
def mixed(u, w, *, scale: float):  # type: ignore[no-untyped-def]
    """E[scale·U·W²] = scale/2."""
    return scale * u * w**2


@ra.problems.problem
def product(u, v, w, *, scale: float):  # type: ignore[no-untyped-def]
    """E[scale·U·V·1{W > 0}] = scale/8."""
    return scale * u * v * (w > 0)


@ra.problems.problem
def indexed(arm, u, *, slope: float):  # type: ignore[no-untyped-def]
    """E[slope·arm·U] = slope·arm/2."""
    return slope * arm * u


@pytest.mark.parametrize(
    ("problem", "means", "error"),
    [
        (power([0.0, 1.0, 2.0, 9.0]), [1, 1 / 2, 1 / 3, 1 / 10], 1e-10),
        (lognormal([0.0, 0.5, 1.0]), [1, math.exp(1 / 8), math.exp(1 / 2)], 1e-4),
        (mixed([1.0, 2.0]), [0.5, 1.0], 1e-2),
        (indexed([2.0, 2.0, 2.0]), [0.0, 1.0, 2.0], 1e-10),
        (product([1.0, 8.0]), [1 / 8, 1.0], 1e-4),
    ],
    ids=["power", "lognormal", "mixed", "indexed", "product"],
)
def test_means_by_quadrature(problem: ra.problems.Problem, means: list[float], error: float) -> None:
    """The midpoint rule leaves out tails of 2⁻²¹ (one kind of noise) or 2⁻¹¹ (two)."""
    np.testing.assert_allclose(problem.means, means, rtol=error, atol=1e-12)


@pytest.mark.parametrize(
    "law", [ra.problems.Bernoulli([0.3, 1.0]), ra.problems.Uniform(low=[-2.0, 3.0], high=5.0)], ids=str
)
def test_second_moments_are_those_of_the_formula(law: ra.problems.Problem) -> None:
    """In closed form and by quadrature."""
    by_quadrature = ra.problems.problem(law.family.function)(**law.values).second_moments
    np.testing.assert_allclose(law.second_moments, by_quadrature, rtol=1e-6)


@pytest.mark.parametrize(
    ("problem", "moments", "error"),
    [
        (ra.problems.Gaussian([1.0, -2.0], sigma=[3.0, 0.0]), [10, 4], 1e-15),
        (ra.problems.Deterministic([3.0, -1e6]), [9, 1e12], 1e-15),
        (ra.problems.Uniform(low=[0.0, -1.0], high=1.0), [1 / 3, 1 / 3], 1e-15),
        (ra.problems.Uniform(low=-1e300, high=[1e300]), [math.inf], 1e-15),
        (power([0.0, 1.0, 2.0]), [1, 1 / 3, 1 / 5], 1e-10),
        (second([0.0, 2.0]), [1 / 12, 4 + 1 / 12], 1e-10),
        (threefold([0.0, 2.0]), [1 / 6, 4 + 1 / 6], 1e-15),
        (ra.problems.Bernoulli([0.5]).corrupted(0, rounds=5, reward=9.0), [0.5], 1e-15),
    ],
    ids=str,
)
def test_second_moments(problem: ra.problems.Problem, moments: list[float], error: float) -> None:
    np.testing.assert_allclose(problem.second_moments, moments, rtol=error)
    with pytest.raises(ValueError, match="read-only"):
        problem.second_moments[0] = 1.0


@pytest.mark.parametrize("name", [n for n in PROBLEMS if "corrupted" not in n and n not in ("restless", "settled")])
def test_rewards_have_the_means(name: str) -> None:
    """The mean reward of every arm in a run that chooses uniformly, where a sample can tell it."""
    case = PROBLEMS[name]
    run = Run(ra.Boltzmann(1e9), case.problem, no_start(case.problem), 3, 0, 64, np.array([5_000]))
    run.advance(5_000)
    pulls, total = run.statistics.pulls.sum(axis=1), run.statistics.total.sum(axis=1)
    deviation = np.sqrt(np.maximum(case.problem.second_moments - case.problem.means**2, 1e-18))
    assert np.isfinite(deviation).any()
    assert (np.abs(total / pulls - case.problem.means) < 4.5 * deviation / np.sqrt(pulls)).all()


def no_start(problem: ra.problems.Problem) -> Start:
    return Start((0,) * problem.arms, (0.0,) * problem.arms)


# Rewards, live and compiled.


unit = st.floats(1e-9, 1 - 1e-9)


@every_problem
@given(
    st.lists(
        st.tuples(st.integers(0, 11), st.integers(1, 10**6), unit, unit, st.floats(-6, 6, width=32)),
        min_size=1,
        max_size=20,
    ),
    st.integers(1, 10**9),
)
def test_rewards_are_the_formula(case: ProblemCase, rows: list[tuple[int, int, float, float, float]], t: int) -> None:
    """Corruption aside, which is the simulator's."""
    problem = type(case.problem)(case.problem.family, case.problem.values)
    arm, pulls, u, v, w = (np.array(column) for column in zip(*rows, strict=True))
    arm %= problem.arms
    live = np.broadcast_to(problem.evaluate({"t": t, "pulls": pulls, "arm": arm, "u": u, "v": v, "w": w}), arm.shape)
    ours = compiled.rewards(problem, t, arm, pulls.astype(float), np.stack([u, v]), w.astype(np.float32))
    np.testing.assert_allclose(ours, live, rtol=1e-12, atol=1e-12)
    if not case.problem.corruptions:
        columns = (column.tolist() for column in (pulls, arm, u, v, w))
        exact = [case.reward(t, *row) for row in zip(*columns, strict=True)]
        np.testing.assert_allclose(ours, exact, rtol=1e-12, atol=1e-12)


# Corruption.


def totals(problem: ra.problems.Problem, rounds: int) -> Any:
    """Pulls and sums of rewards after some rounds of uniform choice, arms × lanes."""
    run = Run(ra.Boltzmann(1e9), problem, no_start(problem), 5, 0, 32, np.array([rounds]))
    run.advance(rounds)
    return run.statistics.pulls, run.statistics.total


def test_corrupted_rounds() -> None:
    """Arm 0 pays −1 up to round 100 inclusive, then 1."""
    problem = ra.problems.Deterministic([1.0, 1.0]).corrupted(0, rounds=100, reward=-1.0)
    before, after = totals(problem, 100), totals(problem, 101)
    assert (before[1] == [[-1.0], [1.0]] * before[0]).all()
    assert (after[1] - before[1] == after[0] - before[0]).all()
    assert (after[0][0] > before[0][0]).any()


def test_corrupted_pulls() -> None:
    """The first 10 pulls of arm 1 pay 5, the others 1."""
    pulls, sums = totals(ra.problems.Deterministic([1.0, 1.0]).corrupted(1, pulls=10, reward=5.0), 500)
    assert pulls[1].min() > 10
    np.testing.assert_array_equal(sums - pulls, np.broadcast_to([[0], [40]], pulls.shape))


def test_the_last_corruption_wins() -> None:
    problem = ra.problems.Deterministic([1.0]).corrupted(0, rounds=10, reward=2.0).corrupted(0, rounds=5, reward=3.0)
    assert (totals(problem, 20)[1] == 5 * 3.0 + 5 * 2.0 + 10 * 1.0).all()


def test_corruption_leaves_luck_alone() -> None:
    """After the corrupted rounds the same noise meets the same arms: uniform choice pulls what it would have pulled."""
    plain = ra.problems.Bernoulli([0.5, 0.6])
    pulls, sums = totals(plain, 1_000)
    spoilt_pulls, spoilt = totals(plain.corrupted(0, rounds=1, reward=7.0), 1_000)
    np.testing.assert_array_equal(spoilt_pulls, pulls)
    assert np.isin(spoilt[0] - sums[0], [6.0, 7.0]).all()
    np.testing.assert_array_equal(spoilt[1], sums[1])


# What a problem says of itself.


def test_description() -> None:
    problem = ra.problems.Bernoulli([0.5, 0.75])
    assert problem.describe().splitlines()[0] == "Bernoulli with 2 arms, the best is arm 1"
    assert [line.split() for line in problem.describe().splitlines()[1:]] == [
        ["arm", "mean", "gap"],
        ["0", "0.5", "0.25"],
        ["1", "0.75", "0"],
    ]
    assert str(ra.problems.Bernoulli([0.5] * 100)) == "Bernoulli with 100 arms"
    assert "rounds=5" in str(problem.corrupted(0, rounds=5))


# What is refused.

PLAIN = ra.problems.Bernoulli([0.5, 0.4])


@ra.problems.problem
def clockwork(t, *, level: float):  # type: ignore[no-untyped-def]
    return level / t


@ra.problems.problem(mean=lambda level: level / 0)
def unbounded(u, *, level: float):  # type: ignore[no-untyped-def]
    return level / u


@ra.problems.problem
def steep(u, *, exponent: float):  # type: ignore[no-untyped-def]
    """The second moment is infinite from an exponent of ½ on, the mean from 1 on."""
    return u**-exponent


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "mean above 1": (
        lambda: ra.problems.Bernoulli([0.5, 1.5]),
        ValueError,
        r"mean\[1\] must be between 0 and 1, got 1.5",
    ),
    "mean below 0": (lambda: ra.problems.Bernoulli([-0.5]), ValueError, r"mean\[0\] must be between 0 and 1, got -0.5"),
    "mean nan": (lambda: ra.problems.Deterministic([0.0, math.nan]), ValueError, r"mean\[1\] must be finite, got nan"),
    "mean text": (
        lambda: ra.problems.Bernoulli("0.5"),  # type: ignore[arg-type]
        TypeError,
        "mean must be a number or a list of numbers.*got '0.5'",
    ),
    "mean nothing": (lambda: ra.problems.Bernoulli(None), TypeError, "mean must be a number.*got None"),  # type: ignore[arg-type]
    "mean of text": (lambda: ra.problems.Bernoulli([0.5, "x"]), TypeError, r"mean\[1\] must be a number, got 'x'"),  # type: ignore[list-item]
    "mean in two rows": (
        lambda: ra.problems.Bernoulli([[0.5]]),  # type: ignore[list-item]
        TypeError,
        r"mean must be a number or a list.*got \[\[0.5\]\]",
    ),
    "no arms": (lambda: ra.problems.Bernoulli([]), ValueError, r"mean must have one value per arm, got \[\]"),
    "no arms but a sigma": (lambda: ra.problems.Gaussian([]), ValueError, "mean|Gaussian"),
    "sigma -1": (lambda: ra.problems.Gaussian([0.0], sigma=-1), ValueError, "sigma must be non-negative, got -1.0"),
    "lengths": (lambda: ra.problems.Gaussian([0, 1], [1, 2, 3]), ValueError, "lengths {'mean': 2, 'sigma': 3}"),
    "high inf": (lambda: ra.problems.Uniform([0, 0], [1, math.inf]), ValueError, r"high\[1\] must be finite, got inf"),
    "arm 2 of 2": (lambda: PLAIN.corrupted(2, rounds=1), ValueError, "arm must be below the number of arms, 2, got 2"),
    "arm -1": (lambda: PLAIN.corrupted(-1, rounds=1), ValueError, "arm must be a whole number of at least 0, got -1"),
    "arm 0.5": (lambda: PLAIN.corrupted(0.5, rounds=1), ValueError, "arm must be a whole number.*got 0.5"),  # type: ignore[arg-type]
    "rounds 0": (
        lambda: PLAIN.corrupted(0, rounds=0),
        ValueError,
        "rounds must be a whole number of at least 1, got 0",
    ),
    "pulls 1.5": (lambda: PLAIN.corrupted(0, pulls=1.5), ValueError, "pulls must be a whole number.*got 1.5"),  # type: ignore[arg-type]
    "neither": (lambda: PLAIN.corrupted(0), TypeError, "either rounds or pulls, got rounds=None and pulls=None"),
    "both": (lambda: PLAIN.corrupted(0, rounds=1, pulls=2), TypeError, "got rounds=1 and pulls=2"),
    "reward nan": (lambda: PLAIN.corrupted(0, rounds=1, reward=math.nan), ValueError, "reward must be finite, got nan"),
    "no mean": (lambda: clockwork([1.0]).means, ValueError, "clockwork changes over time: give its mean"),
    "no second moment": (
        lambda: clockwork([1.0]).second_moments,
        ValueError,
        r"clockwork changes over time: give its second moment with @problem\(second_moment=...\)",
    ),
    "an infinite second moment": (
        lambda: steep([0.6]).second_moments,
        ValueError,
        r"the second moment of steep is hard to integrate: give it with @problem\(second_moment=...\)",
    ),
    "an infinite mean": (lambda: steep([1.1]).means, ValueError, "the mean of steep is hard to integrate"),
    "a mean beyond numbers": (lambda: steep([400.0]).means, ValueError, "the mean of steep is hard to integrate"),
    "alpha 1": (lambda: ra.problems.Pareto([2.0, 1.0]), ValueError, r"alpha\[1\] must be above 1, got 1.0"),
    "scale 0": (lambda: ra.problems.Pareto([2.0], scale=0), ValueError, "scale must be positive, got 0.0"),
    "df 1": (lambda: ra.problems.StudentT([0.0], df=1), ValueError, "df must be above 1, got 1.0"),
    "share 2": (lambda: ra.problems.Contaminated([0.0], 1, 2, 1), ValueError, "share must be between 0 and 1, got 2.0"),
    "a lognormal mean beyond numbers": (
        lambda: ra.problems.LogNormal([800.0]).means,
        ValueError,
        r"means of LogNormal.* must be finite, got \[inf\]",
    ),
    "mean not finite": (
        lambda: unbounded([1.0]).means,
        ValueError,
        r"means of unbounded.* must be finite, got \[inf\]",
    ),
}


@pytest.mark.parametrize(("call", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with np.errstate(all="ignore"), pytest.raises(error, match=message):
        call()


def test_every_problem_of_the_library_has_a_case() -> None:
    """A new one needs a row in `cases.PROBLEMS`; the engine's tests and `check_problem` then play it."""
    families = {name for name, family in ra.problems.FAMILIES.items() if isinstance(family, ra.problems.ProblemFamily)}
    assert families <= {case.problem.family.name for case in PROBLEMS.values()}
