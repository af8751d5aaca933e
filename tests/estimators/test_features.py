"""Contexts as rows of numbers, against an encoder in plain Python, and what is refused."""

from __future__ import annotations

import copy
import enum
import json
import math
import pickle
import re
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rightarm as ra
from rightarm.estimators import Features

# BLAKE2b of 8 bytes, as `printf '%s' abc | b2sum -l 64` prints it
DIGESTS = {
    "abc": "d8bb14d833d59559",
    "": "e4a6a0577479b2b4",
    "grüße": "e7fe3e7d35665a99",
    "how many": "0ec78c572525e88b",
}

ALL = Features(
    numbers=["hour", "age"],
    categories={"device": ["phone", "desktop"], "kind": [1, True, "one"]},
    hashed={"prompt": 8},
    required=["age", "kind"],
)


def naive(features: Features, context: dict[str, Any]) -> list[float]:
    """The columns one by one, by their names."""
    columns: dict[str, float] = {}
    for name in features.numbers:
        value = context.get(name)
        columns[name] = 0.0 if value is None else float(value)
        if name not in features.required:
            columns[f"{name} missing"] = float(value is None)
    for name, levels in features.categories.items():
        value = context.get(name)
        same = [type(level) is type(value) and level == value for level in levels]
        for level, hit in zip(levels, same, strict=True):
            columns[f"{name}={level}"] = float(hit)
        columns[f"{name}=other"] = float(value is not None and not any(same))
        if name not in features.required:
            columns[f"{name}=missing"] = float(value is None)
    for name, buckets in features.hashed.items():
        value = context.get(name)
        counts = [0.0] * buckets
        for text in [] if value is None else [value] if isinstance(value, str) else value:
            number = int.from_bytes(bytes.fromhex(DIGESTS[text]), "little")
            counts[number // 2 % buckets] += -1.0 if number % 2 else 1.0
        columns.update({f"{name}#{i}": count for i, count in enumerate(counts)})
    assert list(columns) == features.names
    return list(columns.values())


texts = st.sampled_from(list(DIGESTS))
CONTEXTS = st.fixed_dictionaries(
    {
        "age": st.one_of(st.floats(-1e70, 1e70), st.integers(-(10**69), 10**69), st.booleans()),
        "kind": st.sampled_from([1, True, "one", "1", "True", 0, False, 2]),
    },
    optional={
        "hour": st.one_of(st.none(), st.floats(-1e70, 1e70), st.booleans()),
        "device": st.one_of(
            st.none(), st.sampled_from(["phone", "desktop", "watch", "other", "missing", "", 1, False])
        ),
        "prompt": st.one_of(st.none(), texts, st.lists(texts), st.lists(texts).map(tuple)),
    },
)


@given(CONTEXTS)
def test_a_mapping_becomes_what_the_naive_encoder_makes(context: dict[str, Any]) -> None:
    made = ALL.encode(context)
    assert made.dtype == np.float64
    assert made.tolist() == naive(ALL, context)
    assert ALL.encode(MappingProxyType(context)).tolist() == made.tolist()
    assert ALL.encode(made).tolist() == ALL.encode(made.tolist()).tolist() == made.tolist()


@given(st.lists(CONTEXTS, max_size=6))
def test_many_contexts_are_single_ones_in_rows(contexts: list[dict[str, Any]]) -> None:
    expected = np.array([naive(ALL, context) for context in contexts]).reshape(-1, ALL.size)
    for given_as in (contexts, tuple(contexts), expected, expected.tolist(), np.asfortranarray(expected)):
        made = ALL.encode_many(given_as)
        np.testing.assert_array_equal(made, expected)
        assert made.flags.c_contiguous
        assert made is not given_as
    if contexts:
        columns = {name: [context.get(name) for context in contexts] for name in ("hour", "age", "device", "kind")}
        texts = [context.get("prompt") for context in contexts]
        np.testing.assert_array_equal(ALL.encode_many({**columns, "prompt": texts}), expected)


def test_columns_and_places() -> None:
    assert ALL.names == [
        *("hour", "hour missing", "age"),
        *("device=phone", "device=desktop", "device=other", "device=missing"),
        *("kind=1", "kind=True", "kind=one", "kind=other"),
        *(f"prompt#{i}" for i in range(8)),
    ]
    assert ALL.size == 19
    assert (ALL.measured.tolist(), ALL.indicator.tolist()) == ([0, 2], [1, -1])
    assert ALL.measured.dtype == ALL.indicator.dtype == np.int64
    assert (Features().size, Features().names, Features().measured.size) == (0, [], 0)
    assert Features().encode({}).shape == Features().encode([]).shape == (0,)


def test_what_is_encoded_is_a_copy_and_what_is_given_stays() -> None:
    features, x = Features.accept("features", 3), np.array([1.0, 2.0, 3.0])
    made = features.encode(x)
    made[0] = 9.0
    features.measured[0] = features.indicator[0] = 7
    features.names.append("more")
    assert (x[0], features.encode(x)[0], features.measured[0], features.indicator[0]) == (1.0, 1.0, 0, -1)
    assert len(features.names) == 3
    context = {"age": 3, "kind": 1}
    ALL.encode(context)[:] = 5.0
    assert context == {"age": 3, "kind": 1}
    assert ALL.encode(context).tolist() == naive(ALL, context)


class Device(str, enum.Enum):  # noqa: UP042  its text as str() makes it is not its value
    PHONE = "phone"


class Kind(enum.IntEnum):
    ONE = 1


def test_values_of_numpy_and_of_enumerations_are_plain_ones() -> None:
    plain = ALL.encode({"age": 41, "hour": 1, "kind": True, "device": "phone"})
    theirs = {"age": np.int8(41), "hour": np.bool_(True), "kind": np.bool_(True), "device": np.str_("phone")}
    assert ALL.encode(theirs).tolist() == plain.tolist()
    assert ALL.encode({**theirs, "age": np.float16(41), "device": Device.PHONE}).tolist() == plain.tolist()
    assert ALL.encode({"age": Fraction(1, 2), "kind": np.int64(1)}).tolist() == naive(ALL, {"age": 0.5, "kind": 1})
    assert ALL.encode({"age": 0.5, "kind": Kind.ONE}).tolist() == naive(ALL, {"age": 0.5, "kind": 1})
    one: Any = np.int64(1)
    levels = Features(numbers=[np.str_("n")], categories={np.str_("c"): [np.str_("a"), Device.PHONE, one]})
    assert levels == Features(numbers=["n"], categories={"c": ["a", "phone", 1]})
    assert eval(repr(levels), {"Features": Features}) == levels


@pytest.mark.parametrize("dtype", ["f4", "f2", "i1", "u8", "?", "O", ">f8"])
def test_rows_of_other_types(dtype: str) -> None:
    features, x = Features.accept("features", 3), np.array([1, 0, 1]).astype(dtype)
    assert features.encode(x).tolist() == [1.0, 0.0, 1.0]
    made = features.encode_many(np.array([x, x]).astype(dtype))
    assert made.tolist() == [[1.0, 0.0, 1.0]] * 2
    assert made.dtype == np.float64


def test_rows_in_the_memory_of_others() -> None:
    features, table = Features.accept("features", 2), np.arange(8.0).reshape(2, 4)
    made = features.encode(table[1, ::2])
    assert (made.tolist(), made.flags.c_contiguous, made.flags.owndata) == ([4.0, 6.0], True, True)
    assert features.encode_many(table[:, ::2]).tolist() == [[0.0, 2.0], [4.0, 6.0]]


# Data frames.

FRAME = pl.DataFrame(
    {
        "age": [41, 7, 0],
        "hour": [21.5, None, 3.0],
        "device": ["phone", None, "watch"],
        "kind": ["one", "1", "two"],
        "prompt": [["abc", ""], None, ["how many", "how many"]],
    }
)


class Series:
    """A column, or a row, as pandas has them: values by their labels, as those of NumPy."""

    def __init__(self, values: dict[Any, Any]) -> None:
        self.values = values

    def keys(self) -> list[Any]:
        return list(self.values)

    def __getitem__(self, label: Any) -> Any:
        return self.values[label]

    def tolist(self) -> list[Any]:
        return list(self.values.values())

    to_list = tolist


class Frame:
    """A data frame as pandas has it: also the names of its columns are its keys."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.values = {name: Series(dict(enumerate(column))) for name, column in columns.items()}

    @property
    def columns(self) -> Any:
        return np.array(list(self.values), dtype=object)

    keys = columns

    def __getitem__(self, name: str) -> Series:
        return self.values[name]


@pytest.mark.parametrize("frame", [FRAME, Frame(FRAME.to_dict(as_series=False))], ids=["polars", "like pandas"])
def test_data_frames(frame: Any) -> None:
    expected = [naive(ALL, row) for row in FRAME.to_dicts()]
    assert ALL.encode_many(frame).tolist() == expected
    assert ALL.encode_many(FRAME.to_dict()).tolist() == expected
    with pytest.raises(ValueError, match="context must be one row of a data frame, got 3"):
        ALL.encode(frame)


def test_rows_of_data_frames() -> None:
    for i, row in enumerate(FRAME.iter_rows(named=True)):
        expected = naive(ALL, row)
        assert ALL.encode(FRAME[i]).tolist() == ALL.encode(row).tolist() == ALL.encode(Series(row)).tolist() == expected
        assert ALL.encode(Frame({name: [value] for name, value in row.items()})).tolist() == expected
    assert Features.accept("features", 2).encode(pl.Series([1, 2])).tolist() == [1.0, 2.0]


def test_frames_are_read_without_importing_their_libraries() -> None:
    program = (
        "import sys, rightarm as ra; ra.estimators.Features(['a']).encode({'a': 1}); "
        "print({'polars', 'pandas'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


# What is refused.

AGE, KIND = {"age": 1}, {"kind": 1}
BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "nan": ({"age": math.nan, **KIND}, ValueError, r"age must be a number of at most 1e\+70 in size, got nan"),
    "nan where it may be missing": (
        {"hour": math.nan, **AGE, **KIND},
        ValueError,
        r"hour must be a number of at most 1e\+70 in size, or None where it is missing, got nan",
    ),
    "infinity": ({"age": -math.inf, **KIND}, ValueError, "age must be .*, got -inf"),
    "nan of numpy": ({"age": np.float32("nan"), **KIND}, ValueError, "age must be .*, got nan"),
    "large": ({"age": 1.1e70, **KIND}, ValueError, r"age must be .*, got 1.1e\+70"),
    "large whole number": ({"age": 10**400, **KIND}, ValueError, "age must be .*, got inf"),
    "text": ({"age": "41", **KIND}, TypeError, "age must be a number, got '41'"),
    "bool as text": ({"hour": "True", **AGE, **KIND}, TypeError, "hour must be a number, or None .*, got 'True'"),
    "complex": ({"age": 1j, **KIND}, TypeError, "age must be a number, got 1j"),
    "complex of numpy": ({"age": np.complex128(1), **KIND}, TypeError, "age must be a number"),
    "decimal": ({"age": Decimal(1), **KIND}, TypeError, "age must be a number"),
    "date": ({"age": np.datetime64("2024-01-01", "ns"), **KIND}, TypeError, "age must be a number"),
    "list": ({"age": [1.0], **KIND}, TypeError, r"age must be a number, got \[1.0\]"),
    "array": ({"age": np.array(1.0), **KIND}, TypeError, "age must be a number, got array"),
    "no required number": (KIND, ValueError, "age is required, got a context with 'kind'"),
    "others instead": (
        {"hour": 1, "device": "phone", **KIND},
        ValueError,
        "age is required, got a context with 'hour'",
    ),
    "nothing": ({}, ValueError, "age is required, got a context with nothing"),
    "None for a required number": ({"age": None, **KIND}, ValueError, "age is required, got None"),
    "None for a required category": ({"kind": None, **AGE}, ValueError, "kind is required, got None"),
    "unknown": (
        {"hor": 1, **AGE, **KIND},
        ValueError,
        "context must have features only, which are hour, age, device, kind, prompt, got 'hor'",
    ),
    "unknown and missing": ({"hor": None, **AGE, **KIND}, ValueError, "got 'hor'"),
    "column as a key": ({"hour missing": 1, **AGE, **KIND}, ValueError, "got 'hour missing'"),
    "number as a key": ({0: 1, **AGE, **KIND}, ValueError, "got 0"),
    "fraction as a level": ({"kind": 1.0, **AGE}, TypeError, "kind must be a text, a whole number or a bool, got 1.0"),
    "nan as a level": ({"device": math.nan, **AGE, **KIND}, TypeError, "device must be .*, or None .*, got nan"),
    "list as a level": ({"kind": ["one"], **AGE}, TypeError, "kind must be a text"),
    "bytes as a level": ({"kind": b"one", **AGE}, TypeError, "kind must be a text"),
    "number to hash": ({"prompt": 5, **AGE, **KIND}, TypeError, "prompt must be a text or a list of texts, got 5"),
    "numbers to hash": ({"prompt": ["a", 5], **AGE, **KIND}, TypeError, "prompt must be .*, got 5 in the list"),
    "lists to hash": ({"prompt": [["a"]], **AGE, **KIND}, TypeError, r"prompt must be .*, got \['a'\] in the list"),
    "short": ([1.0, 2.0], ValueError, r"context must have 19 numbers, or be a mapping with hour, age, .*, got 2"),
    "long": (np.zeros(20), ValueError, "context must have 19 numbers.*, got 20"),
    "table": (np.zeros((1, 19)), ValueError, "context must have 19 numbers.*, got 1"),
    "square": (np.zeros((19, 19)), TypeError, "hour must be a number, got array"),
    "None in a row": ([*[0.0] * 18, None], TypeError, "prompt#7 must be a number, got None"),
    "text in a row": (["1", *[0.0] * 18], TypeError, "hour must be a number, got '1'"),
    "texts": (np.array(["1"] * 19), TypeError, "hour must be a number, got "),
    "dates": (np.zeros(19, "M8[ns]"), TypeError, "hour must be a number, got "),
    "list in a row": ([[0.0, 1.0], *[0.0] * 18], TypeError, r"hour must be a number, got \[0.0, 1.0\]"),
    "nan in a row": (np.array([0.0, math.nan, *[0.0] * 17]), ValueError, "hour missing must be .*, got nan"),
    "infinity in a row": (np.array([0.0] * 18 + [math.inf]), ValueError, "prompt#7 must be .*, got inf"),
    "large in a row": (np.array([0.0] * 18 + [1e200]), ValueError, r"prompt#7 must be .*, got 1e\+200"),
    "no row": (np.array(1.0), TypeError, "context must be a mapping or a row of 19 numbers, got array"),
    "number": (3.0, TypeError, "context must be a mapping or a row of 19 numbers, got 3.0"),
    "word": ("abc", TypeError, "context must be a mapping or a row of 19 numbers, got 'abc'"),
    "None": (None, TypeError, "context must be a mapping or a row of 19 numbers, got None"),
    "set": ({1.0, 2.0}, TypeError, "context must be a mapping or a row of 19 numbers"),
}


@pytest.mark.parametrize(("context", "error", "message"), BAD.values(), ids=BAD)
def test_bad_contexts(context: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ALL.encode(context)
    with pytest.raises(error, match=f"row 2: .*{message}"):
        ALL.encode_many([ALL.encode({**AGE, **KIND}), context])


def test_many_features_are_not_all_listed() -> None:
    with pytest.raises(ValueError, match="x19 and 80 more, got 'y'"):
        Features.accept("features", 100).encode({"y": 1})


BAD_ROWS: dict[str, tuple[Any, type[Exception], str]] = {
    "row": (np.zeros(2), TypeError, "row 1: context must be a mapping or a row"),
    "context": ({"a": 1, "b": 2}, TypeError, "the column a of contexts must be a list, one context is context=, got 1"),
    "text": (
        {"a": "12", "b": [1, 2]},
        TypeError,
        "the column a of contexts must be a list, one context is context=, got '12'",
    ),
    "unequal": ({"a": [1], "b": [1, 2]}, ValueError, r"columns of contexts must be of one length, got \[1, 2\]"),
    "no columns": ({}, ValueError, r"columns of contexts must be of one length, got \[\]"),
    "null": (pl.DataFrame({"a": [1, 2], "b": [1.0, None]}), ValueError, "row 2: b is required, got None"),
    "nan": (np.array([[1, 2], [1, math.nan]]), ValueError, "row 2: b must be .*, got nan"),
    "nan in a frame": (pl.DataFrame({"a": [1, 2], "b": [1.0, math.nan]}), ValueError, "row 2: b must be .*, got nan"),
    "wide": (np.zeros((2, 3)), ValueError, r"row 1: context must have 2 numbers, .* with a, b .*, got 3"),
    "one column more": (pl.DataFrame({"a": [1], "b": [1], "c": [1]}), ValueError, "row 1: context must .*, got 'c'"),
    "number": (3, TypeError, "contexts must be a list, a table of numbers or a data frame, got 3"),
    "array of nothing": (np.array(3.0), TypeError, "contexts must be a list, a table of numbers or a data frame"),
    "word": ("ab", TypeError, "contexts must be a list, a table of numbers or a data frame, got 'ab'"),
}


@pytest.mark.parametrize(("contexts", "error", "message"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_bad_tables(contexts: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Features.accept("features", ["a", "b"]).encode_many(contexts)


BAD_FEATURES: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "text for names": ({"numbers": "hour"}, TypeError, "numbers must be a list of names, got 'hour'"),
    "set of names": ({"numbers": {"hour"}}, TypeError, "numbers must be a list of names"),
    "number as a name": ({"numbers": [1]}, TypeError, "numbers must be a list of names, which are texts, got 1 in it"),
    "empty name": ({"hashed": {"": 3}}, TypeError, "hashed must be a list of names, which are texts, got '' in it"),
    "same number": ({"numbers": ["a", "b", "a"]}, ValueError, "names of features must differ, got 'a' twice"),
    "number and category": (
        {"numbers": ["a"], "categories": {"a": ["x"]}},
        ValueError,
        "names of features must differ, got 'a' twice",
    ),
    "same column": (
        {"numbers": ["a=x"], "categories": {"a": ["x"]}},
        ValueError,
        "names of columns must differ, got 'a=x' twice",
    ),
    "no levels": ({"categories": {"a": []}}, TypeError, r"levels of a must be a list of one or more, got \[\]"),
    "text for levels": ({"categories": {"a": "xy"}}, TypeError, "levels of a must be a list of one or more, got 'xy'"),
    "same level": ({"categories": {"a": ["x", "x"]}}, ValueError, "names of columns must differ, got 'a=x' twice"),
    "1 and its text": ({"categories": {"a": [1, "1"]}}, ValueError, "names of columns must differ, got 'a=1' twice"),
    "other": (
        {"categories": {"a": ["x", "other"]}},
        ValueError,
        "levels of a must not have 'other': there is a column a=other without it",
    ),
    "missing": (
        {"categories": {"a": ["missing"]}, "required": True},
        ValueError,
        "levels of a must not have 'missing'",
    ),
    "None as a level": ({"categories": {"a": [None]}}, TypeError, "a level of a must be a text, .*, got None"),
    "fraction as a level": ({"categories": {"a": [0.5]}}, TypeError, "a level of a must be a text, .*, got 0.5"),
    "list for categories": ({"categories": ["a"]}, TypeError, r"categories must be a mapping by names, got \['a'\]"),
    "no buckets": ({"hashed": {"a": 0}}, ValueError, "buckets of a must be a whole number of at least 1, got 0"),
    "too many buckets": ({"hashed": {"a": 10**6}}, ValueError, "buckets of a must be at most 100,000, got 1000000"),
    "half a bucket": ({"hashed": {"a": 1.5}}, ValueError, "buckets of a must be a whole number"),
    "True for buckets": ({"hashed": {"a": True}}, TypeError, "buckets of a must be a number, got True"),
    "unknown required": ({"numbers": ["a"], "required": ["b"]}, ValueError, "required must be .* are a, got 'b'"),
    "text for required": ({"numbers": ["a"], "required": "a"}, TypeError, "required must be a list of names, got 'a'"),
}


@pytest.mark.parametrize(("parts", "error", "message"), BAD_FEATURES.values(), ids=BAD_FEATURES)
def test_bad_features(parts: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Features(**parts)
    with pytest.raises(error, match=message):
        Features.accept("features", parts)


# Levels of several kinds.


def test_levels_of_other_kinds_are_other_levels() -> None:
    levels: list[str | int] = [1, True, "one", 0, False, ""]
    features = Features(categories={"a": levels}, required=True)
    for i, level in enumerate(levels):
        assert features.encode({"a": level}).tolist() == [float(j == i) for j in range(7)]
    for value in ("1", "True", "other", "missing", "0", 2, -1, " one", "One"):
        assert features.encode({"a": value}).tolist() == [0.0] * 6 + [1.0]
    assert Features(categories={"a": [0, 1]}) != Features(categories={"a": [False, True]})
    assert Features(categories={"a": [0, 1]}) != Features(categories={"a": ["0", "1"]})


# Hashing.


@pytest.mark.parametrize("buckets", [1, 2, 7, 64, 100_000])
def test_hashes_are_those_of_blake2b(buckets: int) -> None:
    features = Features(hashed={"a": buckets})
    for text in DIGESTS:
        assert features.encode({"a": text}).tolist() == naive(features, {"a": text})
    assert not features.encode({}).any()
    assert not features.encode({"a": []}).any()


def test_hashes_spread_over_buckets_and_signs() -> None:
    texts = [f"text {i}" for i in range(6_400)]
    features = Features(hashed={"a": 32})
    rows = features.encode_many([{"a": text} for text in texts])
    assert (np.abs(rows).sum(axis=1) == 1).all()
    counts = np.array([(rows == sign).sum(axis=0) for sign in (1, -1)])
    chi_square = ((counts - 100) ** 2 / 100).sum()  # 63 degrees of freedom
    assert abs(chi_square - 63) / math.sqrt(2 * 63) < 4.5
    np.testing.assert_array_equal(features.encode({"a": texts}), rows.sum(axis=0))


def test_a_text_that_is_not_proper_unicode_has_a_hash() -> None:
    assert np.abs(Features(hashed={"a": 4}).encode({"a": "\ud800"})).sum() == 1.0


# As values.

SOME = [
    Features(),
    ALL,
    Features(["hour"]),
    Features(["hour"], required=True),
    Features.accept("features", 3),
    Features(categories={"it's": ['"', "é", -5, False]}, hashed={"b": 2, "a": 3}, required=["b"]),
]


@pytest.mark.parametrize("features", SOME, ids=repr)
def test_features_come_back_whole(features: Features) -> None:
    again = [
        Features.accept("features", features),
        Features.accept("features", features.plain()),
        Features.accept("features", json.loads(json.dumps(features.plain()))),
        pickle.loads(pickle.dumps(features)),
        copy.deepcopy(features),
        eval(repr(features), {"Features": Features}),
    ]
    for other in again:
        assert other == features
        assert hash(other) == hash(features)
        assert (other.names, repr(other)) == (features.names, repr(features))
    assert [other == features for other in SOME].count(True) == 1
    assert features != features.plain()


def test_order_of_required_names_does_not_matter_but_that_of_columns_does() -> None:
    assert Features(["a", "b"], required=["b", "a"]) == Features(("a", "b"), required=True)
    assert Features(["a", "b"], required=False) == Features(["a", "b"])
    assert Features(["a", "b"]) != Features(["b", "a"])
    assert Features(hashed={"a": 1, "b": 1}) != Features(hashed={"b": 1, "a": 1})


def test_features_do_not_change() -> None:
    levels, given_names = ["x"], ["a"]
    features = Features(given_names, categories={"b": levels})
    levels.append("y")
    given_names.append("c")
    features.plain()["numbers"].append("d")
    assert features == Features(["a"], categories={"b": ["x"]})
    with pytest.raises(AttributeError, match="features do not change: size cannot be set"):
        features.size = 3
    with pytest.raises(TypeError):
        features.categories["b"] = ("y",)  # type: ignore[index]


def test_accept() -> None:
    assert Features.accept("features", 2) == Features(["x0", "x1"], required=True)
    assert Features.accept("features", np.int64(2)) == Features.accept("features", 2.0) == Features.accept("f", 2)
    named = Features.accept("features", ("hour", "age"))
    assert named.encode({"age": 1, "hour": 2}).tolist() == named.encode([2, 1]).tolist() == [2.0, 1.0]
    assert named.indicator.tolist() == [-1, -1]
    assert Features.accept("features", 0) == Features()
    assert ra.estimators.Features is Features


BAD_ARGUMENTS: dict[str, tuple[Any, type[Exception], str]] = {
    "text": ("hour", TypeError, "arm_features must be a number of columns, a list of names, or Features, got 'hour'"),
    "bool": (True, TypeError, "arm_features must be a number of columns, .*, got True"),
    "None": (None, TypeError, "arm_features must be a number of columns, .*, got None"),
    "array": (np.zeros(3), TypeError, "arm_features must be a number of columns"),
    "negative": (-1, ValueError, "arm_features must be a whole number of at least 0, got -1"),
    "half": (1.5, ValueError, "arm_features must be a whole number of at least 0, got 1.5"),
    "nan": (math.nan, ValueError, "arm_features must be finite, got nan"),
    "very many": (10**6, ValueError, "arm_features must be at most 100,000, got 1000000"),
    "numbers": ([1, 2], TypeError, "arm_features must be a list of names, which are texts, got 1 in it"),
    "duplicates": (["a", "a"], ValueError, "names of features must differ, got 'a' twice"),
    "key": ({"number": ["a"]}, ValueError, "arm_features must have the keys numbers, .* only, got 'number'"),
}


@pytest.mark.parametrize(("value", "error", "message"), BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_what_is_not_accepted(value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.compile(message)):
        Features.accept("arm_features", value)


def test_the_code_of_the_page_runs() -> None:
    page = Path(__file__).parents[2] / "docs" / "features.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 2
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks:
        exec(block, names)
    said = dict(zip(names["features"].names, names["x"].tolist(), strict=True))
    assert list(said.items())[:4] == [("hour", 21.0), ("hour missing", 0.0), ("length", 340.0), ("device=phone", 1.0)]
    assert names["table"][:, :7].tolist() == [[0, 1, 340, 1, 0, 0, 0], [0, 1, 12, 0, 0, 1, 0]]
    np.testing.assert_array_equal(names["again"], names["table"])
    assert (names["plain"].tolist(), names["named"].tolist()) == ([0.5, -1.0, 2.0], [21.0, 340.0])
    assert names["kept"] == names["features"]
