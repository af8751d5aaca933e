"""Live decisions by contexts: against dense ridge regression, without contexts, late, corrected, saved and replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from naive_linear import NaiveLinear, standardised
from rightarm.bandit.context_arms import ContextArms
from rightarm.logs import LogWriter
from rightarm.noise import probability_of_largest

ARMS = ["red", "green", "blue"]
DEVICES = ["phone", "desktop"]
FEATURES = ra.estimators.Features(numbers=["hour"], categories={"device": DEVICES}, required=True)
MODELS: dict[str, ra.estimators.Linear] = {
    "disjoint": ra.estimators.Linear(FEATURES),
    "shared": ra.estimators.Linear(FEATURES, arm_features=["price", "size"]),
    "hybrid": ra.estimators.Linear(
        FEATURES, arm_features=["price", "size"], private=["hour"], interactions=False, ridge=0.5
    ),
    "discount": ra.estimators.Linear(FEATURES, discount=0.95),
    "plain": ra.estimators.Linear(FEATURES, standardise=False, intercept=False, ridge=0.1),
}


def a_context(random: np.random.Generator) -> dict[str, Any]:
    return {"hour": float(random.integers(24)), "device": str(random.choice([*DEVICES, "watch"]))}


def prices(random: np.random.Generator) -> dict[str, Any]:
    return {arm: {"price": float(random.normal()), "size": float(i)} for i, arm in enumerate(ARMS)}


class Naive:
    """What a bandit should do, from all that it has seen."""

    def __init__(self, linear: ra.estimators.Linear) -> None:
        self.linear, self.seen, self.arms_seen = linear, list[Any](), list[Any]()
        design = linear.design
        self.model = NaiveLinear(len(ARMS), design.own, design.joint, *linear.ridges, discount=linear.discount or 1.0)

    def rows(self, context: dict[str, Any], features: dict[str, Any]) -> list[Any]:
        """The rows of all arms, by the names of their columns."""
        linear = self.linear
        self.seen.append(FEATURES.encode(context))
        x = standardised(self.seen, [0] if linear.standardise else [])
        known = {"1": 1.0, **dict(zip(FEATURES.names, x, strict=True))}
        own: list[dict[str, float]] = [{} for _ in ARMS]
        if linear.arm_features is not None:
            self.arms_seen += [[row["price"], row["size"]] for row in features.values()]
            values = np.array(self.arms_seen)
            scaled = (values[-3:] - values.mean(axis=0)) / values.std(axis=0)
            own = [{"arm price": row[0], "arm size": row[1]} for row in scaled]
        return [
            np.array([np.prod([(known | one)[part] for part in name.split(" × ")]) for name in linear.names])
            for one in own
        ]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("policy", ["BoltzmannGumbel", "UCB", "GaussianThompson"])
def test_decisions_are_those_of_dense_regression(name: str, policy: str) -> None:
    linear = MODELS[name]
    parameters: dict[str, Any] = {"C": 0.3} if policy != "GaussianThompson" else {"sigma": 0.3}
    made = getattr(ra, policy)(**parameters, estimator=linear)
    bandit, naive = ra.Bandit(ARMS, made, seed=1), Naive(linear)
    random, total = np.random.default_rng(2), 0.0
    for _ in range(60):
        context, features = a_context(random), prices(random)
        given: dict[str, Any] = {"arm_features": features} if linear.arm_features is not None else {}
        before = bandit.probabilities(context, **given)
        decision = bandit.ask(context=context, **given)
        rows = naive.rows(context, features)
        known = [naive.model.read(arm, row) for arm, row in enumerate(rows)]
        means, pulls = np.array([one[0] for one in known]), np.array([one[1] for one in known])
        scale = {
            "BoltzmannGumbel": 0.3 / np.sqrt(pulls),
            "UCB": np.zeros(3),
            "GaussianThompson": 0.3 / np.sqrt(pulls + 1),
        }[policy]
        bonus = {
            "BoltzmannGumbel": np.euler_gamma * scale,
            "UCB": 0.3 * np.sqrt(np.log(total + 1) / pulls),
            "GaussianThompson": np.zeros(3),
        }[policy]
        noise = {"BoltzmannGumbel": ra.noise.Gumbel(), "UCB": None, "GaussianThompson": ra.noise.Gaussian()}[policy]
        location = np.round(means + bonus, 9) if noise is None else means + bonus
        expected = probability_of_largest(noise, location, scale)
        assert [before[arm] for arm in ARMS] == pytest.approx(expected, rel=1e-7, abs=1e-12)
        assert decision.propensity == before[decision.arm]
        arm, reward = ARMS.index(decision.arm), float(random.normal())
        bandit.tell(decision, reward)
        naive.model.learn(arm, rows[arm], reward)
        total = total * (linear.discount or 1.0) + 1


PLAIN: dict[str, dict[str, Any]] = {
    "AnytimeMOSS": {},
    "BetaThompson": {},
    "Boltzmann": {"temperature": 0.25},
    "BoltzmannGumbel": {"C": 0.5},
    "EpsilonGreedy": {"epsilon": 0.1},
    "ExploreThenCommit": {"each": 5},
    "GaussianKLUCB": {},
    "GaussianThompson": {},
    "KLMS": {},
    "KLUCB": {},
    "LinMED": {},
    "LinTS": {"sigma": 0.5},
    "Maillard": {},
    "MOSS": {"horizon": 1_000},
    "PerturbedMean": {"noise": ra.noise.Exponential()},
    "RandUCB": {"C": 0.5},
    "ResidualGumbel": {},
    "ScaledGumbel": {},
    "SquareCB": {"gamma": ra.schedules.increasing(c=2.0)},
    "UCB": {"C": 0.5},
    "UCB1": {},
}


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("coins", [True, False], ids=["coins", "real"])
def test_one_column_of_ones_is_the_plain_bandit(name: str, coins: bool) -> None:
    family, one = getattr(ra, name), ra.estimators.Linear(1, ridge=0.0, standardise=False, intercept=False)
    plain = ra.Bandit(range(4), family(**PLAIN[name]), seed=3, reward_range=(0, 1))
    other = ra.Bandit(range(4), family(**PLAIN[name], estimator=one), seed=3, reward_range=(0, 1))
    random = np.random.default_rng(5)
    for _ in range(400):
        first, second = plain.ask(), other.ask(context=[1.0])
        assert first.arm == second.arm
        assert first.propensity == pytest.approx(second.propensity, rel=1e-9)
        reward = float(random.random() < 0.3 + 0.1 * first.arm) if coins else float(random.random())
        plain.tell(first, reward)
        other.tell(second, reward)


def test_predictions_stay_in_the_range_that_a_policy_is_for() -> None:
    bandit = ra.Bandit(
        ARMS, ra.KLUCB(estimator=ra.estimators.Linear(1, standardise=False)), seed=1, reward_range=(0, 10)
    )
    for x in (0.0, 1.0, 2.0, 3.0):
        bandit.tell(arm="red", reward=3.0 * x, context=[x])
    assert sum(bandit.probabilities([100.0]).values()) == pytest.approx(1)


# What happens late.


def played(linear: ra.estimators.Linear, log: Path | LogWriter | None = None, **options: Any) -> ra.Bandit[str]:
    """A bandit with rewards out of order, corrections, cancelled and pending decisions, observations, other arms."""
    ticks = iter(range(1_700_000_000, 1_800_000_000))
    policy = ra.BoltzmannGumbel(C=0.3, estimator=linear)
    bandit = ra.Bandit(ARMS, policy, seed=4, log=log, clock=lambda: float(next(ticks)), **options)
    random, waiting = np.random.default_rng(6), list[Any]()
    features = {"arm_features": prices(random) | {"pink": {"price": 0.5, "size": 9}}}
    given: dict[str, Any] = features if linear.arm_features is not None else {}
    for t in range(80):
        among = ["red", "blue"] if t % 7 == 3 else None
        waiting.append(bandit.ask(context=a_context(random), allowed=among, **given))
        if t == 30:
            bandit.add_arm("pink")
        if t == 50:
            bandit.retire_arm("green")
        if t % 3 == 2:
            bandit.tell(waiting.pop(int(random.integers(len(waiting)))), float(random.normal()))
        if t % 20 == 19:
            bandit.cancel(waiting.pop(0))
            bandit.tell(arm="blue", reward=1.5, context=a_context(random), **given)
    late = waiting.pop(3)
    bandit.tell(late, 2.0)
    bandit.correct(late, -1.0)
    waiting += bandit.ask(contexts=[a_context(random), a_context(random)], **given)
    bandit.tell([(waiting[0], 0.5), (waiting[1], 0.25)])
    return bandit


def known(bandit: ra.Bandit[Any]) -> Any:
    return bandit._state.arms.to_json()


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_bandit_goes_on_as_it_would_have(name: str) -> None:
    bandit = played(MODELS[name])
    again = ra.Bandit.from_json(bandit.to_json())
    assert json.loads(again.to_json()) == json.loads(bandit.to_json())
    given: dict[str, Any] = {}
    if MODELS[name].arm_features is not None:
        given = {"arm_features": prices(np.random.default_rng(1)) | {"pink": [1.0, 2.0]}}
    context = {"hour": 3, "device": "phone"}
    for pending in bandit.pending[:3]:
        assert bandit.tell(pending, 1.0) == again.tell(pending.id, 1.0)
    assert bandit.ask(context=context, **given) == again.ask(context=context, **given)
    assert known(bandit) == known(again)


@pytest.mark.parametrize("name", MODELS)
def test_a_log_is_replayed_to_the_last_digit(name: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    bandit = played(MODELS[name], path)
    bandit.close()
    with ra.Bandit.from_log(path) as again:
        assert known(again) == known(bandit)
        assert [one.propensity for one in again.pending] == [one.propensity for one in bandit.pending]


def test_a_folder_comes_back_after_a_crash(tmp_path: Path) -> None:
    policy = ra.UCB(C=0.3, estimator=MODELS["disjoint"])
    random = np.random.default_rng(1)
    bandit = ra.Bandit.open(tmp_path / "home", ARMS, policy, snapshot_every=10)
    for _ in range(37):
        bandit.tell(bandit.ask(context=a_context(random)), float(random.random()))
    bandit.log.close()  # type: ignore[union-attr]  # as a crash would: no snapshot at the end
    with ra.Bandit.open(tmp_path / "home") as again:
        assert known(again) == known(bandit)


def test_rewards_may_come_in_any_order() -> None:
    """What is known afterwards is the same up to rounding: rows are those of the moment of the decision."""
    policy = ra.GaussianThompson(estimator=MODELS["disjoint"])
    contexts = [a_context(np.random.default_rng(i)) for i in range(40)]
    found = []
    for order in (range(40), reversed(range(40))):
        bandit = ra.Bandit(ARMS, policy, seed=8)
        decisions = bandit.ask(contexts=contexts)
        for i in order:
            bandit.tell(decisions[i], float(i % 5))
        found.append(bandit.probabilities({"hour": 7, "device": "phone"}))
    assert found[0] == pytest.approx(found[1], rel=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_a_correction_is_as_if_the_other_reward_had_come(name: str) -> None:
    linear, found = MODELS[name], []
    for corrected in (False, True):
        random = np.random.default_rng(3)
        bandit = ra.Bandit(ARMS, ra.GaussianThompson(estimator=linear), seed=8)
        features = prices(random)
        given: dict[str, Any] = {"arm_features": features} if linear.arm_features is not None else {}
        decisions = [bandit.ask(context=a_context(random), **given) for _ in range(30)]
        for i, decision in enumerate(decisions):
            bandit.tell(decision, 9.0 if corrected and i == 11 else 1.0 + i % 3)
        if corrected:
            bandit.correct(decisions[11], 1.0 + 11 % 3)
        kept = bandit._state.arms
        assert isinstance(kept, ContextArms)
        found.append((bandit.probabilities({"hour": 7, "device": "phone"}, **given), kept.factor[-2].copy()))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-8)
    assert found[0][1] == pytest.approx(found[1][1], abs=1e-8)


def test_batches_are_decisions_one_after_the_other() -> None:
    contexts = [a_context(np.random.default_rng(i)) for i in range(20)]
    policy = ra.BoltzmannGumbel(C=0.5, estimator=MODELS["disjoint"])
    one, other = ra.Bandit(ARMS, policy, seed=2), ra.Bandit(ARMS, policy, seed=2)
    for bandit in (one, other):
        bandit.tell(arm="red", reward=1.0, context=contexts[0])
    assert one.ask(contexts=contexts) == [other.ask(context=context) for context in contexts]
    columns = {name: [context[name] for context in contexts] for name in ("hour", "device")}
    assert one.ask(contexts=columns) == other.ask(contexts=contexts)
    assert known(one) == known(other)


def test_a_new_arm_starts_from_the_shared_part() -> None:
    bandit = ra.Bandit(
        ["a", "b"], ra.UCB(C=0.1, estimator=ra.estimators.Linear(1, arm_features=1, standardise=False)), seed=1
    )
    for i in range(40):
        features = {"a": [i % 4], "b": [-1]}
        bandit.tell(bandit.ask(context=[1.0], arm_features=features, allowed=["a"]), float(i % 4))
    bandit.add_arm("c")
    chances = bandit.probabilities([1.0], arm_features={"a": [0], "b": [-1], "c": [3]})
    assert chances == {"a": 0.0, "b": 0.0, "c": 1.0}


def test_asking_what_would_be_changes_nothing() -> None:
    bandit = played(MODELS["disjoint"])
    before = bandit.to_json()
    bandit.probabilities({"hour": 1e6, "device": "phone"})
    assert bandit.to_json() == before


def test_units_keep_their_decision_in_any_context() -> None:
    bandit = ra.Bandit(ARMS, ra.BoltzmannGumbel(C=0.5, estimator=ra.estimators.Linear(1)), seed=1)
    first = bandit.ask(context=[1.0], unit="you")
    assert bandit.ask(context=[9.0], unit="you") == first


def test_a_policy_can_be_changed() -> None:
    bandit = played(MODELS["hybrid"])
    other = ra.UCB(C=0.2, estimator=MODELS["hybrid"])
    again = ra.Bandit.from_json(bandit.to_json(), policy=other, change_policy=True)
    assert known(again) == known(bandit)
    for wrong in (ra.UCB(C=0.2), ra.UCB(C=0.2, estimator=MODELS["disjoint"])):
        with pytest.raises(ValueError, match="does not carry over"):
            ra.Bandit.from_json(bandit.to_json(), policy=wrong, change_policy=True)


# The log.


def test_the_log_has_the_context(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    played(MODELS["shared"], path).close()
    events = [json.loads(line) for line in path.read_text().splitlines()]
    decisions = [event for event in events if event.get("event") == "decision"]
    assert all(len(event["context"]) == 4 for event in decisions)
    assert [len(event["arm_features"]) for event in decisions[:4]] == [3, 3, 3, 2]
    assert decisions[0]["context"][0] == int(decisions[0]["context"][0])  # the hour as it was given


def test_contexts_can_be_left_out_of_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    played(MODELS["disjoint"], LogWriter(path, context=False)).close()
    assert '"context"' not in path.read_text()
    with pytest.raises(ValueError, match="log must have the contexts of a bandit that looks at them"):
        ra.Bandit.from_log(path)


# Mistakes.


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "context must be given"),
        ({"context": {"hour": 3}}, "device is required"),
        ({"context": {"hour": float("nan"), "device": "phone"}}, "hour must be"),
        ({"context": {"hour": 3, "device": "phone", "age": 3}}, "got 'age'"),
        ({"context": [1.0, 2.0]}, "context must have 4 numbers"),
        ({"context": 3.0}, "context must be a mapping"),
        ({"context": [1.0, 0, 0, 0], "arm_features": {}}, "arm_features must be left out"),
        ({"contexts": [{"hour": 1, "device": "tv"}], "context": [1.0, 0, 0, 0]}, "one of size, contexts and context"),
        ({"contexts": [{"hour": 1, "device": "tv"}, {}]}, "row 2: hour is required"),
        ({"size": 2}, "context must be given"),
        ({"size": {"hour": 3}}, r"a context is context=, got \{'hour': 3\}"),
    ],
)
def test_wrong_contexts(given: dict[str, Any], message: str) -> None:
    bandit = played(MODELS["disjoint"])
    before = bandit.to_json()
    with pytest.raises((TypeError, ValueError), match=message):
        bandit.ask(**given)
    assert bandit.to_json() == before


def test_wrong_features_of_arms() -> None:
    bandit = ra.Bandit(ARMS, ra.UCB(C=0.3, estimator=MODELS["shared"]), seed=1)
    context = {"hour": 3, "device": "phone"}
    with pytest.raises(TypeError, match="arm_features must be given: a mapping"):
        bandit.ask(context=context)
    with pytest.raises(ValueError, match="arm_features must have the features of every arm, got none of 'green'"):
        bandit.ask(context=context, arm_features={"red": [1, 2]})
    with pytest.raises((TypeError, ValueError), match="price"):
        bandit.ask(context=context, arm_features={arm: {"size": 1} for arm in ARMS})


def test_a_context_for_a_policy_without() -> None:
    bandit = ra.Bandit(ARMS, ra.UCB(C=0.3), seed=1)
    for call in (lambda: bandit.ask(context=[1.0]), lambda: bandit.probabilities([1.0])):
        with pytest.raises(TypeError, match=r"context must be left out: UCB\(C=0.3\) does not look at it"):
            call()
    with pytest.raises(TypeError, match="contexts must be left out"):
        bandit.ask(contexts=[[1.0]])


def test_what_contexts_do_not_go_with() -> None:
    policy = ra.UCB(C=0.3, estimator=ra.estimators.Linear(1))
    with pytest.raises(ValueError, match="prior is for policies without contexts"):
        ra.Bandit({"red": (0.5, 10)}, policy)
    with pytest.raises(ValueError, match="window must be None for a linear model"):
        ra.estimators.Linear(1, window=100)


@pytest.mark.parametrize("field", ["factor", "common", "moments"])
def test_a_damaged_state_is_refused(field: str) -> None:
    plain = json.loads(played(MODELS["hybrid"]).to_json())
    statistics = plain["statistics"]
    for damage in ("AAAA", 3, "?", "////////////"):
        broken = statistics | {field: [damage, damage] if field == "moments" else damage}
        with pytest.raises(ValueError, match=f"{field} must be|not the state of a bandit"):
            ra.Bandit.from_json(json.dumps(plain | {"statistics": broken}))
