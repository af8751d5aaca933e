"""Journals: what a journal of events is, the one in memory, and the one in a file of JSON lines."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import re
import threading
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from rightarm.errors import WrongType, WrongValue
from rightarm.files import PROCESS, Held, sync_folder, write_whole
from rightarm.logs.events import (
    DECODER,
    ENCODER,
    Arm,
    Cancellation,
    Changed,
    Correction,
    Decision,
    Event,
    Expiry,
    JsonObject,
    Observation,
    Reward,
    without_context,
)
from rightarm.logs.lines import (
    LINES,
    PARQUET,
    Head,
    Numbering,
    PathLike,
    as_lines,
    described,
    part_path,
    part_paths,
    read_blocks,
)
from rightarm.logs.outcomes import EventOrder, read_order


class Journal(Protocol):
    """An append-only sequence of events, numbered from 1.

    `MemoryJournal` stores them in memory, `LogWriter` in a file, `rightarm.store` in a database.
    `rightarm.testing.check_journal` checks a journal that you write.
    """

    @property
    def identity(self) -> str:
        """Return the journal's own name, which no other journal has."""

    @property
    def events(self) -> int:
        """Return how many events have happened."""

    def append(self, events: Sequence[Event]) -> None:
        """Store several events, or none of them; once this returns, they have happened."""

    def since(self, events: int) -> Iterator[Event]:
        """Yield the events after the first so many."""

    def key(self) -> int | None:
        """Return the secret key by which the bandit draws its decisions, if it was given one."""

    def keep_key(self, key: int) -> None:
        """Store the secret key beside the events, where no reader of the events finds it."""

    def flush(self) -> None:
        """Have everything that was appended on the disk."""

    def close(self) -> None:
        """Append no more."""


def key_from(text: object) -> int:
    """Return a secret key from its text; errors do not show the text."""
    if not isinstance(text, str) or re.fullmatch("[0-9a-f]{32}", text) is None:
        raise WrongValue("key", "must be 32 hexadecimal digits")
    return int(text, 16)


class MemoryJournal:
    """Stores events in memory, for as long as the bandit may need them again.

    >>> from rightarm.logs.events import Reward
    >>> journal = MemoryJournal()
    >>> journal.append([Reward(id=1, reward=0.5, time=0.0), Reward(id=2, reward=1.0, time=0.0)])
    >>> journal.forget(1)
    >>> journal.events, [event.id for event in journal.since(1)]
    (2, [2])
    """

    def __init__(self, events: int = 0) -> None:
        self.identity = uuid.uuid4().hex
        self._stored: tuple[int, list[Event]] = (events, [])  # how many are forgotten, and the others
        self._key: int | None = None

    @property
    def events(self) -> int:
        """Return how many events have happened."""
        forgotten, stored = self._stored
        return forgotten + len(stored)

    def append(self, events: Sequence[Event]) -> None:
        """Store several events."""
        self._stored[1].extend(events)

    def since(self, events: int) -> Iterator[Event]:
        """Yield the events after the first so many, which must not be forgotten."""
        forgotten, stored = self._stored
        if events < forgotten:
            raise ValueError(f"the first {forgotten} events are forgotten, got {events}")
        return iter(stored[events - forgotten :])

    def forget(self, events: int) -> None:
        """Drop the first so many events."""
        forgotten, stored = self._stored
        self._stored = events, stored[events - forgotten :]

    def cut(self, events: int) -> None:
        """Drop all but the first so many events: the others have not happened."""
        forgotten, stored = self._stored
        del stored[events - forgotten :]

    def key(self) -> int | None:
        """Return the secret key by which the bandit draws its decisions."""
        return self._key

    def keep_key(self, key: int) -> None:
        """Store the secret key."""
        self._key = key

    def flush(self) -> None:
        """Do nothing: there is no disk."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


# The file is the truth. An exception of a signal handler, such as Ctrl-C, may come between any two steps, also just
# after the system has written the lines and before Python gets to know. Then the writer looks at the file before it
# is used again: if all that was to be written is there, it has happened; otherwise what is there of it is cut off.

UNITS = {"kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}
DAY = 86_400  # seconds
BLOCK = 1 << 16  # bytes that are read at once from the end of a file
KEY = ".key"  # ends the name of the file that has the key by which decisions are drawn


@dataclass(frozen=True)
class Rotation:
    """A part of a log has at most ``size`` bytes, unless one write has more, and events of one day if ``daily``."""

    size: float = float("inf")
    daily: bool = False

    def is_due(self, size: int, more: int, latest: float | None, time: float) -> bool:
        """Say whether ``more`` bytes at ``time`` begin a new part, after ``size`` bytes up to the time ``latest``."""
        if size == 0:
            return False
        later = latest is not None and time // DAY > latest // DAY  # a clock that goes backwards begins no day
        return size + more > self.size or (self.daily and later)


def rotation_from(rotate: str | None) -> Rotation:
    """Return what ``rotate`` asks for: "day" (in UTC), a size such as "100MB", or None for one file.

    >>> rotation_from("1.5 GB").size
    1500000000.0
    """
    if rotate is None:
        return Rotation()
    if rotate == "day":
        return Rotation(daily=True)
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?(kB|MB|GB)", rotate) if isinstance(rotate, str) else None
    if match is None or float(match[1]) == 0:
        raise ValueError(f"rotate must be 'day' or a size such as '500kB', '100MB' or '2GB', got {rotate!r}")
    return Rotation(size=float(match[1]) * UNITS[match[2]])


class _End(NamedTuple):
    """The end of a log: its last file, how much of that is written, the number of the part, and the events so far."""

    file: int
    size: int
    part: int
    events: int
    latest: float | None  # the latest time of an event


class LogWriter:
    """Appends events to a log of JSON lines.

    An existing log is continued: all of it is read and checked, and a line that a crash left torn is cut off. A second
    writer is refused for as long as this one is open. An event that is refused, or that could not be written, leaves
    the log as it was; a write that an exception of a signal handler interrupts is done whole or not at all. All methods
    may be called from several threads, but not in a process that was forked.

    `append` is for callers whose events are right by construction, such as a bandit; `write` and the methods for each
    kind check them first: every id is decided once, answered at most once, and corrected after that.

    Parameters
    ----------
    path
        The file, which ends in ``.jsonl``.
    sync
        Have each event on the disk when the call returns, not only with the operating system.
    rotate
        Go on in a new file, ``log.0002.jsonl`` and so on, when one has reached a size such as "100MB", or with every
        "day" (in UTC, by the times of events). Whoever reads ``log.jsonl`` reads all of them.
    context
        False to leave out the contexts of a bandit's decisions, for privacy. Without them nobody can evaluate policies
        on the log, nor can a bandit that decides by contexts come back from it.

    Attributes
    ----------
    identity
        The log's own name, which no other log has.

    Examples
    --------
    >>> import tempfile
    >>> from rightarm.logs import read_log
    >>> folder = tempfile.TemporaryDirectory()
    >>> with LogWriter(folder.name + "/log.jsonl") as log:
    ...     log.decision(1, "red", 0.5, round=1, version=0, time=1_700_000_000.0)
    ...     log.decision(2, "blue", 0.25, round=1, version=0, time=1_700_000_001.5)
    ...     log.reward(1, 1.0, time=1_700_000_002.0)
    >>> read_log(folder.name + "/log.jsonl")["arm", "propensity", "reward"].rows()
    [('red', 0.5, 1.0), ('blue', 0.25, None)]
    >>> folder.cleanup()
    """

    identity: str

    def __init__(self, path: PathLike, *, sync: bool = False, rotate: str | None = None, context: bool = True) -> None:
        self.path = Path(path)
        self.sync = sync
        self.context = context
        self._rotation = rotation_from(rotate)
        self._threads = threading.Lock()
        self._process = PROCESS[0]
        self._held = Held()
        self._unfinished: tuple[_End, _End] | None = None  # a write that was broken off: from where, and to where
        if self.path.suffix != LINES:
            hint = "; convert_log makes JSON lines of a log in Parquet" if self.path.suffix == PARQUET else ""
            raise WrongValue("path", f"must end in {LINES}, got {self.path}{hint}")
        self._is_new = not self.path.exists()
        try:
            self._open()
        except BaseException:
            self._remove_if_empty()
            self._held.close()
            raise

    def _open(self) -> None:
        """Open the last part, without what a crash left of its last line, and read what is there."""
        file = self._held.exclusive(self.path, "log", self.path)
        parts = part_paths(self.path)
        if len(parts) > 1:
            file = self._held.open(parts[-1])
        size = _size_of_whole_lines(file)
        os.ftruncate(file, size)
        os.fsync(file)
        sync_folder(self.path.parent)
        numbering = Numbering()
        order = read_order(self.path, numbering)
        self._order: EventOrder | None = order
        self._written: tuple[int, Sequence[Event]] = (0, ())  # what the order may lack: the first's number, and events
        self.identity = uuid.uuid4().hex if numbering.head is None else numbering.head.log
        self._end = _End(file, size, len(parts), order.events, order.latest)

    # Events that users write.

    def decision(
        self,
        id: int,
        arm: Arm,
        propensity: float,
        round: int,
        version: int,
        time: float,
        allowed: Sequence[Arm] | None = None,
        *,
        unit: str | int | None = None,
        group: str | None = None,
        meta: JsonObject | None = None,
        context: Sequence[float] | None = None,
        arm_features: Sequence[Sequence[float]] | None = None,
        error: float | None = None,
    ) -> None:
        """Write that an arm was chosen with probability ``propensity``, ``allowed`` these, at ``time``.

        ``unit`` is whom the decision was made for, ``group`` a part of all decisions such as "holdout", and ``meta``
        anything else, as JSON; ``context`` the numbers of the context, ``arm_features`` those of each arm in question;
        ``error`` by how much the propensity may differ from the policy's own probability.
        """
        event = Decision(
            id=id,
            arm=arm,
            propensity=propensity,
            round=round,
            version=version,
            time=time,
            allowed=None if allowed is None else list(allowed),
            unit=unit,
            group=group,
            meta=meta,
            context=None if context is None else list(context),
            arm_features=None if arm_features is None else [list(row) for row in arm_features],
            error=0.0 if error is None else error,
        )
        self.write([event])

    def reward(self, id: int, reward: float, time: float, *, part: bool = False) -> None:
        """Write the reward of a decision; with ``part`` it is what came so far, and the decision goes on waiting."""
        self.write([Reward(id=id, reward=reward, part=part, time=time)])

    def cancel(self, id: int, time: float) -> None:
        """Write that a decision will have no reward."""
        self.write([Cancellation(id=id, time=time)])

    def expiry(self, ids: Sequence[int], time: float, *, reward: float | None = None) -> None:
        """Write that decisions wait no longer; they get ``reward``, or without one keep what they have."""
        self.write([Expiry(ids=list(ids), reward=reward, time=time)])

    def correction(self, id: int, reward: float, time: float) -> None:
        """Write that the reward of a decision that is answered is this one from now on."""
        self.write([Correction(id=id, reward=reward, time=time)])

    def observation(self, arm: Arm, reward: float, time: float) -> None:
        """Write a reward of an arm that belongs to no decision; `read_log` leaves it out."""
        self.write([Observation(arm=arm, reward=reward, time=time)])

    def arms(self, arms: Sequence[Arm], time: float) -> None:
        """Write that from now on decisions are made among these arms, unless a decision says otherwise."""
        self.write([Changed(arms=list(arms), time=time)])

    def write(self, events: Sequence[Event]) -> None:
        """Append several events after a look at each, none of them if one is wrong or cannot be written."""
        checked = [_checked(event) for event in events]
        self._check_process()
        with self._threads:
            self._check_open()
            self._look_at_file()
            self._complete_order().check(checked)
            if not checked:
                return
            self._written = (self._end.events + 1, checked)
            self._append(checked)
            self._complete_order()

    # The journal.

    @property
    def events(self) -> int:
        """Return how many events the log has."""
        self._look()
        return self._end.events

    @property
    def last_id(self) -> int | None:
        """Return the largest id of a decision in the log."""
        self._look()
        with self._threads if PROCESS[0] == self._process else contextlib.nullcontext():
            return self._complete_order().last_id

    def __iter__(self) -> Iterator[Event]:
        """Yield the events, from the first on."""
        return self.since(0)

    def since(self, events: int) -> Iterator[Event]:
        """Yield the events after the first so many."""
        self._look()
        for block in read_blocks(self.path, Numbering(), after=events):
            yield from block.events[max(0, events + 1 - block.first) :]

    def append(self, events: Sequence[Event]) -> None:
        """Append several events, none of them if one cannot be written."""
        if not events:
            return
        self._check_process()
        with self._threads:
            self._check_open()
            self._look_at_file()
            self._order = None  # it may be large, and is read again where it is needed
            self._written = (0, ())
            self._append(events if self.context else [without_context(event) for event in events])

    def _check_process(self) -> None:
        if PROCESS[0] != self._process:
            raise ValueError(f"the log {self.path} was opened by process {self._process}; open it after forking")

    def _check_open(self) -> None:
        if not self._held.files:
            raise ValueError(f"the log {self.path} is closed")

    def _append(self, events: Sequence[Event]) -> None:
        """Write events whole or not at all: half a line would spoil the next one too."""
        end = self._end
        lines = self._lines(end, events)
        if self._rotation.is_due(end.size, len(lines), end.latest, events[0].time):
            end = self._next_part(end)
            lines = self._lines(end, events)
        after = _after(end, lines, events)
        self._unfinished = end, after
        try:
            _write_all(end.file, lines)
            if self.sync:
                os.fsync(end.file)
        except OSError:
            self._unfinished = end, end  # it did not happen, whatever is there of it
            self._look_at_file()
            raise
        self._end = after
        self._unfinished = None

    def _lines(self, end: _End, events: Sequence[Event]) -> bytes:
        head = Head(self.identity, end.part, end.events + 1, events[0].time) if end.size == 0 else None
        return as_lines(head, events, end.events + 1)

    def _next_part(self, before: _End) -> _End:
        """Go on in a new file, which is still empty: its head comes with its first event."""
        os.fsync(before.file)
        path = part_path(self.path, before.part + 1)
        end = before._replace(file=self._held.open(path), size=0, part=before.part + 1)
        if os.fstat(end.file).st_size:
            raise FileExistsError(errno.EEXIST, "this must be a new file, for the next part of a log", str(path))
        sync_folder(self.path.parent)
        self._end = end
        if before.part > 1:  # the first part has the lock
            self._held.close_one(before.file)
        return end

    def _complete_order(self) -> EventOrder:
        """Return the order after all events in the file; may be broken off, and is done again then."""
        if self._order is None:
            self._order = read_order(self.path, Numbering())
        first, events = self._written
        for place, event in enumerate(events, start=first):
            if place <= self._end.events:
                self._order.take(event, place)
        return self._order

    # What was broken off.

    def _look(self) -> None:
        """Look at the file if a write was broken off."""
        if self._unfinished is not None and PROCESS[0] == self._process and self._held.files:
            with self._threads:
                self._look_at_file()

    def _look_at_file(self) -> None:
        """Let a write that was broken off have happened if the file has all of it; may be broken off itself."""
        if self._unfinished is None:
            return
        before, after = self._unfinished
        if os.fstat(before.file).st_size != after.size:
            os.ftruncate(before.file, before.size)
            after = before
        elif self.sync:
            os.fsync(before.file)
        self._end = after
        self._unfinished = None

    # The key.

    def key(self) -> int | None:
        """Return the secret key by which the bandit of this log draws its decisions, if it is there."""
        try:
            return key_from(self._key_path.read_text().strip())
        except FileNotFoundError:
            return None

    def keep_key(self, key: int) -> None:
        """Keep the secret key in a file of its own, which only its owner may read."""
        write_whole(self._key_path, f"{key:032x}\n".encode(), mode=0o600)

    @property
    def _key_path(self) -> Path:
        return self.path.with_name(self.path.name + KEY)

    # The end.

    def flush(self) -> None:
        """Have everything that was written on the disk."""
        self._check_process()
        self._look()
        with self._threads:
            self._check_open()
            os.fsync(self._end.file)

    def close(self) -> None:
        """Hand everything to the disk and let the next writer in."""
        if PROCESS[0] != self._process:
            return  # the file was closed here when this process was forked
        self._look()
        with self._threads:
            try:
                if self._held.files:
                    os.fsync(self._end.file)
            finally:
                self._held.close()

    def discard(self) -> None:
        """Close a log that is not wanted after all; a file that was made for it, and has no event, is removed."""
        self._look()
        self._remove_if_empty()
        self.close()

    def _remove_if_empty(self) -> None:
        """Remove the file if it was made here and is empty; to be called with the lock, so that nobody writes to it."""
        if self._is_new and self._held.files and os.fstat(self._held.files[0]).st_size == 0:
            self.path.unlink()
            self._key_path.unlink(missing_ok=True)

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _checked(event: Event) -> Event:
    """Return an event after a look at all of it: what JSON makes of it must be an event, too."""
    if not isinstance(event, Event):
        raise WrongType("event", f"must be an event such as Reward(...), got {event!r:.200}")
    fields = msgspec.structs.asdict(event)
    for name, value in fields.items():
        if isinstance(value, float) and not math.isfinite(value):  # which JSON would make null
            raise WrongValue(name, f"must be finite, got {value}")
    try:
        checked: Event = DECODER.decode(ENCODER.encode(event))
        return checked
    except msgspec.ValidationError as error:
        what = described(error, fields)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise WrongValue("event", f"must be what JSON can keep: {error}, got {event!r:.300}") from None
    name, _, rest = what.partition(" ")
    hint = "; times are in seconds since 1970" if name == "time" else ""
    raise WrongValue(name, rest + hint)


def _after(end: _End, lines: bytes, events: Sequence[Event]) -> _End:
    """Return where the log goes on after these lines."""
    latest = max(event.time for event in events)
    if end.latest is not None:
        latest = max(latest, end.latest)
    return end._replace(size=end.size + len(lines), events=end.events + len(events), latest=latest)


def _write_all(file: int, lines: bytes) -> None:
    written = os.write(file, lines)
    while written < len(lines):
        written += os.write(file, lines[written:])


def _size_of_whole_lines(file: int) -> int:
    """Return how much of a file is whole lines: up to the last end of a line."""
    end = os.fstat(file).st_size
    while end:
        start = max(0, end - BLOCK)
        place = os.pread(file, end - start, start).rfind(b"\n")
        if place >= 0:
            return start + place + 1
        end = start
    return 0
