"""Events and snapshots of bandits in SQLite or PostgreSQL: written before they are answered, never lost."""

from rightarm.store.commits import Commits
from rightarm.store.errors import Conflict, Damaged, NotFound, Refused, Unavailable
from rightarm.store.store import PROBE, Store, Work, open_store

__all__ = [
    "PROBE",
    "Commits",
    "Conflict",
    "Damaged",
    "NotFound",
    "Refused",
    "Store",
    "Unavailable",
    "Work",
    "open_store",
]
