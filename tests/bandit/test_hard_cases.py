"""Cases in which a bandit was refused, torn or wrong once."""

from __future__ import annotations

import errno
import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from bandits import BGE, Clock, arm_rows, column, forgetful, forgetting, told
from rightarm.bandit import recovery as folders


def test_a_floor_and_retired_arms() -> None:
    bandit = ra.Bandit(["a", "b"], BGE, floor=0.5, seed=1)
    bandit.replace_arm("a", "c")
    assert ra.Bandit.from_json(bandit.to_json()).arms == ["b", "c"]


def test_sums_that_cancel_when_a_policy_has_another_scale() -> None:
    bandit = ra.Bandit(["a", "b"], ra.KLUCB(), reward_range=(-0.1, 0.2), seed=1)
    for _ in range(7):
        bandit.tell(bandit.ask(), 0.0)
    text = ra.Bandit.from_json(bandit.to_json(), policy=ra.UCB(C=0.5), change_policy=True).to_json()
    assert ra.Bandit.from_json(text).to_json() == text


def test_a_correction_of_what_is_forgotten() -> None:
    bandit = ra.Bandit(["a", "b"], forgetting(BGE, discount=0.5), seed=1)
    decision = bandit.ask(allowed=["a"])
    bandit.tell(decision, 1.0)
    for _ in range(1_200):
        bandit.tell(arm="b", reward=0.5)
    assert bandit.correct(decision, 0.5) is True
    assert arm_rows(ra.Bandit.from_json(bandit.to_json())) == arm_rows(bandit)
    assert column(bandit, "mean")["a"] == 0.5


def test_a_batch_of_late_and_pending_rewards_is_taken_whole_or_not_at_all(tmp_path: Path) -> None:
    ticks = Clock()
    settings: dict[str, Any] = {"reward_window": 10.0, "default_reward": 0.0}
    bandit = ra.Bandit(["a", "b"], BGE, seed=1, clock=ticks, log=tmp_path / "log.jsonl", **settings)
    late = bandit.ask()
    ticks.now += 10
    waiting = bandit.ask()
    before = arm_rows(bandit)

    def interrupt(events: Any) -> None:
        raise KeyboardInterrupt

    bandit._log.append = interrupt  # type: ignore[union-attr, method-assign]
    with pytest.raises(KeyboardInterrupt):
        bandit.tell([(late, 1.0), (waiting, 1.0)])
    del bandit._log.append  # type: ignore[union-attr]
    assert arm_rows(bandit) == before
    assert bandit.tell([(late, 1.0), (waiting, 1.0)]) == [True, True]


def test_a_new_log_of_a_bandit_that_has_learned(tmp_path: Path) -> None:
    clock = Clock()
    settings: dict[str, Any] = {"reward_window": 10.0, "default_reward": 0.0, "learn": "at close"}
    bandit = ra.Bandit(["a", "b"], BGE, clock=clock, **settings)
    first = bandit.ask(allowed=["a"])
    bandit.tell(first, 1.0)
    bandit.retire_arm("a")
    copy = ra.Bandit.from_json(bandit.to_json(), log=tmp_path / "new.jsonl", clock=clock)
    assert copy.ask().id != bandit.ask().id
    clock.now += 10
    copy.ask()
    frame = ra.logs.read_log(tmp_path / "new.jsonl")
    assert dict(frame["id", "reward"].rows())[first.id] == 1.0
    copy.close()
    with pytest.raises(ValueError, match="goes on with a bandit that had learned before: from_json takes its state"):
        ra.Bandit.from_log(tmp_path / "new.jsonl")
    with ra.Bandit.from_json(copy.to_json(), log=tmp_path / "new.jsonl", clock=clock) as again:
        assert arm_rows(again) == arm_rows(copy)


def test_windows_close_in_the_order_of_decisions() -> None:
    clock = Clock()
    settings: dict[str, Any] = {"reward_window": 10.0, "default_reward": 0.0, "learn": "at close", "window": 20}
    bandit = forgetful(["a", "b"], BGE, seed=1, clock=clock, **settings)
    decisions = bandit.ask(200)
    for decision in decisions[::2]:
        bandit.tell(decision, 1.0)
    clock.now += 10
    bandit.ask()
    last = [(decision.arm, float(i % 2 == 0)) for i, decision in enumerate(decisions)][-20:]
    for arm, estimate in column(bandit, "estimate").items():
        assert estimate == pytest.approx(np.mean([reward for own, reward in last if own == arm]))


def test_what_a_new_policy_is_not_for_is_refused() -> None:
    clock = Clock()
    settings: dict[str, Any] = {"reward_window": 10.0, "learn": "at close", "clock": clock}
    with pytest.raises(
        ValueError, match=r"must be from 0 to 1, which BetaThompson\(\) is for; see reward_range, got -1.0"
    ):
        change(ra.Bandit(["a", "b"], BGE, default_reward=-1.0, **settings), ra.BetaThompson())
    bandit = ra.Bandit(["a", "b"], BGE, **settings)
    bandit.tell(bandit.ask(), 7.0)
    with pytest.raises(
        ValueError,
        match=r"^reward of decision \d+ so far must be from 0 to 1, which BetaThompson\(\) is for; .*, got 7\.0",
    ):
        change(bandit, ra.BetaThompson())
    with pytest.raises(ValueError, match="is for other rewards than"):
        change(ra.Bandit({"a": (5.0, 10), "b": None}, BGE), ra.KLUCB())
    with pytest.raises(ValueError, match="prior needs a policy that keeps sums"):
        ra.Bandit({"a": (0.8, 200)}, ra.UCB(C=0.5, estimator=ra.estimators.Catoni(C=0.5, discount=0.9)))


def change(bandit: ra.Bandit[Any], policy: ra.Policy) -> ra.Bandit[Any]:
    return ra.Bandit.from_json(bandit.to_json(), policy=policy, change_policy=True)


def test_a_very_large_reward_that_was_wrong_does_not_make_intervals_too_narrow() -> None:
    random = np.random.default_rng(2)
    rewards = random.standard_normal(300).tolist()
    expected, bandit = told({"a": rewards, "b": []}), ra.Bandit(["a", "b"], BGE, seed=1)
    for reward in rewards[:-1]:
        bandit.tell(arm="a", reward=reward)
    decision = bandit.ask(allowed=["a"])
    bandit.tell(decision, 1e9)
    bandit.correct(decision, rewards[-1])
    assert column(bandit, "mean")["a"] == pytest.approx(column(expected, "mean")["a"], abs=1e-6)
    assert bandit._state.lifetime()[2][0] >= expected._state.lifetime()[2][0]


def test_a_late_reward_takes_the_place_of_the_default() -> None:
    clock = Clock()
    settings: dict[str, Any] = {"reward_window": 10.0, "default_reward": -1.0, "repeated": "sum"}
    bandit = ra.Bandit(["a", "b"], BGE, seed=1, clock=clock, **settings)
    decision = bandit.ask()
    clock.now += 10
    bandit.ask()
    assert column(bandit, "mean")[decision.arm] == -1.0
    bandit = ra.Bandit.from_json(bandit.to_json(), clock=clock)
    bandit.tell(decision, 5.0)
    bandit.tell(decision, 2.0)
    assert column(bandit, "mean")[decision.arm] == 7.0


def test_a_decision_whose_window_has_closed_cannot_be_cancelled() -> None:
    clock = Clock()
    bandit = ra.Bandit(["a", "b"], BGE, seed=1, clock=clock, reward_window=10.0, default_reward=0.0)
    decision = bandit.ask()
    clock.now += 10
    assert bandit.cancel(decision) is False
    assert column(bandit, "mean")[decision.arm] == 0.0


def test_a_prior_like_an_arm_at_the_edge_of_the_range() -> None:
    """Where the mean of equal rewards, scaled there and back, is rounded beyond the edge."""
    low, high = -0.82, -0.22
    bandit = ra.Bandit(["a", "b"], ra.BetaThompson(), reward_range=(low, high), seed=1)
    for _ in range(3):
        bandit.tell(arm="a", reward=high)
    bandit.add_arm("c", prior=("like", "a", 5))
    assert column(bandit, "estimate")["c"] == pytest.approx(high)


def test_a_log_without_events_has_no_bandit(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"empty\.jsonl has no events"):
        ra.Bandit.from_log(tmp_path / "empty.jsonl", BGE)


# Folders.


def test_a_refused_open_changes_nothing(tmp_path: Path) -> None:
    ra.Bandit.open(tmp_path, ["a", "b"], BGE).close()
    before = (tmp_path / "log.jsonl").read_bytes()
    with pytest.raises(ValueError, match="arms must be those of the bandit"):
        ra.Bandit.open(tmp_path, ["a", "z"], ra.UCB(C=0.1), change_policy=True)
    assert (tmp_path / "log.jsonl").read_bytes() == before


def test_a_snapshot_without_its_log_is_refused(tmp_path: Path) -> None:
    ra.Bandit.open(tmp_path, ["a", "b"], BGE).close()
    (tmp_path / "log.jsonl").unlink()
    with pytest.raises(ValueError, match="has a snapshot, but its log has no events"):
        ra.Bandit.open(tmp_path, ["a", "b"], BGE)


def test_an_arm_that_the_guardrail_retired_stays_retired(tmp_path: Path) -> None:
    for _ in range(2):
        with ra.Bandit.open(tmp_path, ["a", "b"], BGE, control="a", reward_range=(0, 1)) as bandit:
            bandit.change(guardrail=0.0)
            for _ in range(100):
                bandit.tell(arm="a", reward=1.0)
                bandit.tell(arm="b", reward=0.0)
            assert bandit.arms == ["a"]
    with ra.Bandit.open(tmp_path) as bandit:
        assert bandit.arms == ["a"]


def test_a_snapshot_that_cannot_be_written_breaks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bandit = ra.Bandit.open(tmp_path, ["a", "b"], BGE, snapshot_every=5)

    def full(path: Path, content: bytes, mode: int = 0) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(folders, "write_whole", full)
    with pytest.warns(UserWarning, match="no snapshot could be written, the next one is tried later"):
        decisions = [bandit.ask() for _ in range(8)]
    assert bandit.pending == decisions
    with pytest.raises(OSError, match="No space left"):
        bandit.close()
    monkeypatch.undo()
    with ra.Bandit.open(tmp_path) as again:
        assert again.pending == decisions


# Signal handlers.


def test_a_handler_that_calls_the_bandit_is_refused(tmp_path: Path) -> None:
    """In the middle of an action, where it would find things half done."""
    caught: list[str] = []

    def handler(number: int, frame: Any) -> None:
        for call in (bandit.ask, bandit.close):
            try:
                call()
            except RuntimeError as error:
                caught.append(str(error))

    bandit = ra.Bandit(["a", "b"], BGE, seed=1, log=tmp_path / "log.jsonl")
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        write = bandit.log.append  # type: ignore[union-attr]

        def interrupted(events: Any) -> None:
            signal.raise_signal(signal.SIGUSR1)
            write(events)

        bandit.log.append = interrupted  # type: ignore[union-attr, method-assign]
        decision = bandit.ask()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(caught) == 2
    assert all("a signal handler called the bandit in the middle of an action" in text for text in caught)
    assert bandit.pending == [decision]
    assert json.loads((tmp_path / "log.jsonl").read_text().splitlines()[-1])["id"] == decision.id
