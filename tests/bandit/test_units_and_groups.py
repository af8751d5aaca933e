"""Sticky units, holdouts, guardrails, priors and ids."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from bandits import BGE, arm_rows, column, forgetting, told

# Units.


def test_a_unit_keeps_its_decision(tmp_path: Path) -> None:
    bandit = ra.Bandit(["a", "b", "c"], BGE, seed=1, log=tmp_path / "log.jsonl")
    first = {unit: bandit.ask(unit=unit) for unit in ("anna", "berta", 7)}
    bandit.tell(first["anna"], 1.0)
    bandit.add_arm("d")
    again = {unit: bandit.ask(unit=unit) for unit in first}
    assert again == first
    assert len(bandit.pending) == 2
    assert len(ra.logs.read_log(tmp_path / "log.jsonl")) == 3
    assert ra.Bandit.from_json(bandit.to_json()).ask(unit=7) == first[7]
    bandit.close()
    with ra.Bandit.from_log(tmp_path / "log.jsonl") as recovered:
        assert recovered.ask(unit="berta") == first["berta"]
        others = [arm for arm in recovered.arms if arm != first["berta"].arm]
        assert recovered.ask(unit="berta", allowed=others).arm in others
        recovered.retire_arm(first["anna"].arm)
        assert recovered.ask(unit="anna").arm != first["anna"].arm


def test_units_that_are_none() -> None:
    bandit = ra.Bandit(["a", "b"], BGE, seed=1)
    with pytest.raises(TypeError, match=r"unit must be a text or a whole number, got 1\.5"):
        bandit.ask(unit=1.5)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="unit is for one decision, got unit='x' and size=2"):
        bandit.ask(2, unit="x")  # type: ignore[call-overload]


# Holdouts.


@pytest.mark.parametrize("control", [None, "red"])
def test_a_holdout_has_its_share_and_its_propensities(control: str | None) -> None:
    bandit = ra.Bandit(["red", "blue", "green"], BGE, seed=5, control=control, holdout=0.2, floor=0.02)
    for arm, reward in (("red", 0.0), ("blue", 1.0), ("green", 0.4)):
        bandit.tell(arm=arm, reward=reward)
    law = bandit.probabilities()
    decisions = bandit.ask(20_000)
    assert math.fsum(law.values()) == pytest.approx(1, abs=1e-12)
    assert min(law.values()) >= 0.02
    for arm, p in law.items():
        chosen = [decision for decision in decisions if decision.arm == arm]
        assert {decision.propensity for decision in chosen} == {p}
        assert abs(len(chosen) - 20_000 * p) < 4.5 * math.sqrt(20_000 * p * (1 - p))
    held = [decision for decision in decisions if decision.group == "holdout"]
    assert abs(len(held) - 4_000) < 4.5 * math.sqrt(20_000 * 0.16)
    for arm in law:
        share = (arm == "red") if control else 1 / 3
        found = sum(decision.arm == arm for decision in held)
        assert abs(found - share * len(held)) <= 4.5 * math.sqrt(len(held) * share * (1 - share))


def test_holdouts_that_make_no_sense() -> None:
    with pytest.raises(ValueError, match="control must be one of the arms, got 'x'"):
        ra.Bandit(["a", "b"], BGE, control="x")
    with pytest.raises(ValueError, match=r"holdout must be from 0 to 1, got 1\.5"):
        ra.Bandit(["a", "b"], BGE, holdout=1.5)
    with pytest.raises(ValueError, match=r"floor must be at most 0\.2/2 for 2 arms beside a holdout of 0\.8, got 0\.2"):
        ra.Bandit(["a", "b"], BGE, holdout=0.8, floor=0.2)
    with pytest.raises(ValueError, match="guardrail needs a control"):
        ra.Bandit(["a", "b"], BGE).change(guardrail=0.1)
    with pytest.raises(ValueError, match=r"^arms must have the control: 'a' cannot be retired"):
        ra.Bandit(["a", "b"], BGE, control="a").retire_arm("a")


def test_a_harmful_arm_is_retired_by_itself(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    rates = {"red": 0.5, "good": 0.6, "slightly worse": 0.45, "bad": 0.1}
    log = tmp_path / "log.jsonl"
    bandit = ra.Bandit(list(rates), ra.EpsilonGreedy(0.5), seed=3, control="red", reward_range=(0, 1), log=log)
    bandit.change(guardrail=0.1)
    for _ in range(3_000):
        decision = bandit.ask()
        bandit.tell(decision, float(random.random() < rates[str(decision.arm)]))
    assert bandit.arms == ["red", "good", "slightly worse"]
    bandit.close()
    events = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    reasons = [event["reason"] for event in events if event.get("reason")]
    assert reasons == ["bad: worse than the control by more than 0.1"]
    with ra.Bandit.from_log(tmp_path / "log.jsonl") as again:
        assert arm_rows(again) == arm_rows(bandit)


# Priors.


def test_an_arm_may_start_from_a_prior(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    bandit = ra.Bandit({"a": (0.25, 8), "b": (0.5, 4, 0.2)}, BGE, seed=1, log=path)
    same = told({"a": [0.25] * 8, "b": [0.5] * 4})
    assert bandit.probabilities() == pytest.approx(same.probabilities())
    assert column(bandit, "mean") == {"a": None, "b": None}  # which nobody has seen
    for _ in range(40):
        bandit.tell(arm="a", reward=1.0)
    assert column(bandit, "estimate")["a"] == pytest.approx((8 * 0.25 + 40) / 48)
    assert column(bandit, "mean")["a"] == 1.0
    bandit.add_arm("c", prior=("like", "a", 10))
    assert column(bandit, "estimate")["c"] == 1.0
    assert column(bandit, "pulls")["c"] == 10.0
    bandit.replace_arm("b", "b, new text")
    assert bandit.arms == ["a", "c", "b, new text"]
    assert column(bandit, "pulls")["b, new text"] == 0.0
    assert arm_rows(ra.Bandit.from_json(bandit.to_json())) == arm_rows(bandit)
    bandit.close()
    with ra.Bandit.from_log(path) as again:
        assert arm_rows(again) == arm_rows(bandit)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ({"a": 0.5}, r"prior must be a mean and a number of rewards, .*, got 0\.5"),
        ({"a": (0.5, 0)}, "prior must have a positive number of rewards"),
        ({"a": ("like", "b", 3)}, "prior must be like an arm that has rewards, got .b."),
    ],
)
def test_priors_that_make_no_sense(prior: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ra.Bandit({"b": None, **prior}, BGE)


def test_a_prior_needs_sums() -> None:
    with pytest.raises(ValueError, match="prior needs a policy that keeps sums of rewards, got EXP3"):
        ra.Bandit({"a": (0.5, 3), "b": None}, ra.EXP3(gamma=0.1))
    with pytest.raises(ValueError, match="prior needs a policy that keeps sums"):
        ra.Bandit({"a": (0.5, 3), "b": None}, forgetting(BGE, window=10))


# Ids.


def test_ids_are_used_once() -> None:
    """By two bandits without a seed, and by two copies of one."""
    one, other = ra.Bandit(["a", "b"], BGE), ra.Bandit(["a", "b"], BGE)
    text = one.to_json()
    copies = [one, other, ra.Bandit.from_json(text), ra.Bandit.from_json(text)]
    ids = [decision.id for bandit in copies for decision in bandit.ask(50)]
    assert len(set(ids)) == 200
    assert max(ids) < 2**53
    assert [decision.id for decision in ra.Bandit(["a", "b"], BGE, seed=1).ask(3)] == [1, 2, 3]
    with pytest.raises(ValueError, match=r"decision \d+ was never made here"):
        other.tell(one.pending[0].id, 1.0)


def test_a_folder_takes_priors_with_its_arms(tmp_path: Path) -> None:
    with ra.Bandit.open(tmp_path, {"a": (0.25, 8), "b": None}, BGE) as bandit:
        assert column(bandit, "pulls") == {"a": 8.0, "b": 0.0}
    with ra.Bandit.open(tmp_path, {"a": (0.75, 3), "b": None}) as bandit:  # what it began with stays
        assert column(bandit, "estimate")["a"] == 0.25
    with ra.Bandit.open(tmp_path, {"a": None, "c": (0.5, 4)}, change_arms=True) as bandit:
        assert bandit.arms == ["a", "c"]
        assert column(bandit, "pulls") == {"a": 8.0, "b": 0.0, "c": 4.0}
