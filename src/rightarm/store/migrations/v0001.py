"""The first tables. A new database is made from `rightarm.store.schema`, so there is nothing to do here.

A change of the tables is a new file beside this one, whose ``upgrade`` alters a database of the version before.
"""

from __future__ import annotations

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Do nothing: nobody has older tables."""
