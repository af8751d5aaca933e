"""The versions of a store's tables, by Alembic: a new database gets the newest, an old one is brought there."""

from __future__ import annotations

from pathlib import Path

from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from rightarm.store import schema
from rightarm.store.connections import Database, database_errors

LOCK = 0x72616D  # PostgreSQL's advisory lock while tables are made: several replicas may start at once


def _scripts() -> ScriptDirectory:
    folder = str(Path(__file__).parent)
    return ScriptDirectory(folder, version_locations=[folder])


def version_of(connection: Connection) -> str | None:
    """Return the version of a database's tables; None if it has none."""
    return MigrationContext.configure(connection).get_current_revision()


def newest() -> str:
    """Return the version of tables that this rightarm works with."""
    head = _scripts().get_current_head()
    assert head is not None
    return head


def prepare(database: Database) -> None:
    """Make the tables in an empty database, and refuse one that has others."""
    with database_errors(), database.writing.begin() as connection:
        _lock(connection)
        found = version_of(connection)
        if found is None:
            _create(connection)
        elif found != newest():
            versions = {script.revision for script in _scripts().walk_revisions()}
            if found not in versions:
                raise ValueError(f"the store has tables of version {found}: a newer rightarm made it")
            raise ValueError(f"the store has tables of version {found}, and {newest()} is needed: rightarm migrate")


def migrate(database: Database) -> tuple[str | None, str]:
    """Bring the tables of a database to the newest version; return the versions before and after."""
    with database_errors(), database.writing.begin() as connection:
        _lock(connection)
        before = version_of(connection)
        if before is None:
            _create(connection)
        else:
            _upgrade(connection, before)
        return before, newest()


def _lock(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")


def _create(connection: Connection) -> None:
    """Make the newest tables in a database that has none."""
    if connection.dialect.name == "postgresql":
        encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
        if encoding != "UTF8":
            raise ValueError(f"store must be a database with the encoding UTF8, which takes any text, got {encoding}")
    tables = inspect(connection).get_table_names()
    if tables:
        raise ValueError(f"store must be empty or one of rightarm, got tables {', '.join(sorted(tables)[:5])}")
    schema.metadata.create_all(connection)
    MigrationContext.configure(connection).stamp(_scripts(), newest())


def _upgrade(connection: Connection, version: str) -> None:
    """Apply each migration that the database lacks, the oldest first, and note its version."""
    scripts = _scripts()
    context = MigrationContext.configure(connection)
    missing = list(scripts.iterate_revisions(newest(), version))
    with Operations.context(context):
        for script in reversed(missing):
            script.module.upgrade()
            context.stamp(scripts, script.revision)
