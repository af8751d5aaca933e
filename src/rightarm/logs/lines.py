"""The files of a log: how events become lines of JSON, or rows of Parquet, and how these are read again.

The first line is the head, ``{"event":"head","format":"rightarm log","version":4,"log":"<identity>","part":1,...}``.
Every other line is an event after its number, ``{"n":17,"event":"reward",...}``. Numbers count from 1, so a line that
is missing, doubled or misplaced is noticed. The parts of a log ``decisions.jsonl`` after the first are
``decisions.0002.jsonl`` and so on. Each has a head with the same identity, its own number, and under ``first`` the
number of its first event. In Parquet there is a column for each field, and a row for the head and for each event.

Many lines are read at once: one regular expression takes their numbers out, and what is left is decoded together. Lines
in which anything is wrong are read again one by one, which finds the place.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from rightarm.errors import polars_for
from rightarm.files import write_whole
from rightarm.logs.events import (
    DECODER,
    ENCODER,
    KINDS,
    AnyEvent,
    Changed,
    Created,
    Event,
    JsonObject,
    Time,
    Whole,
)

FORMAT = "rightarm log"
VERSION = 4
HEAD = "head"
LINES = ".jsonl"
PARQUET = ".parquet"
IN_FOLDER = "log.jsonl"  # the log of a bandit that lives in a folder

SIZE = 1 << 18  # bytes of lines that are decoded together
ROWS = 10_000  # rows of Parquet that are decoded together
NUMBER = re.compile(rb'\n\{"n":(0|[1-9]\d*),')
WHERE = re.compile(r"(.*) - at `\$\.?(.*?)`")  # in errors of msgspec

PathLike = str | os.PathLike[str]


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first line of a part of a log."""

    log: str  # the identity of the log: the same in all its parts and copies, and another one in every other log
    part: Whole  # the number of the part, from 1 on
    first: Whole  # the number of the first event in the part
    time: Time  # when the part was begun

    def plain(self) -> JsonObject:
        """Return the head as its line has it."""
        return {"event": HEAD, "format": FORMAT, "version": VERSION, **msgspec.structs.asdict(self)}


def head_from(plain: object) -> Head:
    """Return the head that a line holds, checked."""
    if not isinstance(plain, dict) or plain.get("event") != HEAD:
        raise ValueError(f"a part of a log must begin with a head, got {plain!r:.200}")
    fields = {name: value for name, value in plain.items() if name != "event"}
    found = (fields.pop("format", None), fields.pop("version", None))
    if found != (FORMAT, VERSION):
        raise ValueError(
            f"format and version must be {FORMAT!r} and {VERSION}, got {found[0]!r} and {found[1]!r}: "
            "another version of rightarm wrote this log"
        )
    return msgspec.convert(fields, Head)


def as_lines(head: Head | None, events: Iterable[Event], first: int) -> bytes:
    """Return the lines of events, of which the first has the number ``first``, after a head if there is one."""
    lines = [] if head is None else [ENCODER.encode(head.plain()) + b"\n"]
    lines += [b'{"n":%d,' % n + ENCODER.encode(event)[1:] + b"\n" for n, event in enumerate(events, start=first)]
    return b"".join(lines)


# Numbers.


class Numbering:
    """Follows the heads and numbers of a log, and finds what is missing.

    `begin` is to be called before each part, then `take_head` with its first line, then `skip` with the number of
    events that follow.
    """

    def __init__(self) -> None:
        self.head: Head | None = None  # of the first part
        self.next = 1  # the number of the next event
        self.starts = False  # whether the next line is the first of a part
        self._part = 0

    def begin(self) -> None:
        """Go on to the next part."""
        self._part += 1
        self.starts = True

    def take_head(self, plain: object) -> None:
        """Take the first line of a part, or raise if it is no head of the part that comes next."""
        head = head_from(plain)
        if head.part != self._part:
            hint = "; a log is read by the path of its first part" if self._part == 1 else ""
            raise ValueError(f"part {self._part} of the log is missing, got part {head.part}{hint}")
        if self._part == 1:
            self.head = head
        elif self.head is None:
            raise ValueError("part 1 of the log is empty")
        elif head.log != self.head.log:
            raise ValueError(f"log must be {self.head.log} in all parts, got {head.log}")
        if head.first != self.next:
            raise ValueError(gap(self.next, head.first))
        self.starts = False

    def skip(self, events: int) -> None:
        """Count so many events."""
        self.next += events


def gap(expected: int, found: int) -> str:
    """Say what is wrong if the event of one number stands where another should."""
    if found < expected:
        return f"event {found} is doubled or misplaced; {expected} comes next"
    if found == expected + 1:
        return f"event {expected} is missing"
    return f"events {expected} to {found - 1} are missing"


# Parts.


def log_at(path: PathLike) -> Path:
    """Return the path of a log: the one given or, if that is the folder of a bandit, of the log in it."""
    found = Path(path)
    inside = found / IN_FOLDER
    return inside if inside.is_file() else found


def part_path(path: Path, part: int) -> Path:
    """Return the path of a part of the log at ``path``."""
    return path if part == 1 else path.with_name(f"{path.stem}.{part:04}{path.suffix}")


def part_paths(path: Path) -> list[Path]:
    """Return the paths of all parts of the log at ``path``, of which none is missing."""
    name = re.compile(rf"{re.escape(path.stem)}\.(\d{{4,}}){re.escape(path.suffix)}")
    matches = [name.fullmatch(near) for near in os.listdir(path.parent)]
    found = {int(match[1]) for match in matches if match is not None and f"{int(match[1]):04}" == match[1]}
    paths = [part_path(path, number) for number in range(1, max(found, default=1) + 1)]
    for number, part in enumerate(paths[1:], start=2):
        if number not in found:
            raise ValueError(f"part {number} of the log {path} is missing: there is no {part}")
    return paths


# Reading.


class Kind(NamedTuple):
    """The events of one type in a block."""

    places: list[int]  # their numbers in the log
    events: list[Any]


@dataclass(frozen=True)
class Block:
    """Events that follow each other, each valid by itself."""

    first: int  # the number of the first event
    events: list[Event]
    path: Path
    line: int  # the line, or the row of Parquet, where the first event stands

    def where(self, number: int) -> str:
        """Return the place of the event of a number in words."""
        return _place(self.path, self.line + number - self.first)

    @cached_property
    def kinds(self) -> dict[type[Event], Kind]:
        """Return the events of every type that there is."""
        types = list(map(type, self.events))
        kinds = dict[type[Event], Kind]()
        for type_ in dict.fromkeys(types):
            places = [place for place, own in enumerate(types, start=self.first) if own is type_]
            kinds[type_] = Kind(places, [self.events[place - self.first] for place in places])
        return kinds

    @property
    def changes(self) -> list[tuple[int, Created | Changed]]:
        """Return the events that say how the bandit is set up, each after its number."""
        kinds = [kind for type_ in (Created, Changed) if (kind := self.kinds.get(type_)) is not None]
        return sorted((place, event) for kind in kinds for place, event in zip(*kind, strict=True))


def read_blocks(path: Path, numbering: Numbering, after: int = 0) -> Iterator[Block]:
    """Yield the events of a log, many at once; whether they can follow each other is not checked.

    Blocks of lines that end within the first ``after`` events are skipped without a look at them.
    """
    if path.suffix != LINES:
        numbering.begin()
        yield from _blocks_of_rows(path, numbering)
        return
    for part in part_paths(path):
        numbering.begin()
        yield from _blocks_of_lines(part, numbering, after)


def _blocks_of_lines(path: Path, numbering: Numbering, after: int) -> Iterator[Block]:
    line = 1
    for lines in _whole_lines(path):
        count = lines.count(b"\n")
        first = numbering.next
        if numbering.starts:
            with _errors_at(path, line, lines):
                numbering.take_head(msgspec.json.decode(lines))
            line += 1
            continue
        if first + count > after + 1:
            events = _decoded(lines, first, count)
            if events is None:
                events = list(_decoded_one_by_one(lines, first, path, line))
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
        events = DECODER.decode_lines(b"{" + b"\n{".join(pieces[2::2]))
    except (ValueError, RecursionError):
        return None
    return events if len(events) == count else None


def _decoded_one_by_one(lines: bytes, first: int, path: Path, place: int) -> Iterator[Event]:
    for i, line in enumerate(lines.split(b"\n")[:-1]):
        with _errors_at(path, place + i, line):
            yield _event_of_line(line, first + i)


def _event_of_line(line: bytes, n: int) -> Event:
    match = NUMBER.match(b"\n" + line)
    if match is None:
        if line.startswith(b'{"event":"head"'):
            raise ValueError("a head must be the first line of a file, got another one")
        raise ValueError(f'a line must begin with the number of its event, {{"n":{n},, got {line[:80]!r}')
    if int(match[1]) != n:
        raise ValueError(gap(n, int(match[1])))
    return DECODER.decode(b"{" + line[match.end() - 1 :])


# Parquet.


def _column_types() -> dict[str, str]:
    """Return the type of the column of each field, "JSON" where Parquet has none."""
    names = {inspect.IntType: "Int64", inspect.FloatType: "Float64", inspect.StrType: "String"}
    columns = {"n": "Int64", "event": "String"}
    for kind in KINDS.values():
        struct = inspect.type_info(kind)
        assert isinstance(struct, inspect.StructType)
        for field in struct.fields:
            members = field.type.types if isinstance(field.type, inspect.UnionType) else (field.type,)
            types = {names.get(type(one), "JSON") for one in members if not isinstance(one, inspect.NoneType)}
            if field.name in columns:
                types.add(columns[field.name])
            columns[field.name] = types.pop() if len(types) == 1 else "JSON"
    return columns | {"format": "String", "log": "String", "first": "Int64"}  # of the head


COLUMNS = _column_types()
AS_JSON = [name for name, kind in COLUMNS.items() if kind == "JSON"]


def write_parquet(head: Head | None, events: Iterable[Event], path: Path) -> None:
    """Write a log as one Parquet file."""
    pl = polars_for("a log in Parquet")
    rows = [] if head is None else [_row(head.plain())]
    for n, event in enumerate(events, start=1):
        rows.append(_row({"n": n, **msgspec.to_builtins(event)}))
    schema = {name: pl.String if kind == "JSON" else getattr(pl, kind) for name, kind in COLUMNS.items()}
    content = io.BytesIO()
    pl.DataFrame(rows, schema=schema).write_parquet(content)
    write_whole(path, content.getvalue())


def _row(plain: JsonObject) -> JsonObject:
    return plain | {name: ENCODER.encode(plain[name]).decode() for name in AS_JSON if name in plain}


def has_events(path: Path) -> bool:
    """Say whether a Parquet file holds events, and not somebody's table."""
    pl = polars_for("a log in Parquet")
    try:
        return "event" in pl.read_parquet_schema(path)
    except pl.exceptions.PolarsError:  # whoever reads it says what is wrong
        return False


def _blocks_of_rows(path: Path, numbering: Numbering) -> Iterator[Block]:
    rows = _rows_of(path)
    place = 1
    for head in islice(rows, 1):
        with _errors_at(path, place, head):
            numbering.take_head(_plain_of(head))
        place += 1
    while some := list(islice(rows, ROWS)):
        first = numbering.next
        events = list[Event]()
        for i, row in enumerate(some):
            with _errors_at(path, place + i, row):
                events.append(_event_of_row(row, first + i))
        yield Block(first, events, path, place)
        numbering.skip(len(some))
        place += len(some)


def _rows_of(path: Path) -> Iterator[JsonObject]:
    """Yield the rows of a Parquet file of events, without what is empty in them."""
    pl = polars_for("a log in Parquet")
    try:
        frame = pl.read_parquet(path)
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{path} cannot be read as Parquet: {error}") from None
    if "event" not in frame.columns:
        raise ValueError(f"{path} has no column 'event', so it is no log of rightarm; read_table reads other tables")
    for row in frame.iter_rows(named=True):
        yield {name: value for name, value in row.items() if value is not None}


def _plain_of(row: JsonObject) -> JsonObject:
    return row | {name: msgspec.json.decode(row[name]) for name in AS_JSON if name in row}


def _event_of_row(row: JsonObject, n: int) -> Event:
    plain = _plain_of(row)
    found = plain.pop("n", None)
    if found != n:
        raise ValueError(f"n must be {n}, got None" if found is None else gap(n, found))
    return msgspec.convert(plain, AnyEvent)


# Errors.


def _place(path: Path, line: int) -> str:
    return f"{path}, {'line' if path.suffix == LINES else 'row'} {line}"


@contextlib.contextmanager
def _errors_at(path: Path, line: int, content: bytes | JsonObject) -> Iterator[None]:
    """Let errors say where they happened, and which field is wrong."""
    try:
        yield
        return
    except msgspec.ValidationError as error:
        what = described(error, _plain(content))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        got = content[:80] if isinstance(content, bytes) else content
        what = f"not a line of JSON, got {got!r:.320}: {error}"
    except (TypeError, ValueError) as error:
        what = str(error)
    raise ValueError(f"{_place(path, line)}: {what}")


def _plain(content: bytes | JsonObject) -> object:
    """Return what a line or a row holds, or the line itself if it is no JSON."""
    if not isinstance(content, bytes):
        return _plain_of(content)
    try:
        return msgspec.json.decode(content)
    except ValueError:
        return content


def described(error: msgspec.ValidationError, plain: object) -> str:
    """Say which field of an event is wrong, what it must be, and what it is: ``id must be int >= 0, got -1``."""
    match = WHERE.fullmatch(str(error))
    if match is None:
        return f"{error}, got {plain!r:.200}"
    what, field = match.groups()
    value = plain
    for name in re.findall(r"[^.\[\]]+", field):
        if isinstance(value, list) and name.isdecimal():
            value = value[int(name)]
        elif isinstance(value, dict) and name in value:
            value = value[name]
    what = re.sub(", got .*", "", what).replace("Expected", "must be", 1).replace("`", "")
    return f"{field} {what}, got {value!r:.200}"
