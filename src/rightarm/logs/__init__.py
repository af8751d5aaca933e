"""Logs of live bandits: written, read, converted, and exported to other programs.

`events` has a type for each kind of event, `settings` the settings that events change, and `journal` says where a
bandit's events go. `lines` is the file format, both ways, and `writer` the journal in a file. `outcomes` says which
events can follow which, and what became of each decision. `log` makes arrays of a log, `rows` takes those decisions
that have a reward, and `reader` makes frames. `exports` writes other formats.
"""

from rightarm.logs.exports import convert_log, to_obp, to_vw
from rightarm.logs.journals import LogWriter
from rightarm.logs.log import Log
from rightarm.logs.reader import is_log, read_log, read_table

__all__ = ["Log", "LogWriter", "convert_log", "is_log", "read_log", "read_table", "to_obp", "to_vw"]
