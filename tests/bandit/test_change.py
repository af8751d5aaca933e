"""A policy that is changed on purpose: what carries over, what the log says, what comes back."""

from __future__ import annotations

import errno
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rightarm as ra
from bandits import BGE, CATONI, STATE, arm_rows, forgetting, told

START = 1_700_000_000.0
OTHER = ra.BoltzmannGumbel(C=0.07)
PULLS = [len(rewards) for rewards in STATE.values()]
MEANS = [rewards[0] for rewards in STATE.values()]


def changed(bandit: ra.Bandit[Any], policy: ra.Policy, **options: Any) -> ra.Bandit[Any]:
    return ra.Bandit.from_json(bandit.to_json(), policy=policy, change_policy=True, **options)


@pytest.mark.parametrize("policy", [OTHER, ra.UCB(C=0.5), ra.Boltzmann(ra.schedules.inverse_log(0.5))], ids=str)
def test_the_other_policy_goes_on_with_the_statistics(policy: ra.Policy) -> None:
    bandit = told(STATE)
    waiting = bandit.ask(3)
    again = changed(bandit, policy)
    assert again.policy == policy
    expected = ra.probabilities(policy, pulls=PULLS, means=MEANS, round=76)
    assert list(again.probabilities().values()) == pytest.approx(expected.tolist(), abs=1e-12)
    assert again.version == bandit.version + 1
    assert again.pending == waiting
    assert again.tell(waiting[0], 1.0) is True
    assert arm_rows(ra.Bandit.from_json(again.to_json())) == arm_rows(again)


@pytest.mark.parametrize("settings", [{"window": 30}, {"discount": 0.9}, {"floor": 0.1}], ids=str)
def test_settings_carry_over(settings: dict[str, Any]) -> None:
    options = {name: value for name, value in settings.items() if name != "floor"}
    bandits = [told(STATE, OTHER, **settings), changed(told(STATE, BGE, **settings), forgetting(OTHER, **options))]
    for bandit in bandits:
        bandit.tell(arm="a", reward=0.25)
    assert arm_rows(bandits[0]) == arm_rows(bandits[1])


def test_memory_carries_over_to_a_policy_that_learns_it_alike() -> None:
    slow, fast = ra.EXP3(gamma=0.1), ra.EXP3(gamma=0.4)  # which learn the same sum of reward / probability
    assert arm_rows(changed(told(STATE, slow), fast)) == arm_rows(told(STATE, fast))


REFUSED: dict[str, tuple[ra.Policy, ra.Policy, str]] = {
    "estimator": (BGE, CATONI, r"(?i)the estimator was mean\S* and would be catoni"),
    "estimator back": (CATONI, BGE, r"(?i)the estimator was catoni\S* and would be mean"),
    "scale of the estimator": (CATONI, ra.BoltzmannGumbel(C=0.07, estimator="catoni"), "estimator"),
    "no memory": (BGE, ra.EXP3(gamma=0.1), "it remembers nothing of an arm besides pulls and mean, the other gain"),
    "memory": (ra.EXP3(gamma=0.1), BGE, "it remembers gain of an arm besides pulls and mean, the other nothing"),
    "memory by other parameters": (ra.RobustUCB(u=1.0), ra.RobustUCB(u=2.0), "it learned .* by other parameters"),
}


@pytest.mark.parametrize(("before", "after", "message"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_carry_over_is_refused(before: ra.Policy, after: ra.Policy, message: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    bandit = told({"a": [0.5], "b": [0.25]}, before, log=path)
    bandit.close()
    lines = path.read_bytes()
    with pytest.raises(ValueError, match=r"what .* has learned does not carry over to .*: ") as caught:
        changed(bandit, after, log=path)
    assert caught.match(message)
    assert path.read_bytes() == lines
    ra.logs.LogWriter(path).close()  # and it was let go


def test_another_policy_is_refused_unless_it_is_said() -> None:
    text = told(STATE).to_json()
    for policy, what in ((OTHER, "parameters differ"), (ra.UCB(C=0.5), "formula differs")):
        message = rf"policy must be the one of the state, .*BoltzmannGumbel, got .*, whose {what}; change_policy=True"
        with pytest.raises(ValueError, match=message):
            ra.Bandit.from_json(text, policy=policy)
    with pytest.raises(TypeError, match="change_policy needs the policy to change to, got policy=None"):
        ra.Bandit.from_json(text, change_policy=True)


def test_a_refused_policy_leaves_no_new_log(tmp_path: Path) -> None:
    bandit = told(STATE)
    bandit.ask(3)
    with pytest.raises(ValueError, match="whose parameters differ"):
        ra.Bandit.from_json(bandit.to_json(), policy=OTHER, log=tmp_path / "log.jsonl")
    assert list(tmp_path.iterdir()) == []
    with changed(bandit, OTHER, log=tmp_path / "log.jsonl"):
        events = [json.loads(line)["event"] for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert events == ["head", "created"] + ["decision"] * 3 + ["change"]


# In the log.


def life(path: Path) -> tuple[ra.Bandit[Any], list[str]]:
    """A bandit that changes its policy and goes on; and its states: at first, before the change, after it."""
    clock: dict[str, Any] = {"clock": lambda: START}
    bandit = ra.Bandit(["a", "b", "c"], BGE, seed=2, log=path, **clock)
    states = [bandit.to_json()]
    for i in range(20):
        bandit.tell(bandit.ask(), i % 3 / 2)
    states.append(bandit.to_json())
    bandit.close()
    again = changed(bandit, OTHER, log=path, **clock)
    states.append(again.to_json())
    for i in range(20):
        again.tell(again.ask(), i % 3 / 2)
    again.close()
    return again, states


def test_a_state_of_before_and_the_log_give_the_changed_policy(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    bandit, states = life(path)
    for state in states:
        for given in ({}, {"policy": OTHER}, {"policy": OTHER, "change_policy": True}):
            lines = path.read_bytes()
            with ra.Bandit.from_json(state, log=path, **given) as again:
                assert again.policy == OTHER
                assert again.to_json() == bandit.to_json()
            assert path.read_bytes() == lines  # it is changed already
        with pytest.raises(
            ValueError, match=r"got BoltzmannGumbel\(C=0\.5, .*\), whose parameters differ; change_policy"
        ):
            ra.Bandit.from_json(state, log=path, policy=BGE)
    with ra.Bandit.from_json(states[0], log=path, policy=BGE, change_policy=True) as back:
        assert back.policy == BGE


def test_the_log_has_the_change_and_is_read_as_before(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    life(path)
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert events[1]["policy"] == BGE.specification()
    assert [event for event in events if event["event"] == "change"] == [
        {"event": "change", "n": 42, "policy": OTHER.specification(), "time": START}
    ]
    frame = ra.logs.read_log(path)
    assert len(frame) == 40
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few rows are worth little
        assert ra.evaluate(path, "uniform").rows == 40
    converted = ra.logs.convert_log(ra.logs.convert_log(path, tmp_path / "log.parquet"), tmp_path / "again.jsonl")
    assert converted.read_bytes() == path.read_bytes()


def test_a_change_that_cannot_be_written_did_not_happen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.jsonl"
    with ra.Bandit(["a", "b"], BGE, log=path) as bandit:
        bandit.ask()
    lines = path.read_bytes()

    def full(file: int, data: Any) -> int:
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="no space left"):
            changed(bandit, OTHER, log=path)
    assert path.read_bytes() == lines
    with ra.Bandit.from_json(bandit.to_json(), log=path) as again:
        assert again.policy == BGE


# Policies of one's own that no module has.


def family(scale: Callable[[Any], Any]) -> Any:
    @ra.policy(noise=ra.noise.Gumbel())
    def own(pulls, mean, z, *, C: float):  # type: ignore[no-untyped-def]
        return mean + C * scale(pulls) * z

    return own


def one_over(pulls: Any) -> Any:
    return 1 / pulls


def one_over_more(pulls: Any) -> Any:
    return 1 / (pulls + 1)


def test_parameters_of_an_own_policy_change_and_come_back(tmp_path: Path) -> None:
    path, own = tmp_path / "log.jsonl", family(one_over)
    with told({"a": [0.5], "b": [0.25]}, own(C=1.0), log=path) as bandit:
        state = bandit.to_json()
    with changed(bandit, own(C=2.0), log=path) as other:
        assert other.policy == own(C=2.0)
    with ra.Bandit.from_json(state, log=path, policy=own(C=2.0)) as again:
        assert again.to_json() == other.to_json()
    with pytest.raises(ValueError, match="own"):
        ra.Bandit.from_json(state, log=path)


def test_a_formula_that_is_gone_may_be_replaced(tmp_path: Path) -> None:
    path, old, new = tmp_path / "log.jsonl", family(one_over)(C=1.0), family(one_over_more)(C=1.0)
    with told({"a": [0.5], "b": [0.25]}, old, log=path) as bandit:
        state = bandit.to_json()
    with pytest.raises(ValueError, match=r"whose formula differs; change_policy=True"):
        ra.Bandit.from_json(state, log=path, policy=new)
    with changed(bandit, new, log=path) as other:
        assert other.policy == new
        assert arm_rows(other)[0]["pulls"] == 1
    with ra.Bandit.from_json(state, log=path, policy=new) as again:  # the log has the change
        assert arm_rows(again) == arm_rows(other)
    for wrong in (ra.EXP3(gamma=0.1), CATONI):
        with pytest.raises(ValueError, match=r"cannot go on with what another policy has learned: .*own"):
            ra.Bandit.from_json(state, policy=wrong, change_policy=True)


# Policies for other rewards.


def test_another_policy_sees_rewards_in_its_own_unit() -> None:
    """Statistics of a policy for rewards from 0 to 1 become those of the rewards, and back."""
    rewards = {"a": [100.0, 400.0, 250.0], "b": [0.0, 500.0]}
    for settings in ({}, {"window": 4}, {"discount": 0.9}):
        bandits = [
            told(rewards, policy, reward_range=(0, 500), **settings) for policy in (ra.BetaThompson(), ra.UCB(C=20.0))
        ]
        to_ucb = changed(bandits[0], bandits[1].policy)
        to_beta = changed(bandits[1], bandits[0].policy)
        for found, expected in ((to_ucb, bandits[1]), (to_beta, bandits[0])):
            for one, other in zip(arm_rows(found), arm_rows(expected), strict=True):
                for name in ("pulls", "estimate", "mean", "low", "high", "probability"):
                    assert one[name] == pytest.approx(other[name], rel=1e-9, abs=1e-9)
            for bandit in (found, expected):
                bandit.tell(arm="a", reward=300.0)
            assert [row["estimate"] for row in arm_rows(found)] == pytest.approx(
                [row["estimate"] for row in arm_rows(expected)]
            )


def test_a_policy_for_other_rewards_than_were_learned_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"^policy must be .*: BetaThompson\(\) is for other rewards than UCB\(C=0.5\) has learned"
    ):
        changed(told({"a": [5.0], "b": [0.5]}, ra.UCB(C=0.5)), ra.BetaThompson())
