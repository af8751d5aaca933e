"""The tables of a store. A change of them is a new migration, in `rightarm.store.migrations`.

``events`` is what happened, in its order; everything else follows from it, but for keys and tokens. Each event has a
digest of itself and of the digest before it, so that a byte that changes anywhere is noticed.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Index, Integer, LargeBinary, MetaData, Table, Text, text

metadata = MetaData()

bandits = Table(
    "bandits",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("identity", Text, nullable=False),
    Column("definition", Text, nullable=False),
    Column("created", Float(53), nullable=False),
    Column("key", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("last", BigInteger, nullable=False),
    Column("digest", LargeBinary, nullable=False),
)
"""A row for each bandit: what it was made of, the secret key by which it draws its decisions, its status, the number of
its last event and the digest of that."""

events = Table(
    "events",
    metadata,
    Column("bandit", Integer, primary_key=True),
    Column("n", BigInteger, primary_key=True),
    Column("line", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
"""Everything that happened to a bandit, numbered from 1 without gaps, each event as a log has it."""

decisions = Table(
    "decisions",
    metadata,
    Column("bandit", Integer, primary_key=True),
    Column("id", BigInteger, primary_key=True),
    Column("n", BigInteger, nullable=False),
    Column("unit", Text),
    Column("answer", BigInteger),
    sqlite_with_rowid=False,
)
"""Where a decision is among the events, for whom it was made (as JSON), and which event has answered it."""

Index(
    "decisions_by_unit",
    decisions.c.bandit,
    decisions.c.unit,
    sqlite_where=text("unit IS NOT NULL"),
    postgresql_where=text("unit IS NOT NULL"),
)

keys = Table(
    "keys",
    metadata,
    Column("bandit", Integer, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("request", LargeBinary, nullable=False),
    Column("answer", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
"""What was answered to a request with an idempotency key."""

counts = Table(
    "counts",
    metadata,
    Column("bandit", Integer, primary_key=True),
    Column("hour", BigInteger, primary_key=True),
    Column("arm", Integer, primary_key=True),
    Column("decisions", BigInteger, nullable=False),
    Column("rewards", BigInteger, nullable=False),
    Column("total", Float(53), nullable=False),
    sqlite_with_rowid=False,
)
"""Of each arm (by its number) in each hour since 1970: decisions, and number and sum of the rewards that came."""

snapshots = Table(
    "snapshots",
    metadata,
    Column("bandit", Integer, primary_key=True),
    Column("n", BigInteger, primary_key=True),
    Column("state", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
)
"""The fold of the first n events of a bandit."""

tokens = Table(
    "tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("label", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("bandits", Text, nullable=False),
    Column("rate", Float(53)),
    Column("created", Float(53), nullable=False),
    Column("revoked", Float(53)),
)
"""Who may do what."""
