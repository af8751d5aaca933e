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
from msgspec.structs import replace

import rightarm as ra
from bandits import Clock, arm_rows
from log_story import START
from rightarm.logs import Log, read_log
from rightarm.logs.events import Cancellation, Changed, Created, Decision, Event, Reward
from rightarm.logs.lines import Head, as_lines
from rightarm.logs.outcomes import read_events
from rightarm.logs.settings import Learn, Settings

WINDOW = 100.0


def story(path: Path, seed: int, **settings: Any) -> None:
    """Decisions, and everything that can come of them in and after their windows; the last event closes no window."""
    clock, chance = Clock(), random.Random(seed)
    options: dict[str, Any] = {"reward_window": WINDOW, "clock": clock, "reward_range": (0, 100)} | settings
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
@pytest.mark.parametrize("repeated", ["last", "sum"])
@pytest.mark.parametrize("default", [None, 0.0])
@pytest.mark.parametrize("learn", ["at close", "at once"])
def test_what_counts_in_the_bandit_counts_in_its_log(
    tmp_path: Path, learn: Learn, default: float | None, repeated: str, late: str
) -> None:
    """The bandit comes back at the time of the last event; if it learns at once, only closed windows are compared."""
    path, copy = tmp_path / "log.jsonl", tmp_path / "copy.jsonl"
    for seed in range(4):
        path.unlink(missing_ok=True)
        story(path, seed, learn=learn, default_reward=default, repeated=repeated, late=late)
        shutil.copy(path, copy)
        frame, events = read_log(path), list(read_events(path))
        now = events[-1].time
        with ra.Bandit.from_log(copy, clock=lambda now=now: now) as bandit:  # type: ignore[misc]
            bandit.close_windows()
            state = json.loads(bandit.to_json())
            table = {row["arm"]: (row["pulls"], row["mean"]) for row in arm_rows(bandit) if row["pulls"]}
        rewards = {row[0]: row[1] for row in state["answered"]}
        made = {event.id: event.time for event in events if isinstance(event, Decision)}
        if learn == "at once":
            rewards = {number: reward for number, reward in rewards.items() if made[number] + WINDOW <= now}
        assert dict(frame.select("id", "reward").iter_rows()) == {number: rewards.get(number) for number in made}
        if learn == "at close":
            counted = frame.group_by("arm").agg(pl.col("reward").count(), pl.col("reward").mean().alias("mean"))
            assert table == {
                arm: (count, pytest.approx(mean, rel=1e-12)) for arm, count, mean in counted.iter_rows() if count
            }
            assert frame["open_window"].sum() == len(state["pending"])
        assert Log.read(path).more["waiting"].sum() == frame["open_window"].sum() > 0
        assert not frame.filter("open_window")["reward"].count()


def test_the_log_of_a_bandit_that_learns_at_once_counts_as_one_that_learns_at_close(tmp_path: Path) -> None:
    """Decisions are even, so that both make the same ones; only rewards are told, in and after their windows."""
    frames = []
    for learn in ("at close", "at once"):
        clock, chance, path = Clock(), random.Random(5), tmp_path / f"{learn}.jsonl"
        settings: dict[str, Any] = {"reward_window": WINDOW, "default_reward": 0.0, "repeated": "sum", "learn": learn}
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


def written(path: Path, learn: Learn, events: list[Event]) -> pl.DataFrame:
    """A log of these events, whose times count from the start."""
    settings = Settings(reward_window=WINDOW, default_reward=0.25, learn=learn)
    made = [Created(arms=["a"], policy={}, settings=settings, time=0.0), *events]
    later = [replace(event, time=START + event.time) for event in made]
    path.write_bytes(as_lines(Head("0", 1, 1, START), later, 1))
    return read_log(path)


def decision(number: int, time: float) -> Decision[str]:
    return Decision(id=number, arm="a", propensity=1.0, round=1, version=0, time=time)


@pytest.mark.parametrize(("learn", "part"), [("at close", True), ("at once", False)])
def test_a_window_that_ran_out_counts_before_its_closing_is_written(tmp_path: Path, learn: Learn, part: bool) -> None:
    """The bandit closes it before whatever it does next, so what it will have is known; a moment earlier it is not."""
    early = Reward(id=2, reward=1.0, time=5.0, part=part)
    before = [decision(1, 0.0), decision(2, 0.0), early]
    for time, rewards in {WINDOW - 1e-3: [None, None], WINDOW: [0.25, 1.0]}.items():
        path = tmp_path / f"{time}.jsonl"
        frame = written(path, learn, [*before, Changed(arms=["a"], time=time)])
        assert frame["reward"].to_list() == rewards
        assert frame["open_window"].to_list() == [reward is None for reward in rewards]
        assert [time is None for time in frame["answered_at"]] == [True, False]


def test_a_clock_that_jumps_ahead_closes_nothing_that_is_made_later(tmp_path: Path) -> None:
    jump = Changed(arms=["a"], time=1e6)
    rewards = [Reward(id=number, reward=1.0, time=20.0) for number in (1, 2)]
    frame = written(tmp_path / "log.jsonl", "at once", [decision(1, 0.0), jump, decision(2, 10.0), *rewards])
    assert frame["reward"].to_list() == [1.0, None]


def test_a_cancelled_decision_is_not_open(tmp_path: Path) -> None:
    cancel = Cancellation(id=1, time=5.0)
    frame = written(tmp_path / "log.jsonl", "at once", [decision(1, 0.0), decision(2, 0.0), cancel])
    assert frame["open_window"].to_list() == [False, True]


CHANGES: dict[str, tuple[list[dict[str, Any]], list[float | None], list[bool]]] = {
    "the same": ([{}], [0.25, 0.25, None], [False, False, True]),
    "longer for what is open": ([{"reward_window": 500.0}], [0.25, None, None], [False, True, True]),
    "shorter": ([{"reward_window": 20.0}], [0.25, 0.25, 0.25], [False, False, False]),
    "another default for what is open": ([{"default_reward": 0.75}], [0.25, 0.75, None], [False, False, True]),
    "no default for what is open": ([{"default_reward": None}], [0.25, None, None], [False, False, True]),
    "no window any more": (
        [{"reward_window": None, "default_reward": None, "learn": "at once"}],
        [0.25, None, None],
        [False, False, False],
    ),
    "longer and back": (
        [{"reward_window": 500.0}, {"reward_window": WINDOW}],
        [0.25, 0.25, None],
        [False, False, True],
    ),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("learn", ["at close", "at once"])
def test_the_window_of_a_decision_is_the_one_in_force_when_it_closes(tmp_path: Path, learn: Learn, name: str) -> None:
    """Three decisions stay silent: the first window closes before the settings change, the third never does."""
    settings, rewards, still_open = CHANGES[name]
    changes = [Changed(settings=one, time=WINDOW + 5) for one in settings]
    events = [decision(1, 0.0), decision(2, 50.0), *changes, decision(3, 160.0), Changed(arms=["a"], time=200.0)]
    frame = written(tmp_path / "log.jsonl", learn, events)
    assert frame["reward"].to_list() == rewards
    assert frame["open_window"].to_list() == still_open
    assert Log.read(tmp_path / "log.jsonl").more["waiting"].sum() == (
        2 if name == "no window any more" else sum(still_open)
    )


def test_rewards_that_are_in_count_when_the_window_is_over(tmp_path: Path) -> None:
    """Also where settings changed while they waited: a shorter window counts them sooner, none at once."""
    shorter = {"reward_window": 20.0}
    nothing = {"reward_window": None, "default_reward": None, "learn": "at once"}
    for settings, rewards in ({}, [None]), (shorter, [1.0]), (nothing, [1.0]):
        events = [decision(1, 0.0), Reward(id=1, reward=1.0, time=5.0), Changed(settings=settings, time=6.0)]
        frame = written(tmp_path / "log.jsonl", "at once", [*events, Changed(arms=["a"], time=30.0)])
        assert frame["reward"].to_list() == rewards
    answered = [decision(1, 0.0), Reward(id=1, reward=1.0, time=5.0), Changed(settings={"learn": "at once"}, time=6.0)]
    assert written(tmp_path / "log.jsonl", "at close", answered)["reward"].to_list() == [1.0]  # closed by its answer


def test_a_bandit_that_gets_windows_later(tmp_path: Path) -> None:
    """What was answered before counts, what was open has a window from then on."""
    made: list[Event] = [
        Created(arms=["a"], policy={}, settings=Settings(), time=START),
        decision(1, START),
        decision(2, START),
        Reward(id=1, reward=1.0, time=START),
        Changed(settings={"reward_window": WINDOW, "default_reward": 0.25}, time=START + 1),
        decision(3, START + 50),
        decision(4, START + 120),
    ]
    (tmp_path / "log.jsonl").write_bytes(as_lines(Head("0", 1, 1, START), made, 1))
    assert read_log(tmp_path / "log.jsonl")["reward"].to_list() == [1.0, 0.25, None, None]


def test_settings_that_cannot_be_are_refused_with_their_line(tmp_path: Path) -> None:
    for settings, said in (
        ({"reward_window": "a day"}, "line 3: reward_window must be a number, got 'a day'"),
        (
            {"default_reward": 0.5, "reward_window": None},
            "line 3: default_reward needs reward_window, got 0.5 without it",
        ),
    ):
        with pytest.raises(ValueError, match=said):
            written(tmp_path / "log.jsonl", "at once", [Changed(settings=settings, time=1.0)])
