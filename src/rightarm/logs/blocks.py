"""The events of a log, read many lines at once: JSON lines or Parquet.

The numbers of a block of lines are taken out by one regular expression, and what is left is decoded at once. A block in
which anything is wrong is read again line by line, which finds the place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from rightarm.logs import parquet
from rightarm.logs.events import DECODER, Event
from rightarm.logs.lines import LINES, Numbering, PathLike, described, gap, log_at, part_paths
from rightarm.logs.order import EventOrder

SIZE = 1 << 18  # bytes of lines that are decoded together
ROWS = 10_000  # rows of Parquet that make a block

NUMBER = re.compile(rb'\n\{"n":(0|[1-9]\d*),')


@dataclass(frozen=True)
class Kind:
    """The events of one type in a block."""

    places: list[int]
    """Their numbers in the log."""
    events: list[Any]


@dataclass(frozen=True)
class Block:
    """Events that follow each other, each valid by itself."""

    first: int
    """The number of the first event."""
    events: list[Event]
    path: Path
    line: int
    """The line, or the row of Parquet, where the first event stands."""

    def where(self, i: int) -> str:
        """Return the place of the i-th event in words."""
        return _place(self.path, self.line + i)

    @cached_property
    def kinds(self) -> dict[type[Event], Kind]:
        """Return the events of every type that there is."""
        types = list(map(type, self.events))
        kinds = dict[type[Event], Kind]()
        for type_ in dict.fromkeys(types):
            places = [place for place, own in enumerate(types, start=self.first) if own is type_]
            kinds[type_] = Kind(places, [self.events[place - self.first] for place in places])
        return kinds


def read_blocks(path: Path, numbering: Numbering, after: int = 0) -> Iterator[Block]:
    """Yield the events of a log in blocks. Which follow which is not checked.

    Blocks of lines that end within the first ``after`` events are passed over without a look at them.
    """
    if path.suffix != LINES:
        numbering.begin()
        yield from _blocks_of_rows(path, numbering)
        return
    for part in part_paths(path):
        numbering.begin()
        yield from _blocks_of_lines(part, numbering, after)


def read_events(path: PathLike, numbering: Numbering | None = None) -> Iterator[Event]:
    """Yield the events of a log one by one, each checked against those before it; errors say where it stands."""
    order = EventOrder()
    for block in read_blocks(log_at(path), Numbering() if numbering is None else numbering):
        for i, event in enumerate(block.events):
            try:
                order.check([event])
            except (TypeError, ValueError) as error:
                raise ValueError(f"{block.where(i)}: {error}") from None
            order.take(event, block.first + i)
            yield event


# JSON lines.


def _blocks_of_lines(path: Path, numbering: Numbering, after: int) -> Iterator[Block]:
    line = 1
    for lines in _whole_lines(path):
        count = lines.count(b"\n")
        first = numbering.next
        if numbering.starts:
            _at(_place(path, line), partial(_take_head, numbering), lines)
            line += 1
            continue
        if first + count > after + 1:
            events = _decoded(lines, first, count)
            if events is None:
                events = [
                    _at(_place(path, line + i), partial(_event_of_line, n=first + i), one)
                    for i, one in enumerate(lines.split(b"\n")[:-1])
                ]
            yield Block(first, events, path, line)
        numbering.skip(count)
        line += count


def _whole_lines(path: Path) -> Iterator[bytes]:
    """Yield the first line of a file by itself, since it is the head, then several at once; not a torn last line."""
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


def _decoded(lines: bytes, first: int, count: int) -> list[Event] | None:
    """Return the events of these lines if all is right, else None."""
    pieces = NUMBER.split(b"\n" + lines)  # what is before the first number, then numbers and what follows, in turn
    if pieces[0] or list(map(int, pieces[1::2])) != list(range(first, first + count)):
        return None
    try:
        events: list[Event] = DECODER.decode_lines(b"{" + b"\n{".join(pieces[2::2]))
    except (ValueError, RecursionError):
        return None
    return events if len(events) == count else None


def _take_head(numbering: Numbering, line: bytes) -> None:
    numbering.take_head(msgspec.json.decode(line))


def _event_of_line(line: bytes, n: int) -> Event:
    match = NUMBER.match(b"\n" + line)
    if match is None:
        if line.startswith(b'{"event":"head"'):
            raise ValueError("a head must be the first line of a file, got another one")
        raise ValueError(f'a line must begin with the number of its event, {{"n":{n},, got {line[:80]!r}')
    if int(match[1]) != n:
        raise ValueError(gap(n, int(match[1])))
    event: Event = DECODER.decode(b"{" + line[match.end() - 1 :])
    return event


# Parquet.


def _blocks_of_rows(path: Path, numbering: Numbering) -> Iterator[Block]:
    rows = parquet.read_rows(path)
    place = 1
    for head in islice(rows, 1):
        _at(_place(path, place), lambda row: numbering.take_head(parquet.plain_of(row)), head)
        place += 1
    while some := list(islice(rows, ROWS)):
        first = numbering.next
        events = [_at(_place(path, place + i), partial(_event_of_row, n=first + i), row) for i, row in enumerate(some)]
        yield Block(first, events, path, place)
        numbering.skip(len(some))
        place += len(some)


def _event_of_row(row: dict[str, Any], n: int) -> Event:
    found = row.get("n")
    if found != n:
        raise ValueError(f"n must be {n}, got None" if found is None else gap(n, found))
    return parquet.event_from(parquet.plain_of(row))


# Errors.


def _place(path: Path, line: int) -> str:
    return f"{path}, {'line' if path.suffix == LINES else 'row'} {line}"


def _at(place: str, read: Callable[[Any], Any], line: Any) -> Any:
    """Read a line or a row; an error says where it stands, and which field is wrong."""
    try:
        return read(line)
    except msgspec.ValidationError as error:
        raise ValueError(f"{place}: {described(error, _plain(line))}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{place}: not a line of JSON, got {line[:80]!r}: {error}") from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"{place}: {error}") from None


def _plain(line: Any) -> Any:
    """Return what a line or a row holds, or the line itself if it is no JSON."""
    if not isinstance(line, bytes):
        return parquet.plain_of(line)
    try:
        return msgspec.json.decode(line)
    except ValueError:
        return line
