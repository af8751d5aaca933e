"""`Bandit.change`: one event for whatever changes, refused wholly if a part of it is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from bandits import BGE, Clock, arm_rows, column

ARMS = ["a", "b", "c"]
WINDOW: dict[str, Any] = {"reward_window": 60.0, "default_reward": 0.0}
CONTROL: dict[str, Any] = {"control": "a"}


class Case:
    """Options of a bandit, a change of it, and what the event has then."""

    def __init__(self, options: dict[str, Any], change: dict[str, Any], event: dict[str, Any] | None = None) -> None:
        self.options = options
        self.change = change
        self.event = {"settings": change} if event is None else event


CASES: dict[str, Case] = {
    "floor": Case({}, {"floor": 0.125}),
    "no floor": Case({"floor": 0.125}, {"floor": 0.0}),
    "control": Case({}, {"control": "b"}),
    "no control": Case(CONTROL, {"control": None}),
    "holdout": Case(CONTROL, {"holdout": 0.25}),
    "guardrail": Case(CONTROL, {"guardrail": 0.5}),
    "window of reward": Case(WINDOW, {"reward_window": 90.0}),
    "window as a timedelta": Case(
        WINDOW, {"reward_window": timedelta(minutes=2)}, {"settings": {"reward_window": 120.0}}
    ),
    "a window for the first time": Case({}, {"reward_window": 90.0, "default_reward": 0.5}),
    "default": Case(WINDOW, {"default_reward": 0.25}),
    "no default": Case(WINDOW, {"default_reward": None}),
    "learn": Case(WINDOW, {"learn": "at close"}),
    "repeated": Case(WINDOW, {"repeated": "sum"}),
    "late": Case(WINDOW, {"late": "keep"}),
    "reward range": Case({}, {"reward_range": (-1.0, 2.0)}, {"settings": {"reward_range": [-1.0, 2.0]}}),
    "no reward range": Case({"reward_range": (-1.0, 2.0)}, {"reward_range": None}),
    "policy": Case({}, {"policy": ra.UCB(C=0.5)}, {"policy": ra.UCB(C=0.5).specification()}),
    "arms": Case({}, {"arms": ["a", "c"]}, {"arms": ["a", "c"]}),
    "arms with a prior": Case(
        {},
        {"arms": {**dict.fromkeys(ARMS), "d": (0.5, 10)}},
        {"arms": [*ARMS, "d"], "prior": [["d", 0.5, 10.0, 0.0]]},
    ),
    "paused": Case({}, {"status": "paused"}, {"status": "paused"}),
    "archived": Case({}, {"status": "archived"}, {"status": "archived"}),
    "all at once": Case(
        WINDOW,
        {"policy": ra.UCB(C=0.5), "arms": ["b", "a"], "floor": 0.125, "control": "a", "status": "paused"},
        {
            "policy": ra.UCB(C=0.5).specification(),
            "arms": ["a", "b"],
            "settings": {"floor": 0.125, "control": "a"},
            "status": "paused",
        },
    ),
}


def lived(
    clock: Clock, path: Path | None = None, folder: Path | None = None, guardrail: float | None = None, **options: Any
) -> ra.Bandit[Any]:
    """Return a bandit with rewards and with decisions that wait."""
    if folder is None:
        bandit = ra.Bandit(ARMS, BGE, seed=1, log=path, clock=clock, **options)
    else:
        bandit = ra.Bandit.open(folder, ARMS, BGE, seed=1, clock=clock, **options)
    if guardrail is not None:
        bandit.change(guardrail=guardrail)
    decisions = bandit.ask(8)
    bandit.tell([(decision, 0.5) for decision in decisions[:4]])
    return bandit


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def is_changed(bandit: ra.Bandit[Any], change: dict[str, Any]) -> bool:
    """Say whether a bandit is as a change wanted it."""
    wanted = dict(change)
    found = [column(bandit, "pulls").get("d") == 10] if isinstance(wanted.get("arms"), dict) else []
    for name, value in wanted.items():
        if name == "arms":
            found.append(set(bandit.arms) == set(value))
        elif name in ("policy", "status"):
            found.append(getattr(bandit, name) == value)
        else:
            seconds = value.total_seconds() if isinstance(value, timedelta) else value
            found.append(getattr(bandit.settings, name) == seconds)
    return all(found)


@pytest.mark.parametrize("name", CASES)
def test_a_change_is_one_event_and_comes_back(name: str, tmp_path: Path) -> None:
    case, clock, path = CASES[name], Clock(), tmp_path / "log.jsonl"
    bandit = lived(clock, path, **case.options)
    before, version = lines(path), bandit.version
    assert not is_changed(bandit, case.change)
    assert bandit.change(**case.change) is True
    assert is_changed(bandit, case.change)
    assert bandit.version == version + 1
    *same, event = lines(path)
    assert same == before
    assert event == {"n": version + 1, "event": "change", "time": clock.now} | case.event
    again = case.change | ({"arms": list(case.change["arms"])} if "arms" in case.change else {})
    assert bandit.change(**again) is False
    assert len(lines(path)) == len(before) + 1
    text = bandit.to_json()
    bandit.close()
    with ra.Bandit.from_log(path, clock=clock) as from_log:
        assert is_changed(from_log, case.change)
        assert from_log.to_json() == text
    copy = ra.Bandit.from_json(text, clock=clock)
    assert is_changed(copy, case.change)
    assert json.loads(copy.to_json()) == json.loads(text) | {"log": None}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("snapshot", [False, True], ids=["log", "snapshot"])
def test_a_folder_comes_back_with_the_change(name: str, snapshot: bool, tmp_path: Path) -> None:
    case, clock, folder = CASES[name], Clock(), tmp_path / "home.bandit"
    bandit = lived(clock, folder=folder, **case.options)
    bandit.change(**case.change)
    expected = arm_rows(bandit), bandit.pending, bandit.settings, bandit.status, bandit.policy
    if snapshot:
        bandit.close()
    else:
        assert bandit.log is not None
        bandit.log.close()  # as a crash leaves it
    with ra.Bandit.open(folder, clock=clock) as again:
        assert is_changed(again, case.change)
        assert (arm_rows(again), again.pending, again.settings, again.status, again.policy) == expected


@pytest.mark.parametrize("name", CASES)
def test_both_go_on_alike(name: str) -> None:
    """The bandit that changed, and the one that was saved after the change, learn and decide the same."""
    case, clock = CASES[name], Clock()
    bandit = lived(clock, **case.options)
    bandit.change(**case.change)
    copy = ra.Bandit.from_json(bandit.to_json(), clock=clock)
    if bandit.status != "archived":
        for one in (bandit, copy):
            one.tell(one.pending[0].id, 0.75)
    clock.now += 200.0
    for one in (bandit, copy):
        one.close_windows()
    if bandit.status == "running":
        assert bandit.ask() == copy.ask()
    else:
        with pytest.raises(ValueError, match=f"^status is {bandit.status}: the bandit decides nothing now$"):
            bandit.ask()
    assert arm_rows(bandit) == arm_rows(copy)


# What is refused.

REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {  # options, what is wrong, and the error
    "floor": ({}, {"floor": 0.5}, r"^floor must be at most 1/3 for 3 arms, got 0\.5"),
    "floor of more arms": ({"floor": 0.3}, {"arms": [*ARMS, "d"]}, r"^floor must be at most 1/4 for 4 arms, got 0\.3"),
    "control": ({}, {"control": "z"}, "^control must be one of the arms, got 'z'"),
    "control retired": (CONTROL, {"arms": ["b", "c"]}, "^arms must have the control: 'a' cannot be retired"),
    "holdout": ({}, {"holdout": 1.5}, r"^holdout must be from 0 to 1, got 1\.5"),
    "guardrail without a control": ({}, {"guardrail": 0.1}, "^guardrail needs a control"),
    "control of a guardrail": (CONTROL | {"guardrail": 0.1}, {"control": None}, "^guardrail needs a control"),
    "window": (WINDOW, {"reward_window": 0}, "^reward_window must be positive, got 0"),
    "window that a default needs": (WINDOW, {"reward_window": None}, "^default_reward needs reward_window"),
    "default": (
        WINDOW | {"reward_range": (0, 1)},
        {"default_reward": 7.0},
        r"^default_reward must be from 0 to 1, got 7\.0",
    ),
    "learn": (WINDOW, {"learn": "never"}, "^learn must be one of 'at once', 'at close', got 'never'"),
    "repeated": ({}, {"repeated": "sum"}, "^repeated needs reward_window"),
    "late": (WINDOW, {"late": "lose"}, "^late must be one of 'correct', 'keep', got 'lose'"),
    "reward range": ({}, {"reward_range": (0.6, 1.0)}, "^reward_range must have all rewards that were learned"),
    "policy": ({}, {"policy": ra.EXP3(gamma=0.1)}, "^policy must carry on: .* does not carry over"),
    "prior of an old arm": (
        {},
        {"arms": {**dict.fromkeys(ARMS), "a": (0.5, 3)}},
        "^prior must be for new arms, got 'a'",
    ),
    "status": ({}, {"status": "asleep"}, "^status must be 'running', 'paused' or 'archived', got 'asleep'"),
}
HARMLESS: dict[str, Any] = {"status": "paused", "arms": [*ARMS, "new"], "policy": ra.UCB(C=0.5)}


@pytest.mark.parametrize(("options", "wrong", "message"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("alone", [True, False], ids=["alone", "with others"])
def test_a_change_with_one_wrong_part_changes_nothing(
    options: dict[str, Any], wrong: dict[str, Any], message: str, alone: bool, tmp_path: Path
) -> None:
    clock, path = Clock(), tmp_path / "log.jsonl"
    bandit = lived(clock, path, **options)
    before, written = bandit.to_json(), path.read_bytes()
    change = wrong if alone else HARMLESS | wrong
    if not alone:
        message = r"^\w+ "  # which part is noticed first does not matter
    with pytest.raises(ValueError, match=message):
        bandit.change(**change)
    assert bandit.to_json() == before
    assert path.read_bytes() == written
    assert bandit.ask().id == 9
    bandit.close()


@pytest.mark.parametrize("name", ["discount", "window", "seed", "clock"])
def test_what_a_bandit_has_for_good_is_no_option_of_change(name: str) -> None:
    option: dict[str, Any] = {name: 1}
    with pytest.raises(TypeError, match=f"^{name} is not a setting: these are floor, reward_range, "):
        ra.Bandit(ARMS).change(**option)


def test_names_of_numpy_are_plain_ones() -> None:
    bandit = ra.Bandit([1, 2], BGE, seed=1)
    assert bandit.change(control=np.int64(1), arms=np.array([1, 2, 3]))
    assert ra.Bandit.from_json(bandit.to_json()).settings.control == 1
    with pytest.raises(TypeError, match=r"^arms must be several names, got 'ab'$"):
        bandit.change(arms="ab")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"arm must be hashable, got \[1\]"):
        bandit.change(control=[1])  # type: ignore[arg-type]


def test_archived_is_for_good() -> None:
    bandit = ra.Bandit(ARMS, BGE, seed=1)
    waiting = bandit.ask()
    assert bandit.change(status="paused")
    assert bandit.tell(waiting, 1.0)  # it learns, and decides nothing
    assert bandit.change(status="running")
    decision = bandit.ask()
    assert bandit.change(status="archived")
    with pytest.raises(ValueError, match=r"^status is archived, which is for good: nothing changes any more"):
        bandit.change(status="running")
    assert bandit.status == "archived"
    refusals: list[Callable[[], Any]] = [
        bandit.ask,
        lambda: bandit.tell(decision, 1.0),
        lambda: bandit.tell(arm="a", reward=1.0),
        lambda: bandit.cancel(decision),
        lambda: bandit.expire(0.0),
        lambda: bandit.change(floor=0.1),
    ]
    for refused in refusals:
        with pytest.raises(ValueError, match=r"^status is archived"):
            refused()


# Decisions that wait.


def test_pending_decisions_follow_a_longer_window() -> None:
    clock = Clock()
    bandit = ra.Bandit(ARMS, BGE, seed=1, clock=clock, **WINDOW)
    decision = bandit.ask()
    clock.now += 50
    bandit.change(reward_window=90.0)
    clock.now += 30  # 80 seconds after it was made
    assert bandit.pending == [decision]
    assert bandit.close_windows() == decision.time + 90
    clock.now += 10
    assert bandit.pending == []
    bandit.close_windows()
    assert sum(column(bandit, "pulls").values()) == 1


def test_pending_decisions_follow_a_shorter_window_and_its_default() -> None:
    clock = Clock()
    bandit = ra.Bandit(ARMS, BGE, seed=1, clock=clock, **WINDOW)
    decision = bandit.ask()
    clock.now += 50
    bandit.change(reward_window=30.0, default_reward=0.25)
    assert bandit.pending == []
    bandit.close_windows()
    assert column(bandit, "mean")[decision.arm] == 0.25


def test_windows_that_have_closed_are_learned_before_the_change() -> None:
    """Silence of before gets the default of before."""
    clock = Clock()
    bandit = ra.Bandit(ARMS, BGE, seed=1, clock=clock, **WINDOW)
    decision = bandit.ask()
    clock.now += 70
    bandit.change(default_reward=1.0, reward_window=1_000.0)
    assert bandit.pending == []
    assert column(bandit, "mean")[decision.arm] == 0.0


def test_rewards_so_far_keep_a_bandit_that_learns_at_close_so() -> None:
    bandit = ra.Bandit(ARMS, BGE, seed=1, clock=Clock(), learn="at close", **WINDOW)
    decision = bandit.ask()
    bandit.tell(decision, 1.0)
    before = bandit.to_json()
    message = f"^learn must stay 'at close' while decisions have a reward so far, as {decision.id} has"
    with pytest.raises(ValueError, match=message):
        bandit.change(learn="at once")
    assert bandit.to_json() == before


@pytest.mark.parametrize("name", ["reason", "by", "now", "prior", "flor"])
def test_only_settings_are_changed(name: str) -> None:
    """What a change event has besides its settings is not for callers to set."""
    bandit = ra.Bandit(["a", "b", "c"], seed=1)
    options: dict[str, Any] = {name: "x"}
    with pytest.raises(TypeError, match=f"{name} is not a setting"):
        bandit.change(arms=["a", "b"], **options)
    assert bandit.arms == ["a", "b", "c"]
