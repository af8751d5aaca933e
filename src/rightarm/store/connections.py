"""Connections to the two kinds of databases, each set up so that what was committed stays."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from rightarm.store.errors import Unavailable

SECONDS = 10  # after which a database is taken to be gone
LIMITS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
# A transaction waits at most so long; one whose replica is gone does not hold its bandit for ever. What was committed
# stays, whatever the server's own settings are.
POSTGRES = " ".join([*(f"-c {limit}={SECONDS}s" for limit in LIMITS), "-c synchronous_commit=on"])


class Database(NamedTuple):
    """Two ways to a database: transactions that write, and those that only read."""

    url: URL
    writing: Engine
    reading: Engine

    @property
    def file(self) -> Path | None:
        """The file, if it is SQLite's."""
        return Path(self.url.database) if is_sqlite(self.url) and self.url.database else None

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction that writes; whatever the database has against it is `Unavailable`."""
        with answering(), self.writing.begin() as connection:
            yield connection

    @contextlib.contextmanager
    def reads(self) -> Iterator[Connection]:
        """A transaction that sees one moment of the database."""
        with answering(), self.reading.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def long_reads(self) -> Iterator[Connection]:
        """The same for as long as it takes: everything is read, and thought about meanwhile."""
        with self.reads() as connection:
            if not is_sqlite(self.url):
                for limit in LIMITS:
                    connection.exec_driver_sql(f"SET LOCAL {limit} = 0")
            yield connection

    def write_nothing(self, connection: Connection) -> None:
        """Have the commit write to the disk as that of a decision does, without a change: it fails where that fails."""
        nothing = "PRAGMA user_version = 0" if is_sqlite(self.url) else "SELECT txid_current()"
        connection.exec_driver_sql(nothing)

    def close(self) -> None:
        """Close all connections."""
        self.writing.dispose()
        self.reading.dispose()


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Errors of the database within are `Unavailable`."""
    try:
        yield
    except DBAPIError as error:
        raise Unavailable(f"the database does not answer: {str(error.orig).strip().splitlines()[0]}") from error
    except SQLAlchemyError as error:
        raise Unavailable(f"the database does not answer: {str(error).splitlines()[0]}") from error


def is_sqlite(url: URL) -> bool:
    """Whether a database is a file of SQLite."""
    return url.get_backend_name() == "sqlite"


def connect(text: str, *, must_exist: bool = False) -> Database:
    """The database at an address such as ``sqlite:///home.db`` or ``postgresql://user:password@host/name``.

    SQLite makes a file that is not there, unless it ``must_exist``.
    """
    try:
        url = make_url(text)
    except ArgumentError:
        shown = re.sub(r":(?!/).*@", ":***@", text)  # what cannot be read may have a password all the same
        raise ValueError(f"store must be an address such as sqlite:///home.db, got {shown!r}") from None
    if is_sqlite(url):
        if not url.database or url.database == ":memory:":
            raise ValueError(f"store must name a file, as sqlite:///home.db does, got {text!r}")
        if must_exist and not Path(url.database).exists():
            raise ValueError(f"store must be there already, got {text!r}")
        url = url.set(drivername="sqlite+pysqlite")
        return Database(url, _sqlite(url, "BEGIN IMMEDIATE"), _sqlite(url, "BEGIN"))
    if url.get_backend_name() == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
        return Database(url, _postgres(url, "READ COMMITTED"), _postgres(url, "REPEATABLE READ"))
    raise ValueError(f"store must be sqlite:///... or postgresql://..., got {url.render_as_string()!r}")


def _sqlite(url: URL, begin: str) -> Engine:
    engine = create_engine(url, connect_args={"timeout": SECONDS, "check_same_thread": False}, pool_size=8)

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # transactions begin where we say so
        try:
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "cache_size=-65536"):
                connection.execute(f"PRAGMA {pragma}")
        except BaseException:  # a file that is damaged: nobody else closes the connection then
            connection.close()
            raise

    @event.listens_for(engine, "begin")
    def begin_so(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


def _postgres(url: URL, isolation: Literal["READ COMMITTED", "REPEATABLE READ"]) -> Engine:
    arguments = {
        "connect_timeout": SECONDS,
        "options": POSTGRES,
        "keepalives_idle": SECONDS,
        "tcp_user_timeout": 1000 * SECONDS,
        "application_name": "rightarm",
    }
    return create_engine(
        url,
        connect_args=arguments,
        isolation_level=isolation,
        pool_size=8,
        pool_timeout=SECONDS,
        pool_recycle=3600,
        pool_pre_ping=True,  # after a restart of the database the first request is answered like any other
    )
