"""Running standardisation against NumPy's mean and deviation of the values so far."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive import F64, I64
from rightarm.estimators.context_rows import (
    MOMENT_COUNT,
    MOMENT_MEAN,
    MOMENT_SQUARES,
    count_values,
    standardise,
    standardise_and_count,
)

ALONE = (np.array([0]), np.array([-1]))  # one measured column without an indicator


def standardise_all(X: F64, *state: Any) -> F64:
    """Contexts one after the other, a row each: each is standardised, itself included, and then taken."""
    out, (measured, indicator, moments) = np.empty_like(X), state
    for row, made in zip(X, out, strict=True):
        standardise(row, measured, indicator, moments, made)
        count_values(row, measured, indicator, moments)
    return out


def column(values: Any) -> F64:
    """What becomes of the values of a single measured column, one after the other."""
    made: F64 = standardise_all(np.array(values, dtype=float)[:, None], *ALONE, np.zeros((3, 1)))
    return made[:, 0]


def naive(X: F64, measured: I64, indicator: I64) -> F64:
    out = X.copy()
    for i in range(len(X)):
        for place, missing in zip(measured, indicator, strict=True):
            known = [row[place] for row in X[: i + 1] if missing < 0 or row[missing] == 0.0]
            gone = missing >= 0 and X[i, missing] != 0.0
            deviation = 0.0 if gone else np.std(known)
            flat = gone or deviation <= 1e-12 * abs(np.mean(known))
            out[i, place] = 0.0 if flat else (X[i, place] - np.mean(known)) / deviation
    return out


def contexts(random: np.random.Generator, rows: int) -> tuple[F64, I64, I64]:
    """Columns: copied, measured, its indicator, measured and never missing, copied, measured, its indicator."""
    X = random.standard_normal((rows, 7)) * 10.0 ** random.uniform(-3, 3, 7) + random.uniform(-5, 5, 7)
    X[:, [2, 6]] = random.random((rows, 2)) < 0.3
    return X, np.array([1, 3, 5]), np.array([2, -1, 6])


@pytest.mark.parametrize("seed", range(5))
def test_rows_equal_the_naive_ones(seed: int) -> None:
    X, *places = contexts(np.random.default_rng(seed), 60)
    moments = np.zeros((3, 3))
    np.testing.assert_allclose(standardise_all(X, *places, moments), naive(X, *places), rtol=1e-9, atol=1e-9)
    known = [X[X[:, 2] == 0, 1], X[:, 3], X[X[:, 6] == 0, 5]]
    np.testing.assert_array_equal(moments[MOMENT_COUNT], [len(values) for values in known])
    np.testing.assert_allclose(moments[MOMENT_MEAN], [values.mean() for values in known], rtol=1e-12)
    np.testing.assert_allclose(
        moments[MOMENT_SQUARES] / moments[MOMENT_COUNT], [values.var() for values in known], rtol=1e-12
    )


def test_one_by_one_and_in_parts_is_the_same_to_the_last_bit() -> None:
    X, *places = contexts(np.random.default_rng(8), 50)
    whole, parts, single = np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((3, 3))
    expected, before = standardise_all(X, *places, whole), X.copy()
    np.testing.assert_array_equal(
        np.vstack([standardise_all(X[:20], *places, parts), standardise_all(X[20:], *places, parts)]), expected
    )
    out = np.empty(7)
    for row, wanted in zip(X, expected, strict=True):
        state = single.copy()
        standardise(row, *places, single, out)
        np.testing.assert_array_equal(single, state)
        np.testing.assert_array_equal(out, wanted)
        count_values(row, *places, single)
    np.testing.assert_array_equal(single, whole)
    np.testing.assert_array_equal(parts, whole)
    np.testing.assert_array_equal(X, before)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40), st.sampled_from([1e-3, 1.0, 1e3]))
def test_any_values(values: list[float], scale: float) -> None:
    scaled = [scale * value for value in values]
    made, exact = column(scaled), [Fraction(value) for value in scaled]
    for n, z in enumerate(made, 1):
        assert abs(z) <= math.sqrt(n - 1) * (1 + 1e-14)
        mean = sum(exact[:n], Fraction(0)) / n
        variance = sum(((x - mean) ** 2 for x in exact[:n]), Fraction(0)) / n
        deviation, largest = math.sqrt(variance), float(np.abs(scaled[:n]).max())
        if variance == 0 or deviation < 0.9e-12 * abs(mean):
            assert z == 0.0
        elif deviation > 1e-9 * largest:  # between the two, what rounding leaves decides
            rounding = n * 2.0**-50 * largest / deviation
            assert z == pytest.approx(float(exact[n - 1] - mean) / deviation, rel=rounding, abs=rounding)


@pytest.mark.parametrize("offset", [0.0, 1e3, -1e6, 1e9, 1e11])
def test_an_offset_costs_no_more_digits_than_it_must(offset: float) -> None:
    n = 2_000
    values = offset + np.random.default_rng(3).standard_normal(n)
    shifted = values - offset  # exact but for values far smaller than the offset
    counts = np.arange(1, n + 1)
    expected = np.array([(shifted[k - 1] - shifted[:k].mean()) / (shifted[:k].std() or 1.0) for k in counts])
    # every step rounds the mean, by half of its last digit at most
    allowed = 1e-12 + 2.0 * n * 2.0**-53 * abs(offset)
    np.testing.assert_allclose(column(values)[5:], expected[5:], rtol=0, atol=allowed)


@pytest.mark.parametrize("value", [0.0, 0.1, -1 / 3, 1e9 + 0.1, 1e100, 5e-324])
def test_a_constant_is_zero(value: float) -> None:
    assert (column([value] * 1_000) == 0.0).all()


def test_numbers_that_differ_by_rounding_are_constant() -> None:
    assert 0.1 + 0.2 != 0.3
    assert (column([0.3, 0.1 + 0.2] * 50) == 0.0).all()
    assert (column(1e9 + 1e-4 * np.random.default_rng(1).random(50)) == 0.0).all()
    assert (column([1e9, 1e9 + 0.1, 1e9])[1:] != 0.0).all()


def test_the_largest_possible_value() -> None:
    for n in (2, 3, 10, 10_000):
        assert column([0.0] * (n - 1) + [7.0])[-1] == pytest.approx(math.sqrt(n - 1), rel=1e-14)


@pytest.mark.parametrize("size", [1e100, 1e-100])
def test_very_large_and_very_small_values(size: float) -> None:
    np.testing.assert_allclose(column([size, -size] * 20)[1::2], -1.0, rtol=1e-12)


def test_a_missing_value_counts_for_nothing() -> None:
    rows = np.array([[1.0, 0.0], [777.0, 1.0], [3.0, 0.0], [0.0, 1.0]])
    moments = np.zeros((3, 1))
    made = standardise_all(rows, np.array([0]), np.array([1]), moments)
    assert made.tolist() == [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    assert moments.tolist() == [[2.0], [2.0], [2.0]]


def test_without_measured_columns_all_is_copied() -> None:
    X, none = np.arange(6.0).reshape(3, 2), np.zeros(0, np.int64)
    np.testing.assert_array_equal(standardise_all(X, none, none, np.zeros((3, 0))), X)
    assert standardise_all(X[:0], *ALONE, np.zeros((3, 1))).shape == (0, 2)


def test_one_step_is_two_steps() -> None:
    random = np.random.default_rng(5)
    X = random.normal(3.0, 2.0, size=(200, 4))
    X[:, 3] = random.random(200) < 0.3
    columns = np.array([0, 2]), np.array([-1, 3])
    once, twice = np.zeros((3, 2)), np.zeros((3, 2))
    for x in X:
        made, expected = np.empty(4), np.empty(4)
        standardise_and_count(x, *columns, once, made)
        standardise(x, *columns, twice, expected)
        count_values(x, *columns, twice)
        assert (made == expected).all()
        assert (once == twice).all()
