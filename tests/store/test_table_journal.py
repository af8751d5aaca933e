"""The journal of a store's bandit keeps to the contract of all journals."""

from __future__ import annotations

import contextlib
from typing import Any

from rightarm.store import open_store, schema
from rightarm.store.connections import Database
from rightarm.store.table_journal import FIND_BANDIT, INSERT_EVENTS, first_digest, journal_of, read_events
from rightarm.testing import check_journal

KEY = f"{0x0F1E2D3C4B5A69788796A5B4C3D2E1F0:032x}"


class Committed:
    """A journal of a store that commits when it is closed, as the store does at the end of a transaction."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.stack = contextlib.ExitStack()
        connection = self.stack.enter_context(database.reads())
        self.row = connection.execute(FIND_BANDIT, {"name": "home"}).one()
        self.journal = journal_of(self.row, connection)
        for _ in self.journal.follow(read_events(connection, self.row.id, 0)):
            pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self.journal, name)

    def close(self) -> None:
        self.stack.close()
        rows = [{"bandit": self.row.id, **stored._asdict()} for stored in self.journal.new]
        with self.database.transaction() as connection:
            connection.execute(INSERT_EVENTS, rows)
        self.journal.committed()


def test_the_journal_of_a_store_is_one(store_url: str) -> None:
    store = open_store(store_url)
    begin = first_digest("home", "identity", "{}", 1.0, KEY)
    row = {"name": "home", "identity": "identity", "definition": "{}", "created": 1.0, "key": KEY}
    with store.database.transaction() as connection:
        connection.execute(schema.bandits.insert(), row | {"status": "running", "last": 0, "digest": begin})
    check_journal(lambda: Committed(store.database))
    store.close()
