"""The databases that tests start themselves."""

from __future__ import annotations

import psycopg
import pytest
import sqlalchemy

from postgres import Postgres


def address(url: str) -> str:
    return url.replace("postgresql:", "postgresql+psycopg:")


def test_every_test_has_an_empty_database(store_url: str) -> None:
    engine = sqlalchemy.create_engine(address(store_url))
    assert sqlalchemy.inspect(engine).get_table_names() == []
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE left_over (n INTEGER)"))
    engine.dispose()


@pytest.mark.full
def test_a_postgresql_that_is_killed_or_stopped_comes_back_with_what_was_committed() -> None:
    server = Postgres()
    try:
        server.execute("CREATE TABLE numbers (n INTEGER)")
        for number, end in enumerate([server.kill, server.stop]):
            server.execute(f"INSERT INTO numbers VALUES ({number})")
            end()
            with pytest.raises(psycopg.OperationalError):
                server.execute("SELECT 1")
            server.start()
        assert server.execute("SELECT n FROM numbers ORDER BY n") == [(0,), (1,)]
    finally:
        server.close()


def test_connections_are_cut(postgres: Postgres, postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SELECT 1")
        assert postgres.disconnect(postgres_url) == 1
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
