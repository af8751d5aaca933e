"""Logs: what is written is read, whatever happens in between."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from operator import methodcaller
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightarm.logs import LogWriter, read_log, read_table
from rightarm.logs import log as logs
from rightarm.logs.log import Arm

START = 1_700_000_000.0
Write = Callable[[LogWriter], Any]


def story(events: int = 30) -> list[Write]:
    """A number of events: decisions, those of even id answered a little later, some others cancelled."""
    made: list[Write] = []
    for i in range(events):
        time, among = START + i / 4, ["ärm 0", "ärm 1", "ärm 2"] if i % 2 else None
        made.append(methodcaller("decision", i, f"ärm {i % 3}", 1 / (1 + i % 4), 1 + i, i, time, among))
        if i % 2:
            made.append(methodcaller("reward", i - 1, i / 8, time))
        if i % 10 == 3:
            made.append(methodcaller("cancel", i, time))
    return made[:events]


def play(log: LogWriter, events: list[Write]) -> None:
    for event in events:
        event(log)


def written(path: Path, events: list[Write], **options: Any) -> pl.DataFrame:
    with LogWriter(path, **options) as log:
        play(log, events)
    return read_log(path)


@pytest.fixture(params=["log.jsonl", "log.parquet"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)


def test_what_is_written_is_read(path: Path) -> None:
    with LogWriter(path, pack_every=2) as log:
        log.decision(7, "red", 0.5, round=1, version=0, time=START, among=["red", "blue"])
        log.decision(8, "blue", 1.0, round=1, version=0, time=START + 0.25)
        log.reward(8, -2.5, time=START + 1)
        log.decision(3, "red", 0.125, round=2, version=1, time=START + 2)
        log.cancel(3, time=START + 3)
        assert log.last_id == 8
    frame = read_log(path)
    assert frame.columns == [
        "id",
        "arm",
        "propensity",
        "reward",
        "round",
        "version",
        "asked",
        "told",
        "cancelled",
        "among",
    ]
    assert frame["id", "arm", "propensity", "reward", "round", "version", "cancelled"].rows() == [
        (7, "red", 0.5, None, 1, 0, False),
        (8, "blue", 1.0, -2.5, 1, 0, False),
        (3, "red", 0.125, None, 2, 1, True),
    ]
    assert frame["among"].to_list() == [["red", "blue"], None, None]
    assert frame["asked"].dt.epoch("us").to_list() == [int(1e6 * (START + s)) for s in (0, 0.25, 2)]
    assert frame["told"].dt.epoch("us").to_list() == [None, int(1e6 * (START + 1)), int(1e6 * (START + 3))]


def test_an_empty_log_has_its_columns(path: Path) -> None:
    LogWriter(path).close()
    assert read_log(path).shape == (0, 10)


def test_a_log_is_continued_wherever_it_stopped(path: Path, tmp_path: Path) -> None:
    events = story()
    whole = written(tmp_path / "whole.jsonl", events)
    for event in events:
        with LogWriter(path, pack_every=4) as log:
            event(log)
    assert read_log(path).equals(whole)
    if path.suffix == ".parquet":
        assert {file.name for file in path.iterdir()} >= {"000001.parquet", "000007.parquet", "000008.jsonl"}


def test_truncated_at_every_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events, path = story(), tmp_path / "log.jsonl"
    monkeypatch.setattr(os, "fsync", lambda _: None)  # what the disk keeps is not in question here
    written(path, events)
    content = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(content) if byte == ord("\n")]
    prefixes = [written(tmp_path / f"{n}.jsonl", events[:n]) for n in range(len(events) + 1)]
    assert len(ends) == len(events)
    for size in range(len(content) + 1):
        path.write_bytes(content[:size])
        left = sum(end <= size for end in ends)
        assert read_log(path).equals(prefixes[left]), size
        with LogWriter(path) as log:
            play(log, events[left : left + 1])
        assert path.read_bytes() == content[: ends[min(left, len(ends) - 1)]], size


def test_a_crash_between_part_and_tail_doubles_nothing(tmp_path: Path) -> None:
    path, events = tmp_path / "log.parquet", story()
    with LogWriter(path) as log:
        play(log, events[:10])
        tail = (path / "000001.jsonl").read_bytes()
        log.pack()
    before = read_log(path)
    (path / "000001.jsonl").write_bytes(tail)  # as if its removal had not been reached
    (path / "000002.parquet.new").write_bytes(b"half a part")
    assert read_log(path).equals(before)
    assert written(path, events[10:]).equals(written(tmp_path / "log.jsonl", events))
    assert {file.name for file in path.iterdir()} == {"000001.parquet", "000002.jsonl", "lock"}


def test_a_part_that_cannot_be_written_loses_no_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, events = tmp_path / "log.parquet", story()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with LogWriter(path, pack_every=20) as log:
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", full)
            with pytest.warns(UserWarning, match="could not be packed, and goes on in lines: .*No space left"):
                play(log, events)
        log.pack()
    assert (path / "000001.parquet").exists()
    assert read_log(path).equals(written(tmp_path / "log.jsonl", events))


@pytest.mark.parametrize("failing", ["write", "fsync"])
def test_an_event_that_cannot_be_written_leaves_no_trace(
    path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    write = os.write

    def half(file: int, data: memoryview) -> int:
        if len(data) < 20:
            raise OSError(28, "No space left on device")
        return write(file, data[: len(data) // 2])

    def fails(file: int) -> None:
        raise OSError(5, "Input/output error")

    with LogWriter(path, sync=True) as log:
        log.decision(1, "a", 0.5, 1, 0, START)
        with monkeypatch.context() as patch:
            patch.setattr(os, failing, half if failing == "write" else fails)
            with pytest.raises(OSError, match=r"No space left|Input/output"):
                log.decision(2, "a", 0.5, 1, 0, START)
        log.decision(2, "b", 0.5, 1, 0, START)
    assert read_log(path)["arm"].to_list() == ["a", "b"]


def test_a_second_writer_is_refused(path: Path) -> None:
    with LogWriter(path) as log:
        with pytest.raises(
            BlockingIOError,
            match=r"another writer has this log open, in this process or another; close that first: .*log\.",
        ):
            LogWriter(path)
        log.decision(1, "a", 0.5, 1, 0, START)
        log.pack()
        with pytest.raises(BlockingIOError, match="another writer"):
            LogWriter(path)
        assert read_log(path)["id"].to_list() == [1]  # readers are welcome
    with LogWriter(path) as log:
        log.reward(1, 1.0, START)
    with pytest.raises(ValueError, match="is closed"):
        log.cancel(1, START)


def test_a_forked_process_does_not_write(path: Path) -> None:
    with LogWriter(path) as log:
        log._process += 1  # as seen from a child
        with pytest.raises(ValueError, match="open it after forking"):
            log.decision(1, "a", 0.5, 1, 0, START)


def test_threads_write_whole_lines(path: Path) -> None:
    with LogWriter(path, pack_every=50) as log:

        def write(first: int) -> None:
            for i in range(first, 200, 4):
                log.decision(i, i % 3, 0.5, 1, 0, START)
                log.reward(i, float(i), START)

        threads = [threading.Thread(target=write, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    frame = read_log(path).sort("id")
    assert frame["id"].to_list() == list(range(200))
    assert frame["reward"].to_list() == list(range(200))


WRITER = """
import sys
from rightarm.logs import LogWriter
log = LogWriter(sys.argv[1], sync=True, pack_every=7)
first = 0 if log.last_id is None else log.last_id + 1
for i in range(first, first + 100_000):
    log.decision(i, "arm", 0.5, 1, 0, 1.0)
    print("d", i, flush=True)
    log.reward(i, 1.0, 2.0)
    print("r", i, flush=True)
"""


def test_nothing_acknowledged_is_lost_by_kill_9(path: Path) -> None:
    moments, decided, rewarded = random.Random(5), set[int](), set[int]()
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(moments.randrange(1, 120))]
        process.kill()
        said += process.stdout.read().splitlines(keepends=True)
        process.wait()
        process.stdout.close()
        for kind, number in (line.split() for line in said if line.endswith("\n")):
            (decided if kind == "d" else rewarded).add(int(number))
    frame = read_log(path)
    assert len(decided) > 20
    assert decided <= set(frame["id"])
    assert rewarded <= set(frame.filter(pl.col("reward").is_not_null())["id"])
    assert len(frame) <= len(decided) + 3  # at most one a kill is there that nobody was told of


@given(st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=60))
def test_a_set_of_numbers(steps: list[tuple[int, bool]]) -> None:
    numbers, plain = logs._Numbers(), set[int]()
    for number, add in steps:
        if add:
            numbers.add(number)
            plain.add(number)
        assert (number in numbers) == (number in plain)
    assert {n for n in range(41) if n in numbers} == plain


def test_numbers_in_a_row_need_no_memory() -> None:
    numbers = logs._Numbers()
    for n in (3, 2, 4, 6, 5, 7, 1):
        numbers.add(n)
    assert (numbers.low, numbers.high, numbers.others) == (1, 8, set())


NAMES: dict[str, tuple[list[Arm], list[Any]]] = {
    "numbers": ([2, 1], [2, 1]),
    "prices": ([1, 2.5], [1.0, 2.5]),
    "truth": ([True, False], [True, False]),
    "mixed": (["1", 1, True], ['"1"', "1", "true"]),
}


@pytest.mark.parametrize(("arms", "read"), NAMES.values(), ids=NAMES)
def test_arms_of_any_type(path: Path, arms: list[Arm], read: list[Any]) -> None:
    with LogWriter(path) as log:
        for i, arm in enumerate(arms):
            log.decision(i, arm, 0.5, 1, 0, START, among=arms)
        log.pack()
    frame = read_log(path)
    assert frame["arm"].to_list() == read
    assert frame["among"].to_list() == [read] * len(arms)


WRONG_CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "propensity 0": ({"propensity": 0.0}, "propensity must be above 0 and at most 1, got 0.0"),
    "propensity 1.5": ({"propensity": 1.5}, "propensity must be above 0 and at most 1, got 1.5"),
    "propensity nan": ({"propensity": float("nan")}, "propensity must be finite, got nan"),
    "id": ({"id": -1}, "id must be a whole number from 0 .*, got -1"),
    "id text": ({"id": "1"}, "id must be a whole number from 0 .*, got '1'"),
    "arm": ({"arm": None}, "arm must be a text, a number, true or false, got None"),
    "arm inf": ({"arm": float("inf")}, "arm must be a finite number .*, got inf"),
    "among": ({"among": ["b"]}, r"arm must be among \['b'\], got 'a'"),
    "true is not 1": ({"arm": True, "among": [1]}, r"arm must be among \[1\], got True"),
    "time": ({"time": 1e12}, "time must be in seconds since 1970, .*, got 1000000000000.0"),
    "twice": ({"id": 1}, "id must be a new one for every decision, got 1 again"),
}


@pytest.mark.parametrize(("change", "said"), WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_wrong_decisions_are_refused(path: Path, change: dict[str, Any], said: str) -> None:
    right: dict[str, Any] = {"id": 2, "arm": "a", "propensity": 0.5, "round": 1, "version": 0, "time": START}
    with LogWriter(path) as log:
        log.decision(1, "a", 0.5, 1, 0, START)
        with pytest.raises((ValueError, TypeError), match=said):
            log.decision(**(right | change))
        log.decision(**right)
    assert read_log(path)["id"].to_list() == [1, 2]


def test_wrong_rewards_are_refused(path: Path) -> None:
    with LogWriter(path) as log:
        log.decision(1, "a", 0.5, 1, 0, START)
        with pytest.raises(ValueError, match="reward must be finite, got inf"):
            log.reward(1, float("inf"), START)
        with pytest.raises(ValueError, match="for a reward, got the unknown 2"):
            log.reward(2, 1.0, START)
        log.reward(1, 1.0, START)
        with pytest.raises(ValueError, match="without a reward, got 1, which is answered"):
            log.cancel(1, START)
    assert read_log(path)["reward"].to_list() == [1.0]


GOOD = {"event": "decision", "id": 1, "arm": "a", "propensity": 0.5, "round": 1, "version": 0, "time": START}
WRONG_LINES: dict[str, tuple[str, str]] = {
    "json": ('{"event": ', 'line 2: not a line of JSON, got b\'{"event": '),
    "kind": (
        '{"event": "end"}',
        "line 2: an event must be one of decision, reward, cancel, observation, arms, got {'event': 'end'}",
    ),
    "field": ('{"event": "reward", "id": 1}', "line 2: the reward lacks reward, time"),
    "nan": ('{"event": "reward", "id": 1, "reward": NaN, "time": 1}', "line 2: reward must be finite, got nan"),
    "unknown": ('{"event": "cancel", "id": 5, "time": 1}', "line 2: id must be .* for a cancel, got the unknown 5"),
    "twice": (json.dumps(GOOD), "line 2: id must be a new one for every decision, got 1 again"),
    "propensity": (json.dumps(GOOD | {"id": 2, "propensity": 2}), "line 2: propensity must be above 0 .*, got 2.0"),
}


@pytest.mark.parametrize(("line", "said"), WRONG_LINES.values(), ids=WRONG_LINES)
def test_errors_name_line_and_value(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(GOOD) + "\n" + line + "\n")
    with pytest.raises(ValueError, match=said):
        read_log(path)
    with pytest.raises(ValueError, match=said):
        LogWriter(path)  # a wrong log is not continued
    path.write_text(json.dumps(GOOD) + "\n")
    LogWriter(path).close()  # and the failure kept no lock


def test_a_folder_that_is_no_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no.parquet").mkdir()
    with pytest.raises(ValueError, match="is not a log of rightarm"):
        read_log(tmp_path / "no.parquet")
    with pytest.raises(ValueError, match=r"path must end in \.jsonl or \.parquet .*got .*/log\.csv"):
        read_log(tmp_path / "log.csv")
    with pytest.raises(FileNotFoundError):
        read_log(tmp_path / "nothing.jsonl")


def test_tables_of_others(tmp_path: Path) -> None:
    table = pl.DataFrame({"item": [3, 5], "p": [0.5, 0.25], "click": [1, None], "other": ["x", "y"]})
    table.write_csv(tmp_path / "log.csv")
    table.write_parquet(tmp_path / "log.parquet")
    for name in ("log.csv", "log.parquet"):
        read = read_table(tmp_path / name, arm="item", propensity="p", reward="click")
        assert read.rows() == [(1, 3, 0.5, 1.0, 1), (2, 5, 0.25, None, 2)]
        assert read.columns == ["id", "arm", "propensity", "reward", "round"]
    with pytest.raises(ValueError, match=r"arm must be a column of .*, item, p, click, other, got 'arm'"):
        read_table(tmp_path / "log.csv", propensity="p", reward="click")
    with pytest.raises(ValueError, match=r"path must end in .csv or .parquet, got log.txt"):
        read_table("log.txt")


def test_errors_of_tables_name_the_line(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("arm,propensity,reward\na,0.5,\nb,0.5,inf\n")
    with pytest.raises(ValueError, match=r"log.csv, line 3: reward must be finite, got inf"):
        read_table(path)
    path.write_text("arm,propensity,reward\na,0.5,1\nb,0,1\n")
    with pytest.raises(ValueError, match=r"log.csv, line 3: propensity must be above 0 and at most 1, got 0.0"):
        read_table(path)
    path.write_text("arm,propensity,reward\n,0.5,1\n")
    with pytest.raises(ValueError, match=r"log.csv, line 2: arm must be a text, a number, true or false, got None"):
        read_table(path)
