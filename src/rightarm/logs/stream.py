"""The events of a log one by one, each checked by itself and against those before it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rightarm.logs import parquet
from rightarm.logs.events import Event
from rightarm.logs.lines import Numbering, log_at, parsed, part_paths, whole_lines
from rightarm.logs.order import EventOrder
from rightarm.logs.parquet import PARQUET

PathLike = str | os.PathLike[str]


def read_events(path: PathLike, *, numbering: Numbering | None = None) -> Iterator[Event]:
    """The events of a log, checked; errors say where they stand.

    ``numbering`` follows along, so that whoever gives it knows the log's head.
    """
    order, numbering = EventOrder(), numbering or Numbering()
    for where, place, line in _lines_of(log_at(path), numbering):
        try:
            event = numbering.event_from(parsed(line) if isinstance(line, bytes) else parquet.event_of(line))
            if event is not None:
                order.check([event])
                order.take(event, order.events + 1)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where} {place}: {error}") from None
        if event is not None:
            yield event


Line = tuple[
    str, int, bytes | dict[str, Any]
]  # where it stands, in which line or row, and what it is, still to be parsed


def _lines_of(path: Path, numbering: Numbering) -> Iterator[Line]:
    """The lines of a log, or its rows if it is Parquet."""
    if path.suffix == PARQUET:
        numbering.begin()
        yield from _lines_of_file(path)
    else:
        for part in part_paths(path):
            numbering.begin()
            yield from _lines_of_file(part)


def _lines_of_file(path: Path) -> Iterator[Line]:
    packed = path.suffix == PARQUET
    where = f"{path}, {'row' if packed else 'line'}"
    lines: Iterator[bytes | dict[str, Any]] = parquet.read_rows(path) if packed else whole_lines(path)
    for place, line in enumerate(lines, start=1):
        yield where, place, line
