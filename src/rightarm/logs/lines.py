"""The file format of a log: a head, then a line of JSON for each event, in several parts where a log is rotated.

The first line is the head, ``{"event":"head","format":"rightarm log","version":3,"log":"<identity>","part":1,...}``.
Every other line is an event after its number, ``{"n":17,"event":"reward",...}``. Numbers count from 1, so a line that
is missing, doubled or misplaced is noticed. The parts of a log ``decisions.jsonl`` after the first are
``decisions.0002.jsonl`` and so on. Each has a head with the same identity, its own number, and under ``first`` the
number of its first event.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from rightarm.logs.events import ENCODER, Event, Time, Whole

FORMAT = "rightarm log"
VERSION = 3
HEAD = "head"
LINES = ".jsonl"
IN_FOLDER = "log.jsonl"  # the log of a bandit that lives in a folder

WHERE = re.compile(r"(.*) - at `\$\.?(.*?)`")

PathLike = str | os.PathLike[str]


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first line of a part of a log."""

    log: str
    """The identity of the log: the same in all its parts and copies, and another one in every other log."""
    part: Whole
    """The number of the part, from 1 on."""
    first: Whole
    """The number of the first event in the part."""
    time: Time
    """When the part was begun."""

    def plain(self) -> dict[str, Any]:
        """Return the head as its line has it."""
        return {"event": HEAD, "format": FORMAT, "version": VERSION, **msgspec.structs.asdict(self)}


def head_from(plain: Any) -> Head:
    """Return the head that a line holds, checked."""
    if not isinstance(plain, dict) or plain.get("event") != HEAD:
        raise ValueError(f"a part of a log must begin with a head, got {plain!r:.200}")
    fields = {name: value for name, value in plain.items() if name != "event"}
    found = fields.pop("format", None), fields.pop("version", None)
    if found != (FORMAT, VERSION):
        raise ValueError(
            f"format and version must be {FORMAT!r} and {VERSION}, got {found[0]!r} and {found[1]!r}: "
            "another version of rightarm wrote this log"
        )
    return msgspec.convert(fields, Head)


# Lines.


def as_line(event: Event, n: int) -> bytes:
    """Return the line of an event, which is the one of number ``n``."""
    return b'{"n":%d,' % n + ENCODER.encode(event)[1:] + b"\n"


def as_lines(head: Head | None, events: Iterable[Event], first: int) -> bytes:
    """Return the lines of events, of which the first has the number ``first``, after a head if there is one."""
    lines = [] if head is None else [ENCODER.encode(head.plain()) + b"\n"]
    lines += [as_line(event, n) for n, event in enumerate(events, start=first)]
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

    def take_head(self, plain: Any) -> None:
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


def described(error: msgspec.ValidationError, plain: Any) -> str:
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
