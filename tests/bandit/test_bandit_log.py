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
from bandits import arm_rows

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
    some = bandit.ask(allowed=["b", "c"])
    bandit.expire(0.5, reward=0.25)
    frame = ra.logs.read_log(tmp_path / "log.jsonl")
    made = [(d.id, d.arm, d.propensity, d.round, d.version) for d in (*first, some)]
    assert frame["id", "arm", "propensity", "round", "version"].rows() == made
    assert frame["reward"].to_list() == [0.0, None, 0.25, 1.0, 0.25, 0.25]
    assert frame["cancelled"].to_list() == [False, True, False, False, False, False]
    assert frame["allowed"].to_list() == [ARMS] * 5 + [["b", "c"]]
    assert frame["decided_at"].is_sorted()


def test_a_bandit_that_was_dropped_lets_go_of_its_log(tmp_path: Path) -> None:
    bandit = ra.Bandit(ARMS, ra.UCB(C=0.5), seed=1, log=tmp_path / "log.jsonl")
    bandit.tell(bandit.ask(), 1.0)
    del bandit
    gc.collect()
    bandit = ra.Bandit.from_log(tmp_path / "log.jsonl")  # which would find the log locked
    bandit.tell(bandit.ask(), 1.0)
    assert ra.logs.read_log(tmp_path / "log.jsonl")["id"].to_list() == [1, 2]


def test_what_cannot_be_written_did_not_happen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full at any kind of event; the bandit goes on when there is room again."""
    bandit = ra.Bandit(ARMS, ra.BoltzmannGumbel(C=0.5), seed=4, log=tmp_path / "log.jsonl", clock=lambda: 1e9)
    decisions = bandit.ask(4)
    bandit.tell(decisions[0], 1.0)

    def known() -> tuple[Any, ...]:
        return arm_rows(bandit), bandit.probabilities()

    before, size = known(), (tmp_path / "log.jsonl").stat().st_size

    def full(file: int, data: Any) -> int:
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        for attempt in (
            lambda: bandit.ask(),
            lambda: bandit.ask(3, allowed=["a", "b"]),
            lambda: bandit.tell(decisions[1], 0.5),
            lambda: bandit.tell([(decisions[1], 0.5), (decisions[2], 0.5)]),
            lambda: bandit.tell(arm="a", reward=1.0),
            lambda: bandit.cancel(decisions[3]),
            lambda: bandit.add_arm("d"),
            lambda: bandit.retire_arm("a"),
        ):
            with pytest.raises(OSError, match="no space left"):
                attempt()
            assert known() == before
            assert (tmp_path / "log.jsonl").stat().st_size == size
    assert bandit.tell([(decision, 0.5) for decision in decisions[1:]]) == [True] * 3
    assert bandit.ask().id > 4


def test_names_that_a_log_cannot_keep_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"arms must be texts, numbers, true or false in a log, got \('a', 1\)"):
        ra.Bandit([("a", 1), "b"], ra.UCB(C=0.5), log=tmp_path / "log.jsonl")
    bandit = ra.Bandit(["a"], ra.UCB(C=0.5), log=tmp_path / "other.jsonl")
    with pytest.raises(TypeError, match="arms must be texts, numbers, true or false in a log, got None"):
        bandit.add_arm(None)  # type: ignore[arg-type]
    assert bandit.arms == ["a"]


@pytest.mark.parametrize("unit", [-5, 2**63, "\ud800"], ids=ascii)
def test_units_that_a_log_cannot_keep_are_refused(unit: Any, tmp_path: Path) -> None:
    for path in (None, tmp_path / "log.jsonl"):
        with ra.Bandit(["a", "b"], ra.UCB(C=0.5), seed=1, log=path) as bandit:
            with pytest.raises(ValueError, match=r"^unit must be "):
                bandit.ask(unit=unit)
            assert bandit.ask(unit=5).id == 1
    with ra.Bandit.from_log(tmp_path / "log.jsonl") as again:
        assert again.ask(unit=5).id == 1


@pytest.mark.parametrize("now", [1.7e12, -1.0])
def test_a_clock_that_does_not_count_seconds_since_1970_is_refused(now: float, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with pytest.raises(ValueError, match=r"^clock must give seconds since 1970, before the year 10000, got "):
        ra.Bandit(["a", "b"], ra.UCB(C=0.5), log=path, clock=lambda: now)
    assert not path.exists()
    times = iter([1.0, now, 2.0])
    with ra.Bandit(["a", "b"], ra.UCB(C=0.5), log=path, clock=lambda: next(times)) as bandit:
        with pytest.raises(ValueError, match=r"^clock must give seconds"):
            bandit.ask()
        bandit.ask()
    with ra.Bandit.from_log(path) as again:
        assert len(again.pending) == 1


def test_the_log_of_a_bandit_that_learns_says_what_another_policy_earns(tmp_path: Path) -> None:
    """The uniform policy's value from logs of BGE with a floor: unbiased, and inside the interval."""
    true = float(np.mean(list(MEANS.values())))
    found, covered = [], 0
    for seed in range(40):
        luck, path = np.random.default_rng(seed), tmp_path / f"{seed}.jsonl"
        with ra.logs.LogWriter(path) as log:
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
