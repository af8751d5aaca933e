"""Which contexts are in a segment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rightarm.estimators import Features

SOME = Features(
    numbers=["hour", "age"], categories={"device": ["phone", 1, True]}, hashed={"text": 4}, required=["age"]
)
PEOPLE: list[dict[str, Any]] = [
    {"age": 30, "hour": 9, "device": "phone"},
    {"age": 40, "device": 1},
    {"age": 40, "hour": 0, "device": True},
    {"age": 50, "hour": 23, "device": "fridge"},
    {"age": 0, "hour": 12.5},
]


@pytest.mark.parametrize(
    ("where", "chosen"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"device": "phone"}, [0]),
        ({"device": 1}, [1]),
        ({"device": True}, [2]),
        ({"device": ["phone", "other", None]}, [0, 3, 4]),
        ({"device": "missing"}, [4]),
        ({"hour": 0}, [2]),  # not where it is missing
        ({"hour": (0, 12)}, [0, 2]),
        ({"hour": (None, None)}, [0, 2, 3, 4]),
        ({"hour": None}, [1]),
        ({"age": (40, None), "device": {1, "other"}}, [1, 3]),
    ],
)
def test_segments(where: dict[str, Any], chosen: list[int]) -> None:
    assert np.flatnonzero(SOME.select(SOME.encode_many(PEOPLE), where)).tolist() == chosen


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ({"name": 1}, "where must have features only, which are hour, age, device, text, got 'name'"),
        (
            {"device": "watch"},
            r"where\['device'\] must be some of 'phone', 1, True, 'other', 'missing', None, got 'watch'",
        ),
        ({"hour": "late"}, r"where\['hour'\] must be a number, got 'late'"),
        ({"hour": (1, 2, 3)}, r"where\['hour'\] must be a number or a pair of two, got \(1, 2, 3\)"),
        ({"hour": (3, 1)}, r"where\['hour'\] must have the lower end first, got \(3, 1\)"),
        ({"text": "hello"}, "where must not have 'text'"),
        (["device"], "where must be a mapping"),
    ],
)
def test_what_is_no_segment(where: Any, error: str) -> None:
    with pytest.raises((TypeError, ValueError), match=error):
        SOME.select(SOME.encode_many([]).reshape(0, SOME.size), where)
