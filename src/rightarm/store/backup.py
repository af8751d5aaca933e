"""`backup`: a copy of a store at one moment, while others go on using it."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select

from rightarm.store import migrations, schema
from rightarm.store.connections import Database

MANY = 10_000  # rows that are copied at once


def backup(source: Database, target: Database) -> int:
    """Copy everything to an empty database, of either kind; says how many events that were.

    Whoever moves from SQLite to PostgreSQL does it so; and a backup is brought back by copying it the other way.
    """
    migrations.prepare(target)
    events = 0
    with source.long_reads() as reading, target.transaction() as writing:
        for table in schema.metadata.sorted_tables:
            if writing.execute(select(table).limit(1)).first() is not None:
                raise ValueError(f"target must be empty, got rows in {table.name}")
            rows = reading.execution_options(yield_per=MANY).execute(select(table))
            for some in rows.partitions():
                writing.execute(insert(table), [row._asdict() for row in some])
                events += len(some) if table is schema.events else 0
        _renumber(writing)
    return events


def _renumber(connection: Connection) -> None:
    """Let PostgreSQL number the next bandit after those that were copied."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(
            "SELECT setval(pg_get_serial_sequence('bandits', 'id'), COALESCE(MAX(id), 0) + 1, false) FROM bandits"
        )
