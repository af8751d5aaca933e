"""`Live`: a bandit of a store in memory, the fold of its events so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
from sqlalchemy import Connection, Row, bindparam, insert, select, update
from sqlalchemy.dialects.postgresql import insert as insert_in_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_in_sqlite

from rightarm.live import state as saved
from rightarm.live.actions import Actions
from rightarm.live.bandit import Bandit
from rightarm.live.recovery import write_to
from rightarm.logs.events import Event
from rightarm.store import schema
from rightarm.store.digests import digest_of, first_digest
from rightarm.store.errors import Conflict, Damaged, NotFound, Unavailable
from rightarm.store.journal import Pages, Stored

MANY = 10_000  # events that are read at once
T = TypeVar("T")
REFUSES = {"ask": ("paused", "archived"), "tell": ("archived",)}


class Live:
    """A bandit, with what of it is not in the database yet; `Store` has one for each that was used."""

    def __init__(self, row: Row[Any], pages: Pages, bandit: Bandit[Any], saved_events: int) -> None:
        self.id, self.name, self.definition, self.created = row.id, row.name, row.definition, row.created
        self.status = row.status
        self.pages, self.bandit, self.actions = pages, bandit, bandit._actions
        pages.state = self.actions.state
        self.saved = saved_events
        """How many events the last snapshot has."""
        self.committed = pages.events
        self.connection: Connection | None = None  # while something happens to it
        self.keys: dict[tuple[str, str], tuple[bytes, str]] = {}  # new ones: the request's digest, and the answer

    @property
    def version(self) -> int:
        """The number of the last event."""
        return self.pages.events

    def check(self, verb: str) -> None:
        """Raise if the bandit is paused or archived and does not do this any more."""
        if self.status in REFUSES[verb]:
            raise Conflict(f"{self.name} is {self.status}: it does not {verb} now", "status")

    # What is in the database only.

    def answered_key(self, kind: str, key: str, request: bytes) -> str | None:
        """What was answered to the same request with this key before."""
        if "\0" in key:
            raise ValueError(f"key must have no NUL, which PostgreSQL does not keep, got {key!r}")
        found = self.keys.get((kind, key))
        if found is None:
            assert self.connection is not None
            row = self.connection.execute(KEY, {"bandit": self.id, "kind": kind, "key": key}).first()
            found = None if row is None else (bytes(row.request), row.answer)
        if found is not None and found[0] != request:
            raise Conflict(f"key must be a new one for another request, got {key!r} again", "key")
        return None if found is None else found[1]

    def remember_key(self, kind: str, key: str, request: bytes, answer: str) -> None:
        """Answer the same to this key from now on."""
        self.keys[kind, key] = request, answer

    def answer(self, number: int) -> Event:
        """The event that has answered a decision of long ago."""
        assert self.connection is not None
        table, n = schema.decisions.c, self.pages.rows.answers.get(number)
        if n is not None:  # in this transaction, in which more windows have closed than are remembered
            stored = self.pages.new[n - self.committed - 1]
        else:
            wanted = select(table.answer).where(table.bandit == self.id, table.id == number)
            n = self.connection.execute(wanted).scalar()
            if n is None:
                raise NotFound(f"decision {number} was never made by {self.name}", "decision")
            stored = event_at(self.connection, self.id, n)
        event: Event = msgspec.json.decode(stored.line)
        return event

    def forgotten(self, number: int) -> float | None:
        """The reward, None if there was none, of a decision that was answered too long ago to be in memory."""
        event = self.answer(number)
        if event["event"] != "expiry" or "reward" in event:
            reward: float | None = event.get("reward")
            return reward
        raise Conflict(f"decision {number} was answered too long ago to be changed", "decision")

    # To the database.

    def write(self, connection: Connection) -> None:
        """Write what is new, in the transaction that holds the bandit's row."""
        pages = self.pages
        if pages.new:
            rows = [{"bandit": self.id, "n": n, "line": line, "digest": digest} for n, line, digest in pages.new]
            connection.execute(EVENTS, rows)
            self._write_rows(connection)
            end = {"new_last": pages.events, "new_digest": pages.digest, "new_status": self.status}
            done = connection.execute(ADVANCE, {"of": self.id, "committed": self.committed} | end)
            if done.rowcount != 1:
                raise Unavailable(f"{self.name} was changed by somebody who did not hold its row")
        if self.keys:
            rows = [
                {"bandit": self.id, "kind": kind, "key": key, "request": request, "answer": answer}
                | {"digest": digest_of(kind, key, request, answer)}
                for (kind, key), (request, answer) in self.keys.items()
            ]
            connection.execute(KEYS, rows)

    def _write_rows(self, connection: Connection) -> None:
        """Write what follows from the new events."""
        rows = self.pages.rows
        if rows.decisions:
            connection.execute(DECISIONS, rows.decision_rows(self.id))
        answers = rows.answer_rows(self.id)
        if answers:
            connection.execute(ANSWER, answers)
        counts = rows.count_rows(self.id)
        if counts:
            connection.execute(COUNT[connection.dialect.name], counts)

    def done(self) -> None:
        """What was new is committed."""
        self.pages.written()
        self.keys.clear()
        self.committed, self.connection = self.pages.events, None

    # From the database.

    def follow(self, row: Row[Any], connection: Connection) -> int:
        """Fold what others have written since; says how many events that were."""
        behind = row.last - self.pages.events
        if behind:
            rows = read_events(connection, self.id, self.pages.events, behind)  # whoever only reads holds no row
            events = self.pages.follow(rows)
            self.actions.state.fold(events, saved.policy_from)
            self.committed = self.pages.events
        if row.last != self.pages.events or bytes(row.digest) != self.pages.digest:
            raise Damaged(f"{self.name} must have {row.last} events that follow each other, got {self.pages.events}")
        self.status = row.status
        return int(behind)

    def snapshot(self) -> str:
        """The fold so far, as text."""
        return saved.to_json(self.actions.state, self.pages)


def by_name(what: str, given: dict[str, T] | None, arms: Sequence[Any]) -> dict[Any, T] | None:
    """What is given for some arms by their names: the keys of JSON are texts, also where arms are numbers."""
    if given is None:
        return None
    names = {str(arm): arm for arm in arms}
    for arm in arms:
        if str(arm) in given and names[str(arm)] != arm:
            raise ValueError(f"{what} must be for one arm, got {str(arm)!r}, which two arms are called")
    return {names.get(name, name): value for name, value in given.items()}


_d, _b = schema.decisions.c, schema.counts.c
# Statements are made once: making them takes longer than the database does.
EVENTS, DECISIONS, KEYS = insert(schema.events), insert(schema.decisions), insert(schema.keys)
_rows = schema.bandits.c
ADVANCE = (
    update(schema.bandits)
    .where(_rows.id == bindparam("of"), _rows.last == bindparam("committed"))
    .values(last=bindparam("new_last"), digest=bindparam("new_digest"), status=bindparam("new_status"))
)
KNOWN = select(schema.bandits).where(_rows.name == bindparam("name"))
TAKEN = KNOWN.with_for_update()
_k = schema.keys.c
KEY = select(_k.request, _k.answer).where(
    _k.bandit == bindparam("bandit"), _k.kind == bindparam("kind"), _k.key == bindparam("key")
)
ANSWER = (
    update(schema.decisions)
    .where(_d.bandit == bindparam("of"), _d.id == bindparam("number"))
    .values(answer=bindparam("event"))
)


def _adding(insert_into: Callable[..., Any]) -> Any:
    statement = insert_into(schema.counts)
    new = statement.excluded
    sums = {name: _b[name] + new[name] for name in ("decisions", "rewards", "total")}
    return statement.on_conflict_do_update(index_elements=["bandit", "hour", "arm"], set_=sums)


COUNT = {"sqlite": _adding(insert_in_sqlite), "postgresql": _adding(insert_in_postgresql)}


def read_events(connection: Connection, bandit: int, after: int, limit: int | None = None) -> Iterator[Stored]:
    """The events of a bandit after a number, some thousands at a time."""
    table, left = schema.events.c, limit
    while left is None or left > 0:
        some = MANY if left is None else min(MANY, left)
        wanted = (
            select(table.n, table.line, table.digest)
            .where(table.bandit == bandit, table.n > after)
            .order_by(table.n)
            .limit(some)
        )
        rows = connection.execute(wanted).fetchall()
        yield from (Stored(n, line, bytes(digest)) for n, line, digest in rows)
        if len(rows) < some:
            return
        after, left = rows[-1].n, None if left is None else left - len(rows)


def event_at(connection: Connection, bandit: int, n: int) -> Stored:
    """The event of that number, which must be there."""
    for stored in read_events(connection, bandit, n - 1, 1):
        if stored.n == n:
            return stored
    raise Damaged(f"event {n} is not there any more")


def load(row: Row[Any], connection: Connection, clock: Callable[[], float]) -> Live:
    """The bandit of a row: its last snapshot, and the events after that."""
    begin = first_digest(row.name, row.identity, row.definition, row.created)
    pages = Pages(row.name, row.identity, begin, lambda n: read_events(connection, row.id, n, 1))
    table = schema.snapshots.c
    last = connection.execute(
        select(table.n, table.state, table.digest)
        .where(table.bandit == row.id, table.n <= row.last)
        .order_by(table.n.desc())
        .limit(1)
    ).first()
    if last is None:
        found = saved.from_log(pages, None, {})
    else:
        if digest_of(str(last.n), last.state) != bytes(last.digest):
            raise Damaged(f"{row.name}: the snapshot of event {last.n} is not as it was written")
        found = saved.from_json(last.state, None)
        if found.place is None or found.place.log != row.identity or found.place.events != last.n:
            raise Damaged(f"{row.name}: the snapshot of event {last.n} is that of another bandit")
        pages.events, pages.digest = last.n, event_at(connection, row.id, last.n).digest
    actions = Actions(found.state, clock)
    live = Live(row, pages, Bandit._of(actions), pages.events)
    live.follow(row, connection)
    write_to(actions, pages, found.state.names)
    return live
