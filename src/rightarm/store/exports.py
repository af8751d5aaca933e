"""The events of a bandit of a store as a file: a log, or what other programs read."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rightarm.logs import convert_log, to_obp, to_vw
from rightarm.logs.lines import as_lines
from rightarm.store.store import Store

LOG, PARQUET, OBP, VW, VW_TEXT = ".jsonl", ".parquet", ".npz", ".dsjson", ".txt"
ENDINGS = {"jsonl": LOG, "parquet": PARQUET, "obp": OBP, "vw": VW}
"""The ending of a file by the name of its format."""


def log_lines(store: Store, name: str) -> Iterator[bytes]:
    """The lines of a log with all events of a bandit, read one by one: `Bandit.from_log` makes the bandit of it."""
    yield as_lines(store.head(name), (), 1)
    yield from store.events(name)


def export(store: Store, name: str, target: Path) -> Path:
    """Write the events of a bandit to a new file, by its ending; the service may go on meanwhile.

    - ``.jsonl``: a log, written event by event. ``.parquet``: the same log, for keeping.
    - ``.npz``: the ``bandit_feedback`` of Open Bandit Pipeline, as arrays for ``numpy.load``; ``arms`` is a list in
      JSON. ``.dsjson`` or ``.txt``: for Vowpal Wabbit. Both have the decisions that have a reward.

    All but the log itself are made in memory.
    """
    if target.suffix not in (LOG, PARQUET, OBP, VW, VW_TEXT):
        raise ValueError(f"target must end in {LOG}, {PARQUET}, {OBP}, {VW} or {VW_TEXT}, got {target}")
    if target.exists():
        raise FileExistsError(f"target must be a new file, got {target}, which exists")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".export-") as folder:
        log, made = Path(folder) / f"log{LOG}", Path(folder) / f"made{target.suffix}"
        with log.open("wb") as file:
            file.writelines(log_lines(store, name))
        (log if target.suffix == LOG else _converted(log, made)).rename(target)
    return target


def _converted(log: Path, made: Path) -> Path:
    if made.suffix == PARQUET:
        return convert_log(log, made)
    if made.suffix == OBP:
        feedback = to_obp(log)
        arms = np.array(json.dumps(feedback.pop("arms")))
        np.savez_compressed(made, arms=arms, **{key: value for key, value in feedback.items() if value is not None})
        return made
    return to_vw(log, made)
