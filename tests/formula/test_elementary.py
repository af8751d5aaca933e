"""The functions that stand for NumPy's in compiled formulas, against 50 digits, and where NumPy's own must stay."""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import compiled
import rightarm as ra
from naive import F64
from rightarm.formula import elementary
from rightarm.formula.compile import jit

DIGITS = decimal.Context(prec=50)
LOG_ERROR, EXP_ERROR = 0.9, 1.1  # units in the last place
TABLE = np.array([4.0, 1.0, 0.25])


def in_formula(expression: str, x: Any, **names: Any) -> F64:
    """``expression`` of x as a compiled formula has it; x comes as an arm's mean."""
    of_the_mean = re.sub(r"\bx\b", "mean", expression)
    formula = eval(f"lambda t, mean: {of_the_mean}", {"np": np, **names})
    values = np.asarray(x, dtype=float)
    return compiled.scores(ra.policy(formula)(), 9, [1] * values.size, values.tolist(), [0.0] * values.size)


def magnitudes() -> F64:
    """Numbers of all sizes, subnormal ones too."""
    random = np.random.default_rng(1)
    return np.ldexp(random.uniform(0.5, 1.0, 4_194), np.repeat(np.arange(-1073, 1024), 2))


def around(*points: float, steps: int = 20) -> F64:
    """The floats next to each point."""
    return np.array([point + k * np.spacing(point) for point in points for k in range(-steps, steps + 1)])


def near_one() -> F64:
    """Where a logarithm loses digits to cancellation."""
    small = np.ldexp(1.0, -np.arange(1, 53))
    return np.concatenate([1 + small, 1 - small, around(1.0, math.sqrt(0.5), math.sqrt(2.0), 0.5, 2.0)])


LOGARITHMS = {
    "all sizes": magnitudes(),
    "near 1": near_one(),
    "rounds": np.arange(1.0, 2_000.0),
    "a reduction's interval": np.random.default_rng(2).uniform(0.7, 1.42, 5_000),
}
EXPONENTIALS = {
    "all": np.random.default_rng(3).uniform(-708.3, 709.7, 5_000),
    "usual": np.random.default_rng(4).uniform(-40.0, 1.0, 3_000),
    "of all sizes": np.concatenate([s * magnitudes()[magnitudes() < 700] for s in (-1, 1)]),
    "half way between powers of two": around(*(math.log(2) * (k + 0.5) for k in range(-1020, 1020, 7)), steps=2),
    "subnormal": np.linspace(-745.13, -708.4, 2_000),
    "the largest": around(709.782712893384, steps=3)[:4],
}


def units_off(values: F64, exact: list[decimal.Decimal]) -> float:
    """The largest distance to exact values, in units of their last place."""
    distances = [
        abs(DIGITS.subtract(decimal.Decimal(value), true)) / decimal.Decimal(math.ulp(float(true)))
        for value, true in zip(values.tolist(), exact, strict=True)
    ]
    return float(max(distances))


@pytest.mark.parametrize("x", LOGARITHMS.values(), ids=LOGARITHMS)
def test_logarithm(x: F64) -> None:
    assert units_off(in_formula("np.log(x)", x), [DIGITS.ln(decimal.Decimal(v)) for v in x.tolist()]) <= LOG_ERROR


@pytest.mark.parametrize("x", EXPONENTIALS.values(), ids=EXPONENTIALS)
def test_exponential(x: F64) -> None:
    assert units_off(in_formula("np.exp(x)", x), [DIGITS.exp(decimal.Decimal(v)) for v in x.tolist()]) <= EXP_ERROR


def same(first: F64, second: Any) -> bool:
    """Bit for bit, all NaN being one."""
    second = np.asarray(second, dtype=float)
    return np.array_equal(first, second, equal_nan=True) and np.array_equal(
        np.signbit(first)[~np.isnan(first)], np.signbit(second)[~np.isnan(second)]
    )


def test_special_logarithms() -> None:
    x = [0.0, -0.0, 1.0, math.inf, -math.inf, math.nan, -1.0, -5e-324, -1e-310, -1e308]
    nan = math.nan
    assert same(in_formula("np.log(x)", x), [-math.inf, -math.inf, 0.0, math.inf, nan, nan, nan, nan, nan, nan])


def test_special_exponentials() -> None:
    over = math.nextafter(709.782712893384, math.inf)
    x = [
        0.0,
        -0.0,
        math.inf,
        -math.inf,
        math.nan,
        over,
        1e308,
        -745.1332191019411,
        -745.1332191019412,
        -1e308,
        5e-324,
        -5e-324,
    ]
    exact = [1.0, 1.0, math.inf, 0.0, math.nan, math.inf, math.inf, 5e-324, 0.0, 0.0, 1.0, 1.0]
    assert same(in_formula("np.exp(x)", x), exact)


EXPRESSIONS: dict[str, tuple[str, Callable[[F64], Any]]] = {
    "log of a whole number": ("np.log(3) + 0 * x", lambda x: np.full(x.size, math.log(3))),
    "exp of a whole number": ("np.exp(2) + 0 * x", lambda x: np.full(x.size, math.exp(2))),
    "exp of a comparison": ("np.exp(x > 0.5)", lambda x: np.where(x > 0.5, math.e, 1.0)),
    "where of whole numbers": ("np.where(x > 0.5, 3, 2)", lambda x: np.where(x > 0.5, 3.0, 2.0)),
    "where of mixed numbers": ("np.where(x > 0.5, 1, x)", lambda x: np.where(x > 0.5, 1.0, x)),
    "where of a number": ("np.where(x, 1.0, 2.0)", lambda x: np.where(x, 1.0, 2.0)),
    "where of several": ("np.where((x > 0.2) & (x < 0.7), x, -x)", lambda x: np.where((x > 0.2) & (x < 0.7), x, -x)),
    "clip": ("np.clip(x, 0.2, 0.7)", lambda x: np.clip(x, 0.2, 0.7)),
    "clip to whole numbers": ("np.clip(3 * x, 1, 2)", lambda x: np.clip(3 * x, 1, 2)),
    "clip between arms' own": ("np.clip(0.5, x, x + 0.1)", lambda x: np.clip(0.5, x, x + 0.1)),
    "log of an array": ("np.log(TABLE)[0] + x", lambda x: math.log(4) + x),
    "exp of an array": ("np.exp(TABLE).sum() + x", lambda x: np.exp(TABLE).sum() + x),
    "where of an array": ("np.where(TABLE > 0.5, TABLE, 0.0).sum() + x", lambda x: 5.0 + x),
    "clip of an array": ("np.clip(TABLE, 0.5, 2.0)[2] + x", lambda x: 0.5 + x),
}


@pytest.mark.parametrize(("expression", "exact"), EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_as_in_numpy(expression: str, exact: Callable[[F64], Any]) -> None:
    x = np.array([0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 2.0])
    np.testing.assert_allclose(in_formula(expression, x, TABLE=TABLE), exact(x), rtol=1e-15)


@pytest.mark.parametrize("x", [math.nan, -math.inf, math.inf, -0.0])
def test_clip_of_what_is_no_ordinary_number(x: float) -> None:
    assert same(in_formula("np.clip(x, -1.0, 1.0)", [x]), np.clip([x], -1.0, 1.0))


@numba.njit
def their_logarithm(x: float) -> float:
    return np.log(x)  # type: ignore[no-any-return]


def test_nobody_elses_functions_are_touched() -> None:
    """Where ours and the C library's differ in the last place, Numba's own remains theirs, in a formula too."""
    x = np.random.default_rng(5).uniform(0.5, 2.0, 20_000)
    ours, theirs = in_formula("np.log(x)", x), np.array([math.log(value) for value in x])
    differ = ours != theirs
    assert differ.any()
    assert [their_logarithm(value) for value in x] == theirs.tolist()
    assert same(in_formula("theirs(x)", x, theirs=their_logarithm), theirs)


def test_the_same_wherever_it_is_computed() -> None:
    """One by one, as a kernel, and in a loop that is made vector code."""
    x = np.concatenate([magnitudes()[::5], near_one()])
    assert same(in_formula("np.log(x)", x), [elementary.log(value) for value in x])
    y = np.linspace(-750.0, 715.0, 1_000)
    assert same(in_formula("np.exp(x)", y), [elementary.exp(value) for value in y])


@pytest.mark.parametrize("name", ["expm1", "log1p"])
def test_digits_near_zero(name: str) -> None:
    """These stand for no function of NumPy, and are called in compiled code only."""
    function, expected = jit(getattr(elementary, name)), getattr(math, name)
    sizes = 10.0 ** np.linspace(-20, 2.8, 1_000)
    for x in [*sizes.tolist(), *(-sizes[sizes < 1]).tolist(), 0.0]:
        assert function(x) == pytest.approx(expected(x), rel=5e-16, abs=0.0)
