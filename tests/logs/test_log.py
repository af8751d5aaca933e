"""What a log holds, counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from log_story import START
from rightarm.cli import app
from rightarm.logs import Log, LogWriter, convert_log


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with LogWriter(tmp_path / "log.jsonl", rotate="1kB") as log:
        log.arms(["red", "blue"], START)
        for i in range(12):
            log.decision(i, "red" if i % 3 else "blue", 0.5, 1, 0, START + i)
        log.reward(0, 1.0, START + 60)
        log.reward(1, 0.5, START + 50, part=True)
        log.cancel(2, START + 20)
        log.expiry([3, 4], START + 20, reward=0.0)
        log.expiry([5], START + 20)
        log.correction(2, 1.0, START + 20)
    return tmp_path / "log.jsonl"


def test_what_a_log_holds(path: Path) -> None:
    found = Log.read(path)
    counts = {"change": 1, "decision": 12, "reward": 2, "cancel": 1, "expiry": 2, "correction": 1}
    assert found.events == counts
    assert found.span == (START, START + 60)
    assert found.active == ["red", "blue"]
    assert found.arms.tolist() == [found.names.index("red" if i % 3 else "blue") for i in range(12)]
    assert [found.more[name].sum() for name in ("waiting", "cancelled", "corrected")] == [7, 1, 1]
    assert found.parts == len(list(path.parent.iterdir())) > 1
    with LogWriter(path) as log:
        assert found.identity == log.identity
    packed = Log.read(convert_log(path, path.with_suffix(".parquet")))
    assert (packed.identity, packed.events, packed.parts) == (found.identity, counts, 1)
    assert str(packed).split("events")[1] == str(found).split("events")[1]


def test_the_command(path: Path) -> None:
    done = CliRunner().invoke(app, ["log", str(path)])
    assert done.exit_code == 0, done.output
    for line in (
        "  times, UTC  2023-11-14 22:13:20 to 2023-11-14 22:14:20\n",
        "  arms now    'red', 'blue'\n",
        "  chosen      'red' 8, 'blue' 4\n",
        "  decisions   5 with a reward, 7 waiting, 1 cancelled, 1 corrected\n",
    ):
        assert line in done.output
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3] + lines[4:]))
    done = CliRunner().invoke(app, ["log", str(path)])
    assert done.exit_code == 2
    assert "line 4: event 3 is missing" in done.output


def test_an_empty_log(tmp_path: Path) -> None:
    LogWriter(tmp_path / "log.jsonl").close()
    found = Log.read(tmp_path / "log.jsonl")
    assert (found.events, found.span, found.active) == ({}, None, None)
    assert "events      0" in str(found)
