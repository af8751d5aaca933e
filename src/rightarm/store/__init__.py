"""Events and snapshots of bandits in SQLite or PostgreSQL: written before they are answered, never lost."""

from rightarm.store.commits import Commits
from rightarm.store.errors import Conflict, Damaged, NotFound, Refused, Unavailable
from rightarm.store.store import Store, Work, open_store

__all__ = ["Commits", "Conflict", "Damaged", "NotFound", "Refused", "Store", "Unavailable", "Work", "open_store"]
