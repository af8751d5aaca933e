"""Catoni's estimator against the sum as the paper prints it, and against reference values of 30 digits."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from few import some
from rightarm.estimators import means
from rightarm.estimators.means import Catoni, psi

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
        size = math.log1p(y + y * y / 2) if y < 1e100 else 2 * math.log(y) - math.log(2)  # y·y would overflow
        total.append(math.copysign(size, x))
    return beta * math.fsum(total)


class Stream:
    """The summary of values that come one after the other, by the compiled functions."""

    def __init__(self, C: float, kept: Values | None = None) -> None:
        self.C = C
        self.kept = np.zeros(means.SIZE) if kept is None else kept

    def push(self, values: Any) -> None:
        means.push_all(np.array(values, dtype=float).ravel(), self.C, self.kept)

    @property
    def count(self) -> int:
        return int(self.kept[means.VALUES])

    @property
    def value(self) -> float:
        return float(means.estimate(self.C, self.kept))

    def to_json(self) -> dict[str, Any]:
        return Catoni(self.C).to_json(self.kept)

    def restored(self) -> Stream:
        state = json.loads(json.dumps(self.to_json()))
        return Stream(self.C, Catoni(self.C).from_json(state, self.count))


def estimate(values: Any, C: float) -> Stream:
    made = Stream(C)
    made.push(values)
    return made


@pytest.mark.parametrize(("values", "C", "expected"), REFERENCE.values(), ids=REFERENCE)
def test_reference_values(values: Any, C: float, expected: float) -> None:
    tolerance = 1e-13 * float(np.mean(np.abs(values)))
    assert naive(values, C) == pytest.approx(expected, abs=tolerance)
    assert estimate(values, C).value == pytest.approx(expected, abs=tolerance)
    assert Catoni(C).estimate_mean(values) == estimate(values, C).value
    one_by_one = Stream(C)
    for value in values:
        one_by_one.push(value)
    assert one_by_one.value == pytest.approx(expected, abs=tolerance)


def outliers(random: np.random.Generator, n: int) -> Values:
    values = random.standard_normal(n)
    values[random.integers(0, n, 10)] = [1e12, -1e12] * 5
    return values


def everything(random: np.random.Generator, n: int) -> Values:
    return np.asarray(random.choice([-1.0, 1.0], n) * 10.0 ** random.uniform(-30, 40, n))


LAWS: dict[str, tuple[Any, float]] = {  # a law, and C
    "bernoulli": (lambda random, n: 1.0 * (random.random(n) < 0.3), 0.5),
    "bernoulli, tiny C": (lambda random, n: 1.0 * (random.random(n) < 0.3), 1e-4),
    "constant, small C": (lambda random, n: np.full(n, 0.3), 1e-3),  # every sum rounds the same way each time
    "gaussian": (lambda random, n: random.normal(1.0, 2.0, n), 1.0),
    "gaussian, C of 1e-15": (lambda random, n: random.normal(1.0, 2.0, n), 1e-15),
    "gaussian, C of 1e15": (lambda random, n: random.normal(1.0, 2.0, n), 1e15),
    "pareto": (lambda random, n: 1 + random.pareto(2.1, n), 1.0),
    "student": (lambda random, n: random.standard_t(2.5, n), 1.0),
    "lognormal": (lambda random, n: random.lognormal(0.0, 2.0, n), 1.0),
    "cauchy": (lambda random, n: random.standard_cauchy(n), 1.0),
    "outliers": (outliers, 1.0),
    "far off": (lambda random, n: random.normal(1_000.0, 1.0, n), 1.0),
    "rewards of 1e12": (lambda random, n: random.normal(1e12, 1e11, n), 0.01),
    "about 2^64": (lambda random, n: random.lognormal(64 * math.log(2), 1.0, n), 1.0),
    "everything": (everything, 1.0),
}


@pytest.mark.parametrize("name", some(["everything"], LAWS))
def test_equals_the_printed_sum_up_to_a_million(name: str) -> None:
    law, C = LAWS[name]
    values = law(np.random.default_rng(3), 1_000_000)
    streaming = Stream(C)
    done = 0
    for n in (1, 2, 3, 4, 15, 16, 17, 63, 64, 1_000, 4_096, 65_536, 300_000, 1_000_000):
        streaming.push(values[done:n])
        done = n
        expected = naive(values[:n], C)
        assert abs(streaming.value - expected) <= 1e-12 * np.mean(np.abs(values[:n]))
        if (values > 0).all():
            assert streaming.value == pytest.approx(expected, rel=1e-12)
    assert len(json.dumps(streaming.to_json())) < 30_000  # bounded, whatever the number of values


@pytest.mark.parametrize(("law", "C"), LAWS.values(), ids=LAWS)
def test_many_at_once_one_by_one_and_after_json_are_the_same(law: Any, C: float) -> None:
    values = law(np.random.default_rng(4), 5_000)
    whole, single, restored = (Stream(C) for _ in range(3))
    for start in range(0, 5_000, 500):
        whole.push(values[start : start + 500])
        for value in values[start : start + 500]:
            single.push(value)
        restored.push(values[start : start + 237])
        restored = restored.restored()
        restored.push(values[start + 237 : start + 500])
        assert whole.value == single.value == restored.value
    assert whole.to_json() == single.to_json() == restored.to_json()


@given(
    st.lists(st.floats(-1e15, 1e15), min_size=1, max_size=60),
    st.floats(1e-6, 1e6),
)
def test_json(values: list[float], C: float) -> None:
    tolerance = 1e-12 * float(np.mean(np.abs(values))) + 1e-300
    whole = estimate(values, C)
    assert whole.value == pytest.approx(naive(values, C), abs=tolerance)
    assert whole.count == len(values)
    again = whole.restored()
    assert again.value == whole.value
    again.push(1.0)
    whole.push(1.0)
    assert again.value == whole.value


@given(st.lists(st.floats(-1e290, 1e290), min_size=1, max_size=300), st.floats(1e-12, 1e12), st.integers(1, 40))
def test_any_values(values: list[float], C: float, times: int) -> None:
    stream = values * times
    mean = float(np.mean(np.abs(values)))
    assert abs(estimate(stream, C).value - naive(stream, C)) <= 1e-12 * mean + 1e-300
    opposite = [-value for value in stream]
    assert estimate(opposite, C).value == -estimate(stream, C).value


def test_values_that_cancel() -> None:
    made = estimate([3.0, 7.0, -3.0, -7.0], 0.1)
    assert abs(made.value) < 1e-15
    assert made.restored().value == made.value


def test_mean_far_above_the_scale() -> None:
    values = np.random.default_rng(1).normal(1_000.0, 1.0, 4_096)
    assert estimate(values, 1.0).value == pytest.approx(316, abs=1)  # as its documentation says
    assert estimate(values, 1_000.0).value == pytest.approx(1_000, abs=1)


def test_influence_function() -> None:
    x = np.array([-1e200, -2.0, -1e-9, 0.0, 1e-9, 2.0, 1e99, 1e101, 1e200])
    expected = [-2 * math.log(1e200) + math.log(2), -math.log(5), -1e-9, 0.0, 1e-9, math.log(5)]
    assert psi(x)[:6] == pytest.approx(expected, rel=1e-12)
    assert psi(x)[6:] == pytest.approx([2 * math.log(y) - math.log(2) for y in (1e99, 1e101, 1e200)], rel=1e-12)


def test_refused() -> None:
    with pytest.raises(ValueError, match=r"C must be positive, got 0\.0"):
        Catoni(0)
    for wrong in (math.nan, math.inf):
        with pytest.raises(ValueError, match=f"values must be finite multiples of C = 0.5, got {wrong}"):
            Catoni(0.5).estimate_mean([1.0, wrong])
    with pytest.raises(ValueError, match="values must be finite multiples of C = 1e-300, got"):
        Catoni(1e-300).estimate_mean([1.0, 1e300])
    with pytest.raises(ValueError, match="values must have at least one number, got none"):
        Catoni(1.0).estimate_mean([])
    made = estimate([1.0, 2.0], 0.5)
    with pytest.raises(ValueError, match=r"C = 0\.6 of 2 rewards, got C = 0\.5 of 2"):
        Catoni(0.6).from_json(made.to_json(), 2)
    with pytest.raises(ValueError, match=r"C = 0\.5 of 3 rewards, got C = 0\.5 of 2"):
        Catoni(0.5).from_json(made.to_json(), 3)


def test_no_values() -> None:
    made = Stream(1.0)
    made.push([])
    assert made.count == 0
    again = made.restored()
    again.push(1.0)
    made.push(1.0)
    assert again.value == made.value


def test_values_are_not_changed_and_their_order_in_memory_is_free() -> None:
    values = np.arange(24.0).reshape(4, 6)
    values.flags.writeable = False
    taken = values[:, ::2]
    assert Catoni(1.0).estimate_mean(taken) == Catoni(1.0).estimate_mean(taken.ravel().tolist())


KEYS = ["C", "count", "fresh", "lost", "octaves", "powers", "series", "version"]


@functools.cache
def state() -> dict[str, Any]:
    """The state of an estimator; made when a test asks for it, since it has to be compiled."""
    made = estimate(np.random.default_rng(1).standard_t(2.5, 100), 0.5).to_json()
    assert sorted(made) == KEYS
    return made


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"version": 1}, ValueError, "version must be 2, got 1"),
        ({"version": None}, ValueError, "version must be 2, got None"),
        ({"C": "1"}, TypeError, "C must be a number, got '1'"),
        ({"C": -1.0}, ValueError, r"C must be positive, got -1\.0"),
        ({"C": 10**400}, ValueError, "C must be finite, got inf"),
        ({"C": math.nan}, ValueError, "C must be finite, got nan"),
        ({"count": -1}, ValueError, "count must be from 0 to 9007199254740991, got -1"),
        ({"count": 2**53}, ValueError, "count must be from 0"),
        ({"count": 1}, ValueError, "must be at most"),
        ({"count": 10**6}, ValueError, "octaves must be from 7 to 64"),
        ({"count": 100.0}, TypeError, r"count must be a whole number, got 100\.0"),
        ({"count": True}, TypeError, "count must be a whole number, got True"),
        ({"count": "100"}, TypeError, "count must be a whole number, got '100'"),
        ({"powers": [1.0]}, ValueError, "powers must be a list of 13 numbers"),
        ({"powers": None}, ValueError, "powers must be a list of 13 numbers, got None"),
        ({"powers": "0" * 13}, ValueError, "powers must be a list of 13 numbers"),
        ({"powers": [math.nan] * 13}, ValueError, "powers must be finite, got nan"),
        ({"powers": [[0.0]] * 13}, TypeError, "powers must be a number"),
        ({"powers": [1e9] * 13}, ValueError, "powers must be at most"),
        ({"lost": math.inf}, ValueError, "lost must be finite, got inf"),
        ({"lost": 1.0}, ValueError, "lost must be at most"),
        ({"lost": []}, TypeError, "lost must be a number"),
        ({"series": [0.0] * 12}, ValueError, "series must be what octaves amount to"),
        ({"series": [0.0] * 11}, ValueError, "series must be a list of 12 numbers"),
        ({"series": [1e9] * 12}, ValueError, "series must be what octaves amount to"),
        ({"fresh": -1}, ValueError, "fresh must be from 0 to 1023, got -1"),
        ({"fresh": 0.5}, TypeError, r"fresh must be a whole number, got 0\.5"),
        ({"octaves": []}, TypeError, r"octaves must be a mapping, got \[\]"),
        ({"octaves": {}}, ValueError, "series must be"),
        ({"more": 1}, ValueError, "state must have the keys"),
    ],
)
def test_states_that_cannot_be(change: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Catoni(0.5).from_json(state() | change, 100)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda octave, sums: {"99": sums}, "octaves must be from 1 to 64, got '99'"),
        (lambda octave, sums: {"-2": sums}, "octaves must be from 1 to 64, got '-2'"),
        (lambda octave, sums: {octave: sums[:-1]}, r"octaves\['\d+'\] must be a list of 15 numbers"),
        (lambda octave, sums: {octave: [*sums[:-1], math.nan]}, "must be finite, got nan"),
        (lambda octave, sums: {octave: [1e6] * 15}, "must be at most"),
    ],
)
def test_octaves_that_cannot_be(change: Callable[[str, list[float]], dict[str, list[float]]], message: str) -> None:
    octave, sums = next(iter(state()["octaves"].items()))
    with pytest.raises(ValueError, match=message):
        Catoni(0.5).from_json(state() | {"octaves": change(octave, sums)}, 100)


@pytest.mark.parametrize("key", KEYS)
def test_states_that_lack_something(key: str) -> None:
    with pytest.raises(ValueError, match=r"version must be 2, got None|state must have the keys"):
        Catoni(0.5).from_json({name: value for name, value in state().items() if name != key}, 100)
    with pytest.raises(TypeError, match=r"state must be a mapping, .* got \[\]"):
        Catoni(0.5).from_json([], 100)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=15) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=20,
)


@given(st.sampled_from(KEYS), JSON, st.integers(0, 14))
def test_corrupted_states_are_refused_or_whole(key: str, value: Any, place: int) -> None:
    right, changes = state()[key], [{key: value}]
    if isinstance(right, list):
        changes.append({key: [value if i == place else old for i, old in enumerate(right)]})
    if key == "octaves":
        octave, sums = next(iter(right.items()))
        changes.append({key: right | {octave: [value if i == place else old for i, old in enumerate(sums)]}})
    for change in changes:
        try:
            changed = state() | change
            made = Stream(changed["C"], Catoni(changed["C"]).from_json(changed, changed["count"]))
        except (TypeError, ValueError):
            continue
        made.push(1.0)
        assert math.isfinite(made.value)


def test_a_state_whose_value_is_infinite_is_refused() -> None:
    state = estimate(1000.0, 1.0).to_json() | {"C": 1.7e308}
    with pytest.raises(ValueError, match=r"state must have a finite value, got inf of 1 values with C = 1.7e\+308"):
        Catoni(1.7e308).from_json(state, 1)
