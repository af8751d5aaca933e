"""Logs for other programs: Open Bandit Pipeline and Vowpal Wabbit."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from rightarm.files import write_whole
from rightarm.logs.rows import Rows, read_rows


def to_obp(log: Any, *, arms: Iterable[Any] | None = None, missing: float | None = None) -> dict[str, Any]:
    """The log as the ``bandit_feedback`` of Open Bandit Pipeline: rows with a reward, arms numbered from 0.

    ``log``, ``arms`` and ``missing`` are those of `evaluate`. Logs of rightarm have no contexts: here the context of
    every row is 1, and that of an arm its unit vector. The names of the arms are under ``arms``, in the order of their
    numbers.

    Saito, Aihara, Matsutani and Narita, "Open Bandit Dataset and Pipeline", NeurIPS 2021.

    >>> log = {"arm": ["red", "blue"], "propensity": [0.5, 0.25], "reward": [1.0, 0.0]}
    >>> feedback = to_obp(log)
    >>> feedback["action"], feedback["pscore"], feedback["arms"]
    (array([1, 0]), array([0.5 , 0.25]), ['blue', 'red'])
    """
    rows = read_rows(log, arms, missing=missing)
    return {
        "n_rounds": rows.arms.size,
        "n_actions": len(rows.names),
        "context": np.ones((rows.arms.size, 1)),
        "action_context": np.eye(len(rows.names)),
        "action": rows.arms,
        "position": None,
        "reward": rows.rewards,
        "pscore": rows.propensities,
        "arms": rows.names,
    }


def to_vw(
    log: Any, path: str | os.PathLike[str], *, arms: Iterable[Any] | None = None, missing: float | None = None
) -> Path:
    """Write the log for Vowpal Wabbit's ``--cb_adf`` and similar options, ``.dsjson`` or ``.txt`` by the path's ending.

    An arm is one feature, its name; the cost is minus the reward. Rows without a reward are left out, or have the
    reward ``missing``. ``vw --cb_adf --dsjson -d log.dsjson`` and ``vw --cb_adf -d log.txt`` read it.

    The formats: https://github.com/VowpalWabbit/vowpal_wabbit/wiki, "Contextual Bandit algorithms", "DSJSON".

    >>> import tempfile
    >>> log = {"arm": ["red", "blue"], "propensity": [0.5, 0.25], "reward": [1.0, 0.0]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(to_vw(log, folder + "/log.txt").read_text(), end="")
    |arm blue
    0:-1.0:0.5 |arm red
    <BLANKLINE>
    0:-0.0:0.25 |arm blue
    |arm red
    <BLANKLINE>
    """
    path = Path(path)
    if path.suffix not in (".dsjson", ".txt"):
        raise ValueError(f"path must end in .dsjson or .txt, got {path}")
    rows = read_rows(log, arms, missing=missing)
    write_whole(path, "".join(_dsjson(rows) if path.suffix == ".dsjson" else _text(rows)).encode())
    return path


def _examples(rows: Rows) -> Iterator[tuple[list[str], int, float, float]]:
    """Of every row the features of the arms it could choose, the place of the chosen one, cost and probability."""
    features = [quote(name if isinstance(name, str) else json.dumps(name), safe="") for name in rows.names]
    for t, arm in enumerate(rows.arms):
        available = rows.every if rows.among is None else rows.among[t]
        place = int(np.searchsorted(available, arm))
        yield [features[i] for i in available], place, -float(rows.rewards[t]), float(rows.propensities[t])


def _text(rows: Rows) -> Iterator[str]:
    for features, chosen, cost, probability in _examples(rows):
        lines = [f"|arm {feature}" for feature in features]
        lines[chosen] = f"0:{cost!r}:{probability!r} {lines[chosen]}"
        yield "\n".join(lines) + "\n\n"


def _dsjson(rows: Rows) -> Iterator[str]:
    for t, (features, chosen, cost, probability) in enumerate(_examples(rows)):
        event = {
            "_label_cost": cost,
            "_label_probability": probability,
            "_label_Action": chosen + 1,
            "_labelIndex": chosen,
            "Version": "1",
            "EventId": str(t + 1),
            "a": [chosen + 1],
            "c": {"_multi": [{"arm": {feature: 1}} for feature in features]},
            "p": [probability],
        }
        yield json.dumps(event) + "\n"
