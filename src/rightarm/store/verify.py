"""`verify`: folds every event of a store again, and compares all that the store has with what follows from them."""

from __future__ import annotations

import itertools
import json
import math
import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from sqlalchemy import Connection, Row, inspect, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from rightarm.bandit.decide import Draws, decide
from rightarm.bandit.recovery import policy_from
from rightarm.bandit.state import State
from rightarm.logs.events import Decision, Event
from rightarm.logs.journals import key_from
from rightarm.messages import Arm
from rightarm.store import schema
from rightarm.store.connections import Damaged, Database, Unavailable, is_sqlite
from rightarm.store.stored_bandit import snapshot_of
from rightarm.store.table_journal import RowDict, TableRows, digest_of, journal_of, read_events

TOLERANCE = 1e-9  # relative, of propensities and sums
MOST = 20  # findings of a bandit that are listed

Rows = dict[object, RowDict]  # of a table, by their keys


class Discrepancy(NamedTuple):
    """Something in a store that does not follow from its events."""

    bandit: str
    text: str


class Verified(NamedTuple):
    """The numbers of what was looked at, and what was found."""

    bandits: int
    events: int
    decisions: int
    findings: list[Discrepancy]


def verify(database: Database) -> Verified:
    """Fold all events of all bandits again: numbers, digests, every decision, and the tables that follow from them."""
    findings = list[Discrepancy]()
    try:
        with database.long_reads() as connection:
            return _verified(database, connection, findings)
    except Unavailable as error:
        cause = error.__cause__
        if not (isinstance(cause, DBAPIError) and type(cause.orig) is sqlite3.DatabaseError):
            raise  # a server that is down, a file that is locked: that is no damage
        findings.append(Discrepancy("", f"the file cannot be read: {cause.orig}"))
    except UnicodeDecodeError as error:  # of a table's definition, which SQLite reads before anything else
        findings.append(Discrepancy("", f"the file cannot be read: {error}"))
    return Verified(0, 0, 0, findings)


def _verified(database: Database, connection: Connection, findings: list[Discrepancy]) -> Verified:
    """Look at everything, and add what is found to ``findings``."""
    missing = set(schema.metadata.tables) - set(inspect(connection).get_table_names())
    if missing:
        findings.append(Discrepancy("", f"tables are missing: {', '.join(sorted(missing))}"))
        return Verified(0, 0, 0, findings)
    findings += [Discrepancy("", text) for text in _file(database, connection)]
    rows = connection.execute(select(schema.bandits).order_by(schema.bandits.c.id)).fetchall()
    events = 0
    decisions = 0
    for row in rows:
        try:
            bandit = _Folded(row, connection)
            findings += [Discrepancy(row.name, text) for text in bandit.findings()]
            events += bandit.journal.events
            decisions += bandit.decisions
        except (SQLAlchemyError, ValueError) as error:  # also a key, or a text, that is none
            findings.append(Discrepancy(row.name, f"cannot be read: {error}".splitlines()[0]))
    findings += [Discrepancy("", text) for text in _orphans(connection, {row.id for row in rows})]
    return Verified(len(rows), events, decisions, findings)


def _file(database: Database, connection: Connection) -> Iterator[str]:
    """Yield what SQLite itself finds wrong with its file."""
    if is_sqlite(database.url):
        for (text,) in connection.exec_driver_sql("PRAGMA integrity_check(20)"):
            if text != "ok":
                yield text


def _orphans(connection: Connection, bandits: set[int]) -> Iterator[str]:
    for table in (schema.events, schema.decisions, schema.keys, schema.counts, schema.snapshots):
        found = set(connection.execute(select(table.c.bandit).distinct()).scalars())
        if found - bandits:
            yield f"{table.name} has rows of bandits that are not there: {sorted(found - bandits)}"


class _Folded:
    """One bandit, folded again."""

    def __init__(self, row: Row[tuple[object, ...]], connection: Connection) -> None:
        self.row = row
        self.connection = connection
        self.journal = journal_of(row, connection)
        self.draws = Draws(key_from(row.key))
        self.rows = TableRows()
        self.decisions = 0
        table = schema.snapshots.c
        rows = connection.execute(select(table.n, table.state, table.digest).where(table.bandit == row.id)).fetchall()
        self.snapshots = {one.n: one for one in rows}

    def findings(self) -> Iterator[str]:
        """Yield what is wrong, the first things one by one."""
        found = self._all()
        yield from itertools.islice(found, MOST)
        if next(found, None) is not None:
            yield "and more"

    def _all(self) -> Iterator[str]:
        state = State(policy_from)
        try:
            for event in self.journal.follow(read_events(self.connection, self.row.id, 0)):
                yield from self._event(state, event)
        except (Damaged, KeyError, TypeError, ValueError) as error:
            yield f"event {self.journal.events}: {error}"
            return
        if (self.row.last, bytes(self.row.digest)) != (self.journal.events, self.journal.digest):
            yield f"the last event must be {self.row.last}, got {self.journal.events} or another one of that number"
        if self.row.status != state.status:
            yield f"status must be {state.status!r}, got {self.row.status!r}"
        yield from self._tables()
        yield from (f"there is a snapshot of event {n}, which is not there" for n in self.snapshots)

    def _event(self, state: State, event: Event) -> Iterator[str]:
        n = self.journal.events
        if isinstance(event, Decision):
            self.decisions += 1
            yield from self._decision(state, event, n)
        self.rows.add(state, event, n)
        state.apply(event)
        snapshot = self.snapshots.pop(n, None)
        if snapshot is not None:
            yield from self._snapshot(state, *snapshot)

    def _decision(self, state: State, event: Decision[Arm], n: int) -> Iterator[str]:
        """Say what differs between a decision and the one that follows from the events before it."""
        members = None if event.allowed is None else state.chosen(event.allowed)
        context = None if event.context is None else state.encoded_again(event)
        made = decide(state, self.draws, event.time, members, context, unit=event.unit)
        if not math.isclose(made.propensity, event.propensity, rel_tol=TOLERANCE) and made.arm == event.arm:
            yield f"event {n}: the propensity must be {made.propensity!r}, got {event.propensity!r}"
        for name in ("id", "arm", "round", "version", "group"):
            if getattr(event, name) != getattr(made, name):
                yield f"event {n}: {name} must be {getattr(made, name)!r}, got {getattr(event, name)!r}"

    def _snapshot(self, state: State, n: int, text: str, digest: bytes) -> Iterator[str]:
        if digest_of(str(n), text) != bytes(digest):
            yield f"the snapshot of event {n} is not as it was written"
            return
        found = json.loads(text)
        folded = json.loads(snapshot_of(state, self.journal))
        if found != folded:
            wrong = [name for name in folded if found.get(name) != folded[name]]
            yield f"the snapshot of event {n} is not the fold of the events: {', '.join(wrong)}"

    def _tables(self) -> Iterator[str]:
        """Yield what differs between the tables and what follows from the events."""
        bandit = self.row.id
        table = schema.decisions
        expected: Rows = {row["id"]: row for row in self.rows.decision_rows(bandit)}
        found = self.connection.execute(select(table).where(table.c.bandit == bandit))
        yield from _compared("decision", expected, {row.id: row._asdict() for row in found}, {})
        counted: Rows = {(row["hour"], row["arm"]): row for row in self.rows.count_rows(bandit)}
        rows = self.connection.execute(select(schema.counts).where(schema.counts.c.bandit == bandit))
        sizes: dict[object, float] = {place: count.size for place, count in self.rows.counts.items()}
        found_counts: Rows = {(row.hour, row.arm): row._asdict() for row in rows}
        yield from _compared("count of hour and arm", counted, found_counts, sizes)
        for row in self.connection.execute(select(schema.keys).where(schema.keys.c.bandit == bandit)):
            if digest_of(row.kind, row.key, bytes(row.request), row.answer) != bytes(row.digest):
                yield f"the answer to the key {row.key!r} is not as it was written"


def _compared(what: str, expected: Rows, found: Rows, sizes: dict[object, float]) -> Iterator[str]:
    """Yield what differs; ``sizes`` says how large the numbers were that a sum is made of, in whatever order."""
    for key in expected.keys() | found.keys():
        one = expected.get(key)
        other = found.get(key)
        if one is None or other is None:
            yield f"{what} {key} must {'not be there' if one is None else 'be there'}"
        elif not all(_same(one[name], other[name], sizes.get(key, 0.0)) for name in one):
            yield f"{what} {key} must be {one}, got {other}"


def _same(one: object, other: object, size: float) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=0.0, abs_tol=TOLERANCE * max(1.0, size))
    return one == other
