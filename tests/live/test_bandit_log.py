"""A live bandit and its log: what is written, what a failing disk leaves behind, and what can be learned from it."""

from __future__ import annotations

import errno
import gc
import itertools
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra

ARMS = ["a", "b", "c"]
MEANS = {"a": 0.2, "b": 0.5, "c": 0.7}


def ticking() -> Any:
    seconds = itertools.count(1_700_000_000)
    return lambda: float(next(seconds))


def test_the_log_has_every_decision_with_its_propensity_and_reward(tmp_path: Path) -> None:
    bandit = ra.Bandit(ARMS, ra.BoltzmannGumbel(C=0.5), seed=1, log=tmp_path / "log.jsonl", clock=ticking())
    first = bandit.ask(5)
    bandit.tell([(first[3], 1.0), (first[0], 0.0)])
    bandit.tell(first[0], 0.0)  # again, which is not written
    bandit.tell(arm="c", reward=0.5)
    bandit.cancel(first[1])
    bandit.retire_arm("a")
    some = bandit.ask(among=["b", "c"])
    bandit.expire(0.5, reward=0.25)
    frame = ra.read_log(tmp_path / "log.jsonl")
    assert frame["id", "arm", "propensity", "round", "version"].rows() == [tuple(d) for d in (*first, some)]
    assert frame["reward"].to_list() == [0.0, None, 0.25, 1.0, 0.25, 0.25]
    assert frame["cancelled"].to_list() == [False, True, False, False, False, False]
    assert frame["among"].to_list() == [ARMS] * 5 + [["b", "c"]]
    assert frame["asked"].is_sorted()


@pytest.mark.parametrize("name", ["log.jsonl", "log.parquet"])
def test_a_bandit_that_comes_back_goes_on_in_its_log(tmp_path: Path, name: str) -> None:
    path, random = tmp_path / name, np.random.default_rng(3)
    whole = ra.Bandit(ARMS, ra.BoltzmannGumbel(C=0.5), seed=2)
    with ra.LogWriter(path, pack_every=7) as log:
        bandit = ra.Bandit(ARMS, ra.BoltzmannGumbel(C=0.5), seed=2, log=log)
        rewards = random.random(60)
        for reward in rewards[:30]:
            assert bandit.tell(bandit.ask(), reward) == whole.tell(whole.ask(), reward)
        waiting, state = bandit.ask(), bandit.to_json()
    whole.ask()
    with ra.LogWriter(path, pack_every=7) as log:
        again = ra.Bandit.from_json(state, log=log)
        again.tell(waiting, 0.5)
        whole.tell(waiting, 0.5)
        for reward in rewards[30:]:
            decision = again.ask()
            assert decision == whole.ask()
            again.tell(decision, reward)
            whole.tell(decision, reward)
    frame = ra.read_log(path)
    assert frame["id"].to_list() == list(range(1, 62))
    assert frame["reward"].to_list() == [*rewards[:30], 0.5, *rewards[30:]]


def test_an_older_state_does_not_use_an_id_of_the_log_again(tmp_path: Path) -> None:
    with ra.LogWriter(tmp_path / "log.jsonl") as log:
        bandit = ra.Bandit(ARMS, ra.UCB(C=0.5), seed=2, log=log)
        state = bandit.to_json()
        assert [decision.id for decision in bandit.ask(3)] == [1, 2, 3]
    with ra.LogWriter(tmp_path / "log.jsonl") as log:
        assert ra.Bandit.from_json(state, log=log).ask().id == 4


def test_what_happened_after_a_state_was_saved_is_learned_from_the_log(tmp_path: Path) -> None:
    """A crash: decisions, rewards, cancels, observations and arms since the last save are all in the log."""
    path, settings = tmp_path / "log.jsonl", {"seed": 6, "clock": ticking()}
    whole = ra.Bandit(ARMS, ra.EXP3(gamma=0.2), **settings, log=path)
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
    assert again.table() == whole.table()
    assert again.tell(early[4], 1.0) is False  # delivered again
    assert again.tell(late[2], 1.0) is True
    assert again.expire(0.5, reward=0.0) == 10
    assert again.ask(among=["b", "d"]).id == 16
    again.close()
    third = ra.Bandit.from_json(again.to_json(), log=path)
    assert third.table() == again.table()
    assert third.ask() == again_without_log(again).ask()


def again_without_log(bandit: ra.Bandit) -> ra.Bandit:
    return ra.Bandit.from_json(bandit.to_json())


def test_a_new_log_is_told_what_is_pending(tmp_path: Path) -> None:
    with ra.Bandit(ARMS, ra.UCB(C=0.5), seed=2, log=tmp_path / "old.jsonl") as bandit:
        decisions = bandit.ask(3)
        bandit.tell(decisions[0], 0.5)
        state = bandit.to_json()
    with ra.Bandit.from_json(state, log=tmp_path / "new.jsonl") as again:
        again.tell(decisions[2], 1.0)
        again.ask()
    frame = ra.read_log(tmp_path / "new.jsonl")
    assert frame["id"].to_list() == [2, 3, 4]
    assert frame["reward"].to_list() == [None, 1.0, None]
    with ra.LogWriter(tmp_path / "other.jsonl") as other:
        other.decision(1, "a", 0.5, 1, 1, 1.0)
    with pytest.raises(ValueError, match=r"log must be new or have the \d+ events of before, got 1 in "):
        ra.Bandit.from_json(state, log=tmp_path / "other.jsonl")


def test_a_bandit_that_was_dropped_lets_go_of_its_log(tmp_path: Path) -> None:
    for _ in range(2):  # the second would find the log locked
        bandit = ra.Bandit(ARMS, ra.UCB(C=0.5), log=tmp_path / "log.jsonl")
        bandit.tell(bandit.ask(), 1.0)
        del bandit
        gc.collect()
    assert ra.read_log(tmp_path / "log.jsonl")["id"].to_list() == [1, 2]


def test_an_interrupt_while_packing_leaves_bandit_and_log_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = ra.LogWriter(tmp_path / "log.parquet", pack_every=3)
    bandit = ra.Bandit(ARMS, ra.UCB(C=0.5), log=log)
    first = bandit.ask(3)
    with monkeypatch.context() as patch:
        patch.setattr("rightarm.logs.log._write_part", interrupted)
        for attempt in (bandit.ask, lambda: bandit.tell(first[0], 1.0)):
            with pytest.raises(KeyboardInterrupt):
                attempt()
    assert bandit.tell(first[0], 1.0) is True
    later = bandit.ask()
    bandit.close()
    assert ra.read_log(tmp_path / "log.parquet")["id"].to_list() == [1, 2, 3, later.id]


def interrupted(*given: Any) -> None:
    raise KeyboardInterrupt


def test_what_cannot_be_written_did_not_happen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full at any of the three kinds of event; the bandit goes on when there is room again."""
    bandit = ra.Bandit(ARMS, ra.BoltzmannGumbel(C=0.5), seed=4, log=tmp_path / "log.jsonl", clock=lambda: 1e9)
    decisions = bandit.ask(4)
    bandit.tell(decisions[0], 1.0)

    def known() -> tuple[Any, ...]:
        return bandit.table(), bandit.probabilities()

    before, size = known(), (tmp_path / "log.jsonl").stat().st_size

    def full(file: int, data: Any) -> int:
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        for attempt in (
            lambda: bandit.ask(),
            lambda: bandit.ask(3, among=["a", "b"]),
            lambda: bandit.tell(decisions[1], 0.5),
            lambda: bandit.tell([(decisions[1], 0.5), (decisions[2], 0.5)]),
            lambda: bandit.tell(arm="a", reward=1.0),
            lambda: bandit.cancel(decisions[3]),
        ):
            with pytest.raises(OSError, match="no space left"):
                attempt()
            assert known() == before
            assert (tmp_path / "log.jsonl").stat().st_size == size
    assert bandit.tell([(decision, 0.5) for decision in decisions[1:]]) == [True] * 3
    assert bandit.ask().id > 4


def test_names_that_a_log_cannot_keep_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"arms must be a text, a number, true or false, got \('a', 1\)"):
        ra.Bandit([("a", 1), "b"], ra.UCB(C=0.5), log=tmp_path / "log.jsonl")
    bandit = ra.Bandit(["a"], ra.UCB(C=0.5), log=tmp_path / "other.jsonl")
    with pytest.raises(TypeError, match="arm must be a text, a number, true or false, got None"):
        bandit.add_arm(None)
    assert bandit.arms == ["a"]


def test_the_log_of_a_bandit_that_learns_says_what_another_policy_earns(tmp_path: Path) -> None:
    """The uniform policy's value from logs of BGE with a floor: unbiased, and inside the interval."""
    true = float(np.mean(list(MEANS.values())))
    found, covered = [], 0
    for seed in range(40):
        luck, path = np.random.default_rng(seed), tmp_path / f"{seed}.jsonl"
        with ra.LogWriter(path) as log:
            bandit = ra.Bandit(ARMS, ra.BoltzmannGumbel(C=0.5), seed=seed, floor=0.1, log=log)
            for _ in range(600):
                decision = bandit.ask()
                bandit.tell(decision, luck.random() < MEANS[str(decision.arm)])
        result = ra.evaluate(path, "uniform")
        found.append(result.ips)
        covered += result.low <= true <= result.high
    error = float(np.std(found, ddof=1)) / math.sqrt(len(found))
    assert abs(np.mean(found) - true) / error < 4.5
    assert covered >= 36  # 38 expected at 95%, and the intervals hold at all times at once


def test_plot_draws_every_arm(tmp_path: Path) -> None:
    bandit = ra.Bandit([*ARMS, "d" * 60, 17, ("t", 1)], ra.BoltzmannGumbel(C=0.5), seed=5)
    for arm in ARMS:
        bandit.tell(arm=arm, reward=0.5)
        bandit.tell(arm=arm, reward=0.7)
    bandit.retire_arm("b")
    for ending in ("png", "svg"):
        path = bandit.plot(tmp_path / "new" / f"arms.{ending}")
        assert path.stat().st_size > 5_000
    assert "b (retired)" in path.read_text() or "<!-- b (retired) -->" in path.read_text()
    many = ra.Bandit(range(200), ra.UCB(C=0.5))
    assert many.plot(tmp_path / "many.png", title="two hundred").stat().st_size > 5_000
