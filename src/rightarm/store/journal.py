"""`TableJournal`: the events of a bandit in a store, and the rows of other tables that follow from them.

What is appended waits in memory for the commit.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from rightarm.live.state import State
from rightarm.logs.events import (
    DECODER,
    ENCODER,
    Cancellation,
    Correction,
    Decision,
    Event,
    Expiry,
    Observation,
    Reward,
    ids_of,
)
from rightarm.logs.lines import gap
from rightarm.store.errors import Damaged

HOUR = 3600
DIGEST_BYTES = 16


def digest_of(*parts: bytes | str) -> bytes:
    """The digest of some texts, each with its length, so that no two sequences of texts have the same."""
    found = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "little"))
        found.update(data)
    return found.digest()


def first_digest(name: str, identity: str, definition: str, created: float, key: str) -> bytes:
    """Return what the first event's digest goes on from: that of the bandit's row."""
    return digest_of(name, identity, definition, repr(created), key)


class Rows:
    """The rows that follow from some events of a bandit."""

    def __init__(self) -> None:
        self.decisions: dict[int, tuple[int, str | None]] = {}
        """Of each new decision the number of its event, and its unit as JSON."""
        self.answers: dict[int, int] = {}
        """Of each decision that was answered or corrected the number of the event."""
        self.counts: defaultdict[tuple[int, int], list[float]] = defaultdict(lambda: [0, 0, 0.0, 0.0])
        """By hour and arm: decisions, rewards, the sum of these, and that of their absolute values."""

    def add(self, state: State, event: Event, n: int) -> None:
        """Take the event of number ``n``; ``state`` is that before it."""
        hour = int(event.time // HOUR)
        match event:
            case Decision():
                unit = None if event.unit is None else msgspec.json.encode(event.unit).decode()
                self.decisions[event.id] = n, unit
                self.counts[hour, state.index[event.arm]][0] += 1
            case Observation():
                self._count(hour, state.index[event.arm], 1, event.reward)
            case Reward(part=True):
                pass
            case Reward() | Cancellation() | Expiry() | Correction():
                for number in ids_of(event):
                    self.answers[number] = n
                    self._answer(state, event, number, hour)

    def _answer(self, state: State, event: Reward | Cancellation | Expiry | Correction, number: int, hour: int) -> None:
        reward = None if isinstance(event, Cancellation) else event.reward
        waiting = state.ledger.pending.get(number)
        if waiting is not None:
            value = waiting.so_far if isinstance(event, Expiry) and reward is None else reward
            if value is not None:
                self._count(hour, waiting.arm, 1, value)
            return
        before = state.ledger.answered.get(number)
        if before is not None and reward is not None:
            if before.reward is None:
                self._count(hour, before.arm, 1, reward)
            else:
                self._count(hour, before.arm, 0, reward - before.reward)

    def _count(self, hour: int, arm: int, rewards: int, total: float) -> None:
        row = self.counts[hour, arm]
        row[1] += rewards
        row[2] += total
        row[3] += abs(total)

    def decision_rows(self, bandit: int) -> list[dict[str, Any]]:
        """Return the new decisions as the table has them."""
        return [
            {"bandit": bandit, "id": number, "n": n, "unit": unit, "answer": self.answers.get(number)}
            for number, (n, unit) in self.decisions.items()
        ]

    def answer_rows(self, bandit: int) -> list[dict[str, Any]]:
        """Return the answers of decisions that the table has already."""
        return [
            {"of": bandit, "number": number, "event": n}
            for number, n in self.answers.items()
            if number not in self.decisions
        ]

    def count_rows(self, bandit: int) -> list[dict[str, Any]]:
        """Return what is to be added to the counts."""
        return [
            {"bandit": bandit, "hour": hour, "arm": arm, "decisions": made, "rewards": rewards, "total": total}
            for (hour, arm), (made, rewards, total, _) in sorted(self.counts.items())
        ]


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
        """Let events wait for the commit, none of them if one cannot be written as JSON."""
        for line in [ENCODER.encode(event) for event in events]:
            self.digest = digest_of(self.digest, line)
            self.events += 1
            self.new.append(Stored(self.events, line.decode(), self.digest))

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
