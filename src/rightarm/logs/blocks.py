"""Many events at once: lines are parsed in blocks, and checked by column where that is enough.

All rules for numbers in `rightarm.logs.events` are ranges. So a column of numbers is right if its smallest and its
largest are; of texts each is checked once. A block in which anything is not as usual is read again line by line, which
finds the place.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rightarm.logs.events import CHECKS, LARGEST_WHOLE, REQUIRED, Check, Event, check_among
from rightarm.logs.lines import Numbering, parsed, part_paths
from rightarm.logs.parquet import LINES
from rightarm.logs.stream import read_events

SIZE = 1 << 17  # bytes of lines that are parsed together
EVENTS = 10_000  # events of other files that make a block

_DECODER = msgspec.json.Decoder()


class Kind:
    """The events of one kind in a block, by column."""

    def __init__(self, kind: str) -> None:
        self.kind, self.places, self.events = kind, list[int](), list[Event]()
        self._columns, self._having = dict[str, list[Any]](), dict[str, list[int]]()
        self._arrays: dict[str, NDArray[Any]] = {}

    def column(self, name: str) -> list[Any]:
        """A field that every event of the kind has."""
        if name not in self._columns:
            self._columns[name] = [event[name] for event in self.events]
        return self._columns[name]

    def array(self, name: str) -> NDArray[Any]:
        """The same as an array."""
        if name not in self._arrays:
            self._arrays[name] = np.array(self.column(name))
        return self._arrays[name]

    def having(self, name: str) -> list[int]:
        """Which events have a field that may be left out."""
        if not self._have_more:
            return []
        if name not in self._having:
            self._having[name] = [i for i, event in enumerate(self.events) if name in event]
        return self._having[name]

    @cached_property
    def _have_more(self) -> bool:
        """Whether any event has more fields than it needs, besides its kind and number."""
        return max(map(len, self.events)) > len(REQUIRED[self.kind]) + 1 + ("n" in self.events[0])


class Block:
    """Events that follow each other, checked each by itself; ``first`` is the number of the first."""

    def __init__(self, events: list[Event], first: int) -> None:
        self.events, self.first = events, first

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        """The events of every kind that there is."""
        kinds = _ByKind()
        for place, event in enumerate(self.events, start=self.first):
            kind = kinds[event["event"]]
            kind.places.append(place)
            kind.events.append(event)
        return kinds


class _ByKind(dict[str, Kind]):
    def __missing__(self, kind: str) -> Kind:
        self[kind] = made = Kind(kind)
        return made


def read_blocks(path: Path, numbering: Numbering, after: int = 0) -> Iterator[Block]:
    """The events of a log in blocks. Which follow which is not checked.

    Blocks of lines that end within the first ``after`` events are passed over without a look at them.
    """
    if path.suffix == LINES and not path.is_dir():
        for part in part_paths(path):
            numbering.begin()
            yield from _blocks_of_lines(part, numbering, after)
    else:
        events = read_events(path, numbering=numbering)
        first = 1
        while block := list(islice(events, EVENTS)):
            yield Block(block, first)
            first += len(block)


def _blocks_of_lines(path: Path, numbering: Numbering, after: int) -> Iterator[Block]:
    line = 1
    for lines in _whole_lines(path):
        first, count = numbering.next, lines.count(b"\n")
        if not numbering.starts and first + count <= after + 1:
            numbering.skip(count)
        elif (block := _usual_block(lines, count, numbering)) is not None:
            numbering.skip(count)
            yield block
        else:
            yield Block(_one_by_one(path, line, lines, numbering), first)
        line += count


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
    for place, line in enumerate(lines.split(b"\n")[:-1], start=first):
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
        for kind in block.kinds.values():
            _check_kind(kind)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):  # whoever looks closer says what is wrong
        return None
    return block


def _are_next(events: list[Event], numbering: Numbering) -> bool:
    numbers = [event["n"] for event in events]
    return numbers == list(range(numbering.next, numbering.next + len(numbers))) and set(map(type, numbers)) == {int}


def _check_kind(kind: Kind) -> None:
    """Raise if an event of this kind is wrong, or unusual."""
    for name, check in CHECKS[kind.kind].items():
        if name in REQUIRED[kind.kind]:
            _check_column(name, check, kind)
        else:
            for i in kind.having(name):
                check(name, kind.events[i][name])
    if kind.kind == "decision":
        for i in kind.having("among"):
            check_among(kind.events[i]["arm"], kind.events[i]["among"])


def _check_column(name: str, check: Check, kind: Kind) -> None:
    column = kind.column(name)
    types = set(map(type, column))
    if types == {int} or types == {float}:
        numbers = kind.array(name)
        for extreme in (numbers.min().item(), numbers.max().item()):  # NaN is both
            check(name, extreme)
            if isinstance(extreme, float) and abs(extreme) > LARGEST_WHOLE:
                raise ValueError("perhaps a whole number that was too large to be parsed as one")
    else:
        for value in set(column) if types == {str} else column:
            check(name, value)
