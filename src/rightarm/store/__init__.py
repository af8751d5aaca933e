"""Events and snapshots of bandits in SQLite or PostgreSQL: written before they are answered, never lost."""
