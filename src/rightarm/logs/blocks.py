"""Many events at once: lines are parsed in blocks, and checked by column where that is enough.

All rules for numbers in `rightarm.logs.events` are ranges. So a column of numbers is right if its smallest and its largest are;
of texts each is checked once. A block in which anything is not as usual is read again line by line, which finds the place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from rightarm.logs.events import CHECKS, LARGEST_WHOLE, OPTIONAL, Event, check_among
from rightarm.logs.lines import Numbering, parsed, part_paths
from rightarm.logs.parquet import LINES
from rightarm.logs.stream import read_events

SIZE = 1 << 20  # bytes of lines that are parsed together
EVENTS = 10_000  # events of other files that make a block

_DECODER = msgspec.json.Decoder()


class Block:
    """Events that follow each other, checked each by itself; ``first`` is the number of the first."""

    def __init__(self, events: list[Event], first: int) -> None:
        self.events, self.first = events, first

    @cached_property
    def kinds(self) -> dict[str, tuple[list[int], list[Event]]]:
        """Of every kind that there is, the numbers of its events and these."""
        kinds: dict[str, tuple[list[int], list[Event]]] = {}
        for number, event in enumerate(self.events, start=self.first):
            kind = event["event"]
            if kind not in kinds:
                kinds[kind] = [], []
            numbers, events = kinds[kind]
            numbers.append(number)
            events.append(event)
        return kinds


def read_blocks(path: Path, numbering: Numbering) -> Iterator[Block]:
    """The events of a log in blocks. Which follow which is not checked."""
    if path.suffix == LINES and not path.is_dir():
        for part in part_paths(path):
            numbering.begin()
            yield from _blocks_of_lines(part, numbering)
    else:
        events = read_events(path, numbering=numbering)
        first = 1
        while block := list(islice(events, EVENTS)):
            yield Block(block, first)
            first += len(block)


def _blocks_of_lines(path: Path, numbering: Numbering) -> Iterator[Block]:
    line = 1
    for lines in _whole_lines(path):
        first, count = numbering.next, lines.count(b"\n")
        block = _usual_block(lines, count, numbering)
        if block is None:
            block = Block(_one_by_one(path, line, lines, numbering), first)
        else:
            numbering.skip(count)
        line += count
        yield block


def _whole_lines(path: Path) -> Iterator[bytes]:
    """The first line of a file by itself, which may be a head, and then several lines at once; not a torn last line."""
    with path.open("rb") as file:
        first = file.readline()
        if first.endswith(b"\n"):
            yield first
        rest = b""
        while more := file.read(SIZE):
            rest += more
            end = rest.rfind(b"\n") + 1
            if end:
                yield rest[:end]
                rest = rest[end:]


def _one_by_one(path: Path, first: int, lines: bytes, numbering: Numbering) -> list[Event]:
    events = []
    for place, line in enumerate(lines.splitlines(keepends=True), start=first):
        try:
            event = numbering.event_from(parsed(line))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}, line {place}: {error}") from None
        if event is not None:
            events.append(event)
    return events


def _usual_block(lines: bytes, count: int, numbering: Numbering) -> Block | None:
    """The events of these lines if all is right for sure, else None."""
    if numbering.starts:  # the first line of a file
        return None
    try:
        block = Block(_DECODER.decode_lines(lines), numbering.next)
        if len(block.events) != count or not _are_next(block.events, numbering):
            return None
        for kind, (_, events) in block.kinds.items():
            _check_kind(kind, events)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):  # whoever looks closer says what is wrong
        return None
    return block


def _are_next(events: list[Event], numbering: Numbering) -> bool:
    if numbering.head is None:
        return not any("n" in event for event in events)
    numbers = [event["n"] for event in events]
    return numbers == list(range(numbering.next, numbering.next + len(numbers))) and set(map(type, numbers)) == {int}


def _check_kind(kind: str, events: list[Event]) -> None:
    """Raise if an event of this kind is wrong, or unusual."""
    optional = OPTIONAL.get(kind, set())
    for name, check in CHECKS[kind].items():
        if name in optional:
            column = [event[name] for event in events if name in event]
        else:
            column = [event[name] for event in events]
        _check_column(name, check, column)
    if kind == "decision":
        for event in events:
            if "among" in event:
                check_among(event["arm"], event["among"])


def _check_column(name: str, check: Callable[[str, Any], Any], column: list[Any]) -> None:
    types = set(map(type, column))
    if types == {int} or types == {float}:
        numbers = np.array(column)
        for extreme in (numbers.min().item(), numbers.max().item()):  # NaN is both
            check(name, extreme)
            if isinstance(extreme, float) and abs(extreme) > LARGEST_WHOLE:
                raise ValueError("perhaps a whole number that was too large to be parsed as one")
    elif types == {str}:
        for text in set(column):
            check(name, text)
    else:
        for value in column:
            check(name, value)
