"""`LogWriter`: appends the events of a live bandit to a file, a line of JSON each.

A line can be read by anything, and a process that is killed in the middle of a line loses that line alone.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path

from rightarm.files import exclusive, sync_folder
from rightarm.logs.events import Arm, Event, EventOrder, answer_event, as_line, checked
from rightarm.logs.parquet import LINES, PARQUET
from rightarm.logs.reader import PathLike, read_events, whole_lines


class LogWriter:
    """Appends events to a log of JSON lines; its path ends in ``.jsonl``.

    ``sync``: an event is on the disk when the call returns, not only with the operating system.

    An existing log is continued: all of it is read and checked, and a line that a crash left torn is cut off. A second
    writer is refused for as long as this one is open. An event that is refused, or that could not be written, leaves
    the log as it was. All methods may be called from several threads.

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

    def __init__(self, path: PathLike, *, sync: bool = False) -> None:
        self.path, self.sync = Path(path), sync
        self._threads, self._process, self._closed = threading.Lock(), os.getpid(), False
        self._order, self._files = EventOrder(), list[int]()
        if self.path.suffix != LINES:
            hint = "; convert_log makes JSON lines of a log in Parquet" if self.path.suffix == PARQUET else ""
            raise ValueError(f"path must end in {LINES}, got {self.path}{hint}")
        weakref.finalize(self, _close_all, self._files)  # a writer that was dropped lets the next one in
        try:
            self._open()
        except BaseException:
            self._release()
            raise

    def _open(self) -> None:
        """Open the file, without what a crash left of its last line, and read what is there."""
        self._file = exclusive(self.path, "log", self.path)
        self._files.append(self._file)
        self._size = sum(map(len, whole_lines(self.path)))
        os.ftruncate(self._file, self._size)
        os.fsync(self._file)
        sync_folder(self.path.parent)
        for _ in read_events(self.path, self._order):
            pass

    def decision(
        self,
        id: int,
        arm: Arm,
        propensity: float,
        round: int,
        version: int,
        time: float,
        among: Sequence[Arm] | None = None,
    ) -> None:
        """An arm was chosen with probability ``propensity``, ``among`` these, at ``time`` in seconds since 1970."""
        event = {"event": "decision", "id": id, "arm": arm, "propensity": propensity, "round": round}
        event |= {"version": version, "time": time} | ({} if among is None else {"among": among})
        self.write([event])

    def reward(self, id: int, reward: float, time: float) -> None:
        """The reward of a decision came."""
        self.write([answer_event(id, reward, time)])

    def cancel(self, id: int, time: float) -> None:
        """The decision will have no reward."""
        self.write([answer_event(id, None, time)])

    def observation(self, arm: Arm, reward: float, time: float) -> None:
        """A reward of an arm came that belongs to no decision; `read_log` leaves it out."""
        self.write([{"event": "observation", "arm": arm, "reward": reward, "time": time}])

    def arms(self, arms: Sequence[Arm], time: float) -> None:
        """From now on, decisions are made among these arms, unless a decision says otherwise."""
        self.write([{"event": "arms", "arms": arms, "time": time}])

    @property
    def last_id(self) -> int | None:
        """The largest id of a decision in the log, so that a bandit that comes back does not use it again."""
        return self._order.last_id

    @property
    def events(self) -> int:
        """How many events the log has."""
        return self._order.events

    def __iter__(self) -> Iterator[Event]:
        """The events, from the first on."""
        return read_events(self.path)

    def write(self, events: Sequence[Event]) -> None:
        """Append several events, as they stand in a log, none of them if one is wrong or cannot be written."""
        new = [checked(event) for event in events]
        numbers = [event["id"] for event in new if "id" in event]
        if len(set(numbers)) < len(numbers):
            raise ValueError(f"events written together must be about different decisions, got {numbers}")
        lines = "".join(map(as_line, new)).encode()
        with self._threads:
            self._check_open()
            for event in new:
                self._order.check(event)
            self._append(lines)
            for event in new:
                self._order.take(event)

    def _append(self, lines: bytes) -> None:
        """Write lines whole or not at all: half a line would spoil the next one too."""
        try:
            rest = memoryview(lines)
            while rest:
                rest = rest[os.write(self._file, rest) :]
            if self.sync:
                os.fsync(self._file)
        except BaseException:
            self._closed = True  # unless the log can be made what it was
            os.ftruncate(self._file, self._size)
            self._closed = False
            raise
        self._size += len(lines)

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError(f"the log {self.path} is closed")
        if os.getpid() != self._process:
            raise ValueError(f"the log {self.path} was opened by process {self._process}; open it after forking")

    def close(self) -> None:
        """Hand everything to the disk and let the next writer in."""
        with self._threads:
            if not self._closed:
                os.fsync(self._file)
            self._release()

    def _release(self) -> None:
        self._closed = True
        _close_all(self._files)  # the lock goes with the file

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _close_all(files: list[int]) -> None:
    while files:
        os.close(files.pop())
