"""Problems drawn afresh: each replication plays exactly the problem that it drew, whatever plays it."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import naive
import rightarm as ra
from cases import cautious, restless, settled
from compiled import draws
from rightarm.experiments.cell import Cell
from rightarm.noise import Gaussian
from rightarm.problems.random import any_problem_from_specification
from rightarm.simulation.engine import Run, Start

SEED = 2**70 + 9


@ra.problems.problem
def tilted(arm, u, w, *, slope: float):  # type: ignore[no-untyped-def]
    """A law that knows its arm."""
    return slope * arm + 0.1 * u + 0.01 * w


RANDOM = {
    "bernoulli": ra.problems.RandomProblem(ra.problems.Bernoulli, mean=ra.problems.Uniform(low=[0.0] * 10, high=1.0)),
    "gaussian": ra.problems.RandomProblem(
        ra.problems.Gaussian, mean=ra.problems.Gaussian(mean=[0.0] * 5, sigma=1.0), sigma=1.0
    ),
    "all drawn": ra.problems.RandomProblem(
        ra.problems.StudentT,
        mean=ra.problems.StudentT([0.0, 1.0, 0.5], df=4.0),
        df=ra.problems.Pareto([3.0], scale=1.5),
        scale=[0.5, 1.0, 2.0],
    ),
    "a distribution that asks for its arm": ra.problems.RandomProblem(
        ra.problems.Deterministic, mean=tilted([0.1, 0.1, 0.2])
    ),
    "asking for everything": ra.problems.RandomProblem(settled, level=ra.problems.Uniform(low=[0.0, 0.1], high=0.5)),
    "corrupted": ra.problems.RandomProblem(ra.problems.Bernoulli, ra.problems.Uniform([0.0, 0.5], [1.0, 1.0]))
    .corrupted(arm=1, rounds=100)
    .corrupted(arm=0, pulls=5, reward=0.5),
}
every_problem = pytest.mark.parametrize("problem", RANDOM.values(), ids=RANDOM)
POLICIES = [ra.BoltzmannGumbel(C=0.5), ra.UCB(C=0.5), ra.Boltzmann(ra.schedules.glie()), cautious()]


def simulated(problem: Any, **changes: Any) -> ra.Result:
    result: ra.Result = ra.simulate(POLICIES, problem, **{"horizon": 300, "replications": 40, "seed": SEED} | changes)
    return result


# What is drawn.


def test_uniform_parameters_are_those_of_the_stream() -> None:
    """Arm by arm, two words each."""
    for replication in (0, 31, 32, 1_000):
        words = list(islice(naive.words(SEED, replication, 3), 20))
        means = [naive.uniform_of(*words[2 * k : 2 * k + 2]) for k in range(10)]
        assert RANDOM["bernoulli"].draw(SEED, replication) == ra.problems.Bernoulli(means)


def test_parameters_are_drawn_one_after_the_other() -> None:
    """Two words for each of three means, then one for the deviation that the arms share."""
    problem = ra.problems.RandomProblem(
        ra.problems.Gaussian, mean=ra.problems.Uniform([0.0] * 3, 1.0), sigma=ra.problems.LogNormal([0.5], sigma=0.1)
    )
    words = list(islice(naive.words(SEED, 7, 3), 7))
    means = [naive.uniform_of(*words[2 * k : 2 * k + 2]) for k in range(3)]
    w = float(draws(Gaussian(), np.array(words[6:], np.uint32))[0])
    drawn: Any = problem.draw(SEED, 7)
    assert drawn.mean == tuple(means)
    np.testing.assert_allclose(drawn.sigma, np.full(3, math.exp(0.5 + 0.1 * w)), rtol=1e-14)
    assert len(set(drawn.sigma)) == 1


def test_fixed_parameters_are_fixed() -> None:
    drawn: list[Any] = [RANDOM["all drawn"].draw(SEED, replication) for replication in range(5)]
    assert {each.scale for each in drawn} == {(0.5, 1.0, 2.0)}
    assert len({each.mean for each in drawn}) == len({each.df for each in drawn}) == 5


def test_law_of_what_is_drawn() -> None:
    """Over replications and arms, and no two arms or neighbours are correlated."""
    means = np.array([RANDOM["bernoulli"].draw(1, replication).values["mean"] for replication in range(3_000)])
    assert stats.kstest(means.ravel(), "uniform").pvalue > math.erfc(4.5 / math.sqrt(2))
    normal = stats.norm.ppf(means)
    products = [normal[:, i] * normal[:, j] for i in range(10) for j in range(i)]
    products += [normal[1:, i] * normal[:-1, i] for i in range(10)]
    assert max(abs(each.sum()) / math.sqrt((each**2).sum()) for each in products) < 4.5


def test_what_is_drawn_has_nothing_to_do_with_the_rewards() -> None:
    """The first reward of an arm, less its mean, against that mean."""
    problem, size = (
        ra.problems.RandomProblem(ra.problems.Gaussian, mean=ra.problems.Gaussian([0.0, 0.0]), sigma=1.0),
        2_048,
    )
    run = Run(ra.UCB(1.0), problem, Start((0, 0), (0.0, 0.0)), 5, 0, size, np.array([2]))
    run.advance(2)
    means = np.array([problem.draw(5, replication).means for replication in range(size)]).T
    products = means * (run.statistics.total - means)
    assert (np.abs(products.sum(axis=1)) / np.sqrt((products**2).sum(axis=1)) < 4.5).all()


# What is played.


@every_problem
def test_a_replication_plays_the_problem_that_it_drew(problem: ra.problems.RandomProblem) -> None:
    """Pulls and regret at every checkpoint are those of simulating that problem alone, bit for bit."""
    result = simulated(problem)
    for replication in (0, 1, 17, 31, 32, 39):
        alone = simulated(problem.draw(SEED, replication))
        np.testing.assert_array_equal(result.pulls[:, replication], alone.pulls[:, replication])
        np.testing.assert_array_equal(result.regret[:, replication], alone.regret[:, replication])
    assert len({row.tobytes() for row in result.regret[0]}) == 40


@every_problem
@pytest.mark.parametrize(("lanes", "workers"), [(32, 1), (64, 2), (96, 3)])
def test_lanes_and_workers_change_nothing(problem: ra.problems.RandomProblem, lanes: int, workers: int) -> None:
    one, other = simulated(problem, horizon=100), simulated(problem, horizon=100, lanes=lanes, workers=workers)
    np.testing.assert_array_equal(one.regret, other.regret)
    np.testing.assert_array_equal(one.pulls, other.pulls)
    np.testing.assert_array_equal(one.means, other.means)


def test_fewer_replications_are_the_first_ones() -> None:
    many, few = (simulated(RANDOM["gaussian"], replications=size) for size in (40, 7))
    np.testing.assert_array_equal(few.regret, many.regret[:, :7])
    np.testing.assert_array_equal(few.means, many.means[:7])


def test_regret_from_given_statistics() -> None:
    start: dict[str, Any] = {"pulls": [3, 0, 10**6, 1, 1], "means": [0.1, 0.0, 0.5, 0.2, 0.3]}
    result = simulated(RANDOM["gaussian"], **start)
    gaps = result.means.max(axis=1, keepdims=True) - result.means
    lost = ((result.pulls - start["pulls"]) * gaps).sum(axis=2)
    np.testing.assert_allclose(result.regret[:, :, -1], lost, rtol=1e-12)


def test_bayesian_regret_of_a_uniform_choice() -> None:
    """The best of K uniform means is K/(K+1) on average, any one of them ½."""
    result = ra.simulate(ra.Boltzmann(1e9), RANDOM["bernoulli"], horizon=1_000, replications=2_000, seed=3)
    row = result.summary().to_dicts()[0]
    z = (row["regret"] - 1_000 * (10 / 11 - 1 / 2)) / row["standard_error"]
    assert abs(z) < 4.5
    assert row["best_arm_share"] == pytest.approx(0.1, abs=0.002)


# The result.


@every_problem
def test_saved_loaded_and_repeated(problem: ra.problems.RandomProblem, tmp_path: Path) -> None:
    result = simulated(problem, horizon=50)
    loaded = ra.Result.load(result.save(tmp_path / "result.parquet"))
    assert loaded.problem == result.problem == problem
    for again in (loaded, loaded.repeat(workers=1), result.repeat()):
        assert json.dumps(again.specification) == json.dumps(result.specification)
        assert again.summary().to_dicts() == result.summary().to_dicts()
        for name in ("regret", "pulls", "means"):
            np.testing.assert_array_equal(getattr(again, name), getattr(result, name))
    assert loaded.plot(tmp_path / "regret.svg").read_text().count("<svg") == 1


def test_means_of_every_replication() -> None:
    result = simulated(RANDOM["gaussian"], horizon=5)
    assert result.means.tolist() == [list(RANDOM["gaussian"].draw(SEED, r).means) for r in range(40)]
    fixed = simulated(ra.problems.Bernoulli([0.5, 0.25]), horizon=5)
    assert fixed.means.tolist() == [[0.5, 0.25]] * 40
    assert fixed.drawn_means is None


def test_the_best_arm_is_that_of_the_replication() -> None:
    """Greedy on problems that pay their means finds it at once."""
    problem = ra.problems.RandomProblem(ra.problems.Deterministic, mean=ra.problems.Uniform([0.0] * 4, 1.0))
    result = ra.simulate(ra.Boltzmann(1e-12), problem, horizon=104, replications=50, seed=1)
    assert result.summary().to_dicts()[0]["best_arm_share"] == 101 / 104
    assert set(np.argmax(result.means, axis=1)) == {0, 1, 2, 3}


def test_results_of_random_problems_are_told_apart() -> None:
    fixed = ra.problems.Bernoulli([0.5] * 10)
    other = ra.problems.RandomProblem(ra.problems.Bernoulli, mean=ra.problems.Uniform(low=[0.0] * 10, high=0.5))
    problems: list[ra.problems.Problem | ra.problems.RandomProblem] = [RANDOM["bernoulli"], other, fixed]
    problems.append(RANDOM["bernoulli"].corrupted(0, rounds=5))
    keys = {Cell(ra.UCB(1.0), each, 10, 32, seed=1, checkpoints=(10,)).key for each in problems}
    assert len(keys) == 4


# What it says of itself.


@every_problem
def test_made_again(problem: ra.problems.RandomProblem) -> None:
    names = {**vars(ra.problems), **vars(ra), "tilted": tilted, "settled": settled}
    specification = json.loads(json.dumps(problem.specification()))
    copies: list[Any] = [
        eval(repr(problem), names),
        pickle.loads(pickle.dumps(problem)),
        any_problem_from_specification(specification),
    ]
    for again in copies:
        assert again == problem
        assert hash(again) == hash(problem)
        assert repr(again) == repr(problem)
        assert again.draw(1, 2) == problem.draw(1, 2)


def test_different_problems_differ() -> None:
    assert len({*RANDOM.values(), RANDOM["bernoulli"].corrupted(0, rounds=1)}) == len(RANDOM) + 1
    assert RANDOM["bernoulli"] != ra.problems.Bernoulli([0.5])


def test_texts() -> None:
    assert str(RANDOM["bernoulli"]) == "random Bernoulli(mean ~ Uniform(low=0, high=1)) with 10 arms"
    assert str(ra.problems.RandomProblem(ra.problems.Gaussian, ra.problems.Uniform(0.0, [1.0, 2.0]), sigma=0.5)) == (
        "random Gaussian(mean ~ Uniform(low=0, high=[1, 2]), sigma=0.5) with 2 arms"
    )
    many = ra.problems.RandomProblem(ra.problems.Gaussian, ra.problems.Uniform(0.0, range(1, 101)))
    assert "high=[1, 2, 3, …, 100]" in str(many)
    assert ".corrupted(arm=1, rounds=100" in str(RANDOM["corrupted"])
    with pytest.raises(AttributeError, match="immutable"):
        many.arms = 3


# What is refused.


@ra.problems.problem
def unknown_mean(u, *, high: float):  # type: ignore[no-untyped-def]
    return high * u


UNIFORM = ra.problems.Uniform(low=[0.0, 0.0], high=1.0)
RandomProblem: Any = ra.problems.RandomProblem  # mistakes that a type checker finds are made here too
ANY: Any = RANDOM["bernoulli"]

REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no family": (lambda: RandomProblem(UNIFORM), TypeError, "a family of problems such as Bernoulli, got Uniform"),
    "a policy": (lambda: RandomProblem(ra.UCB, C=UNIFORM), TypeError, "a family of problems.*got UCB"),
    "numbers only": (
        lambda: ra.problems.RandomProblem(ra.problems.Bernoulli, [0.5]),
        ValueError,
        r"needs a problem.*got {'mean': \[0.5\]}",
    ),
    "no parameter": (
        lambda: ra.problems.RandomProblem(ra.problems.Bernoulli),
        TypeError,
        "missing a required argument: 'mean'",
    ),
    "another's parameter": (
        lambda: ra.problems.RandomProblem(ra.problems.Bernoulli, mean=UNIFORM, sigma=1.0),
        TypeError,
        "Bernoulli has no parameter 'sigma'; it has mean",
    ),
    "a policy for a distribution": (
        lambda: ra.problems.RandomProblem(ra.problems.Bernoulli, mean=ra.UCB(1.0)),  # type: ignore[arg-type]
        TypeError,
        r"mean must be numbers or a problem.*got UCB\(C=1.0\)",
    ),
    "a random distribution": (
        lambda: ra.problems.RandomProblem(ra.problems.Bernoulli, mean=RANDOM["bernoulli"]),  # type: ignore[arg-type]
        TypeError,
        "mean must be numbers or a problem.*got RandomProblem",
    ),
    "a corrupted distribution": (
        lambda: ra.problems.RandomProblem(ra.problems.Bernoulli, mean=UNIFORM.corrupted(0, rounds=1)),
        ValueError,
        "mean must be drawn from a problem that does not change over time, got Uniform.*corrupted",
    ),
    "a restless distribution": (
        lambda: ra.problems.RandomProblem(ra.problems.Bernoulli, mean=restless([0.5])),
        ValueError,
        "mean must be drawn from a problem that does not change over time, got restless",
    ),
    "lengths": (
        lambda: ra.problems.RandomProblem(ra.problems.Gaussian, mean=UNIFORM, sigma=[1, 2, 3]),
        ValueError,
        "one value per arm, got lengths {'mean': 2, 'sigma': 3}",
    ),
    "a fixed sigma of -1": (
        lambda: ra.problems.RandomProblem(ra.problems.Gaussian, mean=UNIFORM, sigma=-1),
        ValueError,
        "sigma must be non-negative, got -1.0",
    ),
    "no mean": (
        lambda: ra.problems.RandomProblem(unknown_mean, high=UNIFORM),
        ValueError,
        r"give unknown_mean's with @problem\(mean=...\)",
    ),
    "arm 2 of 2": (
        lambda: ra.problems.RandomProblem(ra.problems.Bernoulli, UNIFORM).corrupted(2, rounds=1),
        ValueError,
        "arm must be below the number of arms, 2, got 2",
    ),
    "replication -1": (
        lambda: RANDOM["bernoulli"].draw(1, -1),
        ValueError,
        "replication must be a whole number of at least 0, got -1",
    ),
    "seed 0.5": (lambda: ANY.draw(0.5, 1), ValueError, "seed must be a whole number.*got 0.5"),
    "low above high": (
        lambda: ra.problems.RandomProblem(ra.problems.Uniform, low=ra.problems.Uniform([2.0, 2.0], 3.0), high=1.0).draw(
            1, 5
        ),
        ValueError,
        "Uniform needs low ≤ high.*drawn in replication 5",
    ),
    "not finite": (
        lambda: ra.problems.RandomProblem(ra.problems.Gaussian, mean=ra.problems.LogNormal([1e5], sigma=1.0)).draw(
            1, 5
        ),
        ValueError,
        r"mean\[0\] must be finite, got inf, drawn in replication 5",
    ),
}


@pytest.mark.parametrize(("call", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_parameter_out_of_range_is_named_with_its_replication() -> None:
    """Before anything is played; and only a replication that is asked for is drawn, not those that fill up lanes."""
    problem = ra.problems.RandomProblem(ra.problems.Bernoulli, mean=ra.problems.Gaussian([0.5, 0.5], sigma=0.2))
    draws_of = [
        ra.problems.RandomProblem(ra.problems.Deterministic, mean=problem.values["mean"]).draw(1, r).values["mean"]
        for r in range(200)
    ]
    bad = next(r for r, means in enumerate(draws_of) if not all(0 <= mean <= 1 for mean in means))
    assert 0 < bad < 32
    arm = next(k for k in range(2) if not 0 <= draws_of[bad][k] <= 1)
    simulated(problem, seed=1, replications=bad)
    told = (
        rf"mean\[{arm}\] must be between 0 and 1, got {draws_of[bad][arm]}, drawn in replication {bad} of random Bern"
    )
    with pytest.raises(ValueError, match=told):
        simulated(problem, seed=1, replications=bad + 1)
