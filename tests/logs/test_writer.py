"""Logs are written whole or not at all, by one writer, and continued after any crash."""

from __future__ import annotations

import contextlib
import os
import random
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from few import few
from log_story import START, play, story, written
from rightarm.logs import LogWriter, read_log


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


def test_what_is_written_is_read(path: Path) -> None:
    with LogWriter(path) as log:
        log.decision(7, "red", 0.5, round=1, version=0, time=START, allowed=["red", "blue"])
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
        "decided_at",
        "answered_at",
        "cancelled",
        "corrected",
        "allowed",
    ]
    assert frame["id", "arm", "propensity", "reward", "round", "version", "cancelled"].rows() == [
        (7, "red", 0.5, None, 1, 0, False),
        (8, "blue", 1.0, -2.5, 1, 0, False),
        (3, "red", 0.125, None, 2, 1, True),
    ]
    assert frame["allowed"].to_list() == [["red", "blue"], None, None]
    assert frame["decided_at"].dt.epoch("us").to_list() == [int(1e6 * (START + s)) for s in (0, 0.25, 2)]
    assert frame["answered_at"].dt.epoch("us").to_list() == [None, int(1e6 * (START + 1)), int(1e6 * (START + 3))]


def test_an_empty_log_has_its_columns(path: Path) -> None:
    LogWriter(path).close()
    assert read_log(path).shape == (0, 11)


def test_a_log_is_continued_wherever_it_stopped(path: Path, tmp_path: Path) -> None:
    events = story()
    whole = written(tmp_path / "whole.jsonl", events)
    for event in events:
        with LogWriter(path) as log:
            event(log)
    assert read_log(path).equals(whole)


@pytest.mark.parametrize("step", few(1, [7, 1]))
def test_truncated_at_any_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    events, path = story(), tmp_path / "log.jsonl"
    monkeypatch.setattr(os, "fsync", lambda _: None)  # what the disk keeps is not in question here
    written(path, events)
    content = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(content) if byte == ord("\n")]
    prefixes = [written(tmp_path / f"{n}.jsonl", events[:n]) for n in range(len(events) + 1)]
    assert len(ends) == 1 + len(events)  # the first line is the head
    for size in range(0, len(content) + 1, step):
        path.write_bytes(content[:size])
        left = max(0, sum(end <= size for end in ends) - 1)
        assert read_log(path).equals(prefixes[left]), size
        with LogWriter(path) as log:
            play(log, events[left : left + 1])
        here = content[: ends[min(left + 1, len(ends) - 1)]]
        if size < ends[0]:  # the head was torn: a new log, with an identity of its own
            assert path.read_bytes().splitlines()[1:] == here.splitlines()[1:], size
        else:
            assert path.read_bytes() == here, size


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


FORKING = """
import os, sys
from rightarm.logs import LogWriter
log = LogWriter(sys.argv[1])
log.decision(1, "a", 0.5, 1, 0, 1.0)
ready, tell = os.pipe()
ended, end = os.pipe()
child = os.fork()
if child == 0:
    try:
        log.decision(2, "a", 0.5, 1, 0, 1.0)
    except ValueError as error:
        print(log.events, error, flush=True)
    del log
    os.write(tell, b"1")
    os.read(ended, 1)
    os._exit(0)
os.read(ready, 1)  # the child lives, and has let go of what it inherited
log.decision(2, "b", 0.5, 1, 0, 1.0)
log.close()
with LogWriter(sys.argv[1]) as again:
    again.reward(2, 1.0, 1.0)
    print(again.events, flush=True)
os.write(end, b"1")
os.waitpid(child, 0)
"""


def test_a_forked_process_does_not_keep_the_log(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FORKING, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said, events = done.stdout.splitlines()
    assert re.fullmatch(r"1 the log .*log\.jsonl was opened by process \d+; open it after forking", said)
    assert events == "3"
    assert read_log(path)["arm"].to_list() == ["a", "b"]


def test_threads_write_whole_lines(path: Path) -> None:
    with LogWriter(path) as log:

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
log = LogWriter(sys.argv[1], sync=True)
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


WRONG_CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "propensity 0": ({"propensity": 0.0}, r"^propensity must be float > 0\.0, got 0\.0$"),
    "propensity 1.5": ({"propensity": 1.5}, r"^propensity must be float <= 1\.0, got 1\.5$"),
    "propensity nan": ({"propensity": float("nan")}, "^propensity must be finite, got nan$"),
    "id": ({"id": -1}, "^id must be int >= 0, got -1$"),
    "id text": ({"id": "1"}, "^id must be int, got '1'$"),
    "arm": ({"arm": None}, r"^arm must be bool \| int \| float \| str, got None$"),
    "arm inf": ({"arm": float("inf")}, "^arm must be finite, got inf$"),
    "allowed": ({"allowed": ["b"]}, r"arm must be among \['b'\], got 'a'"),
    "true is not 1": ({"arm": True, "allowed": [1]}, r"arm must be among \[1\], got True"),
    "time": ({"time": 1e12}, "^time must be float .*, got 1000000000000.0; times are in seconds since 1970$"),
    "twice": ({"id": 1}, "id must be a new one for every decision, got 1 again"),
    "meta": ({"meta": {"a": {1, 2}.union}}, "^event must be what JSON can keep: "),
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


def test_a_log_in_parquet_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"path must end in \.jsonl, got .*log\.parquet; convert_log makes"):
        LogWriter(tmp_path / "log.parquet")
    with pytest.raises(ValueError, match=r"path must end in \.jsonl, got .*log\.csv$"):
        LogWriter(tmp_path / "log.csv")
    assert not list(tmp_path.iterdir())


def test_a_closed_writer_touches_no_file(tmp_path: Path) -> None:
    """Its descriptor may be that of another file by then, and a write that was interrupted is none of its concern."""
    log = LogWriter(tmp_path / "log.jsonl")
    log.decision(1, "red", 0.5, 1, 0, 1.0)
    note = log._unfinished
    real = os.write

    def interrupted(file: int, data: Any) -> int:
        real(file, bytes(data)[:5])
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            log.decision(2, "red", 0.5, 1, 0, 1.0)
    assert note is None
    assert log._unfinished is not None
    log._held.close()  # as an interrupted close() leaves it
    other = tmp_path / "other"
    other.write_bytes(b"x" * 10_000)
    with other.open("r+b"):
        for use in (log.flush, log.close):
            with contextlib.suppress(ValueError):
                use()
    assert other.stat().st_size == 10_000
