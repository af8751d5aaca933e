"""The folder of a bandit: its log, the key of its draws, and a snapshot so that not all of the log is read again."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from rightarm.files import remove_leftovers, write_whole
from rightarm.live import saved
from rightarm.live.state import State
from rightarm.logs.events import Specification
from rightarm.logs.journal import Journal
from rightarm.logs.lines import IN_FOLDER
from rightarm.logs.writer import LogWriter
from rightarm.scores.policy import Policy

SNAPSHOT = "snapshot.json"


class Folder:
    """Where a bandit lives; a snapshot is due after ``every`` so many events, or a tenth of all if that is more."""

    def __init__(self, path: Path, every: int) -> None:
        self.path = path
        self.every = every
        self.saved = 0  # how many events the last snapshot has

    @contextlib.contextmanager
    def opened(self, sync: bool, rotate: str | None) -> Iterator[LogWriter]:
        """Yield the log. If what follows fails, it is closed, and nothing that was made here stays."""
        missing = [folder for folder in (self.path, *self.path.parents) if not folder.exists()]
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            log = LogWriter(self.path / IN_FOLDER, sync=sync, rotate=rotate)
            try:
                remove_leftovers(self.path)
                if not log.events and (self.path / SNAPSHOT).exists():
                    raise ValueError(f"{self.path} has a snapshot, but its log has no events")
                yield log
            except BaseException:
                log.discard()
                raise
        except BaseException:
            with contextlib.suppress(OSError):  # a folder in which there is something stays
                for folder in missing:
                    folder.rmdir()
            raise

    def load(self, find_policy: Callable[[Specification], Policy]) -> saved.Saved | None:
        """Return the last snapshot, if there is one."""
        snapshot = self.path / SNAPSHOT
        if not snapshot.exists():
            return None
        try:
            found = saved.from_json(snapshot.read_bytes(), find_policy)
        except ValueError as error:
            raise ValueError(f"{snapshot}: {error}; without this file all of the log is read") from None
        if found.place is None:
            raise ValueError(f"{snapshot} must be a snapshot with its log, got the state of a bandit that had none")
        self.saved = found.place.events
        return found

    def look(self, state: State, log: Journal) -> None:
        """Write a snapshot if one is due."""
        if log.events - self.saved < max(self.every, self.saved // 10):
            return
        try:
            self.save(state, log)
        except OSError as error:  # the log has everything: what was asked or told must not fail for this
            self.saved = log.events
            warnings.warn(f"no snapshot could be written, the next one is tried later: {error}", stacklevel=2)

    def save(self, state: State, log: Journal) -> None:
        """Write a snapshot; what it says of the log must be on the disk before it."""
        log.flush()
        place = saved.Place(log.identity, log.events)
        write_whole(self.path / SNAPSHOT, saved.to_json(state, place, None).encode())
        self.saved = place.events
