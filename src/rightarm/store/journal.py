"""`Pages`: the journal of a bandit in a store; what is written to it waits there for the commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from rightarm.live.fold import State
from rightarm.logs.events import Event, checked
from rightarm.logs.lines import as_line, gap, numbered
from rightarm.store.digests import digest_of
from rightarm.store.errors import Damaged
from rightarm.store.rows import Rows

_decode = msgspec.json.Decoder(dict).decode


class Stored(NamedTuple):
    """An event as the table has it."""

    n: int
    line: str
    digest: bytes


Read = Callable[[int], Iterator[Stored]]  # the events after the first so many


class Pages:
    """The events of one bandit: those in the database, of which ``digest`` is the last one's, and new ones."""

    last_id: int | None = None  # the ids of decisions are part of the fold

    def __init__(self, path: str, identity: str, begin: bytes, read: Read) -> None:
        self.path, self.identity = path, identity
        self.events, self.digest, self.begin = 0, begin, begin
        self.state: State | None = None
        self.by: str | None = None  # who changes the bandit just now
        self._read = read
        self.written()

    def written(self) -> None:
        """What was new is in the database."""
        self.new: list[Stored] = []
        self.rows = Rows()

    def write(self, events: Sequence[Event]) -> None:
        """Append events to what waits for the commit; a decision's version is the number of the event before it."""
        found = list[Event]()
        for n, event in enumerate(events, start=self.events + 1):
            kind = event["event"]
            if kind == "decision":
                event = event | {"version": n - 1}
            elif self.by is not None and kind in ("settings", "arms", "policy", "status"):
                event = event | {"by": self.by}
            found.append(checked(event))
        for event in found:
            n = self.events + 1
            line = as_line(numbered(event, n))[:-1]
            if self.state is not None:  # else it is the beginning, from which no rows follow
                self.rows.add(self.state, event, n)
            self.digest = digest_of(self.digest, line)
            self.new.append(Stored(n, line.decode(), self.digest))
            self.events = n

    def since(self, events: int) -> Iterator[Event]:
        """The events after the first so many, as the database has them."""
        return map(_event, self._read(events))

    def follow(self, rows: Iterator[Stored] | list[Stored]) -> Iterator[Event]:
        """The events that come next, each of them checked to be that."""
        for row in rows:
            if row.n != self.events + 1:
                raise Damaged(f"{self.path}: {gap(self.events + 1, row.n)}")
            if digest_of(self.digest, row.line) != row.digest:
                raise Damaged(f"{self.path}: event {row.n} is not as it was written")
            self.events, self.digest = row.n, row.digest
            yield _event(row)

    def frame(self) -> Any:
        """Refused: nobody else could decide while all events are read."""
        raise ValueError(
            f"difference is for bandits that remember all their decisions, got {self.path} with {self.events:,}: "
            "`rightarm export` makes a log of it, from which Bandit.from_log makes the same bandit"
        )

    def settle(self) -> None:
        """Nothing is ever interrupted here."""

    def flush(self) -> None:
        """What is written waits for the commit of the store."""

    def close(self) -> None:
        """There is nothing to close."""


def _event(row: Stored) -> Event:
    event: Event = _decode(row.line)
    return event
