"""What an event can be: every kind is written, read back, and refused where it is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rightarm as ra
from log_story import HEAD, START
from rightarm.logs import LogWriter, convert_log, read_log
from rightarm.logs.events import (
    KINDS,
    Cancellation,
    Changed,
    Correction,
    Created,
    Decision,
    Event,
    Expiry,
    LateReward,
    Observation,
    Prior,
    Reward,
)
from rightarm.logs.settings import Settings

ORIGIN = 2**52 + 12_345  # ids may begin anywhere


def decision(i: int, **more: Any) -> Decision[str]:
    plain: dict[str, Any] = {"id": ORIGIN + i, "arm": "red", "propensity": 0.5, "round": 1, "version": 0}
    return Decision(**plain | {"time": START + i} | more)


def about(kind: type[Event], i: int, **more: Any) -> Event:
    return kind(**{"id": ORIGIN + i, "time": START + 50 + i} | more)


RED_AND_BLUE: dict[str, Any] = {"arms": ["red", "blue"], "policy": {"name": "UCB"}}
EVERY: list[Event] = [
    Created(**RED_AND_BLUE, settings=Settings(reward_range=(-5, 5), control="red"), time=START, first_id=ORIGIN),
    Changed(arms=["red", "blue", True], time=START, reason="red is worse", prior=[Prior(True, 0.5, 1.5)], by="Ada"),
    decision(0, unit="visitor-17", meta={"page": "/start", "deep": [1, 2.5, None, {"ü": True}]}),
    decision(1, unit=17, group="holdout", allowed=["red", True]),
    decision(2, context=[1.0, 0.5], arm_features=[[0.25], [1.0], [2.0]], error=0.125),
    decision(3),
    decision(4),
    about(Reward, 0, reward=1.0),
    about(Reward, 1, reward=0.25, part=True),
    about(Reward, 1, reward=0.75, part=True),
    about(Reward, 2, reward=0.5, part=True),
    about(Cancellation, 3),
    Expiry(ids=[ORIGIN + 1, ORIGIN + 2], time=START + 60),
    Expiry(ids=[ORIGIN + 4], time=START + 61, reward=0.0),
    about(Correction, 0, reward=0.0),
    about(Correction, 3, reward=2.0),
    about(Correction, 0, reward=-1.0),
    about(LateReward, 4, reward=5.0),
    Observation(arm="blue", reward=0.5, time=START, context=[1.0], arm_features=[[2.0]]),
    Changed(policy={"b": [2]}, settings={"floor": 0.1}, status="paused", time=START),
]


def test_these_are_events_of_every_kind() -> None:
    assert {type(event) for event in EVERY} == set(KINDS.values())


def test_every_kind_comes_back_and_converts(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with LogWriter(path) as log:
        log.write(EVERY[:5])
        for event in EVERY[5:]:
            log.write([event])
        assert list(log) == EVERY
        assert list(log.since(15)) == EVERY[15:]
        assert list(map(type, log)) == list(map(type, EVERY))
        assert (log.events, log.last_id) == (len(EVERY), ORIGIN + 4)
    with LogWriter(path) as log:
        assert list(log) == EVERY
        assert (log.events, log.last_id) == (len(EVERY), ORIGIN + 4)
    packed = convert_log(path, tmp_path / "log.parquet")
    assert convert_log(packed, tmp_path / "again.jsonl").read_bytes() == path.read_bytes()
    assert read_log(packed).equals(read_log(path))


def test_the_frame_has_the_last_reward(tmp_path: Path) -> None:
    with LogWriter(tmp_path / "log.jsonl") as log:
        log.write(EVERY)
        log.write([decision(5), about(Reward, 5, reward=3.0, part=True)])
    frame = read_log(tmp_path / "log.jsonl")
    assert frame["reward"].to_list() == [-1.0, 0.75, 0.5, 2.0, 0.0, 3.0]
    assert frame["corrected"].to_list() == [True, False, False, True, False, False]
    assert frame["cancelled"].to_list() == [False, False, False, True, False, False]
    answered = [None if time is None else time.timestamp() - START for time in frame["answered_at"]]
    assert answered == [50, 51, 52, 53, None, 55]  # what expired keeps the time of its reward, silence has none
    assert frame["unit"].to_list() == ["visitor-17", "17", None, None, None, None]
    assert frame["group"].to_list() == [None, "holdout", None, None, None, None]
    assert frame["meta"][0] == '{"page": "/start", "deep": [1, 2.5, null, {"\\u00fc": true}]}'
    assert frame["error"].to_list() == [0.0, 0.0, 0.125, 0.0, 0.0, 0.0]
    assert ra.logs.to_obp(tmp_path / "log.jsonl")["reward"].tolist() == frame["reward"].to_list()


def test_columns_that_no_decision_has_are_left_out(tmp_path: Path) -> None:
    with LogWriter(tmp_path / "log.jsonl") as log:
        log.write([decision(0, unit="a"), decision(1)])
    assert read_log(tmp_path / "log.jsonl").columns[-2:] == ["allowed", "unit"]


WRONG: dict[str, tuple[Event, str]] = {
    "arm of half a pair": (decision(9, arm="sky \ud800"), "surrogates not allowed"),
    "unit": (decision(9, unit=1.5), "unit"),
    "propensity": (decision(9, propensity=0.0), "propensity"),
    "meta with a set": (decision(9, meta={"a": {object()}}), "a log can only hold what JSON can, got"),
    "among twice": (decision(9, allowed=["red", "red"]), r"allowed must have every arm once, got \['red', 'red'\]"),
    "arms twice": (Changed(arms=[1, 1.0], time=1.0), r"arms must have every arm once, got \[1, 1.0\]"),
    "an unknown setting": (Changed(settings={"flor": 0.1}, time=1.0), "flor is not a setting"),
    "a wrong setting": (Changed(settings={"floor": 2.0}, time=1.0), "floor must be from 0 to 1, got 2.0"),
    "correction of nothing": (about(Correction, 9, reward=1.0), "for a correction, got the unknown"),
    "correction too early": (about(Correction, 0, reward=1.0), "answered decision for a correction, .*, which waits"),
    "late too early": (about(LateReward, 0, reward=1.0), "answered decision for a late, .*, which waits"),
    "part after the end": (about(Reward, 1, reward=1.0, part=True), "without a reward, got .*, which is answered"),
    "expiry of nothing": (Expiry(ids=[], time=1.0), "ids"),
    "expiry twice": (Expiry(ids=[ORIGIN, ORIGIN], time=1.0), "which is answered"),
    "expiry unknown": (Expiry(ids=[ORIGIN, 5], time=1.0), "for an expiry, got the unknown 5"),
    "expiry of the answered": (Expiry(ids=[ORIGIN + 1], time=1.0), "which is answered"),
}


@pytest.mark.parametrize(("event", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_refused_and_leaves_no_trace(tmp_path: Path, event: Event, said: str) -> None:
    path = tmp_path / "log.jsonl"
    with LogWriter(path) as log:
        log.write([decision(0), decision(1), about(Reward, 1, reward=0.5)])
        before = path.read_bytes()
        for batch in ([event], [decision(7), event]):
            with pytest.raises((TypeError, ValueError), match=said):
                log.write(batch)
        assert path.read_bytes() == before
        assert log.events == 3


def test_a_batch_may_follow_itself(tmp_path: Path) -> None:
    """A decision, its rewards and its end in one write; and what cannot follow in that write is refused whole."""
    with LogWriter(tmp_path / "log.jsonl") as log:
        with pytest.raises(ValueError, match="which is answered"):
            log.write([decision(0), about(Reward, 0, reward=1.0), about(Cancellation, 0)])
        assert log.events == 0
        log.write([decision(0), about(Reward, 0, reward=1.0, part=True), about(Reward, 0, reward=2.0)])
    assert read_log(tmp_path / "log.jsonl")["reward"].to_list() == [2.0]


MALFORMED: dict[str, tuple[str, str]] = {  # an event of each kind, and the field that is wrong
    "created": ('"arms":["a"],"policy":{},"settings":{"floor":"a"}', r"settings\.floor must be float, got 'a'"),
    "created with settings": (
        '"arms":["a"],"policy":{},"settings":{"floor":2.0}',
        "settings floor must be from 0 to 1",
    ),
    "change": ('"status":"asleep"', "status Invalid (enum )?value 'asleep'"),
    "decision": ('"id":1,"arm":"a","propensity":0.5,"round":1.5,"version":0', "round must be int, got 1.5"),
    "reward": ('"id":1,"reward":"1"', "reward must be float, got '1'"),
    "reward without id": ('"reward":1.0', "Object missing required field `id`, got"),
    "cancel": ('"id":1,"reward":1.0', "Object contains unknown field `reward`, got"),
    "expiry": ('"ids":[1,-1]', r"ids\[1\] must be int >= 0, got -1"),
    "expiry of none": ('"ids":[]', r"ids must be array of length >= 1, got \[\]"),
    "correction": ('"id":1,"reward":null', "reward must be float, got None"),
    "late": ('"id":true,"reward":1.0', "id must be int, got True"),
    "observation": ('"arm":{},"reward":1.0', "arm must be bool | int | float | str, got {}"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_events_are_refused_with_path_line_and_field(tmp_path: Path, name: str) -> None:
    path, (fields, said) = tmp_path / "log.jsonl", MALFORMED[name]
    right = '{"n":1,"event":"change","arms":["a"],"time":1.0}\n'
    path.write_text(HEAD + right + f'{{"n":2,"event":"{name.split()[0]}",{fields},"time":1.0}}\n')
    for use in (read_log, LogWriter):
        with pytest.raises(ValueError, match=rf"log\.jsonl, line 3: {said}"):
            use(path)


def test_half_a_pair_in_a_file_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(HEAD + '{"n":1,"event":"change","arms":["a","b\\ud800"],"time":1.0}\n')
    with pytest.raises(ValueError, match=r"line 2: not a line of JSON, got .* surrogate"):
        read_log(path)
