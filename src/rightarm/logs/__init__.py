"""Logs of live bandits: written and read."""

from rightarm.logs.log import LogWriter, read_log, read_table

__all__ = ["LogWriter", "read_log", "read_table"]
