"""The events of a log one by one, each checked by itself and against those before it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from rightarm.logs import parquet
from rightarm.logs.events import Event
from rightarm.logs.lines import Numbering, parsed, part_paths, whole_lines
from rightarm.logs.order import EventOrder
from rightarm.logs.parquet import PARQUET

PathLike = str | os.PathLike[str]


def read_events(path: PathLike, *, after: int = 0, numbering: Numbering | None = None) -> Iterator[Event]:
    """The events of a log, checked; errors say where they stand.

    The first ``after`` events are passed over, without a look at them; then those that follow are checked each by
    itself, not against those before. ``numbering`` follows along, so that whoever gives it knows the log's head.
    """
    order, numbering = EventOrder(), numbering or Numbering()
    for place, parse in _placed(Path(path), numbering):
        if not numbering.starts and numbering.next <= after:
            numbering.skip(1)
            continue
        try:
            event = numbering.event_from(parse())
            if event is not None and not after:
                order.check([event])
                order.take(event, order.events + 1)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{place}: {error}") from None
        if event is not None and numbering.next > after + 1:
            yield event


def _placed(path: Path, numbering: Numbering) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Of every line of a log the place where it stands, and a function that parses it."""
    if path.is_dir():
        numbering.begin()
        for part in parquet.parts_of(path):
            yield from _rows_of(part) if part.suffix == PARQUET else _lines_of(part)
    elif path.suffix == PARQUET:
        numbering.begin()
        yield from _rows_of(path)
    else:
        for part in part_paths(path):
            numbering.begin()
            yield from _lines_of(part)


def _rows_of(path: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    for i, row in enumerate(parquet.read_rows(path), start=1):
        yield f"{path}, row {i}", partial(parquet.event_of, row)


def _lines_of(path: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    for i, line in enumerate(whole_lines(path), start=1):
        yield f"{path}, line {i}", partial(parsed, line)
