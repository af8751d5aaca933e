"""The first tables: bandits, events, decisions, keys, counts, snapshots, tokens."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0001", None


def upgrade() -> None:
    """Make them."""
    integer, big, real, binary = sa.Integer, sa.BigInteger, sa.Float(53), sa.LargeBinary

    def column(name: str, kind: object, *, key: bool = False, null: bool = False) -> sa.Column[object]:
        return sa.Column(name, kind, primary_key=key, nullable=null)  # type: ignore[arg-type]

    op.create_table(
        "bandits",
        column("id", integer, key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        *(column(name, sa.Text) for name in ("identity", "definition")),
        column("created", real),
        column("key", sa.Text),
        column("status", sa.Text),
        column("last", big),
        column("digest", binary),
    )
    op.create_table(
        "events",
        column("bandit", integer, key=True),
        column("n", big, key=True),
        column("line", sa.Text),
        column("digest", binary),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "decisions",
        column("bandit", integer, key=True),
        column("id", big, key=True),
        column("n", big),
        column("unit", sa.Text, null=True),
        column("answer", big, null=True),
        sqlite_with_rowid=False,
    )
    given = sa.text("unit IS NOT NULL")
    op.create_index("decisions_by_unit", "decisions", ["bandit", "unit"], sqlite_where=given, postgresql_where=given)
    op.create_table(
        "keys",
        column("bandit", integer, key=True),
        column("kind", sa.Text, key=True),
        column("key", sa.Text, key=True),
        column("request", binary),
        column("answer", sa.Text),
        column("digest", binary),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "counts",
        column("bandit", integer, key=True),
        column("hour", big, key=True),
        column("arm", integer, key=True),
        column("decisions", big),
        column("rewards", big),
        column("total", real),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "snapshots",
        column("bandit", integer, key=True),
        column("n", big, key=True),
        column("state", sa.Text),
        column("digest", binary),
    )
    op.create_table(
        "tokens",
        column("id", sa.Text, key=True),
        *(column(name, sa.Text) for name in ("label", "digest", "scopes", "bandits")),
        column("rate", real, null=True),
        column("created", real),
        column("revoked", real, null=True),
    )
