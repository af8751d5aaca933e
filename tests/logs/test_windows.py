"""What counts in a log with windows of reward is what counts in the bandit that comes back from it."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import rightarm as ra
from bandits import Clock
from log_story import START
from rightarm.logs import LogWriter, log_info, read_log
from rightarm.logs.stream import read_events

WINDOW = 100.0


def story(path: Path, seed: int, **settings: Any) -> None:
    """Decisions, and everything that can come of them in and after their windows; the last event closes no window."""
    clock, chance = Clock(), random.Random(seed)
    options: dict[str, Any] = {"window_of_reward": WINDOW, "clock": clock, "reward_range": (0, 100)} | settings
    with ra.Bandit(["a", "b"], ra.UCB(C=0.5), log=path, seed=seed, floor=0.2, **options) as bandit:
        made = list[int]()
        for _ in range(250):
            clock.now += chance.expovariate(1 / 5)
            match chance.choices(("ask", "tell", "correct", "cancel", "expire", "close"), (40, 40, 6, 4, 1, 4))[0]:
                case "ask":
                    made += [decision.id for decision in bandit.ask(chance.randint(1, 4))]
                case "tell" if made:
                    bandit.tell(chance.choice(made[-40:]), float(chance.randint(1, 3)))
                case "correct" if made:
                    with contextlib.suppress(ValueError):  # nothing to correct yet
                        bandit.correct(chance.choice(made), 5.0)
                case "cancel" if made:
                    bandit.cancel(chance.choice(made[-20:]))
                case "expire":
                    bandit.expire(WINDOW / 2, chance.choice([None, 4.0]))
                case "close":
                    bandit.close_windows()
        bandit.ask(5)
        clock.now += WINDOW / 3
        if seed % 2:
            bandit.add_arm("c")


@pytest.mark.parametrize("late", ["correct", "keep"])
@pytest.mark.parametrize("several", ["last", "sum"])
@pytest.mark.parametrize("default", [None, 0.0])
@pytest.mark.parametrize("learn", ["at close", "at once"])
def test_what_counts_in_the_bandit_counts_in_its_log(
    tmp_path: Path, learn: str, default: float | None, several: str, late: str
) -> None:
    """The bandit comes back at the time of the last event; if it learns at once, only closed windows are compared."""
    path, copy = tmp_path / "log.jsonl", tmp_path / "copy.jsonl"
    for seed in range(4):
        path.unlink(missing_ok=True)
        story(path, seed, learn=learn, default=default, several=several, late=late)
        shutil.copy(path, copy)
        frame, events = read_log(path), list(read_events(path))
        now = events[-1]["time"]
        with ra.Bandit.from_log(copy, clock=lambda now=now: now) as bandit:  # type: ignore[misc]
            bandit.close_windows()
            state = json.loads(bandit.to_json())
            table = {row["arm"]: (row["pulls"], row["mean"]) for row in bandit.table() if row["pulls"]}
        rewards = {row[0]: row[1] for row in state["answered"]}
        made = {event["id"]: event["time"] for event in events if event["event"] == "decision"}
        if learn == "at once":
            rewards = {number: reward for number, reward in rewards.items() if made[number] + WINDOW <= now}
        assert dict(frame.select("id", "reward").iter_rows()) == {number: rewards.get(number) for number in made}
        if learn == "at close":
            counted = frame.group_by("arm").agg(pl.col("reward").count(), pl.col("reward").mean().alias("mean"))
            assert table == {
                arm: (count, pytest.approx(mean, rel=1e-12)) for arm, count, mean in counted.iter_rows() if count
            }
            assert frame["open_window"].sum() == len(state["pending"])
        assert log_info(path).waiting == frame["open_window"].sum() > 0
        assert not frame.filter("open_window")["reward"].count()


def test_the_log_of_a_bandit_that_learns_at_once_counts_as_one_that_learns_at_close(tmp_path: Path) -> None:
    """Decisions are even, so that both make the same ones; only rewards are told, in and after their windows."""
    frames = []
    for learn in ("at close", "at once"):
        clock, chance, path = Clock(), random.Random(5), tmp_path / f"{learn}.jsonl"
        settings: dict[str, Any] = {"window_of_reward": WINDOW, "default": 0.0, "several": "sum", "learn": learn}
        with ra.Bandit(["a", "b"], ra.UCB(C=0.5), floor=0.5, seed=1, clock=clock, log=path, **settings) as bandit:
            made = bandit.ask(3)
            for _ in range(400):
                clock.now += chance.random() * 3
                if chance.random() < 0.5:
                    bandit.tell(chance.choice(made[-80:]).id, 1.0)
                else:
                    made.append(bandit.ask())
        frames.append(read_log(path).select("id", "arm", "reward", "open_window"))
    assert frames[0].equals(frames[1])
    assert 10 < frames[0]["open_window"].sum() < frames[0].height - 10


def written(path: Path, learn: str, events: list[dict[str, Any]]) -> pl.DataFrame:
    settings = {"window_of_reward": WINDOW, "default": 0.25, "learn": learn}
    with LogWriter(path) as log:
        log.write([{"event": "settings", "settings": settings, "time": START}])
        log.write([event | {"time": START + event["time"]} for event in events])
    return read_log(path)


def decision(number: int, time: float) -> dict[str, Any]:
    fields = {"id": number, "arm": "a", "propensity": 1.0, "round": 1, "version": 0, "time": time}
    return {"event": "decision"} | fields


@pytest.mark.parametrize(("learn", "part"), [("at close", {"part": True}), ("at once", {})])
def test_a_window_that_ran_out_counts_before_its_closing_is_written(
    tmp_path: Path, learn: str, part: dict[str, Any]
) -> None:
    """The bandit closes it before whatever it does next, so what it will have is known; a moment earlier it is not."""
    early = {"event": "reward", "id": 2, "reward": 1.0, "time": 5.0} | part
    before = [decision(1, 0.0), decision(2, 0.0), early]
    for time, rewards in {WINDOW - 1e-3: [None, None], WINDOW: [0.25, 1.0]}.items():
        path = tmp_path / f"{time}.jsonl"
        frame = written(path, learn, [*before, {"event": "arms", "arms": ["a"], "time": time}])
        assert frame["reward"].to_list() == rewards
        assert frame["open_window"].to_list() == [reward is None for reward in rewards]
        assert [told is None for told in frame["told"]] == [True, False]


def test_a_clock_that_jumps_ahead_closes_nothing_that_is_made_later(tmp_path: Path) -> None:
    jump = {"event": "arms", "arms": ["a"], "time": 1e6}
    rewards = [{"event": "reward", "id": number, "reward": 1.0, "time": 20.0} for number in (1, 2)]
    frame = written(tmp_path / "log.jsonl", "at once", [decision(1, 0.0), jump, decision(2, 10.0), *rewards])
    assert frame["reward"].to_list() == [1.0, None]


def test_a_cancelled_decision_is_not_open(tmp_path: Path) -> None:
    cancel = {"event": "cancel", "id": 1, "time": 5.0}
    frame = written(tmp_path / "log.jsonl", "at once", [decision(1, 0.0), decision(2, 0.0), cancel])
    assert frame["open_window"].to_list() == [False, True]


def test_a_window_that_is_no_number_is_refused(tmp_path: Path) -> None:
    with LogWriter(tmp_path / "log.jsonl") as log:
        log.write([{"event": "settings", "settings": {"window_of_reward": "a day"}, "time": START}])
    with pytest.raises(TypeError, match="window_of_reward must be a number, got 'a day'"):
        read_log(tmp_path / "log.jsonl")
