"""Problems with contexts as values: distributions of x, formulas of one's own, data sets; and what is refused."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from rightarm.problems.contexts import ContextDistribution, context_from_specification
from rightarm.problems.random import any_problem_from_specification
from rightarm.simulation.context_engine import ContextRun

ROUNDS = 4_000


def contexts(context: Any, rounds: int = ROUNDS) -> np.ndarray[Any, Any]:
    """The contexts of the first rounds, as the compiled loop draws them."""
    problem = ra.problems.LinearProblem(np.zeros((2, context.columns)), context=context, noise=0.0)
    run = ContextRun(ra.UCB(C=1.0), problem, np.array([rounds]))
    run.begin(seed=1, replication=0)
    rows = []
    for t in range(1, rounds + 1):
        run.advance(t)
        rows.append(run.arrays.world.x.copy())
    return np.array(rows)


@ra.problems.context
def falling(normals, t, *, columns: int, rate: float = 0.5):  # type: ignore[no-untyped-def]
    return np.cumsum(normals) - rate * t


@ra.problems.context
def short(normals, *, columns: int):  # type: ignore[no-untyped-def]
    return normals / np.sqrt(columns)


@pytest.mark.parametrize(
    ("distribution", "mean", "variance"),
    [
        (short(4), 0.0, 0.25),
        (ra.problems.GaussianContext(3, mean=2.0, sigma=0.5), 2.0, 0.25),
        (ra.problems.UniformContext(3, low=-1.0, high=3.0), 1.0, 16 / 12),
        (ra.problems.SphereContext(3, radius=2.0), 0.0, 4 / 3),
    ],
)
def test_distributions_have_their_moments(distribution: Any, mean: float, variance: float) -> None:
    x = contexts(distribution)
    assert (np.abs(x.mean(axis=0) - mean) < 4.5 * np.sqrt(variance / ROUNDS)).all()
    squares = (x - mean) ** 2
    error = squares.std(axis=0) / np.sqrt(ROUNDS)
    assert (np.abs(squares.mean(axis=0) - variance) < 4.5 * error).all()
    products = (x[:, 0] - mean) * (x[:, 1] - mean)
    assert abs(products.mean()) < 4.5 * products.std() / np.sqrt(ROUNDS)


def test_the_sphere_is_one() -> None:
    np.testing.assert_allclose(np.linalg.norm(contexts(ra.problems.SphereContext(4, radius=2.0), 50), axis=1), 2.0)


def test_rows_come_each_once_before_any_comes_again() -> None:
    data = np.arange(7.0).reshape(-1, 1)
    x = contexts(ra.problems.DataContext(data), 70).reshape(10, 7)
    assert (np.sort(x, axis=1) == data.ravel()).all()
    assert len({tuple(row) for row in x}) > 5


def test_every_order_of_rows_is_equally_likely() -> None:
    orders = contexts(ra.problems.DataContext([[0.0], [1.0], [2.0]]), 3_600).reshape(-1, 3)
    counts = np.unique(orders @ [1, 10, 100], return_counts=True)[1]
    assert counts.size == 6
    assert (np.abs(counts - 200) < 4.5 * np.sqrt(1_200 / 6 * 5 / 6)).all()


def test_how_a_distribution_is_compiled_is_read_off_it() -> None:
    assert ra.problems.GaussianContext(3).by_column
    assert ra.problems.UniformContext(3).by_column
    assert not ra.problems.SphereContext(3).by_column
    assert not falling(3).by_column
    x = contexts(falling(3), 2)
    assert x.shape == (2, 3)


def test_distributions_are_values() -> None:
    distributions = [
        ra.problems.GaussianContext(2),
        ra.problems.GaussianContext(3),
        ra.problems.SphereContext(2),
        falling(2),
        ra.problems.DataContext([[1.0, 2.0]]),
    ]
    assert len(set(distributions)) == len(distributions)
    for distribution in distributions:
        assert context_from_specification(json.loads(json.dumps(distribution.specification()))) == distribution
        assert pickle.loads(pickle.dumps(distribution)) == distribution


def test_means_of_a_linear_problem() -> None:
    theta, x = np.random.default_rng(1).normal(size=(5, 4)), np.random.default_rng(2).normal(size=4)
    problem = ra.problems.LinearProblem(theta, offset=[0.5, 1.0, 0.0, 0.0, -1.0])
    np.testing.assert_allclose(problem.means_at(x), theta @ x + [0.5, 1.0, 0.0, 0.0, -1.0], rtol=1e-12)
    assert (problem.arms, problem.columns) == (5, 4)


def test_one_arm_is_a_problem() -> None:
    assert ra.problems.LinearProblem([[1.0, 2.0]]).arms == 1


def test_classes_may_be_texts_or_numbers() -> None:
    problem = ra.problems.Classification([[0.0], [1.0], [2.0]], ["no", "yes", "no"])
    assert problem.classes == ("no", "yes")
    assert problem.means_at([1.0], label=1.0).tolist() == [0.0, 1.0]
    assert ra.problems.Classification([[0.0], [1.0]], np.array([3, 7])).classes == (3, 7)
    copy = any_problem_from_specification(json.loads(json.dumps(problem.specification())))
    assert copy == problem
    assert problem.stays_within(0, 1)


def wrong(x):  # type: ignore[no-untyped-def]
    return x


def named(x, *, noise):  # type: ignore[no-untyped-def]
    return noise


def visit(u, w):  # type: ignore[no-untyped-def]
    return u, w


def level(x, *, height):  # type: ignore[no-untyped-def]
    return height


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ra.problems.LinearProblem([1.0, 2.0]), "theta must have a row of coefficients for each arm"),
        (lambda: ra.problems.LinearProblem([[1.0, 2.0], [1.0]]), "theta must have rows of one length"),
        (
            lambda: ra.problems.ContextProblem(ra.problems.GaussianContext(2), named, noise=1.0, arms=2),
            "'noise' has the name of something",
        ),
        (lambda: ra.problems.LinearProblem([[1.0, float("nan")]]), r"theta\[0, 1\] must be finite, got nan"),
        (
            lambda: ra.problems.LinearProblem([[1.0]], context=ra.problems.GaussianContext(2)),
            "2 coefficients for each arm.* got 1",
        ),
        (lambda: ra.problems.LinearProblem([[1.0]], noise=-1.0), "noise must be non-negative, got -1.0"),
        (lambda: ra.problems.LinearProblem([[1.0]], context=3), "must be a distribution of contexts .* got 3"),  # type: ignore[arg-type]
        (
            lambda: ra.problems.LinearProblem([[1.0]], context=ra.problems.GaussianContext),
            "call it with its parameters first",
        ),
        (lambda: ra.problems.GaussianContext(0), "columns must be a whole number of at least 1, got 0"),
        (lambda: ra.problems.GaussianContext(2, sigma=-1.0), "sigma must be non-negative, got -1.0"),
        (lambda: ra.problems.DataContext([1.0, 2.0]), "data must be rows of one length"),
        (lambda: ra.problems.DataContext([[1.0], [float("inf")]]), r"data\[1, 0\] must be finite, got inf"),
        (lambda: ra.problems.DataContext([["a"]]), "data must be numbers"),
        (
            lambda: ra.problems.Classification([[1.0, float("nan")], [2.0, 1.0]], [1, 2]),
            r"^X\[0, 1\] must be finite, got nan",
        ),
        (lambda: ra.problems.Classification([1.0, 2.0], [1, 2]), "^X must be rows of one length"),
        (lambda: ra.problems.Classification([[1.0], [2.0]], [1]), "a class for each of 2 rows of X, got 1"),
        (lambda: ra.problems.Classification([[1.0], [2.0]], [1, 1]), "two classes at least"),
        (lambda: ra.problems.LinearProblem([[1.0, 2.0]]).means_at([1.0]), r"x must have 2 numbers, got \[1.0\]"),
        (lambda: ra.problems.ContextProblem(ra.problems.GaussianContext(2), level), "needs a value of height"),
        (lambda: ra.problems.ContextProblem(ra.problems.GaussianContext(2), level, height=1.0), "arms must be given"),
        (
            lambda: ra.problems.ContextProblem(ra.problems.GaussianContext(2), level, height=[1.0, 2.0], arms=3),
            "one value per arm",
        ),
        (
            lambda: ra.problems.ContextProblem(ra.problems.GaussianContext(2), level, height=[1.0], width=2, arms=1),
            "no parameter 'width'",
        ),
        (lambda: ra.problems.ContextProblem(ra.problems.GaussianContext(2), wrong, arms=2), "one number for each arm"),
        (lambda: ra.problems.ContextProblem(lambda mood: 1.0, level, height=[1.0, 2.0]), "unknown input 'mood'"),
        (
            lambda: ra.problems.ContextProblem(
                ra.problems.GaussianContext(2), level, height=[1.0, 2.0], noise=1.0, reward=lambda u: u
            ),
            "noise is for problems without a reward",
        ),
    ],
)
def test_what_is_wrong_is_said_by_name(make: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def described(problem: Any) -> dict[str, list[float]]:
    """For each arm the share of contexts in which it is best, its mean and its regret per round, as printed."""
    _, shown = problem.describe().replace("−", "-").replace("%", "").split("regret per round\n", 1)
    lines = [line.split() for line in shown.splitlines()[: problem.arms]]
    return {line[0]: [float(cell) for cell in line[1:]] for line in lines}


def test_described_by_contexts() -> None:
    """Two Gaussians and 0: the largest is the first with probability 3/8, and its mean is known in closed form."""
    problem = ra.problems.LinearProblem([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], offset=[0.0, 0.0, 0.0])
    found, largest = described(problem), 1 / np.sqrt(2 * np.pi) * (1 + 1 / np.sqrt(2))
    for arm, share in (("0", 0.375), ("1", 0.375), ("2", 0.25)):
        assert abs(found[arm][0] / 100 - share) < 4.5 * np.sqrt(share * (1 - share) / 10_000) + 0.0005
        assert abs(found[arm][1]) < 4.5 / 100
        assert abs(found[arm][2] - largest) < 4.5 * 1.2 / 100
    assert "by 10,000 contexts" in problem.describe().replace("\n", " ")


def test_described_by_data_and_where_arms_tie() -> None:
    X, y = np.arange(12.0)[:, None], ["b"] * 6 + ["c"] * 3 + ["a"] * 3
    assert described(ra.problems.Classification(X, y)) == {
        "a": [25, 0.25, 0.75],
        "b": [50, 0.5, 0.5],
        "c": [25, 0.25, 0.75],
    }
    assert "is b: it loses 0.5 per round" in ra.problems.Classification(X, y).describe()
    assert described(ra.problems.ContextProblem(visit, level, height=[1.0, 1.0, 0.5])) == {
        "0": [50, 1, 0],
        "1": [50, 1, 0],
        "2": [0, 0.5, 0.5],
    }
    large = ra.problems.DataContext(np.arange(30_000.0)[:, None])
    assert "by 10,000 contexts" in ra.problems.ContextProblem(large, level, height=[1.0, 2.0]).describe()


def test_a_distribution_of_rows_of_noise_says_how_many_columns() -> None:
    with pytest.raises(TypeError, match="needs a parameter columns"):
        ContextDistribution.accept("context", lambda normals: normals)


def test_a_formula_that_changed_is_not_taken_for_the_old_one() -> None:
    specification = ra.problems.ContextProblem(ra.problems.GaussianContext(2), level, height=[1.0, 2.0]).specification()
    specification["code"] = specification["parts"]["mean"]["code"] = "tree:0"
    with pytest.raises(ValueError, match="has changed since this was saved"):
        any_problem_from_specification(specification)


def test_contexts_are_not_corrupted() -> None:
    with pytest.raises(ValueError, match="corrupted is for problems without contexts"):
        ra.problems.LinearProblem([[1.0]]).corrupted(arm=0, rounds=1)
