"""`log_info`: a log in a few lines."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from rightarm.logs.events import Arm
from rightarm.logs.lines import PathLike
from rightarm.logs.log import Log


@dataclass
class LogInfo:
    """The findings of `log_info`; ``str()`` has a line for each."""

    path: Path
    identity: str | None = None
    """None if the log has no events."""
    parts: int = 1
    events: Counter[str] = field(default_factory=Counter)
    """How many events of each kind there are."""
    first: float | None = None
    """The time of the first event."""
    latest: float | None = None
    arms: list[Arm] | None = None
    """The arms that can be chosen now, None if the log does not say."""
    chosen: Counter[Arm] = field(default_factory=Counter)
    """How often each arm was chosen."""
    contexts: int = 0
    """How many decisions have a context."""
    waiting: int = 0
    """How many decisions wait for an answer, or for their window of reward to close."""
    rewarded: int = 0
    cancelled: int = 0
    corrected: int = 0

    def __str__(self) -> str:
        times = [datetime.fromtimestamp(time, UTC) for time in (self.first, self.latest) if time is not None]
        lines = {
            "identity": self.identity or "none: no events",
            "parts": self.parts,
            "events": ", ".join([f"{self.events.total():,}", *(f"{n:,} {kind}" for kind, n in self.events.items())]),
            "times, UTC": " to ".join(f"{time:%Y-%m-%d %H:%M:%S}" for time in times),
            "arms now": "not said" if self.arms is None else ", ".join(map(repr, self.arms)),
            "chosen": ", ".join(f"{arm!r} {count:,}" for arm, count in self.chosen.most_common(20)),
            "decisions": f"{self.rewarded:,} with a reward, {self.waiting:,} waiting, {self.cancelled:,} cancelled, "
            f"{self.corrected:,} corrected",
            "contexts": f"{self.contexts:,} decisions have one" if self.contexts else "",
        }
        return "\n".join([str(self.path), *(f"  {name:<11} {text}" for name, text in lines.items() if text != "")])


def log_info(log: PathLike | Log) -> LogInfo:
    """Read a log, with every check, and say what it holds.

    >>> import tempfile
    >>> from rightarm.logs import LogWriter
    >>> folder = tempfile.TemporaryDirectory()
    >>> with LogWriter(folder.name + "/log.jsonl") as log:
    ...     log.arms(["red", "blue"], time=1_700_000_000.0)
    ...     log.decision(1, "red", 0.5, round=1, version=0, time=1_700_000_000.0)
    >>> found = log_info(folder.name + "/log.jsonl")
    >>> found.events["decision"], found.waiting, found.arms
    (1, 1, ['red', 'blue'])
    >>> folder.cleanup()
    """
    log = log if isinstance(log, Log) else Log.read(log)
    assert log.path is not None
    counts = np.bincount(log.arms, minlength=len(log.names)).tolist()
    first, latest = log.span or (None, None)
    contexts = log.more.get("context", [])
    return LogInfo(
        path=log.path,
        identity=log.identity,
        parts=log.parts,
        events=log.events,
        first=first,
        latest=latest,
        arms=log.active,
        chosen=Counter({name: count for name, count in zip(log.names, counts, strict=True) if count}),
        contexts=sum(context is not None for context in contexts),
        waiting=int(log.more["waiting"].sum()),
        rewarded=int((~np.isnan(log.rewards)).sum()),
        cancelled=int(log.more["cancelled"].sum()),
        corrected=int(log.more["corrected"].sum()),
    )
