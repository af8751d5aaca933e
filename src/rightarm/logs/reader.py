"""Logs and tables of others as frames of Polars, a row for each decision."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rightarm.errors import polars_for
from rightarm.estimators.features import Features
from rightarm.formula import check_number
from rightarm.logs.lines import LINES, PARQUET, PathLike, has_events, log_at
from rightarm.logs.log import UNKNOWN, Log, check_arm_name, check_propensity
from rightarm.logs.rows import column_names, features_of
from rightarm.types import F64

if TYPE_CHECKING:
    import polars

MOST_LEVELS = 50  # of a category in a table: one with more is hashed
BUCKETS = 16  # columns that it is hashed to
TEXTS: dict[str, Callable[[Any], str]] = {"unit": str, "meta": json.dumps}  # columns that are made texts


def is_log(path: PathLike) -> bool:
    """Say whether `read_log` reads what is there, by ending and columns; `read_table` reads the tables of others."""
    path = log_at(path)
    return path.suffix == LINES or (path.suffix == PARQUET and (path.is_dir() or has_events(path)))


def read_log(log: PathLike | Log, *, features: bool = False) -> polars.DataFrame:
    """Return the decisions of a log, a row for each in the order in which they were made, as a Polars frame.

    A log may be read while it is written: a last line that is torn does not count. CSV has no lists, so
    ``read_log(path, features=True).drop("allowed", "arm_features", strict=False).write_csv("log.csv")`` writes one.

    Parameters
    ----------
    log
        The path of a log or of the folder of a bandit, which has one, or a log that was read already.
    features
        Have a column for each feature in place of ``context``, named as the policy that wrote the log names it, or x0,
        x1 and so on; where a column has that name already, with "context " before it.

    Returns
    -------
    polars.DataFrame
        The columns ``id``, ``arm``, ``propensity``, ``reward`` (the last that came, null if none did), ``round``,
        ``version``, ``decided_at``, ``answered_at`` (when its reward came; both in UTC), ``cancelled``,
        ``corrected``, and ``allowed``, the arms that could be chosen, null if the log does not say. Arms of several
        types are given as JSON.

        If the bandit has a ``reward_window`` also ``open_window``: a decision whose window is open has no ``reward``
        here, whether one has come or not, and one that stayed silent until its window closed has the default, with
        ``answered_at`` null. If any decision has them also ``unit`` and ``group``, as text, ``meta``, as JSON,
        ``context``, a list of numbers, ``arm_features``, such a list for each arm of ``allowed``, and ``error``, how
        much the policy's own probability may differ from the propensity.

    Raises
    ------
    ValueError
        If anything in the log is wrong; the error names the line.
    """
    log = log if isinstance(log, Log) else Log.read(log)
    frame = as_frame(log)
    return _with_features(frame, log) if features and "context" in frame.columns else frame


def as_frame(log: Log) -> polars.DataFrame:
    """Return the decisions of a log that was read from a file as a frame."""
    pl = polars_for("read_log()")
    arms = pl.Series("arm", log.names, dtype=None if log.names else pl.String)
    named = [[log.names[i] for i in one] for one in log.lists]
    lists = pl.Series("allowed", named, dtype=pl.List(arms.dtype))
    columns = [
        pl.Series("id", log.ids),
        arms.gather(log.arms),
        pl.Series("propensity", log.propensities),
        pl.Series("reward", log.rewards).fill_nan(None),
        pl.Series("round", log.more["round"]),
        pl.Series("version", log.more["version"]),
        _moments("decided_at", log.times),
        _moments("answered_at", log.answer_times),
        pl.Series("cancelled", log.more["cancelled"]),
        pl.Series("corrected", log.more["corrected"]),
        lists.gather(pl.Series(log.allowed).replace(UNKNOWN, None)),
    ]
    if log.open is not None:
        columns.append(pl.Series("open_window", log.open))
    types: dict[str, Any] = {
        "unit": pl.String,
        "group": pl.String,
        "meta": pl.String,
        "context": pl.List(pl.Float64),
        "arm_features": pl.List(pl.List(pl.Float64)),
        "error": pl.Float64,
    }
    for name, type_ in types.items():
        if name in log.more:
            values = log.more[name]
            if name in TEXTS:
                values = [None if value is None else TEXTS[name](value) for value in values]
            columns.append(pl.Series(name, values, dtype=type_))
    frame: polars.DataFrame = pl.DataFrame(columns)
    return frame


def _moments(name: str, seconds: F64 | None) -> polars.Series:
    """Return seconds since 1970 as moments, null where there is none."""
    pl = polars_for("read_log()")
    assert seconds is not None  # of a log in a file
    micros: polars.Series = pl.Series(name, np.rint(seconds * 1e6)).fill_nan(None).cast(pl.Int64)
    return micros.cast(pl.Datetime("us", "UTC"))


def _with_features(frame: polars.DataFrame, log: Log) -> polars.DataFrame:
    """Return the frame with a column for each feature in place of ``context``."""
    sizes = frame["context"].list.len().drop_nulls().unique().to_list()
    if len(sizes) > 1:
        raise ValueError(f"features must be as many in all contexts of a log, got {sorted(sizes)}")
    features, _ = features_of(log.policy)
    rest = frame.drop("context")
    taken = [f"context {name}" if name in rest.columns else name for name in column_names(sizes[0], features)]
    columns = [frame["context"].list.get(i, null_on_oob=True).alias(name) for i, name in enumerate(taken)]
    wide: polars.DataFrame = rest.with_columns(*columns)
    return wide


# Tables of others.


def read_table(
    path: PathLike,
    *,
    arm: str = "arm",
    propensity: str = "propensity",
    reward: str = "reward",
    context: Features | Sequence[str] | None = None,
) -> polars.DataFrame:
    """Return a log that others wrote, as CSV or one Parquet file: a row for each decision, in the order of decisions.

    Parameters
    ----------
    path
        The file, which ends in ``.csv`` or ``.parquet``.
    arm, propensity, reward
        The names of the columns. An empty reward is one that never came.
    context
        The features that make the column ``context``, or names of columns: then numbers are taken as they are, and
        other columns as categories with the levels that they have, or hashed if these are more than 50.

    Returns
    -------
    polars.DataFrame
        The columns ``id``, ``arm``, ``propensity``, ``reward`` and ``round`` as `read_log` gives them, rows being
        counted by ``id`` and ``round``, and ``context`` if it is asked for.

    Raises
    ------
    ValueError
        If a column is missing or a value is wrong; the error names the line.
    """
    pl = polars_for("read_table()")
    path = Path(path)
    if path.suffix not in (".csv", PARQUET):
        raise ValueError(f"path must end in .csv or {PARQUET}, got {path}")
    try:
        table = pl.read_csv(path, infer_schema_length=None) if path.suffix == ".csv" else pl.read_parquet(path)
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{path} cannot be read as a table: {error}") from None
    for option, column in {"arm": arm, "propensity": propensity, "reward": reward}.items():
        if column not in table.columns:
            raise ValueError(f"{option} must be a column of {path}, {', '.join(table.columns)}, got {column!r}")
    first = 2 if path.suffix == ".csv" else 1  # the heading is a line
    _check_column(table[arm], check_arm_name, path, first)
    _check_column(table[propensity], check_propensity, path, first)
    if table[reward].dtype == pl.Boolean:
        table = table.with_columns(pl.col(reward).cast(pl.Float64))
    _check_column(table[reward], lambda name, value: value is None or check_number(name, value), path, first)
    count = pl.int_range(1, pl.len() + 1, dtype=pl.Int64)
    frame: polars.DataFrame = table.select(
        count.alias("id"),
        pl.col(arm).alias("arm"),
        pl.col(propensity).cast(pl.Float64).alias("propensity"),
        pl.col(reward).cast(pl.Float64).alias("reward"),
        count.alias("round"),
    )
    if context is None:
        return frame
    features = context if isinstance(context, Features) else table_features(table, context)
    declared = [*features.numbers, *features.categories, *features.hashed]
    encoded = features.encode_many(table.select(_checked_columns(table, declared)))
    return frame.with_columns(pl.Series("context", encoded.tolist(), dtype=pl.List(pl.Float64)))


def table_features(table: polars.DataFrame, columns: Sequence[str]) -> Features:
    """Return the features that some columns of a table are, judging by what is in them."""
    names = _checked_columns(table, columns)
    numbers = [name for name in names if table[name].dtype.is_numeric()]
    levels = {name: table[name].drop_nulls().unique().sort().to_list() for name in names if name not in numbers}
    return Features(
        numbers,
        categories={name: found for name, found in levels.items() if len(found) <= MOST_LEVELS},
        hashed={name: BUCKETS for name, found in levels.items() if len(found) > MOST_LEVELS},
        required=[name for name in names if not table[name].null_count()],
    )


def _checked_columns(table: polars.DataFrame, names: Sequence[str]) -> list[str]:
    for name in names:
        if name not in table.columns:
            raise ValueError(f"context must be columns of the table, {', '.join(table.columns)}, got {name!r}")
    return list(names)


def _check_column(column: polars.Series, check: Callable[[str, Any], Any], path: Path, first: int) -> None:
    for i, value in enumerate(column):
        try:
            check(column.name, value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}, line {i + first}: {error}") from None
