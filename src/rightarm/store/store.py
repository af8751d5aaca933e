"""`Store`: the bandits of one database. Everything that changes them is a transaction here."""

from __future__ import annotations

import contextlib
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from sqlalchemy import Connection, Row, delete, func, select
from sqlalchemy.dialects.postgresql import insert as insert_in_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_in_sqlite
from sqlalchemy.exc import SQLAlchemyError

from rightarm.files import locked
from rightarm.live.another_policy import policy_from
from rightarm.live.decide import create
from rightarm.live.draws import new_first_id, new_key
from rightarm.live.names import distinct
from rightarm.live.state import State
from rightarm.logs.events import Created, check_time
from rightarm.logs.lines import Head
from rightarm.logs.settings import Settings
from rightarm.messages import NAME, Definition
from rightarm.scores.policy import Policy
from rightarm.store import migrations, schema
from rightarm.store.connections import Database, connect
from rightarm.store.errors import Conflict, Damaged, NotFound, Unavailable
from rightarm.store.journal import HOUR, digest_of, first_digest
from rightarm.store.live import KNOWN, TAKEN, Live, by_name, event_at, journal_of, load, read_events
from rightarm.store.tokens import Tokens

if TYPE_CHECKING:
    from filelock import BaseFileLock

EVERY = 100_000  # events after which a snapshot is due, or a tenth of all if that is more; it takes a third of a second
KEPT = 2  # snapshots of a bandit
INSERT: dict[str, Any] = {"sqlite": insert_in_sqlite, "postgresql": insert_in_postgresql}


class Work(NamedTuple):
    """Something to be done with a bandit, as a whole: a function of its `Live`."""

    name: str
    function: Callable[[Live], Any]
    reads: bool = False
    """Whether it changes nothing."""
    make: Callable[[float], tuple[Created, State]] | None = None
    """What makes the bandit's first event, and the state after it, at a time, if there is no such bandit."""
    definition: str = ""
    key: int = 0


PROBE = Work("", lambda live: None)
"""Work that is done just when that of others can be: it needs no bandit, and writes nothing."""


class _BrokenOff(Exception):
    """A defect of ours broke off in the middle of some work: nothing of its transaction may count."""


class Store:
    """The bandits of a database; `open_store` makes it.

    `run` is for one thread at a time, everything else for any number of them. ``clock`` gives seconds since 1970.

    >>> import tempfile, rightarm as ra
    >>> from rightarm.messages import Ask, Definition, Tell
    >>> from rightarm.store import open_store, verbs
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = open_store(f"sqlite:///{folder.name}/home.db")
    >>> definition = Definition(arms=["red", "blue"], policy="UCB(C=0.5)", seed=1)
    >>> store.do(store.create("home", definition, ra.UCB(C=0.5), by="me"))
    True
    >>> [choice] = store.do("home", lambda live: verbs.ask(live, Ask(unit="visitor 17")))
    >>> choice.propensity, choice.version
    (0.5, 1)
    >>> [told] = store.do("home", lambda live: verbs.tell(live, [Tell(decision=choice.decision, reward=1.0)]))
    >>> told.outcome
    'learned'
    >>> store.close()
    >>> folder.cleanup()
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self.database, self.clock, self.tokens = database, clock, Tokens(database)
        self.folded = 0
        """How many events of others were folded."""
        self._lives: dict[str, Live] = {}
        self._lock = threading.Lock()
        self._guard: BaseFileLock | None = None  # of a file of SQLite
        self._now = 0.0

    def hold(self) -> None:
        """Be the only process that decides on a file of SQLite: several would wait for each other."""
        file = self.database.file
        if file is not None:
            self._guard = locked(file.with_name(file.name + ".lock"), "store", file)

    def close(self) -> None:
        """Write snapshots, and close all connections."""
        with self._lock:
            for live in self._lives.values():
                if live.version > live.saved:
                    self._snapshot(live)
            self._lives.clear()
            self.database.close()
            if self._guard is not None:
                self._guard.release()

    # Changes.

    def do(self, work: Work | str, function: Callable[[Live], Any] | None = None) -> Any:
        """Do one piece of work in a transaction of its own, and give its result or raise its error."""
        if isinstance(work, str):
            assert function is not None
            work = Work(work, function)
        [result] = self.run([work])
        if isinstance(result, Exception):
            raise result
        return result

    def create(self, name: str, definition: Definition, policy: Policy, by: str) -> Work:
        """The work that makes a bandit: True if it is new, False if it was there just so."""
        if not re.fullmatch(NAME, name):
            raise ValueError(f"name must match {NAME}, got {name!r:.120}")
        text = msgspec.json.encode(definition, order="sorted").decode()
        mine: State | None = None

        def make(now: float) -> tuple[Created, State]:
            nonlocal mine
            fields = set(Settings.__struct_fields__) & set(Definition.__struct_fields__)
            settings = Settings(**{name: getattr(definition, name) for name in fields})
            prior = by_name("prior", definition.prior, definition.arms)
            first_id = new_first_id(definition.seed)
            event, mine = create(distinct(definition.arms), policy, settings, prior, first_id, now, by)
            return event, mine

        def check(live: Live) -> bool:
            if live.definition != text:
                raise Conflict(f"{name} is there already, and was made of something else; PATCH changes it", "name")
            return live.state is mine

        return Work(name, check, False, make, text, new_key(definition.seed))

    def run(self, works: Sequence[Work]) -> list[Any]:
        """Do all of it in one transaction, each piece wholly or not at all; gives results, or errors in their place.

        What was done is in the database when this returns. If that cannot be had, `Unavailable` is raised.
        """
        with self._lock:
            try:
                return self._run(works)
            except _BrokenOff:
                return [self._alone(work) for work in works]

    def _alone(self, work: Work) -> Any:
        """Do one piece of work in a transaction of its own, and return its result or its error."""
        try:
            return self._run([work])[0]
        except _BrokenOff as error:
            return error.__cause__

    def _run(self, works: Sequence[Work]) -> list[Any]:
        # All take rows in the same order, so that nobody waits in a ring.
        names = sorted({work.name for work in works if work is not PROBE})
        reads = {name: all(work.reads for work in works if work.name == name) for name in names}
        self._now = check_time(self.clock())
        lives = dict[str, Live | Damaged | None]()
        try:
            with self.database.transaction() as connection:
                for name in names:
                    lives[name] = self._take(connection, name, reads[name])
                results = [self._result(work, lives, connection) for work in works]
                used = [live for live in lives.values() if isinstance(live, Live)]
                for live in used:
                    live.write(connection)
                if PROBE in works:
                    self.database.write_nothing(connection)
            for live in used:
                live.done()
                self._lives[live.name] = live
        except BaseException:  # what is in memory may be ahead of the database, or not: it is folded again
            for name in names:
                self._lives.pop(name, None)
            raise
        for live in used:
            if live.version - live.saved >= max(EVERY, live.saved // 10):
                self._snapshot(live)
        return results

    def _take(self, connection: Connection, name: str, reads: bool) -> Live | Damaged | None:
        """A bandit with all its events so far; nobody else changes it before the transaction ends.

        One that does not follow from its events is an error of those who want it, not of others.
        """
        row = _found(connection, name, KNOWN if reads else TAKEN)
        if row is None:
            return None
        try:
            return self._folded(row, connection, reads)
        except (Damaged, KeyError, TypeError, ValueError) as error:
            self._lives.pop(name, None)
            return Damaged(f"{name} cannot be used: {error}")

    def _folded(self, row: Row[Any], connection: Connection, reads: bool) -> Live:
        """The bandit of a row with all its events, and with windows closed if more may follow."""
        live = self._lives.get(row.name)
        if live is None or live.id != row.id:
            live = load(row, connection)
        else:
            self.folded += live.follow(row, connection)
        live.connection = connection
        live.now = self._now
        if not reads and live.status != "archived":
            live.close_windows()
        return live

    def _result(self, work: Work, lives: dict[str, Live | Damaged | None], connection: Connection) -> Any:
        """Return what a piece of work gives, or the error that it raises.

        Work decides everything before it changes anything: if it raises, the state is what it was.
        """
        if work is PROBE:
            return None
        live = lives[work.name]
        if live is None and work.make is None:
            return NotFound(f"there is no bandit {work.name}", "name")
        if isinstance(live, Damaged):
            return live
        before = -1 if live is None else live.version
        try:
            if live is None:
                live = lives[work.name] = self._made(work, connection)
                before = live.version
            return work.function(live)
        except SQLAlchemyError:
            raise
        except Exception as error:  # also a defect of ours, which must not touch the work of others
            if live is not None and live.version != before:
                raise _BrokenOff from error
            return error

    def _made(self, work: Work, connection: Connection) -> Live:
        """Make a new bandit; or, if another replica has just made it, take that one."""
        assert work.make is not None
        created, state = work.make(self._now)
        identity = uuid.uuid4().hex
        key = f"{work.key:032x}"
        row = {
            "name": work.name,
            "identity": identity,
            "definition": work.definition,
            "created": self._now,
            "key": key,
            "status": "running",
            "last": 0,
            "digest": first_digest(work.name, identity, work.definition, self._now, key),
        }
        insert_into = INSERT[connection.dialect.name]
        connection.execute(insert_into(schema.bandits).values(row).on_conflict_do_nothing())
        found = connection.execute(TAKEN, {"name": work.name}).one()
        if found.identity != identity:
            live = load(found, connection)
        else:
            state.find_policy = policy_from
            live = Live(found, journal_of(found, connection), state)
            live.journal.append([created])
        live.connection = connection
        live.now = self._now
        return live

    def _snapshot(self, live: Live) -> None:
        """Write the fold so far, so that the next start is quick.

        Events are committed without it: if it cannot be written now, the next one is due in its time.
        """
        state, live.saved = live.snapshot(), live.version
        row = {"bandit": live.id, "n": live.version, "state": state, "digest": digest_of(str(live.version), state)}
        table = schema.snapshots
        with contextlib.suppress(Unavailable), self.database.transaction() as connection:
            connection.execute(INSERT[connection.dialect.name](table).values(row).on_conflict_do_nothing())
            last = select(table.c.n).where(table.c.bandit == live.id).order_by(table.c.n.desc()).limit(KEPT)
            connection.execute(delete(table).where(table.c.bandit == live.id, table.c.n.not_in(last)))

    # What can be read at any time.

    def bandits(self) -> list[str]:
        """The names of all bandits."""
        with self.database.reads() as connection:
            return list(connection.execute(select(schema.bandits.c.name).order_by(schema.bandits.c.name)).scalars())

    def events(self, name: str, after: int = 0, limit: int | None = None) -> Iterator[bytes]:
        """The events of a bandit after a number, each a line of JSON as logs have them."""
        with self.database.reads() as connection:
            row = self._row(connection, name)
            for stored in read_events(connection, row.id, after, limit):
                yield stored.numbered()

    def head(self, name: str) -> Head:
        """The head of a log with the events of a bandit."""
        with self.database.reads() as connection:
            row = self._row(connection, name)
        return Head(row.identity, 1, 1, row.created)

    def history(self, name: str, hours: int | None = None) -> list[dict[str, Any]]:
        """Decisions and rewards by hour and arm, of all hours or the last so many; ``hour`` is when it begins."""
        table = schema.counts.c
        with self.database.reads() as connection:
            row = self._row(connection, name)
            since = 0 if hours is None else int(self.clock() // HOUR) - hours + 1
            rows = connection.execute(
                select(table.hour, table.arm, table.decisions, table.rewards, table.total)
                .where(table.bandit == row.id, table.hour >= since)
                .order_by(table.hour, table.arm)
            ).fetchall()
        names = self.do(Work(name, lambda live: list(live.state.names), reads=True)) if rows else []
        return [{**found._asdict(), "hour": found.hour * HOUR, "arm": names[found.arm]} for found in rows]

    def decision(self, name: str, number: int) -> dict[str, Any] | None:
        """A decision with the event that has answered it, if one has."""
        table = schema.decisions.c
        with self.database.reads() as connection:
            row = self._row(connection, name)
            found = connection.execute(
                select(table.n, table.answer).where(table.bandit == row.id, table.id == number)
            ).first()
            if found is None:
                return None
            places = [found.n] if found.answer is None else [found.n, found.answer]
            events = [msgspec.json.decode(event_at(connection, row.id, n).numbered()) for n in places]
        return {"decision": events[0], "answer": events[1] if len(events) > 1 else None}

    def totals(self, name: str) -> tuple[int, int]:
        """How many decisions were made, and how many rewards were learned."""
        table = schema.counts.c
        with self.database.reads() as connection:
            row = self._row(connection, name)
            found = connection.execute(
                select(func.sum(table.decisions), func.sum(table.rewards)).where(table.bandit == row.id)
            ).one()
        return int(found[0] or 0), int(found[1] or 0)

    def _row(self, connection: Connection, name: str) -> Row[Any]:
        row = _found(connection, name, KNOWN)
        if row is None:
            raise NotFound(f"there is no bandit {name}", "name")
        return row


def _found(connection: Connection, name: str, statement: Any) -> Row[Any] | None:
    """The row of a bandit; whatever cannot be a name is not sent: PostgreSQL fails of some texts."""
    row: Row[Any] | None = connection.execute(statement, {"name": name}).first() if re.fullmatch(NAME, name) else None
    return row


def open_store(url: str, *, clock: Callable[[], float] = time.time) -> Store:
    """The store at an address such as ``sqlite:///home.db`` or ``postgresql://user@host/name``; made if it is empty."""
    database = connect(url)
    try:
        migrations.prepare(database)
    except BaseException:
        database.close()
        raise
    return Store(database, clock)
