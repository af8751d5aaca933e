"""A write that is interrupted counts whole or did not happen, and the writer knows which."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from interrupts import Interrupt, TimeIsUp, interrupted
from log_story import START
from rightarm.logs import LogWriter, read_log
from rightarm.logs.events import Decision, Event, Reward
from rightarm.logs.outcomes import read_events

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def event(number: int) -> Event:
    """The event of this number: a decision, its reward so far, its end, and so on."""
    own, time = 1 + (number - 1) // 3, START + number
    if number % 3 == 1:
        unit = f"visitor {number}"
        return Decision(id=own, arm="red", propensity=0.5, round=1, version=number, unit=unit, time=time)
    return Reward(id=own, reward=float(number), part=number % 3 == 2, time=time)


def as_written(events: Iterable[Event]) -> list[str]:
    """Everything about events, times too."""
    return [repr(one) for one in events]


def write_next(log: LogWriter) -> None:
    """Write what comes next if the writer is right about how many events there are."""
    done = log.events
    log.write([event(number) for number in range(done + 1, done + 2 + done % 4)])


def check(path: Path, interrupts: int, error: type[BaseException] = Interrupt, **options: Any) -> None:
    with LogWriter(path, **options) as log:
        interrupted(lambda: write_next(log), interrupts, within=150e-6, error=error)
        count, last = log.events, log.last_id
        assert count > interrupts / 10
        assert last == 1 + (count - 1) // 3
        assert as_written(read_events(path)) == as_written(event(n) for n in range(1, count + 1))
        assert as_written(log) == as_written(read_events(path))
        write_next(log)
    with LogWriter(path, **options) as again:
        assert again.events > count
    assert len(read_log(path)) == 1 + (again.events - 1) // 3


@pytest.mark.parametrize("error", [Interrupt, TimeIsUp])
@pytest.mark.parametrize("rotate", [None, "20kB"])
def test_2_000_interrupts(tmp_path: Path, rotate: str | None, error: type[BaseException]) -> None:
    check(tmp_path / "log.jsonl", 2_000, error, rotate=rotate)


@pytest.mark.full
def test_100_000_interrupts(tmp_path: Path) -> None:
    check(tmp_path / "log.jsonl", 100_000)


def test_what_was_interrupted_is_settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception after half of the lines, and one after all of them, just before the writer would know."""
    write = os.write
    with LogWriter(tmp_path / "log.jsonl") as log:
        log.write([event(1)])
        assert log.events == 1
        for share, happened in ((0.5, False), (1, True)):

            def stop(file: int, data: bytes, share: float = share) -> int:
                write(file, data[: int(share * len(data))])
                raise KeyboardInterrupt

            with monkeypatch.context() as patch:
                patch.setattr(os, "write", stop)
                with pytest.raises(KeyboardInterrupt):
                    log.write([event(2), event(3)])
            assert log.events == (3 if happened else 1)
            assert as_written(log) == as_written(event(n) for n in range(1, log.events + 1))
        with pytest.raises(ValueError, match="which is answered"):
            log.write([event(3)])
        log.write([event(4)])
        assert log.events == 4
    assert as_written(read_events(tmp_path / "log.jsonl")) == as_written(event(n) for n in range(1, 5))


def test_a_disk_that_fails_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of a line is written, and cannot be cut off at once: nothing else is written before it is."""
    write, path = os.write, tmp_path / "log.jsonl"

    def half(file: int, data: bytes) -> int:
        if len(data) < 50:
            raise OSError(28, "No space left on device")
        return write(file, data[: len(data) // 2])

    def fails(file: int, size: int) -> None:
        raise OSError(5, "Input/output error")

    with LogWriter(path) as log:
        log.write([event(1)])
        before = path.read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", half)
            patch.setattr(os, "ftruncate", fails)
            for _ in range(2):
                with pytest.raises(OSError, match="Input/output error"):
                    log.write([event(2)])
        assert path.read_bytes() != before
        assert log.events == 1
        assert path.read_bytes() == before
        log.write([event(2)])
    assert as_written(read_events(path)) == as_written([event(1), event(2)])
