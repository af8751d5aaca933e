"""Contexts live in odd states: no ridge, huge numbers, damaged files, wrong features of arms, units, new logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from bandits import arm_rows
from rightarm.bandit.context_arms import ContextArms, _decoded, _text
from rightarm.estimators import features, ridge_regression
from rightarm.estimators.compiled_estimators import MEAN, PULLS

ARMS = ["red", "green"]


def bandit_with(linear: ra.estimators.Linear, **options: Any) -> ra.Bandit[str]:
    return ra.Bandit(ARMS, ra.UCB(C=0.3, estimator=linear), seed=1, **options)


def known(bandit: ra.Bandit[Any]) -> ContextArms:
    found = bandit._state.arms
    assert isinstance(found, ContextArms)
    return found


# Without a ridge.


def test_without_a_ridge_collinear_columns_are_as_if_one_were_left_out() -> None:
    """The columns of a category and the intercept are collinear: a level's mean and number of rewards are known."""
    device = ra.estimators.Features(categories={"device": ["phone", "desktop"]}, required=True)
    bandit, random = bandit_with(ra.estimators.Linear(device, ridge=0.0)), np.random.default_rng(1)
    told: dict[tuple[str, str], list[float]] = {}
    for _ in range(300):
        kind, arm = str(random.choice(["phone", "desktop", "watch"])), str(random.choice(ARMS))
        told.setdefault((kind, arm), []).append(float(random.normal()))
        bandit.tell(arm=arm, reward=told[kind, arm][-1], context={"device": kind})
    for (kind, arm), rewards in told.items():
        bandit.probabilities({"device": kind})
        table = known(bandit).table[:, ARMS.index(arm)]
        assert table[PULLS] == pytest.approx(len(rewards), rel=1e-9)
        assert table[MEAN] == pytest.approx(np.mean(rewards), rel=1e-9)


def test_without_a_ridge_an_arm_is_not_known_since_another_has_large_features() -> None:
    linear = ra.estimators.Linear(0, arm_features=1, ridge=0.0, standardise=False, intercept=False)
    bandit = bandit_with(linear)
    bandit.probabilities([], arm_features={"red": [1e13], "green": [1.0]})
    assert known(bandit).table[PULLS, :2].tolist() == [0, 0]


@pytest.mark.parametrize("private", [True, False])
def test_what_was_discounted_to_nothing_is_forgotten(private: bool) -> None:
    bandit = bandit_with(ra.estimators.Linear(["a", "b"], ridge=0.0, standardise=False, discount=0.5, private=private))
    bandit.tell(arm="green", reward=1.0, context=[1.0, 1.0])
    for _ in range(2_500):
        bandit.tell(arm="red", reward=1.0, context=[1.0, 0.0])
    assert np.isfinite(known(bandit).factor).all()
    again = ra.Bandit.from_json(bandit.to_json())
    for one in (bandit, again):
        one.probabilities([1.0, 1.0])
        assert known(one).table[PULLS, 1] == 0
        one.probabilities([1.0, 0.0])
        assert known(one).table[PULLS, 0] == pytest.approx(2)


# Large numbers.


@pytest.mark.parametrize("private", [None, True, ["x0"]])
def test_products_of_the_largest_numbers_stay_finite(private: Any) -> None:
    bandit = bandit_with(ra.estimators.Linear(1, arm_features=1, standardise=False, private=private))
    random, most = np.random.default_rng(1), features.LARGEST
    for _ in range(40):
        arms = {"red": [most * random.random()], "green": [-most * random.random()]}
        decision = bandit.ask(context=[most * random.choice([-1, 0.5, 1])], arm_features=arms)
        bandit.tell(decision, 1e100 * random.uniform(-1, 1))
    assert np.isfinite(known(bandit).factor).all()
    assert np.isfinite(known(bandit).common).all()


def test_missing_values_of_arms_do_not_spoil_a_small_deviation() -> None:
    """Of values about 10⁸ with a deviation of 1, half of them missing; a row may say so beside a number as well."""
    price = ra.estimators.Features(numbers=["price"])
    names, random = list(range(100)), np.random.default_rng(1)
    prices = 1e8 + random.normal(size=50)
    rows = np.array([[value, 0.0] for value in prices] + [[7.0, 1.0]] * 50)
    policy = ra.UCB(C=0.3, estimator=ra.estimators.Linear(0, arm_features=price, intercept=False))
    bandit = ra.Bandit(names, policy, seed=1)
    bandit.ask(context=[], arm_features=rows)
    seen = bandit._state.encode([], rows, None)
    assert seen is not None
    wanted = (prices - prices.mean()) / prices.std()
    assert seen.joint[0, :50] == pytest.approx(wanted, rel=1e-5)
    assert not seen.joint[0, 50:100].any()


def test_after_the_correction_of_a_very_large_reward_the_variance_is_not_too_small() -> None:
    """What rounding has eaten is gone: the policy must not take that for certainty."""
    for seed in range(20):
        random, found = np.random.default_rng(seed), list[float]()
        rewards = random.normal(size=30).tolist()
        for wrong in (rewards[20], 1e9 * random.random()):
            bandit = ra.Bandit(["red"], ra.ScaledGumbel(estimator=ra.estimators.Linear(1, standardise=False)), seed=1)
            for i, reward in enumerate(rewards):
                decision = bandit.ask(context=[i % 7])
                bandit.tell(decision, wrong if i == 20 else reward)
                if i == 20:
                    bandit.correct(decision, reward)
            found.append(known(bandit).factor[ridge_regression.RESIDUALS, 0])
        assert found[1] >= found[0] * (1 - 1e-9)


# Damaged files.


def damaged(plain: dict[str, Any], where: str) -> None:
    statistics = plain["statistics"]
    if where in ("pending", "answered"):
        plain[where][0][-1] = None
    elif where in ("pending, short", "answered, short"):
        plain[where.partition(",")[0]][0][-1] = ["", "", ""]
    elif where == "moments":
        statistics["moments"][0] = _text(-np.ones(6))
    elif where == "common":
        statistics["common"] = _text(np.array([5.0, 1.0, 0.0]))
    else:
        factor = _decoded("factor", statistics["factor"]).reshape(-1, 2)
        factor[{"inverse": 0, "diagonal": 1, "residuals": ridge_regression.RESIDUALS}[where]] = -1.0
        statistics["factor"] = _text(factor)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("pending", "context must be 16 and 24 bytes of every decision, got None"),
        ("answered", "context must be 16 and 24 bytes of every decision, got None"),
        ("pending, short", "context must be 16 and 24 bytes of every decision, got StoredContext"),
        ("answered, short", "context must be 16 and 24 bytes of every decision, got StoredContext"),
        ("moments", "moments must have no negative counts and squares"),
        ("common", "common must be a triangle with a positive diagonal and its inverse"),
        ("inverse", "factor must be a triangle with a positive diagonal and its inverse"),
        ("diagonal", "factor must be a triangle with a positive diagonal and its inverse"),
        ("residuals", "factor must have residuals and counts that are not negative"),
    ],
)
def test_a_damaged_file_is_refused(where: str, message: str) -> None:
    bandit = bandit_with(ra.estimators.Linear(2, private=["x0"]))
    bandit.tell(bandit.ask(context=[1.0, 2.0]), 1.0)
    bandit.ask(context=[3.0, 4.0])
    plain = json.loads(bandit.to_json())
    damaged(plain, where)
    with pytest.raises(ValueError, match=message):
        ra.Bandit.from_json(json.dumps(plain))


# Mistakes.


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.array(3.0), r"arm_features must be given: a mapping .*, got array\(3.\)"),
        (np.zeros(2), "arm_features: row 1: context must be a mapping or a row of 2 numbers"),
        (np.zeros((2, 3)), r"arm_features: row 1: context must have 2 numbers, .* with price, size .*, got 3"),
        (np.zeros((3, 2)), "arm_features must be given: a mapping .* a row for each of 2 arms"),
        ([[1.0, 2.0], [3.0]], r"arm_features: row 2: context must have 2 numbers, .*, got 1"),
        (np.full((2, 2), np.nan), "arm_features: row 1: price must be a number .*, got nan"),
        ({"red": [1, 2], "green": [1]}, "arm_features of 'green': context must have 2 numbers"),
        ({"red": [1, 2], "green": None}, "arm_features of 'green': context must be a mapping or a row"),
        ({"red": {"price": 1, "size": np.inf}, "green": [1, 2]}, "arm_features of 'red': size must be .*, got inf"),
        ({"red": {"price": 1, "colour": 2}, "green": [1, 2]}, "arm_features of 'red': .* got 'colour'"),
    ],
)
def test_wrong_features_of_arms_are_named(given: Any, message: str) -> None:
    bandit = bandit_with(ra.estimators.Linear(1, arm_features=["price", "size"]))
    before = bandit.to_json()
    calls = bandit.probabilities, lambda x, arm_features: bandit.ask(context=x, arm_features=arm_features)
    for call in calls:
        with pytest.raises((TypeError, ValueError), match=message):
            call([1.0], arm_features=given)
    assert bandit.to_json() == before


def test_a_lazy_frame_is_refused() -> None:
    polars = pytest.importorskip("polars")
    bandit = bandit_with(ra.estimators.Linear(["hour"]))
    with pytest.raises(TypeError, match="contexts must be a list, a table of numbers or a data frame, got <LazyFrame"):
        bandit.ask(contexts=polars.DataFrame({"hour": [1, 2]}).lazy())


def test_a_decision_is_told_without_features_of_arms() -> None:
    bandit = bandit_with(ra.estimators.Linear(1, arm_features=1))
    decision = bandit.ask(context=[1.0], arm_features={"red": [1], "green": [2]})
    with pytest.raises(TypeError, match="a decision has its context already, got context=None, arm_features=5"):
        bandit.tell(decision, 1.0, arm_features=5)  # type: ignore[call-overload]
    assert bandit.pending == [decision]


@pytest.mark.parametrize(
    ("private", "message"),
    [
        (["a", "a"], r"private must name a feature once, got \['a', 'a'\]"),
        ([["a"]], r"private must be some of the features, a, b, got \['a'\]"),
    ],
)
def test_private_features_are_named_once(private: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ra.estimators.Linear(["a", "b"], private=private)


# What is kept, and what comes back.


def test_units_keep_no_context_and_come_back_as_they_were() -> None:
    options = {"reward_window": 100.0, "learn": "at close", "clock": lambda: 1e9}
    bandit = bandit_with(ra.estimators.Linear(1), **options)
    decision = bandit.ask(context=[1.0], unit="you")
    bandit.tell(decision, 0.5)
    assert [one.context for one in bandit._state.ledger.units.values()] == [None]
    again = ra.Bandit.from_json(bandit.to_json(), clock=lambda: 1e9)
    assert json.loads(again.to_json()) == json.loads(bandit.to_json())
    assert again.ask(context=[2.0], unit="you") is again.pending[0]


def test_a_file_of_an_estimator_that_was_rewritten_since_is_refused() -> None:
    bandit, policy = bandit_with(ra.estimators.Linear(1)), ra.UCB(C=0.3, estimator=ra.estimators.Linear(1))
    code = policy.estimator.specification()["code"]
    old = bandit.to_json().replace(code, "tree:0123456789abcdef01234567")
    with pytest.raises(ValueError, match="has changed since this was saved"):
        ra.Bandit.from_json(old)


def test_shares_are_of_all_rewards_that_were_told() -> None:
    bandit = bandit_with(ra.estimators.Linear(1, discount=0.5))
    for arm in ("red", "red", "red", "green"):
        bandit.tell(arm=arm, reward=1.0, context=[1.0])
    assert [row["share"] for row in arm_rows(bandit)] == [0.75, 0.25]


def test_a_new_log_has_the_contexts_of_pending_decisions(tmp_path: Path) -> None:
    for given in (True, False):
        bandit = bandit_with(ra.estimators.Linear(2))
        bandit.ask(context=[1.5, 2.5])
        path = tmp_path / f"{given}.jsonl"
        ra.Bandit.from_json(bandit.to_json(), log=ra.logs.LogWriter(path, context=given)).close()
        events = [json.loads(line) for line in path.read_text().splitlines()]
        found = [event.get("context") for event in events if event.get("event") == "decision"]
        assert found == [[1.5, 2.5] if given else None]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('"context":[1.5]', '"context":[1e200]', r"context must be 1 numbers up to 1e\+70, got \[1e\+200\]"),
        ('"context":[1.5]', '"context":[1.5,2.5]', r"context must be 1 numbers .*, got \[1.5, 2.5\]"),
        (
            "[[1.0],[2.0]]",
            "[[1.0],[1e200]]",
            r"arm_features must be 1 numbers up to 1e\+70 for each of 2 arms, got \[\[",
        ),
        ("[[1.0],[2.0]]", "[[1.0]]", r"arm_features must be 1 numbers .* for each of 2 arms, got \[\[1.0\]\]"),
    ],
)
def test_a_damaged_log_is_refused(before: str, after: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    bandit = bandit_with(ra.estimators.Linear(1, arm_features=1), log=path)
    bandit.ask(context=[1.5], arm_features={"red": [1], "green": [2]})
    bandit.close()
    lines = path.read_text()
    assert before in lines
    path.write_text(lines.replace(before, after))
    with pytest.raises(ValueError, match=message):
        ra.Bandit.from_log(path)


def test_a_decision_whose_window_closes_without_a_reward_comes_back_from_the_log(tmp_path: Path) -> None:
    times = iter([1e9, 1e9, 1e9 + 50, 1e9 + 50, 1e9 + 50, 1e9 + 50])
    bandit = bandit_with(
        ra.estimators.Linear(1), log=tmp_path / "log.jsonl", reward_window=10.0, clock=lambda: next(times)
    )
    bandit.ask(context=[1.0])
    bandit.ask(context=[2.0])
    bandit.close()
    with ra.Bandit.from_log(tmp_path / "log.jsonl") as again:
        assert again._state.ledger.answered == bandit._state.ledger.answered
        assert len(again._state.ledger.answered) == 1
