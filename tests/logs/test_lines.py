"""A log's head and the numbers of its events: what is missing, doubled or misplaced is noticed, and where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from log_story import START, play, story
from rightarm.logs import LogWriter, read_log


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with LogWriter(tmp_path / "log.jsonl") as log:
        play(log, story())
    return tmp_path / "log.jsonl"


def test_a_log_begins_with_a_head_and_numbers_its_events(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    identity = lines[0].pop("log")
    assert len(identity) == 32
    assert lines[0] == {
        "event": "head",
        "format": "rightarm log",
        "version": 4,
        "part": 1,
        "first": 1,
        "time": START,
    }
    assert [line["n"] for line in lines[1:]] == list(range(1, 31))
    with LogWriter(path) as log:
        assert (log.identity, log.events) == (identity, 30)
        log.observation("ärm 1", 0.5, START)
        assert log.events == 31
    with LogWriter(path.with_name("other.jsonl")) as other:
        assert other.identity not in (None, identity)


def changed(lines: list[str], how: str) -> list[str]:
    match how:
        case "one missing":
            return lines[:8] + lines[9:]
        case "two missing":
            return lines[:8] + lines[10:]
        case "doubled":
            return [*lines[:8], lines[7], *lines[8:]]
        case "swapped":
            return [*lines[:8], lines[9], lines[8], *lines[10:]]
        case "head missing":
            return lines[1:]
        case "head twice":
            return [lines[0], *lines]
        case "number missing":
            return [*lines[:8], lines[8].replace('"n":8,', ""), *lines[9:]]
        case _:
            return [lines[0].replace('"version":4', '"version":5'), *lines[1:]]


WRONG = {
    "one missing": "line 9: event 8 is missing$",
    "two missing": "line 9: events 8 to 9 are missing$",
    "doubled": "line 9: event 7 is doubled or misplaced; 8 comes next",
    "swapped": "line 9: event 8 is missing$",
    "head missing": "line 1: a part of a log must begin with a head, got",
    "head twice": "line 2: a head must be the first line of a file",
    "number missing": "line 9: a line must begin with the number of its event",
    "newer": "line 1: format and version must be 'rightarm log' and 4, got 'rightarm log' and 5",
}


@pytest.mark.parametrize("how", WRONG)
def test_lines_that_are_missing_or_misplaced_are_noticed(path: Path, how: str) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(changed(lines, how)))
    for use in (read_log, LogWriter):
        with pytest.raises(ValueError, match=WRONG[how]):
            use(path)
    path.write_text("".join(lines))
    LogWriter(path).close()
