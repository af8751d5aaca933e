"""Events and snapshots of bandits in SQLite or PostgreSQL: written before they are answered, never lost."""

from rightarm.store.connections import Conflict, Damaged, Missing, Refused, Unavailable
from rightarm.store.store import PROBE, Commits, Store, Work, open_store
from rightarm.store.stored_bandit import StoredBandit

__all__ = [
    "PROBE",
    "Commits",
    "Conflict",
    "Damaged",
    "Missing",
    "Refused",
    "Store",
    "StoredBandit",
    "Unavailable",
    "Work",
    "open_store",
]
