"""Logs in another format: JSON lines, which are written as things happen, and Parquet, which is smaller."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from rightarm.files import write_whole
from rightarm.logs.lines import Numbering, as_line, numbered
from rightarm.logs.parquet import LINES, PARQUET, write_events
from rightarm.logs.stream import PathLike, read_events


def convert_log(source: PathLike, target: PathLike) -> Path:
    """Write the events of the log ``source`` as a new log, JSON lines or Parquet by the ending of ``target``.

    Every event is checked on the way, and the source stays as it is; a log in several parts becomes one file, with the
    same identity. A bandit writes to JSON lines only; Parquet is for keeping and reading.

    >>> import tempfile
    >>> from rightarm.logs import LogWriter, read_log
    >>> folder = tempfile.TemporaryDirectory()
    >>> with LogWriter(folder.name + "/log.jsonl") as log:
    ...     log.decision(1, "red", 0.5, round=1, version=0, time=1_700_000_000.0)
    >>> packed = convert_log(folder.name + "/log.jsonl", folder.name + "/log.parquet")
    >>> read_log(packed)["arm", "propensity"].rows()
    [('red', 0.5)]
    >>> folder.cleanup()
    """
    path = Path(target)
    if path.suffix not in (LINES, PARQUET):
        raise ValueError(f"target must end in {LINES} or {PARQUET}, got {path}")
    if path.exists():
        raise FileExistsError(f"target must be a new file, got {path}, which exists")
    numbering = Numbering()
    events = list(read_events(source, numbering=numbering))
    whole = [] if numbering.head is None else [numbering.head.as_event(), *map(numbered, events, count(1))]
    if path.suffix == LINES:
        write_whole(path, b"".join(map(as_line, whole)))
    else:
        write_events(whole, path)
    return path
