"""Where the events of a bandit are kept: in memory, in a file, in a table of a database."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from rightarm.errors import WrongValue
from rightarm.logs.events import Event


class Journal(Protocol):
    """An append-only sequence of events, numbered from 1; `rightarm.testing.check_journal` tries one's own.

    `LogWriter` keeps them in a file, `rightarm.store` in a database.
    """

    @property
    def identity(self) -> str:
        """Return the journal's own name, which no other journal has."""

    @property
    def events(self) -> int:
        """Return how many events have happened."""

    def append(self, events: Sequence[Event]) -> None:
        """Keep several events, or none of them; once this returns, they have happened."""

    def since(self, events: int) -> Iterator[Event]:
        """Yield the events after the first so many."""

    def key(self) -> int | None:
        """Return the secret key by which the bandit draws its decisions, if it was given one."""

    def keep_key(self, key: int) -> None:
        """Keep the secret key beside the events, where no reader of the events finds it."""

    def flush(self) -> None:
        """Have everything that was appended on the disk."""

    def close(self) -> None:
        """Append no more."""


def key_from(text: Any) -> int:
    """Return a secret key from its text; errors do not say what it is."""
    if not isinstance(text, str) or re.fullmatch("[0-9a-f]{32}", text) is None:
        raise WrongValue("key", "must be 32 hexadecimal digits")
    return int(text, 16)


class MemoryJournal:
    """Keep events in memory, for as long as the bandit may need them again.

    >>> from rightarm.logs.events import Reward
    >>> journal = MemoryJournal()
    >>> journal.append([Reward(id=1, reward=0.5, time=0.0), Reward(id=2, reward=1.0, time=0.0)])
    >>> journal.forget(1)
    >>> journal.events, [event.id for event in journal.since(1)]
    (2, [2])
    """

    def __init__(self, events: int = 0) -> None:
        self.identity = uuid.uuid4().hex
        self._kept: tuple[int, list[Event]] = (events, [])  # how many are forgotten, and the others
        self._key: int | None = None

    @property
    def events(self) -> int:
        """Return how many events have happened."""
        forgotten, kept = self._kept
        return forgotten + len(kept)

    def append(self, events: Sequence[Event]) -> None:
        """Keep several events."""
        self._kept[1].extend(events)

    def since(self, events: int) -> Iterator[Event]:
        """Yield the events after the first so many, which must not be forgotten."""
        forgotten, kept = self._kept
        if events < forgotten:
            raise ValueError(f"the first {forgotten} events are forgotten, got {events}")
        return iter(kept[events - forgotten :])

    def forget(self, events: int) -> None:
        """Keep the first so many events no more."""
        forgotten, kept = self._kept
        self._kept = events, kept[events - forgotten :]

    def cut(self, events: int) -> None:
        """Let only the first so many events have happened."""
        forgotten, kept = self._kept
        del kept[events - forgotten :]

    def key(self) -> int | None:
        """Return the secret key by which the bandit draws its decisions."""
        return self._key

    def keep_key(self, key: int) -> None:
        """Keep the secret key."""
        self._key = key

    def flush(self) -> None:
        """Do nothing: there is no disk."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""
