"""`TableJournal`: the events of a bandit in a store; what is appended waits in memory for the commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from rightarm.live.state import State
from rightarm.logs.events import DECODER, ENCODER, Event
from rightarm.logs.lines import gap
from rightarm.store.digests import digest_of
from rightarm.store.errors import Damaged
from rightarm.store.rows import Rows


class Stored(NamedTuple):
    """An event as the table has it."""

    n: int
    line: str
    digest: bytes

    def event(self) -> Event:
        """Return the event itself."""
        event: Event = DECODER.decode(self.line)
        return event

    def numbered(self) -> bytes:
        """Return the event as a line of a log, with its number first."""
        return b'{"n":%d,' % self.n + self.line[1:].encode() + b"\n"


Read = Callable[[int], Iterator[Stored]]  # the events after the first so many


class TableJournal:
    """The events of one bandit: those in the database, of which ``digest`` is the last one's, and new ones.

    The digests of events are chained, so that a byte that changes anywhere is noticed.
    """

    def __init__(self, name: str, identity: str, key: int, begin: bytes, read: Read) -> None:
        self.path = name
        self.identity = identity
        self.events = 0
        self.digest = begin
        self._key = key
        self._read = read
        self.committed()

    def committed(self) -> None:
        """Let what was new be in the database."""
        self.new: list[Stored] = []
        self.rows = Rows()

    def append(self, events: Sequence[Event]) -> None:
        """Let events wait for the commit."""
        for event in events:
            line = ENCODER.encode(event)
            digest = digest_of(self.digest, line)
            self.new.append(Stored(self.events + 1, line.decode(), digest))
            self.digest = digest
            self.events += 1

    def note(self, state: State, event: Event) -> None:
        """Note what follows from the event that comes next, for the tables beside it; ``state`` is that before it."""
        self.rows.add(state, event, self.events + 1)

    def since(self, events: int) -> Iterator[Event]:
        """Yield the events after the first so many: those in the database, and those that wait."""
        waiting = {stored.n for stored in self.new}
        yield from (stored.event() for stored in self._read(events) if stored.n not in waiting)
        yield from (stored.event() for stored in self.new if stored.n > events)

    def follow(self, rows: Iterable[Stored]) -> Iterator[Event]:
        """Yield the events that come next, each of them checked to be that."""
        for row in rows:
            if row.n != self.events + 1:
                raise Damaged(f"{self.path}: {gap(self.events + 1, row.n)}")
            if digest_of(self.digest, row.line) != row.digest:
                raise Damaged(f"{self.path}: event {row.n} is not as it was written")
            self.events = row.n
            self.digest = row.digest
            yield row.event()

    def key(self) -> int | None:
        """Return the secret key by which the bandit draws its decisions, which the store serves to nobody."""
        return self._key

    def keep_key(self, key: int) -> None:
        """Refuse: the key came with the bandit's row."""
        raise ValueError(f"the bandit {self.path} has its key already")

    def flush(self) -> None:
        """Do nothing: what is new waits for the commit of the store."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""
