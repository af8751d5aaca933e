"""What a live bandit needs of the place where its events go: a file, or a table of a database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from rightarm.logs.events import Event


class Journal(Protocol):
    """Events, numbered from 1: `LogWriter` has them in a file, `rightarm.store` in a database."""

    @property
    def path(self) -> Any:
        """Where it is."""

    @property
    def identity(self) -> str:
        """Its own name, which no other journal has."""

    @property
    def events(self) -> int:
        """How many events it has."""

    @property
    def last_id(self) -> int | None:
        """The largest id of a decision in it."""

    def write(self, events: Sequence[Event]) -> None:
        """Append several events, or none of them if one is wrong or cannot be written."""

    def since(self, events: int) -> Iterator[Event]:
        """The events after the first so many."""

    def frame(self) -> Any:
        """All decisions with their rewards, as `read_log` gives them."""

    def settle(self) -> bool | None:
        """Finish a write that was interrupted."""

    def flush(self) -> None:
        """Have everything that was written on the disk."""

    def close(self) -> None:
        """Write no more."""
