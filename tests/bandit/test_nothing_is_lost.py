"""Ways in which a reward, an arm or a secret could get lost; each was found by somebody who tried."""

from __future__ import annotations

import errno
import json
import stat
from pathlib import Path
from typing import Any

import pytest

import rightarm as ra
from bandits import BGE, Clock, arm_rows, column
from rightarm.bandit import ledger
from rightarm.logs.events import DECODER, ENCODER, LARGEST_WHOLE
from rightarm.logs.journals import LogWriter

ARMS = ["a", "b"]


@pytest.mark.parametrize("unit", [0, LARGEST_WHOLE, "", "visitor é😀"])
@pytest.mark.parametrize("time", [0.0, 253_402_300_799.0])
def test_every_event_at_the_edges_can_be_read_again(unit: Any, time: float) -> None:
    bandit = ra.Bandit(ARMS, BGE, seed=1, clock=lambda: time)
    decision = bandit.ask(unit=unit)
    assert DECODER.decode(ENCODER.encode(decision)) == decision


def test_a_range_that_does_not_have_all_rewards_is_refused() -> None:
    """Means that are inside are not enough: intervals would prove what is not so."""
    bandit = ra.Bandit(ARMS, BGE, seed=1)
    for i in range(20):
        bandit.tell(arm=ARMS[i % 2], reward=10.0 * (i // 2 % 2))
    with pytest.raises(ValueError, match=r"^reward_range must have all rewards that were learned, got 4 to 6"):
        bandit.change(reward_range=(4, 6))
    assert bandit.change(reward_range=(0, 10))


@pytest.mark.parametrize("estimator", [ra.estimators.Mean(), ra.estimators.Catoni(C=2.0)])
def test_a_batch_that_forgets_what_it_corrects_is_refused(estimator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "REMEMBERED", 10)
    clock = Clock()
    policy = ra.UCB(C=0.5, estimator=estimator)
    bandit = ra.Bandit(ARMS, policy, seed=1, clock=clock, reward_window=1e6)
    made = bandit.ask(11)
    for decision in made[:10]:
        bandit.tell(decision, 1.0)
    before = bandit.to_json()
    with pytest.raises(ValueError, match="answered too long ago to be corrected together with other rewards"):
        bandit.tell([(made[10], 1.0), (made[0], 5.0)])
    assert bandit.to_json() == before
    assert bandit.correct(made[0], 5.0)
    assert bandit.tell(made[10], 1.0)
    assert arm_rows(ra.Bandit.from_json(bandit.to_json(), clock=clock)) == arm_rows(bandit)


@pytest.mark.parametrize("call", ["add", "restore", "open"])
def test_an_arm_that_the_guardrail_retires_just_now_does_not_come_back(call: str, tmp_path: Path) -> None:
    clock = Clock()
    options: dict[str, Any] = {"control": "c", "reward_range": (0, 1), "reward_window": 10.0}
    arms = ["c", "good", "bad"]
    bandit = ra.Bandit.open(
        tmp_path, arms, ra.UCB(C=9.0), seed=1, clock=clock, default_reward=0.0, learn="at close", **options
    )
    bandit.change(guardrail=0.0)
    bandit.retire_arm("good")
    for decision in bandit.ask(400):
        bandit.tell(decision, float(decision.arm == "c"))
    clock.now += 11
    if call == "add":
        bandit.add_arm("new")
    elif call == "restore":
        bandit.restore_arm("good")
    else:
        bandit.close()
        bandit = ra.Bandit.open(tmp_path, [*arms, "new"], clock=clock, change_arms=True)
    assert "bad" not in bandit.arms
    bandit.close()


def test_a_reward_that_could_not_be_written_can_be_told_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if somebody else has written to the bandit's log meanwhile."""
    writer = LogWriter(tmp_path / "log.jsonl")
    bandit = ra.Bandit(ARMS, BGE, seed=1, log=writer)
    decision = bandit.ask()
    writer.observation("a", 0.5, time=1.0)

    def full(events: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(writer, "append", full)
        with pytest.raises(OSError, match="No space left"):
            bandit.tell(decision, 1.0)
    assert sum(column(bandit, "pulls").values()) == 0
    assert bandit.tell(decision, 1.0)


def test_meta_belongs_to_the_caller() -> None:
    tags = [1]
    bandit = ra.Bandit(ARMS, BGE, seed=1)
    decision = bandit.ask(meta={"tags": tags})
    tags.append(2)
    assert decision.meta == {"tags": [1]}
    assert decision.meta is not None
    decision.meta["more"] = object()
    assert json.loads(bandit.to_json())["pending"]


def test_a_prior_outside_a_range_that_comes_with_it_is_refused() -> None:
    bandit = ra.Bandit(ARMS, BGE, seed=1)
    with pytest.raises(ValueError, match=r"^reward_range must have all rewards"):
        bandit.change(reward_range=(0, 1), arms={"a": None, "b": None, "c": (5.0, 10)})
    assert bandit.arms == ARMS


def test_rewards_that_add_up_count_though_they_are_the_default() -> None:
    clock = Clock()
    bandit = ra.Bandit(["a"], BGE, seed=1, clock=clock, reward_window=10.0, default_reward=1.0, repeated="sum")
    decision = bandit.ask()
    clock.now += 11
    assert [bandit.tell(decision, 1.0) for _ in range(3)] == [True] * 3
    assert column(bandit, "mean") == {"a": 3.0}


def test_a_control_that_is_a_tuple_or_comes_with_its_arms() -> None:
    bandit = ra.Bandit([("a", 1), ("b", 2)], BGE, seed=1)
    assert bandit.change(control=("a", 1))
    assert bandit.change(arms=[("b", 2), ("c", 3)], control=("b", 2))
    assert bandit.settings.control == ("b", 2)


def test_keys_stay_secrets(tmp_path: Path) -> None:
    with ra.Bandit(ARMS, BGE, seed=1, log=tmp_path / "log.jsonl") as bandit:
        saved = bandit.save(tmp_path / "saved.json")
    key = tmp_path / "log.jsonl.key"
    assert {stat.S_IMODE(path.stat().st_mode) for path in (saved, key)} == {0o600}
    text = key.read_text().strip()
    key.write_text(text[:-1] + "g")
    with pytest.raises(ValueError, match=r"^key must be 32 hexadecimal digits$"):
        ra.Bandit.from_log(tmp_path / "log.jsonl")


def test_late_rewards_are_kept_from_the_change_on() -> None:
    clock = Clock()
    bandit = ra.Bandit(["a"], BGE, seed=1, clock=clock, reward_window=10.0, default_reward=0.0)
    decision = bandit.ask()
    clock.now += 11
    bandit.close_windows()
    bandit.change(late="keep")
    assert not bandit.tell(decision, 1.0)
    assert column(bandit, "mean") == {"a": 0.0}
