"""Features added to a linear model: against a model that had them from the beginning, always missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from naive_linear import NaiveLinear
from rightarm.estimators import ridge_regression
from rightarm.estimators.added_features import Extension, extended
from rightarm.estimators.context_rows import make_context_rows, standardise_arms
from rightarm.estimators.linear import Linear
from rightarm.types import F64, I64

ARMS = 3
NONE = np.zeros(0, np.int64)


class Model:
    """A linear model of some arms, learned one context at a time as a live bandit does."""

    def __init__(self, linear: Linear) -> None:
        self.linear, self.design = linear, linear.design
        self.measured = self._measured(linear.features)
        self.arm_measured = self._measured(linear.arm_features)
        self.moments = np.zeros((3, self.measured[0].size)), np.zeros((3, self.arm_measured[0].size))
        self.factor: F64 = np.zeros((ridge_regression.sizes(self.design.own, self.design.joint)[0], ARMS))
        self.common = ridge_regression.new_common(self.design.joint, linear.ridges[0])
        for arm in range(ARMS):
            ridge_regression.begin(self.factor, arm, self.design.own, self.design.joint, linear.ridges[1])

    def _measured(self, features: Any) -> tuple[I64, I64]:
        if features is None or not self.linear.standardise:
            return NONE, NONE
        return features.measured, features.indicator

    def rows(self, encoded: F64, arms: F64 | None) -> F64:
        """The row of every arm in a context, of which the moments take notice."""
        own, joint = np.empty(self.design.own), np.zeros((self.design.joint, ARMS))
        if arms is not None:
            first = self.design.shared.size
            out = joint[first : first + self.design.arm]
            standardise_arms(arms, np.arange(ARMS), *self.arm_measured, self.moments[1], out)
        make_context_rows(encoded, *self.measured, self.moments[0], *self.design[:4], own, joint)
        return np.array([np.concatenate([own, joint[:, arm]]) for arm in range(ARMS)])

    def see(self, context: Mapping[str, Any], arms: list[dict[str, Any]]) -> tuple[F64, F64 | None, F64]:
        """A context encoded, the features of arms encoded, and the rows of arms."""
        encoded = self.linear.features.encode(dict(context))
        given = None if self.linear.arm_features is None else self.linear.arm_features.encode_many(arms)
        return encoded, given, self.rows(encoded, given)

    def learn(self, arm: int, row: F64, reward: float) -> None:
        if self.linear.discount is not None:
            ridge_regression.fade(
                self.factor, self.common, ARMS, self.design.own, self.linear.discount, *self.linear.ridges
            )
        ridge_regression.learn(row, reward, arm, self.design.own, self.factor, self.common)

    def read(self, rows: F64) -> list[tuple[float, float]]:
        return [
            ridge_regression.predicted(row.copy(), arm, self.design.own, self.factor, self.common)
            for arm, row in enumerate(rows)
        ]

    def take_over(self, extension: Extension, other: Model) -> None:
        self.factor, self.common = extension.model(other.factor, other.common)
        self.moments = extension.moments(other.moments)


def contexts(seed: int) -> Any:
    """Contexts and features of arms, with everything that any of the models asks for; some values are missing."""
    random = np.random.default_rng(seed)

    def maybe(value: Any) -> Any:
        return None if random.random() < 0.2 else value

    def one_arm() -> dict[str, Any]:
        return {
            "price": maybe(float(random.normal(5, 2))),
            "brand": maybe(str(random.choice(["a", "b", "c"]))),
            "weight": maybe(float(random.normal())),
        }

    while True:
        context = {
            "hour": float(random.normal(12, 4)),
            "age": maybe(float(random.normal(40, 9))),
            "device": maybe(str(random.choice(["phone", "desktop", "watch"]))),
            "words": maybe([str(word) for word in random.integers(0, 30, 3)]),
            "speed": maybe(float(random.normal(100, 30))),
            "plan": maybe(str(random.choice(["free", "paid"]))),
            "tags": maybe([str(word) for word in random.integers(0, 30, 2)]),
        }
        yield context, [one_arm() for _ in range(ARMS)], float(random.normal()), int(random.integers(ARMS))


def only(values: Mapping[str, Any], features: ra.estimators.Features | None) -> dict[str, Any]:
    """The values of these features."""
    known = () if features is None else [*features.numbers, *features.categories, *features.hashed]
    return {name: values[name] for name in known}


SMALL = ra.estimators.Features(
    numbers=["hour", "age"], categories={"device": ["phone", "desktop"]}, hashed={"words": 3}, required=["hour"]
)
LARGE = ra.estimators.Features(
    numbers=["speed", "hour", "age"],
    categories={"plan": ["free", "paid"], "device": ["phone", "desktop"]},
    hashed={"words": 3, "tags": 2},
    required=["hour"],
)
PRICE = ra.estimators.Features(numbers=["price"])
PRODUCT = ra.estimators.Features(numbers=["weight", "price"], categories={"brand": ["a", "b"]})
MANY = [f"x{i}" for i in range(20)]

CASES: dict[str, tuple[Linear, Linear]] = {
    "private": (Linear(SMALL), Linear(LARGE)),
    "shared": (Linear(SMALL, private=False), Linear(LARGE, private=False)),
    "one private": (Linear(SMALL, private=["device"]), Linear(LARGE, private=["device"])),
    "new ones private": (Linear(SMALL, private=["age"]), Linear(LARGE, private=["age", "plan", "speed"])),
    "features of arms": (Linear(SMALL, PRICE), Linear(LARGE, PRODUCT)),
    "of arms only": (Linear(SMALL, PRICE, private=True), Linear(SMALL, PRODUCT, private=True)),
    "of contexts only": (Linear(SMALL, PRICE, private=["age"]), Linear(LARGE, PRICE, private=["age"])),
    "no interactions": (Linear(SMALL, PRICE, interactions=False), Linear(LARGE, PRODUCT, interactions=False)),
    "first of arms": (Linear(SMALL, private=True), Linear(SMALL, PRODUCT, private=True)),
    "first of arms, not standardised": (
        Linear(SMALL, private=True, standardise=False),
        Linear(SMALL, PRODUCT, private=True, standardise=False),
    ),
    "nothing before": (Linear(0), Linear(ra.estimators.Features(["hour", "speed"], {"plan": ["free"]}))),
    "discount": (Linear(SMALL, private=["age"], discount=0.9), Linear(LARGE, private=["age"], discount=0.9)),
    "not standardised": (Linear(SMALL, PRICE, standardise=False), Linear(LARGE, PRODUCT, standardise=False)),
    "a given ridge": (
        Linear(SMALL, PRICE, ridge=0.3, private_ridge=2.0, private=["age"]),
        Linear(LARGE, PRODUCT, ridge=0.3, private_ridge=2.0, private=["age"]),
    ),
    "hashed, no intercept": (
        Linear(SMALL, intercept=False),
        Linear(
            ra.estimators.Features(
                numbers=["hour", "age"],
                categories={"device": ["phone", "desktop"]},
                hashed={"words": 3, "tags": 2},
                required=["hour"],
            ),
            intercept=False,
        ),
    ),
    "not required any more": (
        Linear(ra.estimators.Features(numbers=["hour"], required=True)),
        Linear(ra.estimators.Features(numbers=["hour", "age"])),
    ),
    "nothing new": (Linear(SMALL, PRICE), Linear(SMALL, PRICE)),
}


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_it_is_the_model_that_always_had_them_missing(case: str) -> None:
    """Also when both have learned on, with the features."""
    before, after = CASES[case]
    small, fresh = Model(before), Model(after)
    extension = extended(before, after)
    stream = contexts(1)
    for _ in range(60):
        context, arms, reward, arm = next(stream)
        context = only(context, before.features)
        described = [only(one, before.arm_features) for one in arms]
        encoded, given, rows = small.see(context, described)
        new_encoded, new_given, new_rows = fresh.see(context, described)
        assert extension.encoded(encoded).tolist() == new_encoded.tolist()
        if given is not None and new_given is not None:
            assert extension.arm_features(given).tolist() == new_given.tolist()
        assert extension.row(rows).tolist() == new_rows.tolist()
        if arm < ARMS - 1:  # of the last one nothing is known
            small.learn(arm, rows[arm], reward)
            fresh.learn(arm, new_rows[arm], reward)
    larger = Model(after)
    larger.take_over(extension, small)
    for _ in range(30):
        close(larger.factor, fresh.factor)
        close(larger.common, fresh.common)
        for mine, theirs in zip(larger.moments, fresh.moments, strict=True):
            assert mine.tolist() == theirs.tolist()
        context, arms, reward, arm = next(stream)
        context = only(context, after.features)
        described = [only(one, after.arm_features) for one in arms]
        rows = larger.see(context, described)[2]
        assert rows.tolist() == fresh.see(context, described)[2].tolist()
        close(larger.read(rows), fresh.read(rows))
        larger.learn(arm, rows[arm], reward)
        fresh.learn(arm, rows[arm], reward)


@pytest.mark.parametrize("private", [True, False, ["x0", "x19"]])
def test_a_ridge_that_follows_from_the_number_of_features_grows(private: Any) -> None:
    """All features are required, so that those which are added are 0; the oracle is one dense matrix."""
    before = Linear(
        ra.estimators.Features(numbers=["x0", "x19"], required=True), private=["x0", "x19"] if private else False
    )
    after = Linear(ra.estimators.Features(numbers=MANY, required=True), private=private)
    assert before.ridges < after.ridges
    small, random = Model(before), np.random.default_rng(3)
    naive = NaiveLinear(ARMS, after.design.own, after.design.joint, *after.ridges)
    extension = extended(before, after)
    for _ in range(40):
        rows = small.rows(random.normal(size=2), None)
        arm, reward = int(random.integers(ARMS)), random.normal()
        small.learn(arm, rows[arm], reward)
        naive.learn(arm, extension.row(rows[arm]), reward)
    larger = Model(after)
    larger.take_over(extension, small)
    for arm, row in enumerate(random.normal(size=(ARMS, after.design.own + after.design.joint))):
        mean, variance = ridge_regression.predicted(row.copy(), arm, after.design.own, larger.factor, larger.common)
        close((mean, 1 / variance), naive.read(arm, row))
    close(larger.factor[ridge_regression.RESIDUALS].sum(), naive.objective())


def test_columns_that_were_zero_leave_the_factor_as_it_was() -> None:
    """To the last digit, without a ridge and with columns of very different sizes."""
    before = Linear(ra.estimators.Features(numbers=["a", "b"], required=True), ridge=0.0, standardise=False)
    after = Linear(ra.estimators.Features(numbers=["new", "a", "b"], required=True), ridge=0.0, standardise=False)
    small, random = Model(before), np.random.default_rng(4)
    for _ in range(9):
        small.learn(1, np.array([1.0, 1e-9, 1e9]) * random.normal(size=3), random.normal())
    extension = extended(before, after)
    factor, common = extension.model(small.factor, small.common)
    kept = [0, 2, 3]
    for arm in range(ARMS):
        old, u = ridge_regression.dense(small.factor, small.common, 3, arm)
        new, v = ridge_regression.dense(factor, common, 4, arm)
        assert new[np.ix_(kept, kept)].tolist() == old.tolist()
        assert v[kept].tolist() == u.tolist()
        assert not new[1].any()
        assert not new[:, 1].any()
    assert factor[-2:].tolist() == small.factor[-2:].tolist()


def test_many_rows_of_one_arm() -> None:
    """After a hundred thousand rewards the ridge is next to nothing beside them, and is taken out all the same."""
    before, after = Linear(["hour"]), Linear(ra.estimators.Features(numbers=["hour", "age"], required=["hour"]))
    small, fresh, random = Model(before), Model(after), np.random.default_rng(5)
    extension = extended(before, after)
    for value, reward in random.normal(size=(100_000, 2)):
        row = np.array([1.0, 1.0 + 1e-3 * value])
        ridge_regression.learn(row, reward, 0, small.design.own, small.factor, small.common)
        ridge_regression.learn(extension.row(row), reward, 0, fresh.design.own, fresh.factor, fresh.common)
    factor, _ = extension.model(small.factor, small.common)
    np.testing.assert_allclose(factor, fresh.factor, rtol=1e-9, atol=1e-9)


def test_a_corrected_reward_of_before() -> None:
    """A row that was learned before is corrected in the larger model as if it had been learned there."""
    before, after = CASES["features of arms"]
    small, fresh, stream = Model(before), Model(after), contexts(6)
    extension, learned = extended(before, after), []
    for _ in range(20):
        context, arms, reward, arm = next(stream)
        row = small.see(only(context, before.features), [only(one, before.arm_features) for one in arms])[2][arm]
        learned.append((arm, row, reward))
    for number, (arm, row, reward) in enumerate(learned):
        small.learn(arm, row, reward)
        fresh.learn(arm, extension.row(row), 9.0 if number == 7 else reward)
    factor, common = extension.model(small.factor, small.common)
    arm, row, reward = learned[7]
    ridge_regression.correct(extension.row(row), reward, 9.0, 1.0, arm, after.design.own, factor, common, 0.0)
    close(factor, fresh.factor)
    close(common, fresh.common)


def test_room_for_more_arms_stays() -> None:
    before, after = CASES["one private"]
    small = Model(before)
    wide = np.hstack([small.factor, np.full((len(small.factor), 2), 7.0)])
    factor, common = extended(before, after).model(wide, small.common, count=ARMS)
    assert factor.shape[1] == ARMS + 2
    assert not factor[:, ARMS:].any()
    fresh = Model(after)
    close(factor[:, :ARMS], fresh.factor)
    close(common, fresh.common)
    factor, common = extended(before, after).model(small.factor[:, :0], small.common)
    assert factor.shape == (len(fresh.factor), 0)
    close(common, fresh.common)


def test_logistic_regression_keeps_what_it_believed() -> None:
    """Its rewards were weighed by what it believed; columns that were 0 change nothing of that."""
    before = ra.estimators.Logistic(["hour"])
    after = ra.estimators.Logistic(["hour", "speed"])
    small, random = Model(before), np.random.default_rng(8)
    kept = np.zeros((ARMS, 1, 8))
    for value in random.normal(size=30):
        before.update(np.array([1.0, value]), float(random.random() < 0.3), 1, 2, small.factor, small.common, kept)
    factor, common = extended(before, after).model(small.factor, small.common)
    row = np.array([1.0, 0.7])
    found = ridge_regression.predicted(np.array([1.0, 0.7, 0.0]), 1, 3, factor, common)
    assert found == pytest.approx(ridge_regression.predicted(row, 1, 2, small.factor, small.common))


CATEGORY = {"device": ["phone", "desktop"]}


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (Linear(["a", "b"]), Linear(["a"]), "features must keep all features, got none called 'b'"),
        (Linear(["a", "b"]), Linear(["b", "a"]), "features must keep the order a, b, got b, a"),
        (
            Linear(ra.estimators.Features(numbers=["a"])),
            Linear(["a", "b"]),
            "features must not require a, which contexts may lack until now",
        ),
        (
            Linear(ra.estimators.Features(categories=CATEGORY)),
            Linear(ra.estimators.Features(categories={"device": ["phone", "desktop", "watch"]})),
            "features must keep device as it is, a category with the levels 'phone', 'desktop', got a category with "
            "the levels 'phone', 'desktop', 'watch'",
        ),
        (
            Linear(ra.estimators.Features(hashed={"words": 8})),
            Linear(ra.estimators.Features(hashed={"words": 16})),
            "features must keep words as it is, hashed to 8 columns, got hashed to 16 columns",
        ),
        (
            Linear(ra.estimators.Features(numbers=["device"])),
            Linear(ra.estimators.Features(categories=CATEGORY)),
            "features must keep device as it is, a number, got a category",
        ),
        (Linear(["a"], ["p"]), Linear(["a"]), "arm_features must keep all features, got none called 'p'"),
        (Linear(["a"]), Linear(["a", "b"], ridge=2.0), "ridge must stay None, got 2.0"),
        (Linear(["a"], discount=0.9), Linear(["a", "b"]), "discount must stay 0.9, got None"),
        (Linear(["a"], intercept=False), Linear(["a", "b"]), "intercept must stay False, got True"),
        (Linear(["a"]), ra.estimators.Logistic(["a", "b"]), "estimator must stay Linear, got Logistic"),
        (
            Linear(["a"]),
            Linear(["a"], ["p"]),
            "private must leave the intercept private, as it is, got a model where it is shared",
        ),
        (
            Linear(["a", "b"], private=["a"]),
            Linear(["a", "b", "c"], private=["a", "b"]),
            "private must leave b shared, as it is, got a model where it is private",
        ),
        (
            Linear(["a"], intercept=False),
            Linear(ra.estimators.Features(numbers=["a", "b"], required=["a"]), intercept=False),
            "features must require what is added if the model has no intercept",
        ),
        (
            Linear(["a"], ridge=0.0),
            Linear(ra.estimators.Features(numbers=["a", "b"], required=["a"]), ridge=0.0),
            "ridge must be positive where features are added that can be missing, got 0",
        ),
    ],
)
def test_anything_else_is_refused(before: Linear, after: Linear, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        extended(before, after)
