"""`Live`: a bandit of a store in memory, the fold of its events so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, bindparam, insert, select, update
from sqlalchemy.dialects.postgresql import insert as insert_in_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_in_sqlite

from rightarm.live import saved
from rightarm.live.another_policy import policy_from
from rightarm.live.contextual import Seen
from rightarm.live.decide import Guardrail, close_windows
from rightarm.live.draws import Draws
from rightarm.live.state import State
from rightarm.logs.events import Cancellation, Event, Expiry
from rightarm.logs.journal import key_from
from rightarm.store import schema
from rightarm.store.errors import Conflict, Damaged, NotFound, Unavailable
from rightarm.store.journal import Stored, TableJournal, digest_of, first_digest

MANY = 10_000  # events that are read at once
T = TypeVar("T")
REFUSES = {"ask": ("paused", "archived"), "tell": ("archived",)}


class Live:
    """A bandit, with what of it is not in the database yet; `Store` has one for each that was used."""

    def __init__(self, row: Row[Any], journal: TableJournal, state: State) -> None:
        self.id = row.id
        self.name = row.name
        self.definition = row.definition
        self.created = row.created
        self.journal = journal
        self.state = state
        self.draws = Draws(key_from(row.key))
        self.guardrail = Guardrail()
        self.saved = journal.events
        """How many events the last snapshot has."""
        self.committed = journal.events
        self.now = 0.0  # the time of the transaction
        self.connection: Connection | None = None  # while something happens to it
        self.keys: dict[tuple[str, str], tuple[bytes, str]] = {}  # new ones: the request's digest, and the answer

    @property
    def version(self) -> int:
        """The number of the last event."""
        return self.journal.events

    @property
    def status(self) -> str:
        """Whether it is running, paused or archived."""
        return self.state.status

    def check(self, verb: str) -> None:
        """Raise if the bandit is paused or archived and does not do this any more."""
        if self.status in REFUSES[verb]:
            raise Conflict(f"{self.name} is {self.status}: it does not {verb} now", "status")

    def happen(self, events: Sequence[Event], seen: Sequence[Seen | None] = ()) -> None:
        """Let events happen: each is appended to the journal, and then changes the state.

        If the transaction is not committed, `Store` folds the state again from the database.
        """
        contexts = seen or [None] * len(events)
        for event, context in zip(events, contexts, strict=True):
            self.journal.note(self.state, event)
            self.journal.append([event])
            self.state.apply(event, context)

    def look_after(self) -> None:
        """Retire an arm that is shown to do harm, if there is a guardrail."""
        self.happen(self.guardrail.events(self.state, self.now))

    def close_windows(self) -> None:
        """Learn the decisions whose window of reward has closed."""
        events = close_windows(self.state, self.now)
        if events:
            self.happen(events)
            self.look_after()

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
        """Return the event that has answered a decision of long ago."""
        assert self.connection is not None
        table = schema.decisions.c
        n = self.journal.rows.answers.get(number)
        if n is not None:  # in this transaction, in which more windows have closed than are remembered
            return self.journal.new[n - self.committed - 1].event()
        wanted = select(table.answer).where(table.bandit == self.id, table.id == number)
        n = self.connection.execute(wanted).scalar()
        if n is None:
            raise NotFound(f"decision {number} was never made by {self.name}", "decision")
        return event_at(self.connection, self.id, n).event()

    def forgotten(self, number: int) -> float | None:
        """Return the reward, None if there was none, of a decision that was answered too long ago to be in memory."""
        event = self.answer(number)
        if isinstance(event, Cancellation):
            return None
        if isinstance(event, Expiry) and event.reward is None:
            raise Conflict(f"decision {number} was answered too long ago to be changed", "decision")
        reward: float = event.reward  # type: ignore[attr-defined]
        return reward

    # To the database.

    def write(self, connection: Connection) -> None:
        """Write what is new, in the transaction that holds the bandit's row."""
        journal = self.journal
        if journal.new:
            rows = [{"bandit": self.id, "n": n, "line": line, "digest": digest} for n, line, digest in journal.new]
            connection.execute(EVENTS, rows)
            self._write_rows(connection)
            end = {"new_last": journal.events, "new_digest": journal.digest, "new_status": self.status}
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
        rows = self.journal.rows
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
        self.journal.committed()
        self.keys.clear()
        self.committed = self.journal.events
        self.connection = None

    # From the database.

    def follow(self, row: Row[Any], connection: Connection) -> int:
        """Fold what others have written since; says how many events that were."""
        behind = row.last - self.journal.events
        if behind:
            rows = read_events(connection, self.id, self.journal.events, behind)  # whoever only reads holds no row
            for event in self.journal.follow(rows):
                self.state.apply(event)
            self.committed = self.journal.events
        if row.last != self.journal.events or bytes(row.digest) != self.journal.digest:
            raise Damaged(f"{self.name} must have {row.last} events that follow each other, got {self.journal.events}")
        return int(behind)

    def snapshot(self) -> str:
        """Return the fold so far, as text."""
        return snapshot_of(self.state, self.journal)


def snapshot_of(state: State, journal: TableJournal) -> str:
    """Return the fold of a journal as text; the key of the draws is not part of it."""
    return saved.to_json(state, saved.Place(journal.identity, journal.events), None)


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


def journal_of(row: Row[Any], connection: Connection) -> TableJournal:
    """Return the journal of a row's bandit, before its first event."""
    begin = first_digest(row.name, row.identity, row.definition, row.created, row.key)
    key = key_from(row.key)
    return TableJournal(row.name, row.identity, key, begin, lambda n: read_events(connection, row.id, n))


def load(row: Row[Any], connection: Connection) -> Live:
    """Return the bandit of a row: its last snapshot, and the events after that."""
    journal = journal_of(row, connection)
    table = schema.snapshots.c
    last = connection.execute(
        select(table.n, table.state, table.digest)
        .where(table.bandit == row.id, table.n <= row.last)
        .order_by(table.n.desc())
        .limit(1)
    ).first()
    state = State()
    if last is not None:
        if digest_of(str(last.n), last.state) != bytes(last.digest):
            raise Damaged(f"{row.name}: the snapshot of event {last.n} is not as it was written")
        found = saved.from_json(last.state, policy_from)
        if found.place is None or found.place.log != row.identity or found.place.events != last.n:
            raise Damaged(f"{row.name}: the snapshot of event {last.n} is that of another bandit")
        state = found.state
        journal.events = last.n
        journal.digest = event_at(connection, row.id, last.n).digest
    live = Live(row, journal, state)
    live.follow(row, connection)
    return live
