"""Why a decision chose its arm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rightarm as ra
from bandits import BGE

FEATURES = ra.estimators.Features(
    numbers=["hour", "age"], categories={"device": ["phone", "desktop"]}, required=["hour"]
)
MODELS: dict[str, dict[str, Any]] = {
    "disjoint": {},
    "hybrid": {"private": ["device"]},
    "shared": {"private": False},
    "without intercept": {"intercept": False},
}


def context_of(random: np.random.Generator) -> dict[str, Any]:
    context = {"hour": random.normal(12, 5), "device": random.choice(["phone", "desktop"])}
    return context if random.random() < 0.2 else context | {"age": random.normal(40, 9)}


def played(policy: Any = ra.UCB, rounds: int = 60, model: Any = None, **options: Any) -> Any:
    random = np.random.default_rng(1)
    parameters = {} if policy is ra.KLUCB else {"C": 0.5}
    bandit = ra.Bandit(
        ["a", "b"], policy(**parameters, estimator=ra.estimators.Linear(FEATURES, **model or {})), seed=1, **options
    )
    low, high = options.get("reward_range", (0, 1))
    for _ in range(rounds):
        bandit.tell(bandit.ask(context=context_of(random)), low + (high - low) * random.random())
    return bandit


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("device", ["phone", "fridge"])
def test_contributions_add_up_to_the_prediction(name: str, device: str) -> None:
    """Also where a level is new."""
    bandit = played(model=MODELS[name])
    context = {"hour": 21.0, "device": device}
    decision = bandit.ask(context=context)
    found = bandit.explain(decision)
    (chosen,) = [row for row in found.arms if row["arm"] == decision.arm]
    assert sum(row["contribution"] for row in found.columns) == pytest.approx(found.prediction, abs=1e-9)
    assert (found.prediction, found.pulls) == pytest.approx((chosen["prediction"], chosen["pulls"]), rel=1e-12)
    assert (found.arm, found.propensity) == (decision.arm, decision.propensity)
    values = {row["column"]: row["value"] for row in found.columns}
    assert (values["hour"], values["age missing"], values["device=other"]) == (21, 1, device == "fridge")
    sizes = [abs(row["contribution"]) for row in found.columns]
    assert sizes == sorted(sizes, reverse=True)


def test_what_the_policy_sees() -> None:
    """Predictions and pulls by ridge regression on the rows; the probabilities are those of the next decision."""
    bandit = played(model={"standardise": False}, policy=ra.BoltzmannGumbel)
    context = {"hour": 9.0, "age": 30.0, "device": "phone"}
    decision = bandit.ask(context=context)
    found, x = bandit.explain(decision), np.array([1.0, *FEATURES.encode(context)])
    rows = [
        answer for answer in bandit._state.ledger.answered.values() if answer.arm == bandit.arms.index(decision.arm)
    ]
    X = np.array([[1.0, *answer.context.numbers()] for answer in rows])
    A = np.eye(x.size) + X.T @ X
    assert found.pulls == pytest.approx(1 / (x @ np.linalg.solve(A, x)), rel=1e-9)
    assert found.prediction == pytest.approx(x @ np.linalg.solve(A, X.T @ [answer.reward for answer in rows]), rel=1e-9)
    chances = bandit.probabilities(context)
    assert {row["arm"]: row["probability"] for row in found.arms} == pytest.approx(chances)
    for row in found.arms:
        assert row["scale"] == pytest.approx(0.5 / np.sqrt(row["pulls"]))
        assert row["location"] == pytest.approx(row["prediction"] + np.euler_gamma * row["scale"])


@pytest.mark.parametrize("intercept", [True, False])
def test_in_the_unit_of_rewards(intercept: bool) -> None:
    bandit = played(ra.KLUCB, model={"intercept": intercept}, reward_range=(100, 500))
    found = bandit.explain(bandit.ask(context={"hour": 3.0, "device": "phone"}))
    assert sum(row["contribution"] for row in found.columns) == pytest.approx(found.prediction, rel=1e-9)
    assert 100 < found.prediction < 500
    assert all(100 <= row["prediction"] <= 500 for row in found.arms)


def test_answered_and_pending_change_nothing() -> None:
    bandit = played()
    decision = bandit.ask(context={"hour": 1.0})
    before = bandit.to_json()
    assert bandit.explain(decision).reward is None
    assert bandit.to_json() == before
    bandit.tell(decision, 0.25)
    assert bandit.explain(str(decision.id)).reward == 0.25
    assert "its reward was 0.25" in str(bandit.explain(decision)).replace("\n", " ")
    again = ra.Bandit.from_json(bandit.to_json())
    assert again.explain(decision.id) == bandit.explain(decision.id)


def test_features_of_arms() -> None:
    """They are not kept, so other arms are not shown."""
    random, arms = np.random.default_rng(1), ["a", "b"]
    bandit = ra.Bandit(arms, ra.UCB(C=0.5, estimator=ra.estimators.Linear(["hour"], ["price"])), seed=1)
    for _ in range(30):
        offered = {arm: [random.normal()] for arm in arms}
        decision = bandit.ask(context=[random.normal()], arm_features=offered)
        bandit.tell(decision, random.random())
    found = bandit.explain(decision)
    assert (found.arms, "Other arms cannot be compared" in str(found)) == ([], True)
    assert sum(row["contribution"] for row in found.columns) == pytest.approx(found.prediction, rel=1e-9)
    assert {row["column"]: row["value"] for row in found.columns}["arm price"] is None


def test_without_contexts() -> None:
    bandit = ra.Bandit(["a", "b"], BGE, seed=1, holdout=0.5)
    first = bandit.explain(bandit.ask())
    assert (first.prediction, first.arms[0]["location"]) == (None, None)
    assert "nothing is known of it" in " ".join(str(first).split())  # wherever the lines are broken
    for arm, reward in (("a", 1.0), ("a", 0.0), ("b", 0.25)):
        bandit.tell(arm=arm, reward=reward)
    decisions = bandit.ask(20)
    held = next(one for one in decisions if one.group)
    found = bandit.explain(held)
    assert "by the holdout" in str(found)
    assert found.columns == []
    assert {row["arm"]: row["probability"] for row in found.arms} == pytest.approx(bandit.probabilities())
    _, locations, scales = BGE.score_law(4, [2, 1], [0.5, 0.25])
    assert [row["location"] for row in found.arms] == pytest.approx(locations)
    assert [row["scale"] for row in found.arms] == pytest.approx(scales)
    assert [row["prediction"] for row in found.arms] == [0.5, 0.25]
    beta = ra.Bandit(["a"], ra.BetaThompson(), seed=1)
    assert beta.explain(beta.ask()).arms[0]["location"] is None


def test_what_cannot_be_explained() -> None:
    bandit = ra.Bandit(["a", "b"], BGE, seed=1)
    with pytest.raises(ValueError, match="decision 7 was never made here"):
        bandit.explain(7)
    decision = bandit.ask()
    for arm in ("a", "b"):
        bandit.retire_arm(arm)
    assert bandit.explain(decision).arms == []


def test_later_decisions_do_not_change_how_a_context_is_seen() -> None:
    """Contexts that only came by change what numbers are standardised with, and no row that was kept."""
    bandit = played(rounds=30, model={"private": ["device"]})
    decision = bandit.ask(context={"hour": 21.0, "device": "phone"})
    before = bandit.explain(decision)
    for hour in range(20):
        bandit.ask(context={"hour": 100.0 * hour, "device": "phone"})
    after = bandit.explain(decision)
    assert [row["prediction"] for row in after.arms] == [row["prediction"] for row in before.arms]
    assert after.prediction == before.prediction


def test_by_the_floor() -> None:
    """Where the policy would never have chosen the arm, it is said who did."""
    bandit = ra.Bandit(["a", "b"], ra.UCB(C=0.1, estimator=ra.estimators.Linear(["x"])), seed=1, floor=0.1)
    for _ in range(50):
        for arm, reward in (("a", 1.0), ("b", 0.0)):
            bandit.tell(arm=arm, reward=reward, context=[1.0])
    decisions = [bandit.ask(context=[1.0]) for _ in range(60)]
    found = {one.arm: bandit.explain(one) for one in decisions}
    assert {arm: one.by_floor for arm, one in found.items()} == {"a": False, "b": True}
    assert "b, drawn with probability 0.1, by the floor: the policy prefers a (0.9)" in " ".join(
        str(found["b"]).split()
    )
    assert "floor" not in str(found["a"])
    bandit.retire_arm("a")
    assert "by the floor;" in str(bandit.explain(found["b"].decision))
    free = ra.Bandit(["a", "b"], BGE, seed=1)
    assert not free.explain(free.ask()).by_floor


def test_as_a_frame() -> None:
    bandit = played()
    found = bandit.explain(3)
    assert found.frame().to_dicts() == [{"decision": 3, "arm": found.arm, **row} for row in found.columns]
    plain = ra.Bandit(["a"], BGE, seed=1)
    empty = plain.explain(plain.ask()).frame()
    assert (len(empty), empty.schema) == (0, found.frame().schema)


def test_html() -> None:
    html = played().explain(3)._repr_html_()
    assert html.count("<table>") == 2
    assert "decision 3" in html
