"""Logs in other formats: `EXPORTS` has them all, and `convert_log` writes any of them.

To add a format, write a function that takes the path of a log and the path of a new file, and a row in `EXPORTS`. The
commands ``convert`` and ``export`` then have it, and so has the service if `rightarm.messages.Format` names it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from rightarm.files import write_whole
from rightarm.logs.lines import Numbering, PathLike, as_lines, write_parquet
from rightarm.logs.log import LogLike
from rightarm.logs.outcomes import read_events
from rightarm.logs.rows import ANY, Rows, read_rows
from rightarm.types import F64

# JSON lines and Parquet.


def _convert_events(source: PathLike, path: Path) -> None:
    """Write all events of a log, checked on the way, with the same identity."""
    numbering = Numbering()
    events = list(read_events(source, numbering))
    if path.suffix == ".jsonl":
        write_whole(path, as_lines(numbering.head, events, first=1))
    else:
        write_parquet(numbering.head, events, path)


# Open Bandit Pipeline.


def to_obp(log: LogLike, *, arms: Iterable[Hashable] | None = None, missing: float | None = None) -> dict[str, Any]:
    """Return the log as the ``bandit_feedback`` of Open Bandit Pipeline: rows with a reward, arms numbered from 0.

    ``context`` are the contexts of the rows, or 1 in each where the log has none. Decisions whose window of reward is
    open are left out; ``open_windows`` says how many. ``action_context`` are the features of the arms if the log has
    them and they never change, and otherwise the unit vector of each arm: obp knows no features that change from row to
    row. The names of the arms are under ``arms``, in the order of their numbers.

    Parameters
    ----------
    log, arms, missing
        Those of `rightarm.evaluate`.

    Returns
    -------
    dict
        The arrays, by the names that obp gives them.

    References
    ----------
    Saito, Aihara, Matsutani and Narita, "Open Bandit Dataset and Pipeline", NeurIPS 2021.

    Examples
    --------
    >>> log = {"arm": ["red", "blue"], "propensity": [0.5, 0.25], "reward": [1.0, 0.0]}
    >>> feedback = to_obp(log)
    >>> feedback["action"], feedback["pscore"], feedback["arms"]
    (array([1, 0]), array([0.5 , 0.25]), ['blue', 'red'])
    """
    rows = read_rows(log, arms, reward_range=ANY, missing=missing)
    return {
        "n_rounds": rows.arms.size,
        "n_actions": len(rows.names),
        "context": np.ones((rows.arms.size, 1)) if rows.contexts is None else rows.contexts.rows,
        "action_context": _lasting_features(rows),
        "action": rows.arms,
        "position": None,
        "reward": rows.rewards,
        "pscore": rows.propensities,
        "arms": rows.names,
        "open_windows": rows.open_windows,
    }


def _save_obp(source: PathLike, path: Path) -> None:
    """Write a log for obp as arrays that `numpy.load` reads; ``arms`` is a list in JSON."""
    feedback = to_obp(source)
    feedback["arms"] = np.array(json.dumps(feedback["arms"]))
    np.savez_compressed(path, **{name: value for name, value in feedback.items() if value is not None})


def _lasting_features(rows: Rows) -> F64:
    """Return the features of every arm if they are known and the same in all rows, else unit vectors."""
    if rows.arm_features is None:
        return np.eye(len(rows.names))
    found = np.full((len(rows.names), len(rows.arm_features.names)), np.nan)
    for t, table in enumerate(rows.arm_features.tables):
        available = rows.available(t)
        before = found[available]
        if not (np.isnan(before) | (before == table)).all():
            return np.eye(len(rows.names))
        found[available] = table
    return np.eye(len(rows.names)) if np.isnan(found).any() else found


# Vowpal Wabbit.


def to_vw(
    log: LogLike, path: PathLike, *, arms: Iterable[Hashable] | None = None, missing: float | None = None
) -> Path:
    """Write the log for Vowpal Wabbit's ``--cb_adf`` and similar options, ``.dsjson`` or ``.txt`` by the path's ending.

    An arm is one feature in the namespace ``arm``, its name; the cost is minus the reward. Features of the context that
    are not 0 are shared features in the namespace ``context``, those of arms stand in the namespace ``features``. Their
    names are those of the policy that wrote the log, or x0, x1 and so on; what Vowpal Wabbit has other uses for is
    escaped as in web addresses. Rows without a reward are left out, or have the reward ``missing``; those whose window
    of reward is open are left out. ``EventId`` is the id of the decision, or where the log has none the number of the
    row.

    ``vw --cb_adf --dsjson -d log.dsjson`` and ``vw --cb_adf -d log.txt`` read it; ``-q ca`` lets every arm have
    coefficients of its own, ``-q cf`` multiplies the features of contexts and arms.

    Parameters
    ----------
    log, arms, missing
        Those of `rightarm.evaluate`.
    path
        The file to write.

    Returns
    -------
    Path
        The file.

    References
    ----------
    The formats: https://github.com/VowpalWabbit/vowpal_wabbit/wiki, "Contextual Bandit algorithms", "DSJSON".

    Examples
    --------
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
    rows = read_rows(log, arms, reward_range=ANY, missing=missing)
    write_whole(path, "".join(_dsjson(rows) if path.suffix == ".dsjson" else _text(rows)).encode())
    return path


class Example(NamedTuple):
    """A row of a log as Vowpal Wabbit sees it: names with values, namespace by namespace."""

    shared: dict[str, float] | None  # the context
    actions: list[dict[str, dict[str, float]]]  # of each arm that could be chosen the namespaces
    chosen: int  # the place of the arm that was chosen
    cost: float
    probability: float


def _examples(rows: Rows) -> Iterator[Example]:
    arms = [_escaped(name if isinstance(name, str) else json.dumps(name)) for name in rows.names]
    context_names = [] if rows.contexts is None else list(map(_escaped, rows.contexts.names))
    arm_names = [] if rows.arm_features is None else list(map(_escaped, rows.arm_features.names))
    for t, arm in enumerate(rows.arms):
        available = rows.available(t)
        actions: list[dict[str, dict[str, float]]] = [{"arm": {arms[i]: 1}} for i in available]
        if rows.arm_features is not None:
            for action, features in zip(actions, rows.arm_features.tables[t], strict=True):
                action["features"] = _not_zero(arm_names, features)
        shared = None if rows.contexts is None else _not_zero(context_names, rows.contexts.rows[t])
        place = int(np.searchsorted(available, arm))
        yield Example(shared, actions, place, -float(rows.rewards[t]), float(rows.propensities[t]))


def _not_zero(names: list[str], values: F64) -> dict[str, float]:
    return {name: value for name, value in zip(names, values.tolist(), strict=True) if value}


def _escaped(name: str) -> str:
    """Return a name without what has a meaning of its own in a line, or as the first letter of a name in JSON."""
    text = quote(name, safe="")
    return f"%5F{text[1:]}" if text.startswith("_") else text


def _text(rows: Rows) -> Iterator[str]:
    for example in _examples(rows):
        lines = [" ".join(map(_namespace, action, action.values())) for action in example.actions]
        lines[example.chosen] = f"0:{example.cost!r}:{example.probability!r} {lines[example.chosen]}"
        if example.shared is not None:
            lines.insert(0, f"shared {_namespace('context', example.shared)}")
        yield "\n".join(lines) + "\n\n"


def _namespace(name: str, features: dict[str, float]) -> str:
    """Return a namespace of a line; a feature of value 1 needs no value."""
    return " ".join([f"|{name}", *(key if value == 1 else f"{key}:{value!r}" for key, value in features.items())])


def _dsjson(rows: Rows) -> Iterator[str]:
    for t, example in enumerate(_examples(rows)):
        shared = {} if example.shared is None else {"context": example.shared}
        event = {
            "_label_cost": example.cost,
            "_label_probability": example.probability,
            "_label_Action": example.chosen + 1,
            "_labelIndex": example.chosen,
            "Version": "1",
            "EventId": str(t + 1 if rows.ids is None else rows.ids[t]),
            "a": [example.chosen + 1],
            "c": {**shared, "_multi": example.actions},
            "p": [example.probability],
        }
        yield json.dumps(event) + "\n"


# All of them.


class Export(NamedTuple):
    """A format that a log can be written in."""

    ending: str  # the ending of its files
    write: Callable[[PathLike, Path], object]  # writes the log at a path to a new file


EXPORTS = {
    "jsonl": Export(".jsonl", _convert_events),
    "parquet": Export(".parquet", _convert_events),
    "obp": Export(".npz", _save_obp),
    "vw": Export(".dsjson", to_vw),
    "vw-text": Export(".txt", to_vw),
}


def convert_log(source: PathLike, target: PathLike) -> Path:
    """Write the log ``source`` to a new file, in the format that the ending of ``target`` says.

    - ``.jsonl``, ``.parquet``: the same log, with all its events. A log in several parts becomes one file, with the
      same identity. A bandit writes to JSON lines only; Parquet is smaller.
    - ``.npz``: the arrays of `to_obp`, for `numpy.load`; ``arms`` is a list in JSON.
    - ``.dsjson``, ``.txt``: what `to_vw` writes.

    Every event is checked on the way, and the source stays as it is.

    Parameters
    ----------
    source
        The path of a log, or of a bandit's folder.
    target
        The file to write, which must not exist.

    Returns
    -------
    Path
        The file.

    Examples
    --------
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
    writers = {export.ending: export.write for export in EXPORTS.values()}
    if path.suffix not in writers:
        raise ValueError(f"target must end in one of {', '.join(writers)}, got {path}")
    if path.exists():
        raise FileExistsError(f"target must be a new file, got {path}, which exists")
    writers[path.suffix](source, path)
    return path
