"""Backups and exports of a store."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, insert, select

from rightarm.logs import convert_log
from rightarm.logs.exports import EXPORTS
from rightarm.logs.lines import LINES, as_lines
from rightarm.store import migrations, schema
from rightarm.store.connections import Database
from rightarm.store.store import Store

MANY = 10_000  # rows that are copied at once


def backup(source: Database, target: Database) -> int:
    """Copy everything to an empty database, of either kind, and return the number of events.

    This also moves a store from SQLite to PostgreSQL; a backup is brought back by copying it the other way.
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


ENDINGS = {name: export.ending for name, export in EXPORTS.items()}
"""The ending of a file by the name of its format."""


def log_lines(store: Store, name: str) -> Iterator[bytes]:
    """Yield the lines of a log with all events of a bandit: `Bandit.from_log` makes the bandit of it."""
    yield as_lines(store.head(name), (), 1)
    yield from store.events(name)


def export(store: Store, name: str, target: Path) -> Path:
    """Write the events of a bandit to a new file, in one of the formats of `rightarm.logs.convert_log`, by its ending.

    The service may go on meanwhile. All formats but ``.jsonl`` are made in memory.
    """
    if target.suffix not in ENDINGS.values():
        raise ValueError(f"target must end in one of {', '.join(ENDINGS.values())}, got {target}")
    if target.exists():
        raise FileExistsError(f"target must be a new file, got {target}, which exists")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".export-") as folder:
        log = Path(folder) / f"log{LINES}"
        with log.open("wb") as file:
            file.writelines(log_lines(store, name))
        made = log if target.suffix == LINES else convert_log(log, Path(folder) / f"made{target.suffix}")
        made.rename(target)
    return target
