"""Logs of live bandits: written, read, converted, and exported to other programs."""

from rightarm.logs.exports import convert_log, to_obp, to_vw
from rightarm.logs.info import LogInfo, log_info
from rightarm.logs.log import Log
from rightarm.logs.reader import is_log, read_log, read_table
from rightarm.logs.writer import LogWriter

__all__ = [
    "Log",
    "LogInfo",
    "LogWriter",
    "convert_log",
    "is_log",
    "log_info",
    "read_log",
    "read_table",
    "to_obp",
    "to_vw",
]
