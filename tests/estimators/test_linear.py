"""`Linear`: what it can be made of, which columns its rows have, and how it travels."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from rightarm.estimators.context_rows import make_rows
from rightarm.formula import from_specification

FEATURES = ra.estimators.Features(numbers=["hour"], categories={"device": ["phone"]}, required=True)


@pytest.mark.parametrize(
    ("options", "names", "own"),
    [
        ({}, ["1", "hour", "device=phone", "device=other"], 4),
        ({"intercept": False}, ["hour", "device=phone", "device=other"], 3),
        ({"private": ["device"]}, ["1", "device=phone", "device=other", "hour"], 3),
        ({"private": False}, ["1", "hour", "device=phone", "device=other"], 0),
        ({"private": True, "arm_features": ["price"], "interactions": False}, [
            "1", "hour", "device=phone", "device=other", "arm price",
        ], 4),
        ({"arm_features": ["price"]}, [
            "1", "hour", "device=phone", "device=other", "arm price",
            "hour × arm price", "device=phone × arm price", "device=other × arm price",
        ], 0),
    ],
)  # fmt: skip
def test_columns_of_a_row(options: dict[str, Any], names: list[str], own: int) -> None:
    linear = ra.estimators.Linear(FEATURES, **options)
    assert linear.names == names
    assert (linear.design.own, linear.design.joint) == (own, len(names) - own)


def test_rows_are_what_their_names_say() -> None:
    linear = ra.estimators.Linear(FEATURES, arm_features=["price", "size"], private=["hour"])
    design, x, arms = linear.design, np.array([5.0, 1.0, 0.0]), np.array([[2.0, 3.0], [7.0, 11.0]])
    own, joint = np.empty(design.own), np.empty((design.joint, 2))
    joint[design.shared.size : design.shared.size + 2] = arms
    make_rows(x, design.private, design.shared, design.arm, design.crossed, own, joint)
    values = {"1": 1.0, **dict(zip(FEATURES.names, x, strict=True))}
    for k in range(2):
        known = values | {"arm price": arms[0, k], "arm size": arms[1, k]}
        expected = [np.prod([known[part] for part in name.split(" × ")]) for name in linear.names]
        assert np.concatenate((own, joint[:, k])).tolist() == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ridge": -1.0}, "ridge must be at least 0, got -1.0"),
        ({"ridge": float("nan")}, "ridge must be"),
        ({"private_ridge": -1}, "private_ridge must be at least 0, got -1"),
        ({"private": ["age"]}, "private must be some of the features.*got 'age'"),
        ({"private": "device"}, "private must be True, False or a list of names"),
        ({"standardise": 1}, "standardise must be True or False, got 1"),
        ({"discount": 1.5}, "discount must be between 0 and 1, got 1.5"),
        ({"window": 10}, "window must be None for a linear model.*got 10"),
        ({"features": "hour"}, "features must be"),
        ({"features": 0, "intercept": False}, "features must have at least one column"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        ra.estimators.Linear(**{"features": FEATURES, **options})


@pytest.mark.parametrize(
    ("linear", "text"),
    [
        (ra.estimators.Linear(3), "Linear(3)"),
        (ra.estimators.Linear(["hour", "age"], ridge=0.5), "Linear(['hour', 'age'], ridge=0.5)"),
        (ra.estimators.Linear(2, private=[], discount=0.99), "Linear(2, private=(), discount=0.99)"),
        (ra.estimators.Linear(FEATURES, arm_features=2), f"Linear({FEATURES!r}, arm_features=2)"),
    ],
)
def test_it_travels(linear: ra.estimators.Linear, text: str) -> None:
    assert repr(linear) == text
    assert eval(text, {"Linear": ra.estimators.Linear, "Features": ra.estimators.Features}) == linear
    assert pickle.loads(pickle.dumps(linear)) == linear
    policy = ra.UCB(C=0.5, estimator=linear)
    again = from_specification(json.loads(json.dumps(policy.specification())))
    assert again == policy
    assert again.estimator == linear
    assert hash(again.estimator) == hash(linear)
    assert policy != ra.UCB(C=0.5, estimator=ra.estimators.Linear(4))


def test_many_columns_are_not_all_shown() -> None:
    assert str(ra.UCB(C=0.5, estimator=ra.estimators.Linear([f"feature {i}" for i in range(50)]))) == (
        "UCB(C=0.5, Linear(50 columns))"
    )


def test_the_private_ridge_is_stronger_beside_shared_columns() -> None:
    assert ra.estimators.Linear(3, ridge=2.0).ridges == (2.0, 2.0)
    assert ra.estimators.Linear(FEATURES, private=["device"], ridge=2.0).ridges == (2.0, 200.0)
    assert ra.estimators.Linear(FEATURES, private=["device"], private_ridge=3.0).ridges == (1.0, 3.0)


@pytest.mark.parametrize(
    ("linear", "ridge"),
    [
        (ra.estimators.Linear(1), 1.0),
        (ra.estimators.Linear(8), 1.0),
        (ra.estimators.Linear(64), 8.0),
        (ra.estimators.Linear(64, ridge=1.0), 1.0),
        (ra.estimators.Linear(64, ridge=0), 0.0),
        (ra.estimators.Linear(64, standardise=False), 1.0),
        (
            ra.estimators.Linear(ra.estimators.Features(categories={"country": list(range(90))}, hashed={"words": 32})),
            1.0,
        ),
        (ra.estimators.Linear(4, arm_features=12), 2.0),
        (ra.estimators.Logistic(64), 8.0),
    ],
    ids=str,
)
def test_the_ridge_grows_with_the_numbers_that_are_standardised(linear: ra.estimators.Linear, ridge: float) -> None:
    assert linear.ridges[0] == ridge


def test_many_columns_are_learned_in_one_pass() -> None:
    """Ten classes of pixels, as many of them nearly always 0: the default makes fewer mistakes than a ridge of 1."""
    random = np.random.default_rng(1)
    classes = random.integers(0, 10, 1_200)
    pictures = random.uniform(0, 1, (10, 64)) * (random.random((10, 64)) < 0.4)
    rows = pictures[classes] + random.normal(0, 0.4, (1_200, 64)) * (random.random((1_200, 64)) < 0.3)
    problem = ra.problems.Classification(rows, classes)
    policies = [ra.UCB(C=0.1, estimator=ra.estimators.Linear(64, ridge=ridge)) for ridge in (None, 1.0)]
    mistakes = ra.simulate(policies, problem, horizon=1_200, replications=8, seed=1).regret[:, :, -1]
    fewer = mistakes[1] - mistakes[0]
    assert fewer.mean() > 4.5 * fewer.std(ddof=1) / np.sqrt(fewer.size)


@pytest.mark.parametrize("name", ["APE2", "RobustUCB", "UCBImproved", "EXP3PlusPlusImproved"])
def test_policies_that_learn_more_are_refused(name: str) -> None:
    options: dict[str, Any] = {"APE2": {"p": 1.5, "c": 1.0}, "RobustUCB": {"u": 1.0}, "UCBImproved": {"horizon": 9}}
    with pytest.raises(TypeError, match=f"{name} has no contextual form: it learns"):
        getattr(ra, name)(**options.get(name, {}), estimator=ra.estimators.Linear(2))


def test_policies_without_statistics_are_refused() -> None:
    with pytest.raises(TypeError, match="estimator"):
        ra.EXP3(gamma=0.1, estimator=ra.estimators.Linear(2))
