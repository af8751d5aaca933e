"""A story of events that the tests of logs write."""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from pathlib import Path
from typing import Any

import polars as pl

from rightarm.logs import LogWriter, read_log

START = 1_700_000_000.0
Write = Callable[[LogWriter], Any]


def story(events: int = 30) -> list[Write]:
    """A number of events: decisions, those of even id answered a little later, some others cancelled."""
    made: list[Write] = []
    for i in range(events):
        time, allowed = START + i / 4, ["ärm 0", "ärm 1", "ärm 2"] if i % 2 else None
        made.append(methodcaller("decision", i, f"ärm {i % 3}", 1 / (1 + i % 4), 1 + i, i, time, allowed))
        if i % 2:
            made.append(methodcaller("reward", i - 1, i / 8, time))
        if i % 10 == 3:
            made.append(methodcaller("cancel", i, time))
    return made[:events]


HEAD = '{"event":"head","format":"rightarm log","version":4,"log":"0","part":1,"first":1,"time":1.0}\n'


def play(log: LogWriter, events: list[Write]) -> None:
    for event in events:
        event(log)


def written(path: Path, events: list[Write]) -> pl.DataFrame:
    with LogWriter(path) as log:
        play(log, events)
    return read_log(path)
