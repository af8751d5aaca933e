"""What an event can be: every kind is written, read back, and refused where it is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rightarm as ra
from log_story import HEAD, START
from rightarm.logs import LogWriter, convert_log, read_log

ORIGIN = 2**52 + 12_345  # ids may begin anywhere


def decision(i: int, **more: Any) -> dict[str, Any]:
    plain = {"event": "decision", "id": ORIGIN + i, "arm": "red", "propensity": 0.5, "round": 1, "version": 0}
    return plain | {"time": START + i} | more


def about(kind: str, i: int, **more: Any) -> dict[str, Any]:
    return {"event": kind, "id": ORIGIN + i, "time": START + 50 + i} | more


EVERY: list[dict[str, Any]] = [
    {"event": "settings", "settings": {"reward_range": [0, 1], "control": "red"}, "time": START},
    {"event": "arms", "arms": ["red", "blue"], "time": START, "reason": "red is worse", "prior": [{"pulls": 1.5}, {}]},
    decision(0, unit="visitor-17", meta={"page": "/start", "deep": [1, 2.5, None, {"ü": True}]}),
    decision(1, unit=17, group="holdout"),
    decision(2),
    decision(3),
    decision(4),
    about("reward", 0, reward=1.0),
    about("reward", 1, reward=0.25, part=True),
    about("reward", 1, reward=0.75, part=True),
    about("reward", 2, reward=0.5, part=True),
    about("cancel", 3),
    {"event": "expiry", "ids": [ORIGIN + 1, ORIGIN + 2], "time": START + 60},
    {"event": "expiry", "ids": [ORIGIN + 4], "time": START + 61, "reward": 0.0},
    about("correction", 0, reward=0.0),
    about("correction", 3, reward=2.0),
    about("correction", 0, reward=-1.0),
    {"event": "observation", "arm": "blue", "reward": 0.5, "time": START},
    {"event": "policy", "before": {"a": 1}, "after": {"b": [2]}, "time": START},
]


def test_every_kind_comes_back_and_converts(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with LogWriter(path) as log:
        log.write(EVERY[:5])
        for event in EVERY[5:]:
            log.write([event])
        assert list(log) == EVERY
        assert list(log.since(15)) == EVERY[15:]
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
        log.write([decision(5), about("reward", 5, reward=3.0, part=True)])
    frame = read_log(tmp_path / "log.jsonl")
    assert frame["reward"].to_list() == [-1.0, 0.75, 0.5, 2.0, 0.0, 3.0]
    assert frame["corrected"].to_list() == [True, False, False, True, False, False]
    assert frame["cancelled"].to_list() == [False, False, False, True, False, False]
    told = [None if told is None else told.timestamp() - START for told in frame["told"]]
    assert told == [50, 51, 52, 53, None, 55]  # what expired keeps the time of its reward, silence has none
    assert frame["unit"].to_list() == ["visitor-17", "17", None, None, None, None]
    assert frame["group"].to_list() == [None, "holdout", None, None, None, None]
    assert frame["meta"][0] == '{"page": "/start", "deep": [1, 2.5, null, {"\\u00fc": true}]}'
    assert ra.to_obp(tmp_path / "log.jsonl")["reward"].tolist() == frame["reward"].to_list()


def test_columns_that_no_decision_has_are_left_out(tmp_path: Path) -> None:
    with LogWriter(tmp_path / "log.jsonl") as log:
        log.write([decision(0, unit="a"), decision(1)])
    assert read_log(tmp_path / "log.jsonl").columns[-2:] == ["among", "unit"]


HALF = "sky \ud800"
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "arm of half a pair": (decision(9, arm=HALF), r"arm must be a text that UTF-8 can encode, got 'sky \\ud800'"),
    "unit of half a pair": (decision(9, unit=HALF), r"unit must be a text that UTF-8 can encode, got"),
    "meta of half a pair": (decision(9, meta={"a": [HALF]}), "meta must be JSON, got .*surrogates not allowed"),
    "meta with NaN": (decision(9, meta={"a": float("nan")}), "meta must be JSON, got {'a': nan}: Out of range"),
    "meta with a set": (decision(9, meta={"a": {1}}), "meta must be JSON, got .*set is not JSON serializable"),
    "meta with a tuple": (decision(9, meta={"a": (1, 2)}), "meta must be JSON, with texts for keys and lists for seq"),
    "meta with a number as key": (decision(9, meta={1: 2}), "meta must be JSON, with texts for keys and lists for seq"),
    "meta that is no object": (decision(9, meta=[1]), r"meta must be a JSON object, got \[1\]"),
    "meta too large": (decision(9, meta={"a": "x" * 10_000}), "meta must be at most 10,000 bytes of JSON, got 10,009"),
    "unit": (decision(9, unit=1.5), "unit must be a whole number from 0 .*, got 1.5"),
    "group": (decision(9, group=1), "group must be a text, got 1"),
    "among twice": (decision(9, among=["red", "red"]), r"among must have every arm once, got \['red', 'red'\]"),
    "arms twice": ({"event": "arms", "arms": [1, 1.0], "time": 1.0}, r"arms must have every arm once, got \[1, 1.0\]"),
    "settings too large": (
        {"event": "settings", "settings": {"a": "x" * 100_000}, "time": 1.0},
        "at most 100,000 bytes",
    ),
    "settings": ({"event": "settings", "settings": 5, "time": 1.0}, "settings must be a JSON object, got 5"),
    "reason": ({"event": "arms", "arms": [1], "reason": 5, "time": 1.0}, "reason must be a text, got 5"),
    "correction of nothing": (about("correction", 9, reward=1.0), "for a correction, got the unknown"),
    "correction too early": (about("correction", 0, reward=1.0), "answered decision for a correction, .*, which waits"),
    "part false": (about("reward", 0, reward=1.0, part=False), "part must be true where it is given, got False"),
    "part after the end": (about("reward", 1, reward=1.0, part=True), "without a reward, got .*, which is answered"),
    "expiry of nothing": ({"event": "expiry", "ids": [], "time": 1.0}, r"ids must be a list of ids, got \[\]"),
    "expiry of one": ({"event": "expiry", "ids": 3, "time": 1.0}, "ids must be a list of ids, got 3"),
    "expiry twice": ({"event": "expiry", "ids": [ORIGIN, ORIGIN], "time": 1.0}, "ids must differ"),
    "expiry unknown": ({"event": "expiry", "ids": [ORIGIN, 5], "time": 1.0}, "for an expiry, got the unknown 5"),
    "expiry of the answered": ({"event": "expiry", "ids": [ORIGIN + 1], "time": 1.0}, "which is answered"),
    "a head": ({"event": "head"}, "an event must be one of decision"),
    "no kind": ({"event": ["decision"]}, "an event must be one of decision"),
}


@pytest.mark.parametrize(("event", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_refused_and_leaves_no_trace(tmp_path: Path, event: dict[str, Any], said: str) -> None:
    path = tmp_path / "log.jsonl"
    with LogWriter(path) as log:
        log.write([decision(0), decision(1), about("reward", 1, reward=0.5)])
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
            log.write([decision(0), about("reward", 0, reward=1.0), about("cancel", 0)])
        assert log.events == 0
        log.write([decision(0), about("reward", 0, reward=1.0, part=True), about("reward", 0, reward=2.0)])
    assert read_log(tmp_path / "log.jsonl")["reward"].to_list() == [2.0]


def test_half_a_pair_in_a_file_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(HEAD + '{"event":"arms","n":1,"arms":["a","b\\ud800"],"time":1.0}\n')
    with pytest.raises(ValueError, match=r"line 2: arms\[1\] must be a text that UTF-8 can encode, got 'b\\ud800'"):
        read_log(path)
