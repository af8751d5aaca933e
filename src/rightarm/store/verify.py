"""`verify`: folds every event of a store again, and compares all that the store has with what follows from them."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, inspect, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from rightarm.live.decide import decide
from rightarm.live.draws import Draws
from rightarm.live.state import State
from rightarm.logs.events import Decision, Event
from rightarm.logs.journal import key_from
from rightarm.store import schema
from rightarm.store.connections import Database, is_sqlite
from rightarm.store.errors import Damaged, Unavailable
from rightarm.store.journal import Rows, digest_of
from rightarm.store.live import journal_of, read_events, snapshot_of

TOLERANCE = 1e-9  # relative, of propensities and sums
MOST = 20  # findings of a bandit that are told one by one


class Finding(NamedTuple):
    """Something that is not as it should be."""

    bandit: str
    text: str


class Verified(NamedTuple):
    """What was looked at, and what was found."""

    bandits: int
    events: int
    decisions: int
    findings: list[Finding]


def verify(database: Database) -> Verified:
    """Fold all events of all bandits again: numbers, digests, every decision, and the tables that follow from them."""
    findings = list[Finding]()
    try:
        with database.long_reads() as connection:
            return _verified(database, connection, findings)
    except Unavailable as error:
        cause = error.__cause__
        if not (isinstance(cause, DBAPIError) and type(cause.orig) is sqlite3.DatabaseError):
            raise  # a server that is down, a file that is locked: that is no damage
        findings.append(Finding("", f"the file cannot be read: {cause.orig}"))
    except UnicodeDecodeError as error:  # of a table's definition, which SQLite reads before anything else
        findings.append(Finding("", f"the file cannot be read: {error}"))
    return Verified(0, 0, 0, findings)


def _verified(database: Database, connection: Connection, findings: list[Finding]) -> Verified:
    """Look at everything, and add what is found to ``findings``."""
    missing = set(schema.metadata.tables) - set(inspect(connection).get_table_names())
    if missing:
        findings.append(Finding("", f"tables are missing: {', '.join(sorted(missing))}"))
        return Verified(0, 0, 0, findings)
    findings += [Finding("", text) for text in _file(database, connection)]
    rows, events, decisions = connection.execute(select(schema.bandits).order_by(schema.bandits.c.id)).fetchall(), 0, 0
    for row in rows:
        try:
            bandit = _Bandit(row, connection)
            findings += [Finding(row.name, text) for text in bandit.findings()]
            events, decisions = events + bandit.journal.events, decisions + bandit.decisions
        except (SQLAlchemyError, ValueError) as error:  # also a key, or a text, that is none
            findings.append(Finding(row.name, f"cannot be read: {error}".splitlines()[0]))
    known = {row.id for row in rows}
    findings += [Finding("", text) for text in _orphans(connection, known)]
    return Verified(len(rows), events, decisions, findings)


def _file(database: Database, connection: Connection) -> Iterator[str]:
    """What SQLite itself finds wrong with its file."""
    if is_sqlite(database.url):
        for (text,) in connection.exec_driver_sql("PRAGMA integrity_check(20)"):
            if text != "ok":
                yield text


def _orphans(connection: Connection, known: set[int]) -> Iterator[str]:
    for table in (schema.events, schema.decisions, schema.keys, schema.counts, schema.snapshots):
        found = set(connection.execute(select(table.c.bandit).distinct()).scalars())
        if found - known:
            yield f"{table.name} has rows of bandits that are not there: {sorted(found - known)}"


class _Bandit:
    """One bandit, folded again."""

    def __init__(self, row: Row[Any], connection: Connection) -> None:
        self.row = row
        self.connection = connection
        self.journal = journal_of(row, connection)
        self.draws = Draws(key_from(row.key))
        self.rows = Rows()
        self.decisions = 0
        table = schema.snapshots.c
        kept = connection.execute(select(table.n, table.state, table.digest).where(table.bandit == row.id)).fetchall()
        self.snapshots = {one.n: one for one in kept}

    def findings(self) -> Iterator[str]:
        """What is wrong, the first things one by one."""
        for place, text in enumerate(self._all()):
            if place == MOST:
                yield "and more"
                return
            yield text

    def _all(self) -> Iterator[str]:
        state = State()
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
            yield from self._snapshot(state, snapshot)

    def _decision(self, state: State, event: Decision[Any], n: int) -> Iterator[str]:
        """Say what differs between a decision and the one that follows from the events before it."""
        members = None if event.among is None else state.chosen(event.among)
        seen = None if event.context is None else state.seen_before(event)
        made = decide(state, self.draws, event.time, members, seen, event.unit)
        if not math.isclose(made.propensity, event.propensity, rel_tol=TOLERANCE) and made.arm == event.arm:
            yield f"event {n}: the propensity must be {made.propensity!r}, got {event.propensity!r}"
        for name in ("id", "arm", "round", "version", "group"):
            if getattr(event, name) != getattr(made, name):
                yield f"event {n}: {name} must be {getattr(made, name)!r}, got {getattr(event, name)!r}"

    def _snapshot(self, state: State, row: Any) -> Iterator[str]:
        if digest_of(str(row.n), row.state) != bytes(row.digest):
            yield f"the snapshot of event {row.n} is not as it was written"
            return
        plain = json.loads(row.state)
        folded = json.loads(snapshot_of(state, self.journal))
        if plain != folded:
            wrong = [name for name in folded if plain.get(name) != folded[name]]
            yield f"the snapshot of event {row.n} is not the fold of the events: {', '.join(wrong)}"

    def _tables(self) -> Iterator[str]:
        """What differs between the tables and what follows from the events."""
        bandit, table = self.row.id, schema.decisions
        expected = {row["id"]: row for row in self.rows.decision_rows(bandit)}
        found = self.connection.execute(select(table).where(table.c.bandit == bandit))
        yield from _compared("decision", expected, {row.id: row._asdict() for row in found}, {})
        counted = {(row["hour"], row["arm"]): row for row in self.rows.count_rows(bandit)}
        rows = self.connection.execute(select(schema.counts).where(schema.counts.c.bandit == bandit))
        sizes = {place: row[3] for place, row in self.rows.counts.items()}
        found_counts = {(row.hour, row.arm): row._asdict() for row in rows}
        yield from _compared("count of hour and arm", counted, found_counts, sizes)
        for row in self.connection.execute(select(schema.keys).where(schema.keys.c.bandit == bandit)):
            if digest_of(row.kind, row.key, bytes(row.request), row.answer) != bytes(row.digest):
                yield f"the answer to the key {row.key!r} is not as it was written"


def _compared(
    what: str, expected: dict[Any, dict[str, Any]], found: dict[Any, dict[str, Any]], sizes: dict[Any, float]
) -> Iterator[str]:
    """What differs; ``sizes`` says how large the numbers were that a sum is made of, in whatever order."""
    for key in expected.keys() | found.keys():
        one, other = expected.get(key), found.get(key)
        if one is None or other is None:
            yield f"{what} {key} must {'not be there' if one is None else 'be there'}"
        elif not all(_same(one[name], other[name], sizes.get(key, 0.0)) for name in one):
            yield f"{what} {key} must be {one}, got {other}"


def _same(one: Any, other: Any, size: float) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=0.0, abs_tol=TOLERANCE * max(1.0, size))
    return bool(one == other)
