"""Logs in several files: written by size or day, read as one, and refused where one is missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rightarm as ra
from log_story import START, play, story
from rightarm.logs import LogWriter, convert_log, read_log
from rightarm.logs.journals import rotation_from

DAY = 86_400.0


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("log."))


def rotated(path: Path, events: int = 60) -> Path:
    with LogWriter(path, rotate="2kB") as log:
        play(log, story(events))
    return path


def test_parts_by_size_are_read_as_one(tmp_path: Path) -> None:
    path = rotated(tmp_path / "log.jsonl")
    (tmp_path / "whole").mkdir()
    with LogWriter(tmp_path / "whole" / "log.jsonl") as log:
        play(log, story(60))
        events = list(log)
    found = names(tmp_path)
    assert found == ["log.0002.jsonl", "log.0003.jsonl", "log.0004.jsonl", "log.jsonl"]
    assert all(500 < (tmp_path / name).stat().st_size <= 2_000 for name in found)
    heads = [json.loads((tmp_path / name).read_text().splitlines()[0]) for name in [found[-1], *found[:-1]]]
    assert [head["part"] for head in heads] == [1, 2, 3, 4]
    assert len({head["log"] for head in heads}) == 1
    assert [head["first"] for head in heads][:2] == [1, len(path.read_text().splitlines())]
    assert read_log(path).equals(read_log(tmp_path / "whole" / "log.jsonl"))
    with LogWriter(path) as log:  # goes on in the last part, whatever its size
        assert (log.identity, log.events, log.last_id) == (heads[0]["log"], 60, read_log(path)["id"].max())
        assert list(log) == events
        for after in (0, 1, 20, 59, 60):
            assert list(log.since(after)) == events[after:]
        log.observation("red", 1.0, START)
    assert names(tmp_path) == found
    with LogWriter(path, rotate="2kB") as log:
        assert log.events == 61
        play(log, [lambda log: log.observation("red", 1.0, START)] * 30)
    assert len(names(tmp_path)) > len(found)
    assert all((tmp_path / name).stat().st_size <= 2_000 for name in names(tmp_path))


def test_everything_that_reads_logs_reads_parts(tmp_path: Path) -> None:
    path = rotated(tmp_path / "log.jsonl")
    whole = convert_log(path, tmp_path / "one.jsonl")
    packed = convert_log(path, tmp_path / "one.parquet")
    assert convert_log(packed, tmp_path / "again.jsonl").read_bytes() == whole.read_bytes()
    assert read_log(whole).equals(read_log(path))
    with LogWriter(whole) as one, LogWriter(path) as parts:
        assert one.identity == parts.identity
    assert ra.logs.to_obp(path)["reward"].tolist() == ra.logs.to_obp(whole)["reward"].tolist()
    assert ra.logs.to_vw(path, tmp_path / "a.txt").read_text() == ra.logs.to_vw(whole, tmp_path / "b.txt").read_text()
    with pytest.warns(UserWarning, match="effective sample size"):
        assert ra.evaluate(path, "uniform", reward_range=(0, 10)) == ra.evaluate(whole, "uniform", reward_range=(0, 10))


def test_a_new_day_begins_a_new_part(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    for times in ([0.0, 86_399.0], [86_400.0, 86_399.0, 90_000.0], [10 * DAY]):
        with LogWriter(path, rotate="day") as log:
            for time in times:
                log.observation("red", 1.0, time)
    parts = [path, *(tmp_path / f"log.000{part}.jsonl" for part in (2, 3))]
    read = [[json.loads(line)["time"] for line in part.read_text().splitlines()[1:]] for part in parts]
    assert read == [[0.0, 86_399.0], [86_400.0, 86_399.0, 90_000.0], [10 * DAY]]
    assert names(tmp_path) == ["log.0002.jsonl", "log.0003.jsonl", "log.jsonl"]


def replace_part(path: Path) -> None:
    part = path.with_name("log.0002.jsonl")
    part.write_text(part.read_text().replace('"log":"', '"log":"0', 1))


SPOILED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "one missing": (
        lambda path: path.with_name("log.0002.jsonl").unlink(),
        r"part 2 of the log .*log\.jsonl is missing: there is no .*log\.0002\.jsonl",
    ),
    "the first missing": (Path.unlink, r"No such file|log\.0002\.jsonl, line 1: part 1 of the log is empty"),
    "another log": (replace_part, r"log\.0002\.jsonl, line 1: log must be .* in all parts, got 0"),
    "two exchanged": (
        lambda path: path.with_name("log.0003.jsonl").rename(path.with_name("log.0002.jsonl")),
        r"part 3 of the log",
    ),
    "lines missing at an end": (
        lambda path: path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1])),
        r"log\.0002\.jsonl, line 1: event \d+ is missing",
    ),
}


@pytest.mark.parametrize(("spoil", "said"), SPOILED.values(), ids=SPOILED)
def test_what_is_missing_is_noticed(tmp_path: Path, spoil: Callable[[Path], Any], said: str) -> None:
    path = rotated(tmp_path / "log.jsonl")
    spoil(path)
    for use in (read_log, LogWriter):
        with pytest.raises((ValueError, FileNotFoundError), match=said):
            use(path)


def test_a_part_is_not_read_by_itself(tmp_path: Path) -> None:
    rotated(tmp_path / "log.jsonl")
    with pytest.raises(
        ValueError, match=r"line 1: part 1 of the log is missing, got part 2; a log is read by the path"
    ):
        read_log(tmp_path / "log.0002.jsonl")


def test_a_part_that_a_crash_left_empty_is_gone_on_with(tmp_path: Path) -> None:
    path = rotated(tmp_path / "log.jsonl")
    before, found = read_log(path), names(tmp_path)
    for left in (b"", b'{"event":"head","for'):
        path.with_name("log.0005.jsonl").write_bytes(left)
        assert read_log(path).equals(before)
    with LogWriter(path, rotate="2kB") as log:
        log.observation("red", 1.0, START)
    assert names(tmp_path) == sorted([*found, "log.0005.jsonl"])
    with LogWriter(path) as log:
        assert log.events == 61


@pytest.mark.parametrize("wrong", ["", "week", "100", "100mb", "0MB", "-1MB", "1e3MB", 100, True, 1.5])
def test_wrong_rotations(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"rotate must be 'day' or a size such as '500kB', .*, got "):
        LogWriter(tmp_path / "log.jsonl", rotate=wrong)
    assert names(tmp_path) == []


def test_sizes() -> None:
    assert [rotation_from(text).size for text in ("1kB", "100MB", "2.5 GB")] == [1e3, 1e8, 2.5e9]
