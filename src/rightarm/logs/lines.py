"""How a log stands in files: a line of JSON for each event, a head before them, and parts where it is rotated.

A log begins with a head, ``{"event":"head","format":"rightarm log","version":2,"log":"<its identity>","part":1,...}``.
Every later line has ``n``, the number of its event, from 1 on: so a line that is missing, doubled or misplaced is
noticed. The parts of a log ``decisions.jsonl`` after the first are ``decisions.0002.jsonl`` and so on; each has a head
with the same identity, its number, and under ``first`` the number of its first event.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from rightarm.logs.events import Event, check_text, check_time, check_whole, checked

FORMAT, VERSION = "rightarm log", 2
IN_FOLDER = "log.jsonl"  # the log of a bandit that lives in a folder
HEAD = "head"


def _plain(value: Any) -> Any:
    """A text or number of a class of its own, such as NumPy's, as JSON has it."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return float(value)
    raise TypeError(f"a log keeps what JSON knows, got {value!r:.200}")


_ENCODER = msgspec.json.Encoder(enc_hook=_plain)


class Head(NamedTuple):
    """The first line of a part of a log."""

    log: str
    """The identity of the log, the same in all its parts and copies, and another in every other log."""
    part: int
    """The number of the part, from 1 on."""
    first: int
    """The number of the first event in it."""
    time: float
    """When it was begun."""

    def as_event(self) -> Event:
        """The head as it stands in a log."""
        return {"event": HEAD, "format": FORMAT, "version": VERSION, **self._asdict()}


def head_from(plain: dict[str, Any]) -> Head:
    """The head that a line holds, checked."""
    missing = {"format", "version", *Head._fields} - plain.keys()
    if missing:
        raise ValueError(f"the head lacks {', '.join(sorted(missing))}, got {plain!r:.200}")
    if plain["format"] != FORMAT or plain["version"] != VERSION:
        raise ValueError(
            f"format and version must be {FORMAT!r} and {VERSION}, got {plain['format']!r} and "
            f"{plain['version']!r}: a newer rightarm may have written this log"
        )
    return Head(
        check_text("log", plain["log"]),
        check_whole("part", plain["part"]),
        check_whole("first", plain["first"]),
        check_time("time", plain["time"]),
    )


def as_line(event: Event) -> bytes:
    """An event that was checked, or a head, as a line of JSON."""
    return _ENCODER.encode(event) + b"\n"


def numbered(event: Event, number: int) -> Event:
    """The event with its number in the log."""
    return {"event": event["event"], "n": number, **event}


def as_lines(head: Head | None, events: list[Event], first: int) -> bytes:
    """Events as they stand in a file, the first of them with the number ``first``, after a head if there is one."""
    lines = [] if head is None else [as_line(head.as_event())]
    lines += [as_line(numbered(event, n)) for n, event in enumerate(events, start=first)]
    return b"".join(lines)


def parsed(line: bytes) -> Any:
    """What a line of JSON holds."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError(f"not a line of JSON, got {line[:80]!r}") from None


class Numbering:
    """Follows the heads and numbers of a log, line by line, and finds what is missing.

    `begin` is to be called before the lines of every part.
    """

    def __init__(self) -> None:
        self.head: Head | None = None  # of the first part
        self.next = 1  # the next event's number
        self.starts = False  # whether the next line is the first of a part
        self._part = 0

    def begin(self) -> None:
        """The lines that follow are those of the next part."""
        self._part, self.starts = self._part + 1, True

    def skip(self, events: int) -> None:
        """So many events follow that somebody else has looked at."""
        self.next += events

    def event_from(self, plain: Any) -> Event | None:
        """The event that a line holds, checked, or None if it is a head."""
        starts, self.starts = self.starts, False
        is_head = isinstance(plain, dict) and plain.get("event") == HEAD
        if starts and is_head:
            self._check_head(head_from(plain))
            return None
        if is_head:
            raise ValueError("a head must be the first line of a file, got another one")
        if starts:
            raise ValueError(f"part {self._part} of a log must begin with a head, got {plain!r:.200}")
        event = checked(plain)
        self._check_number(plain.get("n"))
        self.next += 1
        return event

    def _check_head(self, head: Head) -> None:
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

    def _check_number(self, number: Any) -> None:
        if check_whole("n", number) != self.next:
            raise ValueError(gap(self.next, number))


def gap(expected: int, found: int) -> str:
    """What is wrong if the event of one number stands where another should."""
    if found < expected:
        return f"event {found} is doubled or misplaced; {expected} comes next"
    if found == expected + 1:
        return f"event {expected} is missing"
    return f"events {expected} to {found - 1} are missing"


# Parts.


def log_at(path: str | os.PathLike[str]) -> Path:
    """Return the path of a log: the one given or, if that is the folder of a bandit, of the log in it."""
    found = Path(path)
    return found / IN_FOLDER if (found / IN_FOLDER).is_file() else found


def part_path(path: Path, part: int) -> Path:
    """Where a part of the log at ``path`` is."""
    return path if part == 1 else path.with_name(f"{path.stem}.{part:04}{path.suffix}")


def part_paths(path: Path) -> list[Path]:
    """The parts of the log at ``path``, of which none is missing."""
    begin, end = f"{path.stem}.", path.suffix
    near = [name for name in os.listdir(path.parent) if name.startswith(begin) and name.endswith(end)]
    numbers = [name[len(begin) : len(name) - len(end)] for name in near]
    found = {int(number) for number in numbers if number.isdecimal() and f"{int(number):04}" == number}
    paths = [part_path(path, number) for number in range(1, max(found, default=1) + 1)]
    for number, part in enumerate(paths[1:], start=2):
        if number not in found:
            raise ValueError(f"part {number} of the log {path} is missing: there is no {part}")
    return paths


def whole_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, except a last one that does not end: a crash, or a writer just now, left it torn."""
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield line
