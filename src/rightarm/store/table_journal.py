"""`TableJournal`: the events of a bandit in a store, and the rows of other tables that follow from them.

What is appended waits in memory for the commit.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
from sqlalchemy import Connection, Insert, Row, bindparam, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from rightarm.bandit.state import State
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
from rightarm.logs.journals import key_from
from rightarm.logs.lines import gap
from rightarm.store import schema
from rightarm.store.connections import Damaged, Unavailable

HOUR = 3600
DIGEST_BYTES = 16
MANY = 10_000  # events that are read at once

RowDict = dict[str, int | float | str | bytes | None]

# Statements are made once: making them takes longer than the database does.

_bandits = schema.bandits.c
_decisions = schema.decisions.c
_keys = schema.keys.c
FIND_BANDIT = select(schema.bandits).where(_bandits.name == bindparam("name"))
TAKE_BANDIT = FIND_BANDIT.with_for_update()
ADVANCE_BANDIT = (
    update(schema.bandits)
    .where(_bandits.id == bindparam("of"), _bandits.last == bindparam("committed"))
    .values(last=bindparam("new_last"), digest=bindparam("new_digest"), status=bindparam("new_status"))
)
INSERT_EVENTS = insert(schema.events)
INSERT_DECISIONS = insert(schema.decisions)
ANSWER_DECISION = (
    update(schema.decisions)
    .where(_decisions.bandit == bindparam("of"), _decisions.id == bindparam("number"))
    .values(answer=bindparam("event"))
)
INSERT_KEYS = insert(schema.keys)
FIND_KEY = select(_keys.request, _keys.answer).where(
    _keys.bandit == bindparam("bandit"), _keys.kind == bindparam("kind"), _keys.key == bindparam("key")
)


def _adding(statement: sqlite.Insert | postgresql.Insert) -> Insert:
    """Return an insertion of counts that are added to those that are there."""
    table = schema.counts.c
    sums = {name: table[name] + statement.excluded[name] for name in ("decisions", "rewards", "total")}
    return statement.on_conflict_do_update(index_elements=["bandit", "hour", "arm"], set_=sums)


ADD_COUNTS = {
    "sqlite": _adding(sqlite.insert(schema.counts)),
    "postgresql": _adding(postgresql.insert(schema.counts)),
}


def digest_of(*parts: bytes | str) -> bytes:
    """Return the digest of some texts, each with its length, so that no two sequences of texts have the same."""
    found = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "little"))
        found.update(data)
    return found.digest()


def first_digest(name: str, identity: str, definition: str, created: float, key: str) -> bytes:
    """Return the digest of a bandit's row, from which that of the first event goes on."""
    return digest_of(name, identity, definition, repr(created), key)


class Count:
    """The decisions of an arm in an hour, and the rewards that came."""

    def __init__(self) -> None:
        self.decisions = 0
        self.rewards = 0
        self.total = 0.0
        self.size = 0.0
        """The sum of the absolute values of what ``total`` is made of."""

    def add(self, rewards: int, total: float) -> None:
        """Add rewards, or a correction of one."""
        self.rewards += rewards
        self.total += total
        self.size += abs(total)


class TableRows:
    """The rows that follow from some events of a bandit."""

    def __init__(self) -> None:
        self.decisions: dict[int, tuple[int, str | None]] = {}
        """Of each new decision the number of its event, and its unit as JSON."""
        self.answers: dict[int, int] = {}
        """Of each decision that was answered or corrected the number of the event."""
        self.counts: defaultdict[tuple[int, int], Count] = defaultdict(Count)
        """By hour and arm."""

    def add(self, state: State, event: Event, n: int) -> None:
        """Take the event of number ``n``; ``state`` is that before it."""
        hour = int(event.time // HOUR)
        match event:
            case Decision():
                unit = None if event.unit is None else msgspec.json.encode(event.unit).decode()
                self.decisions[event.id] = n, unit
                self.counts[hour, state.index[event.arm]].decisions += 1
            case Observation():
                self.counts[hour, state.index[event.arm]].add(1, event.reward)
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
                self.counts[hour, waiting.arm].add(1, value)
            return
        before = state.ledger.answered.get(number)
        if before is not None and reward is not None:
            if before.reward is None:
                self.counts[hour, before.arm].add(1, reward)
            else:
                self.counts[hour, before.arm].add(0, reward - before.reward)

    def decision_rows(self, bandit: int) -> list[RowDict]:
        """Return the new decisions as the table has them."""
        return [
            {"bandit": bandit, "id": number, "n": n, "unit": unit, "answer": self.answers.get(number)}
            for number, (n, unit) in self.decisions.items()
        ]

    def answer_rows(self, bandit: int) -> list[RowDict]:
        """Return the answers of decisions that the table has already."""
        return [
            {"of": bandit, "number": number, "event": n}
            for number, n in self.answers.items()
            if number not in self.decisions
        ]

    def count_rows(self, bandit: int) -> list[RowDict]:
        """Return what is to be added to the counts."""
        return [
            {
                "bandit": bandit,
                "hour": hour,
                "arm": arm,
                "decisions": count.decisions,
                "rewards": count.rewards,
                "total": count.total,
            }
            for (hour, arm), count in sorted(self.counts.items())
        ]

    def write(self, connection: Connection, bandit: int) -> None:
        """Write all of them."""
        if self.decisions:
            connection.execute(INSERT_DECISIONS, self.decision_rows(bandit))
        answers = self.answer_rows(bandit)
        if answers:
            connection.execute(ANSWER_DECISION, answers)
        if self.counts:
            connection.execute(ADD_COUNTS[connection.dialect.name], self.count_rows(bandit))


class StoredEvent(NamedTuple):
    """An event as the table has it."""

    n: int
    line: str
    digest: bytes

    def event(self) -> Event:
        """Return the event itself."""
        return DECODER.decode(self.line)

    def numbered(self) -> bytes:
        """Return the event as a line of a log, with its number first."""
        return b'{"n":%d,' % self.n + self.line[1:].encode() + b"\n"


class TableJournal:
    """The events of one bandit: those in the database, of which ``digest`` is the last one's, and new ones.

    The digests of events are chained, so that a byte that changes anywhere is noticed.
    """

    def __init__(
        self, name: str, identity: str, key: int, begin: bytes, read: Callable[[int], Iterator[StoredEvent]]
    ) -> None:
        self.path = name
        self.identity = identity
        self.events = 0
        self.digest = begin
        self._key = key
        self._read = read
        self.committed()

    def committed(self) -> None:
        """Note that what was new is in the database."""
        self.new: list[StoredEvent] = []
        self.rows = TableRows()
        self.keys: dict[tuple[str, str], tuple[bytes, str]] = {}
        """New idempotency keys, by kind and key: the digest of the request, and the answer."""
        self._committed = self.events

    def start_at(self, last: StoredEvent) -> None:
        """Go on after an event whose fold is in a snapshot."""
        self.events = last.n
        self.digest = last.digest
        self._committed = last.n

    def append(self, events: Sequence[Event]) -> None:
        """Let events wait for the commit, none of them if one cannot be written as JSON."""
        for line in [ENCODER.encode(event) for event in events]:
            self.digest = digest_of(self.digest, line)
            self.events += 1
            self.new.append(StoredEvent(self.events, line.decode(), self.digest))

    def note(self, state: State, event: Event) -> None:
        """Note what follows from the event that comes next, for the tables beside it; ``state`` is that before it."""
        self.rows.add(state, event, self.events + 1)

    def waiting_answer(self, number: int) -> Event | None:
        """Return the event that answers a decision, if it is among those that wait for the commit."""
        n = self.rows.answers.get(number)
        return None if n is None else self.new[n - self._committed - 1].event()

    def write(self, connection: Connection, bandit: int, status: str) -> None:
        """Write what is new, in the transaction that holds the bandit's row."""
        if self.new:
            rows = [{"bandit": bandit, "n": n, "line": line, "digest": digest} for n, line, digest in self.new]
            connection.execute(INSERT_EVENTS, rows)
            self.rows.write(connection, bandit)
            end = {"new_last": self.events, "new_digest": self.digest, "new_status": status}
            done = connection.execute(ADVANCE_BANDIT, {"of": bandit, "committed": self._committed} | end)
            if done.rowcount != 1:
                raise Unavailable(f"{self.path} was changed by somebody who did not hold its row")
        if self.keys:
            keys = [
                {
                    "bandit": bandit,
                    "kind": kind,
                    "key": key,
                    "request": request,
                    "answer": answer,
                    "digest": digest_of(kind, key, request, answer),
                }
                for (kind, key), (request, answer) in self.keys.items()
            ]
            connection.execute(INSERT_KEYS, keys)

    def since(self, events: int) -> Iterator[Event]:
        """Yield the events after the first so many: those in the database, and those that wait."""
        waiting = {stored.n for stored in self.new}
        yield from (stored.event() for stored in self._read(events) if stored.n not in waiting)
        yield from (stored.event() for stored in self.new if stored.n > events)

    def follow(self, rows: Iterable[StoredEvent]) -> Iterator[Event]:
        """Yield the events that come next, each of them checked to be that."""
        for row in rows:
            if row.n != self.events + 1:
                raise Damaged(f"{self.path}: {gap(self.events + 1, row.n)}")
            if digest_of(self.digest, row.line) != row.digest:
                raise Damaged(f"{self.path}: event {row.n} is not as it was written")
            self.start_at(row)
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


def journal_of(row: Row[tuple[object, ...]], connection: Connection) -> TableJournal:
    """Return the journal of a row's bandit, before its first event."""
    begin = first_digest(row.name, row.identity, row.definition, row.created, row.key)
    key = key_from(row.key)
    return TableJournal(row.name, row.identity, key, begin, lambda n: read_events(connection, row.id, n))


def read_events(connection: Connection, bandit: int, after: int, limit: int | None = None) -> Iterator[StoredEvent]:
    """Yield the events of a bandit after a number, some thousands at a time."""
    table = schema.events.c
    left = limit
    while left is None or left > 0:
        some = MANY if left is None else min(MANY, left)
        wanted = (
            select(table.n, table.line, table.digest)
            .where(table.bandit == bandit, table.n > after)
            .order_by(table.n)
            .limit(some)
        )
        rows = connection.execute(wanted).fetchall()
        yield from (StoredEvent(n, line, bytes(digest)) for n, line, digest in rows)
        if len(rows) < some:
            return
        after = rows[-1].n
        if left is not None:
            left -= len(rows)


def event_at(connection: Connection, bandit: int, n: int) -> StoredEvent:
    """Return the event of that number, which must be there."""
    for stored in read_events(connection, bandit, n - 1, 1):
        if stored.n == n:
            return stored
    raise Damaged(f"event {n} is not there any more")
