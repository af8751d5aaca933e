"""`LogWriter`: appends the events of a live bandit to a file, a line of JSON each.

A line can be read by anything, and a process that is killed in the middle of a line loses that line alone.

An exception of a signal handler, such as Ctrl-C, may come between any two steps, also just after the system has written
the lines and before Python knows. So a write first notes what it is about to do, and the note is cleared when all is
done. If it is still there when the writer is used again, the size of the file says whether the lines were written: then
they count, and what is left to do is done; or they did not happen, and what is there of them is cut off.
"""

from __future__ import annotations

import errno
import os
import threading
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rightarm.files import Held, sync_folder
from rightarm.logs.answers import Answers
from rightarm.logs.blocks import read_blocks
from rightarm.logs.events import Arm, Event, answer_event, checked
from rightarm.logs.lines import Head, Numbering, as_lines, part_path, part_paths
from rightarm.logs.parquet import LINES, PARQUET
from rightarm.logs.reader import read_log
from rightarm.logs.rotation import rotation_from
from rightarm.logs.stream import PathLike

BLOCK = 1 << 16  # bytes that are read at once from the end of a file


class _End(NamedTuple):
    """Where the log goes on: a file, how much of it is written, and which part of the log it is."""

    file: int
    size: int
    part: int


class _Unfinished(NamedTuple):
    """What a write is about to append, and where; ``first`` is the number of the first event."""

    end: _End
    lines: bytes
    events: list[Event]
    first: int


class LogWriter:
    """Appends events to a log of JSON lines; its path ends in ``.jsonl``.

    - ``sync``: an event is on the disk when the call returns, not only with the operating system.
    - ``rotate``: the log goes on in a new file, ``log.0002.jsonl`` and so on, when one has reached a size such as
      "100MB", or with every "day" (in UTC, by the times of events). Whoever reads ``log.jsonl`` reads all of them.

    An existing log is continued: all of it is read and checked, and a line that a crash left torn is cut off. A second
    writer is refused for as long as this one is open. An event that is refused, or that could not be written, leaves
    the log as it was; a write that an exception of a signal handler interrupts is done whole or not at all, see
    `settle`. All methods may be called from several threads, but not in a process that was forked.

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
    """The log's own name, which no other log has."""

    def __init__(self, path: PathLike, *, sync: bool = False, rotate: str | None = None) -> None:
        self.path, self.sync, self._rotation = Path(path), sync, rotation_from(rotate)
        self._threads, self._process, self._held = threading.Lock(), os.getpid(), Held()
        self._unfinished: _Unfinished | None = None
        self._outcome: bool | None = None
        if self.path.suffix != LINES:
            hint = "; convert_log makes JSON lines of a log in Parquet" if self.path.suffix == PARQUET else ""
            raise ValueError(f"path must end in {LINES}, got {self.path}{hint}")
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
        numbering, answers = Numbering(), Answers()
        for block in read_blocks(self.path, numbering):
            answers.take(block)
        self._order = answers.order(self.path)
        self.identity = uuid.uuid4().hex if numbering.head is None else numbering.head.log
        self._end = _End(file, size, len(parts))

    # What happens.

    def decision(
        self,
        id: int,
        arm: Arm,
        propensity: float,
        round: int,
        version: int,
        time: float,
        among: Sequence[Arm] | None = None,
        *,
        unit: str | int | None = None,
        group: str | None = None,
        meta: dict[str, Any] | None = None,
        context: Sequence[float] | None = None,
        arm_features: Sequence[Sequence[float]] | None = None,
        error: float | None = None,
    ) -> None:
        """An arm was chosen with probability ``propensity``, ``among`` these, at ``time`` in seconds since 1970.

        ``unit`` is whom the decision was made for, ``group`` a part of all decisions such as "holdout", and ``meta``
        anything else, as JSON; ``context`` the numbers of the context, ``arm_features`` those of each arm in question;
        ``error`` by how much the propensity may differ from the policy's own probability.
        """
        event = {"event": "decision", "id": id, "arm": arm, "propensity": propensity, "round": round}
        more: dict[str, Any] = {"among": among, "unit": unit, "group": group, "meta": meta, "context": context}
        more |= {"arm_features": arm_features, "error": error}
        event |= {"version": version, "time": time} | {name: v for name, v in more.items() if v is not None}
        self.write([event])

    def reward(self, id: int, reward: float, time: float, *, part: bool = False) -> None:
        """The reward of a decision came; with ``part`` it is what came so far, and the decision goes on waiting."""
        self.write([answer_event(id, reward, time) | ({"part": True} if part else {})])

    def cancel(self, id: int, time: float) -> None:
        """The decision will have no reward."""
        self.write([answer_event(id, None, time)])

    def expiry(self, ids: Sequence[int], time: float, *, reward: float | None = None) -> None:
        """These decisions wait no longer; they get ``reward``, or without one keep what they have."""
        self.write([{"event": "expiry", "ids": ids, "time": time} | ({} if reward is None else {"reward": reward})])

    def correction(self, id: int, reward: float, time: float) -> None:
        """The reward of a decision that is answered is this one from now on."""
        self.write([{"event": "correction", "id": id, "reward": reward, "time": time}])

    def observation(self, arm: Arm, reward: float, time: float) -> None:
        """A reward of an arm came that belongs to no decision; `read_log` leaves it out."""
        self.write([{"event": "observation", "arm": arm, "reward": reward, "time": time}])

    def arms(self, arms: Sequence[Arm], time: float) -> None:
        """From now on, decisions are made among these arms, unless a decision says otherwise."""
        self.write([{"event": "arms", "arms": arms, "time": time}])

    # What is there.

    @property
    def last_id(self) -> int | None:
        """The largest id of a decision in the log, so that a bandit that comes back does not use it again."""
        self.settle()
        return self._order.last_id

    @property
    def events(self) -> int:
        """How many events the log has."""
        self.settle()
        return self._order.events

    def __iter__(self) -> Iterator[Event]:
        """The events, from the first on."""
        return self.since(0)

    def since(self, events: int) -> Iterator[Event]:
        """The events after the first so many."""
        self.settle()
        for block in read_blocks(self.path, Numbering(), after=events):
            yield from map(checked, block.events[max(0, events + 1 - block.first) :])

    def frame(self) -> Any:
        """All decisions with their rewards, as `read_log` gives them."""
        self.settle()
        return read_log(self.path)

    # How it is written.

    def write(self, events: Sequence[Event]) -> None:
        """Append several events, as they stand in a log, none of them if one is wrong or cannot be written."""
        new = [checked(event) for event in events]
        if not new:
            return
        self._check_process()
        with self._threads:
            self._check_open()
            self._settle()
            self._order.check(new)
            self._append(new)

    def _append(self, events: list[Event]) -> None:
        """Write events whole or not at all: half a line would spoil the next one too."""
        end, first = self._end, self._order.events + 1
        lines = self._lines(end, events, first)
        if self._rotation.is_due(end.size, len(lines), self._order.latest, events[0]["time"]):
            end = self._next_part(end)
            lines = self._lines(end, events, first)
        self._outcome = None
        self._unfinished = note = _Unfinished(end, lines, events, first)
        try:
            rest = memoryview(lines)
            while rest:
                rest = rest[os.write(end.file, rest) :]
            if self.sync:
                os.fsync(end.file)
        except OSError:
            self._unfinished = note._replace(lines=b"", events=[])  # it did not happen, whatever is there of it
            self._settle()
            raise
        self._finish(note)

    def _lines(self, end: _End, events: list[Event], first: int) -> bytes:
        head = Head(self.identity, end.part, first, events[0]["time"]) if end.size == 0 else None
        return as_lines(head, events, first)

    def _next_part(self, before: _End) -> _End:
        """Go on in a new file, which is still empty: its head comes with its first event."""
        os.fsync(before.file)
        path = part_path(self.path, before.part + 1)
        end = _End(self._held.open(path), 0, before.part + 1)
        if os.fstat(end.file).st_size:
            raise FileExistsError(errno.EEXIST, "this must be a new file, for the next part of a log", str(path))
        sync_folder(self.path.parent)
        self._end = end
        if before.part > 1:  # the first part has the lock
            self._held.close_one(before.file)
        return end

    def _finish(self, note: _Unfinished) -> None:
        """What was written counts. This may be interrupted and done again."""
        for place, event in enumerate(note.events, start=note.first):
            self._order.take(event, place)
        self._end = _End(note.end.file, note.end.size + len(note.lines), note.end.part)
        self._unfinished = None

    def settle(self) -> bool | None:
        """Finish a write that was interrupted: True if it counts, False if it did not happen, None if there was none.

        Every method does so first. An interrupt may also come before a write begins, or after it is finished: then this
        is None, and whether ``events`` has grown says which it was.
        """
        if os.getpid() != self._process or not self._held.files:
            return self._outcome
        with self._threads:
            self._settle()
            return self._outcome

    def _settle(self) -> None:
        note = self._unfinished
        if note is None:
            return
        written = os.fstat(note.end.file).st_size == note.end.size + len(note.lines)
        if written and note.events:
            if self.sync:
                os.fsync(note.end.file)
            self._outcome = True
            self._finish(note)
        else:
            os.ftruncate(note.end.file, note.end.size)
            self._outcome = False
            self._unfinished = None

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise ValueError(f"the log {self.path} was opened by process {self._process}; open it after forking")

    def _check_open(self) -> None:
        if not self._held.files:
            raise ValueError(f"the log {self.path} is closed")

    def flush(self) -> None:
        """Have everything that was written on the disk."""
        self._check_process()
        with self._threads:
            self._check_open()
            self._settle()
            os.fsync(self._end.file)

    def close(self) -> None:
        """Hand everything to the disk and let the next writer in."""
        if os.getpid() != self._process:
            return  # the file was closed here when this process was forked
        with self._threads:
            try:
                if self._held.files:
                    self._settle()
                    os.fsync(self._end.file)
            finally:
                self._unfinished = None  # whose file is not ours any more
                self._held.close()

    def discard(self) -> None:
        """Close a log that is not wanted after all; a file that was made for it, and has no event, is removed."""
        self.settle()
        self._remove_if_empty()
        self.close()

    def _remove_if_empty(self) -> None:
        """Remove the file if it was made here and is empty; to be called with the lock, so that nobody writes to it."""
        if self._is_new and self._held.files and os.fstat(self._held.files[0]).st_size == 0:
            self.path.unlink()

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _size_of_whole_lines(file: int) -> int:
    """How much of a file is whole lines: up to the last end of a line."""
    end = os.fstat(file).st_size
    while end:
        start = max(0, end - BLOCK)
        place = os.pread(file, end - start, start).rfind(b"\n")
        if place >= 0:
            return start + place + 1
        end = start
    return 0
