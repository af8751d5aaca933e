"""Connections to SQLite and PostgreSQL, and the errors of a store."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError


class Refused(Exception):
    """Something that was asked of a store could not be done, and nothing has changed.

    ``field`` is the part of the request that is wrong, if it is one; ``code`` a short name of what is wrong, for
    programs.

    >>> error = Conflict("key must be a new one for another request, got 'k' again", "key", code="key_taken")
    >>> error.field, error.code, Missing("there is no bandit home", "name").code
    ('key', 'key_taken', 'not_found')
    """

    code = "refused"

    def __init__(self, detail: str, field: str | None = None, code: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.field = field
        self.code = type(self).code if code is None else code

    def __reduce__(self) -> tuple[type[Refused], tuple[str, str | None, str]]:
        return type(self), (self.detail, self.field, self.code)


class Missing(Refused):
    """There is no such bandit or decision."""

    code = "not_found"


class Conflict(Refused):
    """The request contradicts what is there already."""

    code = "conflict"


class Unavailable(Refused):
    """The database does not answer, or its disk is full: something may have been written, or nothing."""

    code = "unavailable"


class Damaged(Refused):
    """The database holds something else than was written to it."""

    code = "damaged"


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
        """Open a transaction that writes; whatever the database has against it is `Unavailable`."""
        with database_errors(), self.writing.begin() as connection:
            yield connection

    @contextlib.contextmanager
    def reads(self) -> Iterator[Connection]:
        """Open a transaction that sees one moment of the database."""
        with database_errors(), self.reading.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def long_reads(self) -> Iterator[Connection]:
        """Open a transaction as `reads` does, without limits of time: for whoever reads everything."""
        with self.reads() as connection:
            if not is_sqlite(self.url):
                for limit in LIMITS:
                    connection.exec_driver_sql(f"SET LOCAL {limit} = 0")
            yield connection

    def write_nothing(self, connection: Connection) -> None:
        """Make the commit write to the disk without a change, so that it fails where that of a decision would."""
        nothing = "PRAGMA user_version = 0" if is_sqlite(self.url) else "SELECT txid_current()"
        connection.exec_driver_sql(nothing)

    def close(self) -> None:
        """Close all connections."""
        self.writing.dispose()
        self.reading.dispose()


@contextlib.contextmanager
def database_errors() -> Iterator[None]:
    """Turn errors of the database within into `Unavailable`."""
    try:
        yield
    except DBAPIError as error:
        raise Unavailable(f"the database does not answer: {str(error.orig).strip().splitlines()[0]}") from error
    except SQLAlchemyError as error:
        raise Unavailable(f"the database does not answer: {str(error).splitlines()[0]}") from error


def is_sqlite(url: URL) -> bool:
    """Return whether a database is a file of SQLite."""
    return url.get_backend_name() == "sqlite"


def connect(text: str, *, must_exist: bool = False) -> Database:
    """Return the database at an address; nothing is opened before it is used.

    Parameters
    ----------
    text : str
        An address such as ``sqlite:///home.db`` or ``postgresql://user:password@host/name``.
    must_exist : bool
        Refuse a file that is not there; otherwise SQLite makes it.

    Raises
    ------
    ValueError
        If the address is none of SQLite or PostgreSQL.
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
    def set_up(connection: sqlite3.Connection, record: object) -> None:
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
