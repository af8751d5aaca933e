"""`Store`: the bandits of one database, each change a transaction; `Commits` joins what waits in one transaction."""

from __future__ import annotations

import contextlib
import queue
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

import msgspec
from sqlalchemy import Connection, Row, Select, Table, delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from rightarm.bandit.decide import create, new_first_id, new_key
from rightarm.bandit.ledger import distinct
from rightarm.bandit.recovery import policy_from
from rightarm.bandit.state import State
from rightarm.files import locked
from rightarm.logs.events import END_OF_TIME, Created, check_time
from rightarm.logs.lines import Head
from rightarm.logs.settings import Settings
from rightarm.messages import NAME, Definition, Hour
from rightarm.policies.policy import Policy
from rightarm.store import migrations, schema
from rightarm.store.connections import Conflict, Damaged, Database, Missing, Unavailable, connect
from rightarm.store.stored_bandit import StoredBandit, by_name, load, snapshot_of
from rightarm.store.table_journal import (
    FIND_BANDIT,
    HOUR,
    TAKE_BANDIT,
    StoredEvent,
    digest_of,
    event_at,
    first_digest,
    journal_of,
    read_events,
)
from rightarm.store.tokens import Tokens

if TYPE_CHECKING:
    from filelock import BaseFileLock

EVERY = 100_000  # events after which a snapshot is due, or a tenth of all if that is more; it takes a third of a second
KEPT = 2  # snapshots of a bandit
TOGETHER = 512  # pieces of work in a transaction
LONGEST_QUEUE = 10_000  # pieces of work that may wait; more are refused at once
INSERT: dict[str, Callable[[Table], sqlite.Insert | postgresql.Insert]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}

T = TypeVar("T")


class Creation(NamedTuple):
    """A bandit to be made, if there is none of its name."""

    definition: str
    key: int
    make: Callable[[float], tuple[Created, State]]
    """Makes the first event, and the state after it, at a time."""


class Work(NamedTuple, Generic[T]):
    """Something to be done with a bandit, as a whole: a function of its `StoredBandit`."""

    name: str
    function: Callable[[StoredBandit], T]
    reads: bool = False
    """Whether it changes nothing."""
    creation: Creation | None = None


PROBE = Work("", lambda bandit: None)
"""Work that is done just when that of others can be: it needs no bandit, and writes nothing."""


def work_of(work: Work[T] | str, function: Callable[[StoredBandit], T] | None) -> Work[T]:
    """Return work that is given as such, or as the name of a bandit and a function of it."""
    if not isinstance(work, str):
        return work
    assert function is not None
    return Work(work, function)


class _BrokenOff(Exception):
    """A defect of ours broke off in the middle of some work: nothing of its transaction may count."""


class Store:
    """The bandits of a database; `open_store` makes it.

    `run` is for one thread at a time, everything else for any number of them. ``clock`` gives seconds since 1970.

    >>> import tempfile, rightarm as ra
    >>> from rightarm.messages import Ask, Definition, Tell
    >>> from rightarm.store import open_store
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = open_store(f"sqlite:///{folder.name}/home.db")
    >>> definition = Definition(arms=["red", "blue"], policy="UCB(C=0.5)", seed=1)
    >>> store.do(store.create("home", definition, ra.UCB(C=0.5), by="me"))
    True
    >>> [choice] = store.do("home", lambda bandit: bandit.ask(Ask(unit="visitor 17")))
    >>> choice.propensity, choice.version
    (0.5, 1)
    >>> [answer] = store.do("home", lambda bandit: bandit.tell([Tell(decision=choice.decision, reward=1.0)]))
    >>> answer.outcome
    'learned'
    >>> store.close()
    >>> folder.cleanup()
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self.database = database
        self.clock = clock
        self.tokens = Tokens(database)
        self.folded = 0
        """The number of events of other replicas that were folded."""
        self._bandits: dict[str, StoredBandit] = {}
        self._lock = threading.Lock()
        self._guard: BaseFileLock | None = None  # of a file of SQLite
        self._now = 0.0

    def hold(self) -> None:
        """Lock a file of SQLite, so that no other process decides on it: they would wait for each other."""
        file = self.database.file
        if file is not None:
            self._guard = locked(file.with_name(file.name + ".lock"), "store", file)

    def close(self) -> None:
        """Write snapshots, and close all connections."""
        with self._lock:
            for bandit in self._bandits.values():
                if bandit.version > bandit.in_snapshot:
                    self._snapshot(bandit)
            self._bandits.clear()
            self.database.close()
            if self._guard is not None:
                self._guard.release()

    # Changes.

    def do(self, work: Work[T] | str, function: Callable[[StoredBandit], T] | None = None) -> T:
        """Do one piece of work in a transaction of its own, and return its result or raise its error.

        Parameters
        ----------
        work : Work or str
            The work, or the name of a bandit.
        function : callable, optional
            The function of the bandit that is to be called, if ``work`` is a name.
        """
        [result] = self.run([work_of(work, function)])
        if isinstance(result, Exception):
            raise result
        return cast(T, result)

    def create(self, name: str, definition: Definition, policy: Policy, by: str) -> Work[bool]:
        """Return the work that makes a bandit; its result is True if the bandit is new, False if an equal one is there.

        Parameters
        ----------
        name : str
            The name of the bandit.
        definition : Definition
            Its arms and settings.
        policy : Policy
            The policy that the definition has as a text.
        by : str
            Who makes it.

        Raises
        ------
        Conflict
            When the work is done, if there is a bandit of this name that was made of something else.
        """
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
            names = distinct(definition.arms)
            event, mine = create(names, policy, settings, prior=prior, first_id=first_id, now=now, by=by)
            return event, mine

        def check(bandit: StoredBandit) -> bool:
            if bandit.definition != text:
                raise Conflict(f"{name} is there already, and was made of something else; PATCH changes it", "name")
            return bandit.state is mine

        return Work(name, check, creation=Creation(text, new_key(definition.seed), make))

    def run(self, works: Sequence[Work[Any]]) -> list[Any]:
        """Do all of it in one transaction, each piece wholly or not at all.

        What was done is in the database when this returns.

        Parameters
        ----------
        works : sequence of Work
            What is to be done, in this order.

        Returns
        -------
        list
            The result of each piece, or the error that it raised.

        Raises
        ------
        Unavailable
            If the database does not take the transaction.
        """
        with self._lock:
            try:
                return self._run(works)
            except _BrokenOff:
                return [self._run_alone(work) for work in works]

    def _run_alone(self, work: Work[Any]) -> object:
        """Do one piece of work in a transaction of its own, and return its result or its error."""
        try:
            return self._run([work])[0]
        except _BrokenOff as error:
            return error.__cause__

    def _run(self, works: Sequence[Work[Any]]) -> list[object]:
        # All take rows in the same order, so that nobody waits in a ring.
        names = sorted({work.name for work in works if work is not PROBE})
        writes = {work.name for work in works if not work.reads}
        self._now = float(self.clock())
        if not 0 <= self._now < END_OF_TIME:
            check_time(self._now)  # which says what is wrong
        bandits = dict[str, StoredBandit | Damaged | None]()
        try:
            with self.database.transaction() as connection:
                for name in names:
                    bandits[name] = self._take(connection, name, name in writes)
                results = [self._result(work, bandits, connection) for work in works]
                used = [bandit for bandit in bandits.values() if isinstance(bandit, StoredBandit)]
                for bandit in used:
                    bandit.write(connection)
                if PROBE in works:
                    self.database.write_nothing(connection)
            for bandit in used:
                bandit.committed()
                self._bandits[bandit.name] = bandit
        except BaseException:  # what is in memory may be ahead of the database, or not: it is folded again
            for name in names:
                self._bandits.pop(name, None)
            raise
        for bandit in used:
            if bandit.version - bandit.in_snapshot >= max(EVERY, bandit.in_snapshot // 10):
                self._snapshot(bandit)
        return results

    def _take(self, connection: Connection, name: str, writes: bool) -> StoredBandit | Damaged | None:
        """Return a bandit with all its events so far, and with windows closed if more events may follow.

        Nobody else changes it before the transaction ends. One that does not follow from its events is an error of
        those who want it, not of others.
        """
        row = _find_row(connection, name, TAKE_BANDIT if writes else FIND_BANDIT)
        if row is None:
            return None
        try:
            bandit = self._bandits.get(name)
            if bandit is None or bandit.id != row.id:
                bandit = load(row, connection)
            else:
                self.folded += bandit.follow(row, connection)
            bandit.connection = connection
            bandit.now = self._now
            if writes:
                bandit.close_windows()
            return bandit
        except (Damaged, KeyError, TypeError, ValueError) as error:
            self._bandits.pop(name, None)
            return Damaged(f"{name} cannot be used: {error}")

    def _result(
        self, work: Work[Any], bandits: dict[str, StoredBandit | Damaged | None], connection: Connection
    ) -> object:
        """Return what a piece of work gives, or the error that it raises.

        Work decides everything before it changes anything: if it raises, the state is what it was.
        """
        if work is PROBE:
            return None
        bandit = bandits[work.name]
        if isinstance(bandit, Damaged):
            return bandit
        before = -1
        try:
            if bandit is None:
                if work.creation is None:
                    return Missing(f"there is no bandit {work.name}", "name")
                bandit = self._make(work.name, work.creation, connection)
                bandits[work.name] = bandit
            before = bandit.version
            return work.function(bandit)
        except SQLAlchemyError:
            raise
        except Exception as error:  # also a defect of ours, which must not touch the work of others
            if bandit is not None and bandit.version != before:
                raise _BrokenOff from error
            return error

    def _make(self, name: str, creation: Creation, connection: Connection) -> StoredBandit:
        """Make a new bandit; or, if another replica has just made it, take that one."""
        created, state = creation.make(self._now)
        identity = uuid.uuid4().hex
        key = f"{creation.key:032x}"
        row = {
            "name": name,
            "identity": identity,
            "definition": creation.definition,
            "created": self._now,
            "key": key,
            "status": "running",
            "last": 0,
            "digest": first_digest(name, identity, creation.definition, self._now, key),
        }
        insert = INSERT[connection.dialect.name]
        connection.execute(insert(schema.bandits).values(row).on_conflict_do_nothing())
        found = connection.execute(TAKE_BANDIT, {"name": name}).one()
        if found.identity != identity:
            bandit = load(found, connection)
        else:
            state.find_policy = policy_from
            bandit = StoredBandit(found, journal_of(found, connection), state)
            bandit.journal.append([created])
        bandit.connection = connection
        bandit.now = self._now
        return bandit

    def _snapshot(self, bandit: StoredBandit) -> None:
        """Write the fold so far, so that the next start is quick.

        Events are committed without it: if it cannot be written now, the next one is due in its time.
        """
        n = bandit.version
        state = snapshot_of(bandit.state, bandit.journal)
        bandit.in_snapshot = n
        row = {"bandit": bandit.id, "n": n, "state": state, "digest": digest_of(str(n), state)}
        table = schema.snapshots
        with contextlib.suppress(Unavailable), self.database.transaction() as connection:
            connection.execute(INSERT[connection.dialect.name](table).values(row).on_conflict_do_nothing())
            last = select(table.c.n).where(table.c.bandit == bandit.id).order_by(table.c.n.desc()).limit(KEPT)
            connection.execute(delete(table).where(table.c.bandit == bandit.id, table.c.n.not_in(last)))

    # What can be read at any time.

    def bandits(self) -> list[str]:
        """Return the names of all bandits."""
        with self.database.reads() as connection:
            return list(connection.execute(select(schema.bandits.c.name).order_by(schema.bandits.c.name)).scalars())

    def events(self, name: str, after: int = 0, limit: int | None = None) -> Iterator[bytes]:
        """Yield the events of a bandit after a number, each a line of JSON as logs have them."""
        for stored in self.stored_events(name, after, limit):
            yield stored.numbered()

    def stored_events(self, name: str, after: int = 0, limit: int | None = None) -> Iterator[StoredEvent]:
        """Yield the events of a bandit after a number, as the table has them."""
        with self.database.reads() as connection:
            yield from read_events(connection, _row(connection, name).id, after, limit)

    def head(self, name: str) -> Head:
        """Return the head of a log with the events of a bandit."""
        with self.database.reads() as connection:
            row = _row(connection, name)
        return Head(row.identity, 1, 1, row.created)

    def history(self, name: str, hours: int | None = None) -> list[Hour]:
        """Return decisions and rewards by hour and arm, of all hours or the last so many."""
        table = schema.counts.c
        with self.database.reads() as connection:
            row = _row(connection, name)
            since = 0 if hours is None else int(self.clock() // HOUR) - hours + 1
            rows = connection.execute(
                select(table.hour, table.arm, table.decisions, table.rewards, table.total)
                .where(table.bandit == row.id, table.hour >= since)
                .order_by(table.hour, table.arm)
            ).fetchall()
        arms = self.do(Work(name, lambda bandit: list(bandit.state.names), reads=True)) if rows else []
        return [Hour(**{**row._asdict(), "hour": row.hour * HOUR, "arm": arms[row.arm]}) for row in rows]

    def decision(self, name: str, number: int) -> dict[str, Any] | None:
        """Return a decision with the event that has answered it, if one has; None if it was never made."""
        table = schema.decisions.c
        with self.database.reads() as connection:
            row = _row(connection, name)
            found = connection.execute(
                select(table.n, table.answer).where(table.bandit == row.id, table.id == number)
            ).first()
            if found is None:
                return None
            places = [found.n] if found.answer is None else [found.n, found.answer]
            events = [msgspec.json.decode(event_at(connection, row.id, n).numbered()) for n in places]
        return {"decision": events[0], "answer": events[1] if len(events) > 1 else None}


def _row(connection: Connection, name: str) -> Row[Any]:
    row = _find_row(connection, name, FIND_BANDIT)
    if row is None:
        raise Missing(f"there is no bandit {name}", "name")
    return row


def _find_row(connection: Connection, name: str, statement: Select[Any]) -> Row[Any] | None:
    """Return the row of a bandit; whatever cannot be a name is not sent: PostgreSQL fails on some texts."""
    return connection.execute(statement, {"name": name}).first() if re.fullmatch(NAME, name) else None


def open_store(url: str, *, clock: Callable[[], float] = time.time) -> Store:
    """Open a store, and make its tables if the database is empty.

    Parameters
    ----------
    url : str
        An address such as ``sqlite:///home.db`` or ``postgresql://user@host/name``.
    clock : callable
        Gives the time in seconds since 1970.
    """
    database = connect(url)
    try:
        migrations.prepare(database)
    except BaseException:
        database.close()
        raise
    return Store(database, clock)


Done = Callable[[object], None]  # takes a result, or the error in its place
Item = tuple[Work[Any], Done]


class CommitStatus(NamedTuple):
    """The length of the queue, and the error of the last transaction if it failed."""

    waiting: int
    last_error: str | None


class Commits:
    """One transaction for all that waits: a thread of its own decides, writes, and then answers.

    Any thread may hand in work; a result comes when its transaction is committed.

    Parameters
    ----------
    store : Store
        The store, which belongs to the commits from now on.
    most : int
        The largest number of pieces of work in one transaction.
    """

    def __init__(self, store: Store, most: int = TOGETHER) -> None:
        self.store = store
        self.observe: Callable[[int, float, int], None] | None = None
        """Called after every transaction: pieces of work, seconds, and events of others that were folded."""
        self._most = most
        self._queue: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._last_error: str | None = None
        self._closed = False
        self._lock = threading.Lock()  # so that nothing is put behind the end
        self._thread = threading.Thread(target=self._loop, name="commits", daemon=True)
        self._thread.start()

    @property
    def status(self) -> CommitStatus:
        """The present status."""
        return CommitStatus(self._queue.qsize(), self._last_error)

    def submit(self, work: Work[T] | str, function: Callable[[StoredBandit], T] | None = None) -> Future[T]:
        """Have work done with others; the future gives its result, or raises its error."""
        future: Future[T] = Future()

        def done(result: object) -> None:
            if future.set_running_or_notify_cancel():
                if isinstance(result, BaseException):
                    future.set_exception(result)
                else:
                    future.set_result(cast(T, result))

        self.call(work_of(work, function), done)
        return future

    def call(self, work: Work[Any], done: Done) -> None:
        """Have work done with others; ``done`` gets its result, or its error, in the thread of the commits."""
        with self._lock:
            if self._closed or self._queue.qsize() > LONGEST_QUEUE:
                raise Unavailable("the service is closing" if self._closed else "too many requests are waiting")
            self._queue.put((work, done))

    def close(self) -> None:
        """Finish what waits, and write snapshots; afterwards nothing is taken."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        self._thread.join()
        self.store.close()

    def _loop(self) -> None:
        is_open = True
        while is_open:
            items, is_open = self._waiting()
            if items:
                self._commit(items)

    def _waiting(self) -> tuple[list[Item], bool]:
        """Return all that waits, after something does; and whether more may come."""
        items = list[Item]()
        item = self._queue.get()
        while item is not None:
            items.append(item)
            if len(items) == self._most:
                return items, True
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return items, True
        return items, False

    def _commit(self, items: list[Item]) -> None:
        begin = time.perf_counter()
        folded = self.store.folded
        results: Sequence[object]
        try:
            results = self.store.run([work for work, _ in items])
        except Exception as error:  # whatever it is, those who wait must hear of it
            self._last_error = str(error)
            results = [error] * len(items)
        else:
            self._last_error = None
        for (_, done), result in zip(items, results, strict=True):
            done(result)
        if self.observe is not None:
            self.observe(len(items), time.perf_counter() - begin, self.store.folded - folded)
