"""How connections are set up: what was committed stays, whoever reads sees one moment, and nobody keeps others out."""

from __future__ import annotations

import contextlib

import pytest

from postgres import Postgres
from rightarm.store import open_store
from rightarm.store.connections import LIMITS, connect


@pytest.fixture(autouse=True)
def careless(postgres: Postgres, postgres_url: str) -> None:
    """A database whose own settings are not ours."""
    name = postgres_url.split("/")[3].split("?")[0]
    for setting in ("synchronous_commit = off", "default_transaction_isolation = 'serializable'"):
        postgres.execute(f"ALTER DATABASE {name} SET {setting}")


def test_settings_do_not_depend_on_the_database_nor_on_who_came_before(postgres_url: str) -> None:
    with contextlib.closing(connect(postgres_url)) as database:
        for _ in range(2):
            for enter, isolation, seconds in (
                (database.transaction, "read committed", "10s"),
                (database.reads, "repeatable read", "10s"),
                (database.long_reads, "repeatable read", "0"),
            ):
                with enter() as connection:
                    names = ("synchronous_commit", "transaction_isolation", *LIMITS)
                    found = [connection.exec_driver_sql(f"SHOW {name}").scalar() for name in names]
                assert found == ["on", isolation, *[seconds] * len(LIMITS)]


def test_many_readers_leave_a_connection_for_the_writer(postgres_url: str) -> None:
    with contextlib.closing(connect(postgres_url)) as database, contextlib.ExitStack() as readers:
        for _ in range(18):  # as many as a pool has
            readers.enter_context(database.reads())
        with database.transaction() as connection:
            assert connection.exec_driver_sql("SELECT 1").scalar() == 1


def test_a_database_that_does_not_take_all_texts_is_refused(postgres: Postgres) -> None:
    postgres.execute("CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    with pytest.raises(ValueError, match="encoding UTF8, which takes any text, got LATIN1"):
        open_store(postgres.url("latin"))
    postgres.execute("DROP DATABASE latin WITH (FORCE)")
