"""A bandit is the fold of its log: whatever was saved when, with the log it is the bandit that wrote it."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from bandits import BGE, CATONI, arm_rows, column, forgetful
from rightarm.logs.events import Event, Observation, Reward

ARMS = ["a", "b", "c"]
START = 1_700_000_000.0


def ticking() -> Any:
    seconds = itertools.count(1_700_000_000)
    return lambda: float(next(seconds))


def test_a_bandit_that_comes_back_goes_on_in_its_log(tmp_path: Path) -> None:
    path, random = tmp_path / "log.jsonl", np.random.default_rng(3)
    whole = ra.Bandit(ARMS, ra.BoltzmannGumbel(C=0.5), seed=2)
    with ra.logs.LogWriter(path) as log:
        bandit = ra.Bandit(ARMS, ra.BoltzmannGumbel(C=0.5), seed=2, log=log)
        rewards = random.random(60)
        for reward in rewards[:30]:
            assert bandit.tell(bandit.ask(), reward) == whole.tell(whole.ask(), reward)
        waiting, state = bandit.ask(), bandit.to_json()
    whole.ask()
    with ra.logs.LogWriter(path) as log:
        again = ra.Bandit.from_json(state, log=log)
        again.tell(waiting, 0.5)
        whole.tell(waiting, 0.5)
        for reward in rewards[30:]:
            decision = again.ask()
            assert decision == whole.ask()
            again.tell(decision, reward)
            whole.tell(decision, reward)
    frame = ra.logs.read_log(path)
    assert frame["id"].to_list() == list(range(1, 62))
    assert frame["reward"].to_list() == [*rewards[:30], 0.5, *rewards[30:]]


def test_an_older_state_does_not_use_an_id_of_the_log_again(tmp_path: Path) -> None:
    with ra.logs.LogWriter(tmp_path / "log.jsonl") as log:
        bandit = ra.Bandit(ARMS, ra.UCB(C=0.5), seed=2, log=log)
        state = bandit.to_json()
        assert [decision.id for decision in bandit.ask(3)] == [1, 2, 3]
    with ra.logs.LogWriter(tmp_path / "log.jsonl") as log:
        assert ra.Bandit.from_json(state, log=log).ask().id == 4


def test_what_happened_after_a_state_was_saved_is_learned_from_the_log(tmp_path: Path) -> None:
    """A crash: decisions, rewards, cancels, observations and arms since the last save are all in the log."""
    path, settings = tmp_path / "log.jsonl", {"seed": 6, "clock": ticking()}
    whole = forgetful(ARMS, ra.EXP3(gamma=0.2), **settings, log=path)
    early = whole.ask(10)
    state = whole.to_json()
    whole.tell(early[4], 1.0)
    whole.add_arm("d")
    whole.retire_arm("a")
    late = whole.ask(5)
    whole.tell([(late[1], 0.5), (early[0], 0.0)])
    whole.cancel(early[1])
    whole.tell(arm="d", reward=0.25)
    whole.close()
    again = ra.Bandit.from_json(state, log=path, clock=lambda: 2e9)
    assert arm_rows(again) == arm_rows(whole)
    assert again.tell(early[4], 1.0) is False  # delivered again
    assert again.tell(late[2], 1.0) is True
    assert again.expire(0.5, reward=0.0) == 10
    assert again.ask(allowed=["b", "d"]).id == 16
    again.close()
    third = ra.Bandit.from_json(again.to_json(), log=path)
    assert arm_rows(third) == arm_rows(again)
    assert third.ask() == again_without_log(again).ask()


def again_without_log(bandit: ra.Bandit[Any]) -> ra.Bandit[Any]:
    return ra.Bandit.from_json(bandit.to_json())


def test_a_new_log_is_told_what_is_pending(tmp_path: Path) -> None:
    with ra.Bandit(ARMS, ra.UCB(C=0.5), seed=2, log=tmp_path / "old.jsonl") as bandit:
        decisions = bandit.ask(3)
        bandit.tell(decisions[0], 0.5)
        state = bandit.to_json()
    with ra.Bandit.from_json(state, log=tmp_path / "new.jsonl") as again:
        again.tell(decisions[2], 1.0)
        again.ask()
    frame = ra.logs.read_log(tmp_path / "new.jsonl")
    assert frame["id"].to_list() == [2, 3, 4]
    assert frame["reward"].to_list() == [None, 1.0, None]
    with ra.logs.LogWriter(tmp_path / "other.jsonl") as other:
        other.decision(1, "a", 0.5, 1, 1, 1.0)
    with pytest.raises(ValueError, match=r"log must be that of this bandit, [0-9a-f]{32}, or a new one, got "):
        ra.Bandit.from_json(state, log=tmp_path / "other.jsonl")


# Whatever happens, and whenever it was saved.


def happen(bandit: ra.Bandit[Any], random: np.random.Generator) -> None:
    """Something that can happen to a bandit, by chance."""
    pending, retired = bandit.pending, [arm for arm, gone in column(bandit, "retired").items() if gone]
    match int(random.integers(12)):
        case 0 | 1 | 2 if bandit.arms:
            bandit.ask(allowed=bandit.arms[int(random.integers(len(bandit.arms))) :] if random.random() < 0.3 else None)
        case 3 if bandit.arms:
            bandit.ask(4)
        case 4 | 5 | 6 if pending:
            bandit.tell(pending[random.integers(len(pending))], random.random())
        case 7 if pending:
            bandit.tell([(decision, random.random()) for decision in pending[::2]])
        case 8 if pending:
            bandit.cancel(pending[0])
        case 9:
            bandit.tell(arm=arm_rows(bandit)[0]["arm"], reward=random.random())
        case 10:
            bandit.add_arm(f"new {len(arm_rows(bandit))}")
        case 11 if retired and random.random() < 0.5:
            bandit.restore_arm(retired[0])
        case 11 if bandit.arms:
            bandit.retire_arm(bandit.arms[0])


LIVES: dict[str, tuple[ra.Policy, dict[str, Any]]] = {
    "bge": (BGE, {"floor": 0.001}),
    "memory": (ra.EXP3(gamma=0.2), {}),
    "window": (BGE, {"window": 10}),
    "memory with a discount": (ra.EXP3(gamma=0.2), {"discount": 0.9}),
    "catoni": (CATONI, {}),
}


@pytest.mark.parametrize("name", LIVES)
def test_every_saved_state_and_the_log_make_the_same_bandit(name: str, tmp_path: Path) -> None:
    """The very same text as that of the bandit that went on: statistics, pending decisions, random state, version."""
    policy, settings = LIVES[name]
    random, path = np.random.default_rng(3), tmp_path / "log.jsonl"
    with forgetful(ARMS, policy, seed=4, log=path, clock=ticking(), **settings) as bandit:
        states = [bandit.to_json()]
        for _ in range(150):
            happen(bandit, random)
            states.append(bandit.to_json())
    assert len({json.loads(state)["events"] for state in states}) > 100
    for state in states[::10]:
        copy = shutil.copy(path, tmp_path / "copy.jsonl")
        with ra.Bandit.from_json(state, log=copy) as again:
            assert again.to_json() == states[-1]
        assert Path(copy).read_bytes() == path.read_bytes()


Change = Callable[[ra.Bandit[Any]], Any]
ADD, RETIRE, RESTORE = (partial(methodcaller, verb) for verb in ("add_arm", "retire_arm", "restore_arm"))


def crashed(bandit: ra.Bandit[Any], path: Path, changes: list[Change]) -> ra.Bandit[Any]:
    """The bandit that comes back after it was saved, changed and killed."""
    state = bandit.to_json()
    for change in changes:
        change(bandit)
    bandit.close()
    return ra.Bandit.from_json(state, log=path)


CHANGES: dict[str, tuple[list[Change], list[str]]] = {
    "an arm added": ([ADD("d")], [*ARMS, "d"]),
    "an arm retired": ([RETIRE("a")], ["b", "c"]),
    "all arms retired": ([RETIRE(arm) for arm in ARMS], []),
    "one retired, one added": ([RETIRE("a"), ADD("d")], ["b", "c", "d"]),
    "a reward of a new arm": ([ADD("d"), methodcaller("tell", arm="d", reward=0.5)], [*ARMS, "d"]),
    "one retired and restored": ([RETIRE("b"), RESTORE("b")], ARMS),
}


@pytest.mark.parametrize(("changes", "arms"), CHANGES.values(), ids=CHANGES)
def test_arms_that_changed_just_before_a_crash_are_not_forgotten(
    changes: list[Change], arms: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "log.jsonl"
    bandit = ra.Bandit(ARMS, ra.UCB(C=0.5), log=path, floor=0.25)
    again = crashed(bandit, path, changes)
    assert again.arms == arms
    assert arm_rows(again) == arm_rows(bandit)
    assert json.loads(path.read_bytes().splitlines()[-1])["event"] in ("change", "observation")


def test_arms_that_come_and_go_never_break_the_floor(tmp_path: Path) -> None:
    """Two arms at a floor of 0.4, of which one is replaced: three would be too many."""
    path = tmp_path / "log.jsonl"
    bandit = ra.Bandit(["a", "b"], ra.UCB(C=0.5), log=path, floor=0.4)
    again = crashed(bandit, path, [RETIRE("a"), ADD("c"), methodcaller("ask", 3)])
    assert again.arms == ["b", "c"]
    with pytest.raises(ValueError, match=r"floor must be at most 1/3 for 3 arms, got 0\.4"):
        again.restore_arm("a")
    assert again.arms == ["b", "c"]
    assert arm_rows(again) == arm_rows(bandit)


# Recoveries that fail.


def test_a_recovery_that_fails_lets_go_of_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with ra.Bandit(ARMS, BGE, log=path) as bandit:
        state = bandit.to_json()
        bandit.ask(2)
    with ra.logs.LogWriter(path) as log:
        log.observation("z", 0.5, START)
    for wrong, message in (
        (state, "arm must be one of 'a', 'b', 'c', got 'z'"),
        (
            json.dumps(json.loads(state) | {"log": [json.loads(state)["log"][0], 9]}),
            "must have the 9 events of before, got 4",
        ),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            ra.Bandit.from_json(wrong, log=path)
        ra.logs.LogWriter(path).close()  # while the error is still there, and with it all that failed
        assert caught.value
    with ra.logs.LogWriter(path) as log:
        with pytest.raises(ValueError, match="arm must be one of"):
            ra.Bandit.from_json(state, log=log)
        log.arms(ARMS, START)  # whoever opened it may go on


@pytest.mark.parametrize(
    "event",
    [Reward(id=1, reward=1e200, time=START), Observation(arm="a", reward=1e200, time=START)],
    ids=["reward", "observation"],
)
def test_what_a_bandit_would_not_learn_is_not_recovered(event: Event, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with ra.Bandit(ARMS, BGE, seed=1, log=path) as bandit:
        bandit.ask()
        state = bandit.to_json()
    with ra.logs.LogWriter(path) as log:
        with pytest.raises(ValueError, match=r"^reward must be float <= 1e\+100, got 1e\+200$"):
            log.write([event])
        log.append([event])  # which believes that its events are right
    lines = path.read_bytes()
    with pytest.raises(ValueError, match=r"log\.jsonl, line 4: reward must be float <= 1e\+100, got 1e\+200"):
        ra.Bandit.from_json(state, log=path)
    assert path.read_bytes() == lines


def test_the_answer_of_another_bandits_decision_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with ra.Bandit(ARMS, BGE, seed=1, log=path) as bandit:
        bandit.tell(bandit.ask(), 1.0)
        mine = json.loads(bandit.to_json())
    identity = mine["log"][0]
    other = json.loads(ra.Bandit(ARMS, BGE, seed=1).to_json())
    with pytest.raises(ValueError, match="log must be that of this bandit, got the answer of decision 1"):
        ra.Bandit.from_json(json.dumps(other | {"log": [identity, 2]}), log=path)
    with pytest.raises(ValueError, match=r"log must be that of this bandit, .*, or a new one, got"):
        ra.Bandit.from_json(json.dumps(other | {"log": ["0" * 32, 2]}), log=path)
    with pytest.raises(ValueError, match=r"log must be a new one: this bandit had none, got .* with 3 events"):
        ra.Bandit.from_json(json.dumps(other), log=path)
    with pytest.raises(ValueError, match=r"log must be a new one, got .* with 3 events: Bandit\.open"):
        ra.Bandit(ARMS, BGE, log=path)
