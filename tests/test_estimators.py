"""Catoni's estimator against the sum as the paper prints it, and against reference values of 30 digits."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rightarm.estimators import CatoniEstimator, psi

Values = NDArray[np.float64]
R = (7919 * np.arange(1, 5_001)) % 1009
LINEAR = (R - 504) / 8

REFERENCE: dict[str, tuple[Any, float, float]] = {  # values, C, the estimate computed with 30 digits
    "one": ([1.0], 0.5, 0.80471895621705019),
    "four": ([1.0, 0.0, 0.0, 1.0], 0.5, 0.45814536593707753),
    "negative": ([-3.0], 1.0, -2.1400661634962708),
    "outlier": ([1e6, -1.0, 2.0], 1.0, 15.196029788135421),
    "bernoulli": ([1.0] * 300 + [0.0] * 700, 0.5, 0.29980924715739649),
    "linear, 10": (LINEAR[:10], 32.0, 8.2148252491031465),
    "linear, 1000": (LINEAR[:1000], 32.0, 0.13068919786614335),
    "linear, small C": (LINEAR[:1000], 0.5, 0.090109670462723375),
    "inverse": (1009 / (1 + R), 2.0, 6.487443202009724),
    "far off": (1000 + LINEAR[:4096], 1.0, 315.59366196310406),
}


def naive(values: Any, C: float) -> float:
    """The paper's sum, with its own β."""
    beta, total = C / math.sqrt(len(values)), []
    for x in np.asarray(values, dtype=float).tolist():
        y = abs(x) / (beta * len(values))
        total.append(math.copysign(math.log1p(y + y * y / 2), x))
    return beta * math.fsum(total)


def estimate(values: Any, C: float) -> CatoniEstimator:
    made = CatoniEstimator(C)
    made.push(values)
    return made


@pytest.mark.parametrize(("values", "C", "expected"), REFERENCE.values(), ids=REFERENCE)
def test_reference_values(values: Any, C: float, expected: float) -> None:
    tolerance = 1e-13 * float(np.mean(np.abs(values)))
    assert naive(values, C) == pytest.approx(expected, abs=tolerance)
    assert estimate(values, C).value == pytest.approx(expected, abs=tolerance)
    one_by_one = CatoniEstimator(C)
    for value in values:
        one_by_one.push(value)
    assert one_by_one.value == pytest.approx(expected, abs=tolerance)


def outliers(random: np.random.Generator, n: int) -> Values:
    values = random.standard_normal(n)
    values[random.integers(0, n, 10)] = [1e12, -1e12] * 5
    return values


LAWS: dict[str, Any] = {
    "bernoulli": lambda random, n: 1.0 * (random.random(n) < 0.3),
    "gaussian": lambda random, n: random.normal(1.0, 2.0, n),
    "pareto": lambda random, n: 1 + random.pareto(2.1, n),
    "student": lambda random, n: random.standard_t(2.5, n),
    "lognormal": lambda random, n: random.lognormal(0.0, 2.0, n),
    "cauchy": lambda random, n: random.standard_cauchy(n),
    "outliers": outliers,
    "far off": lambda random, n: random.normal(1_000.0, 1.0, n),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_equals_the_printed_sum_up_to_a_million(law: Any) -> None:
    values = law(np.random.default_rng(3), 1_000_000)
    streaming = CatoniEstimator(1.0)
    done = 0
    for n in (1, 2, 3, 4, 15, 16, 17, 63, 64, 1_000, 4_096, 65_536, 300_000, 1_000_000):
        streaming.push(values[done:n])
        done = n
        assert abs(streaming.value - naive(values[:n], 1.0)) <= 1e-12 * np.mean(np.abs(values[:n]))
    assert len(json.dumps(streaming.to_json())) < 20_000  # bounded, whatever the number of values


@given(
    st.lists(st.floats(-1e15, 1e15), min_size=1, max_size=60),
    st.integers(0, 60),
    st.floats(1e-6, 1e6),
)
def test_merge_and_json(values: list[float], cut: int, C: float) -> None:
    tolerance = 1e-12 * float(np.mean(np.abs(values))) + 1e-300
    whole = estimate(values, C)
    assert whole.value == pytest.approx(naive(values, C), abs=tolerance)
    merged = estimate(values[:cut], C).merge(estimate(values[cut:], C))
    assert merged.count == len(values)
    assert merged.value == pytest.approx(whole.value, abs=tolerance)
    again = CatoniEstimator.from_json(json.loads(json.dumps(whole.to_json())))
    assert again.value == whole.value
    again.push(1.0)
    whole.push(1.0)
    assert again.value == whole.value


def test_influence_function() -> None:
    x = np.array([-1e200, -2.0, -1e-9, 0.0, 1e-9, 2.0, 1e99, 1e101, 1e200])
    expected = [-2 * math.log(1e200) + math.log(2), -math.log(5), -1e-9, 0.0, 1e-9, math.log(5)]
    assert psi(x)[:6] == pytest.approx(expected, rel=1e-12)
    assert psi(x)[6:] == pytest.approx([2 * math.log(y) - math.log(2) for y in (1e99, 1e101, 1e200)], rel=1e-12)


def test_refused() -> None:
    with pytest.raises(ValueError, match=r"C must be positive, got 0\.0"):
        CatoniEstimator(0)
    made = estimate([1.0, 2.0], 0.5)
    for wrong in (math.nan, math.inf):
        with pytest.raises(ValueError, match=f"values must be finite, got {wrong}"):
            made.push([1.0, wrong])
    with pytest.raises(ValueError, match="finite multiples of C"):
        estimate([1.0], 1e-300).push(1e300)
    assert made.count == 2  # nothing was taken
    with pytest.raises(ValueError, match="no estimate before the first value"):
        _ = CatoniEstimator(1.0).value
    with pytest.raises(ValueError, match=r"C must be the same to merge, got 0\.5 and 1\.0"):
        made.merge(CatoniEstimator(1.0))
    for change in ({"version": 1}, {"powers": [1.0]}, {"octaves": {"2": [1.0]}}, {"count": -1}):
        with pytest.raises(ValueError, match=r"version must be 2, got 1|powers must be a list|octaves.*must be a list|count must be from 0"):
            CatoniEstimator.from_json(made.to_json() | change)
