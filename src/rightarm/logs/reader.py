"""Logs as tables with a row for each decision: those of rightarm, and those that others wrote."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rightarm.extras import polars_for
from rightarm.formula import check_number
from rightarm.logs import parquet
from rightarm.logs.events import Arm, Event, check_arm_name, check_propensity
from rightarm.logs.lines import Numbering, parsed, part_paths, whole_lines
from rightarm.logs.order import EventOrder
from rightarm.logs.parquet import LINES, PARQUET

if TYPE_CHECKING:
    import polars

PathLike = str | os.PathLike[str]

TIMES = {"asked": "time", "told": "told"}  # columns of times, and where a row has them
TEXTS: dict[str, Callable[[Any], str]] = {"unit": str, "group": str, "meta": json.dumps}  # columns that few logs have


# Events.


def read_events(path: PathLike, order: EventOrder | None = None, numbering: Numbering | None = None) -> Iterator[Event]:
    """All events of a log, each checked by itself and against those before it; errors say where it stands.

    ``order`` and ``numbering`` follow along, so that whoever gives them knows afterwards how the log can go on.
    """
    order, numbering = order or EventOrder(), numbering or Numbering()
    for place, parse in _placed(Path(path), numbering):
        try:
            event = numbering.event_from(parse())
            if event is not None:
                order.check([event])
                order.take(event, order.events + 1)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{place}: {error}") from None
        if event is not None:
            yield event


def _placed(path: Path, numbering: Numbering) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Of every line of a log the place where it stands, and a function that parses it."""
    if path.is_dir():
        numbering.begin()
        for part in parquet.parts_of(path):
            yield from _rows_of(part) if part.suffix == PARQUET else _lines_of(part)
    elif path.suffix == PARQUET:
        numbering.begin()
        yield from _rows_of(path)
    else:
        for part in part_paths(path):
            numbering.begin()
            yield from _lines_of(part)


def _rows_of(path: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    for i, row in enumerate(parquet.read_rows(path), start=1):
        yield f"{path}, row {i}", partial(parquet.event_of, row)


def _lines_of(path: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    for i, line in enumerate(whole_lines(path), start=1):
        yield f"{path}, line {i}", partial(parsed, line)


def is_log(path: PathLike) -> bool:
    """Whether `read_log` reads what is there, by ending and columns; `read_table` reads the tables of others."""
    path = Path(path)
    return path.suffix == LINES or (path.suffix == PARQUET and (path.is_dir() or parquet.has_events(path)))


# Decisions.


def read_log(path: PathLike) -> polars.DataFrame:
    """The decisions of a log, a row for each in the order in which they were made, as a Polars frame.

    Columns: ``id``, ``arm``, ``propensity``, ``reward`` (the last that came, null if none did), ``round``, ``version``,
    ``asked``, ``told`` (both in UTC), ``cancelled``, ``corrected``, and ``among``, the arms that could be chosen, null if
    the log does not say. Where a decision has them also ``unit`` and ``group``, as text, and ``meta``, as JSON. Arms of
    several types are given as JSON. Everything is checked; an error names the line. A log may be read while it is
    written: a last line that is torn does not count.
    """
    if Path(path).suffix not in (PARQUET, LINES):
        raise ValueError(f"path must end in {LINES} or {PARQUET} (read_table reads tables of others), got {path}")
    rows, arms = dict[int, Event](), dict[str, list[Arm]]()
    for event in read_events(path):
        match event["event"]:
            case "arms":
                arms = {"among": event["arms"]}
            case "decision":
                rows[event["id"]] = arms | event
            case "reward":
                rows[event["id"]] |= {"reward": event["reward"], "told": event["time"]}
            case "cancel":
                rows[event["id"]] |= {"reward": None, "cancelled": True, "told": event["time"]}
            case "expiry":
                for number in event["ids"]:
                    rows[number] |= {"told": event["time"]} | {k: event[k] for k in ("reward",) if k in event}
            case "correction":
                rows[event["id"]] |= {"reward": event["reward"], "corrected": True}
    return _frame(list(rows.values()))


def _frame(rows: list[Event]) -> polars.DataFrame:
    pl = polars_for("read_log()")
    name = _namer([arm for row in rows for arm in (row["arm"], *row.get("among", ()))])
    moment = pl.Datetime("us", "UTC")
    times = {to: [None if row.get(of) is None else round(row[of] * 1e6) for row in rows] for to, of in TIMES.items()}
    among = [None if "among" not in row else [name(arm) for arm in row["among"]] for row in rows]
    arms = pl.Series("arm", [name(row["arm"]) for row in rows], dtype=None if rows else pl.String)
    more = {field: [None if field not in row else text(row[field]) for row in rows] for field, text in TEXTS.items()}
    frame: polars.DataFrame = pl.DataFrame(
        [
            pl.Series("id", [row["id"] for row in rows], dtype=pl.Int64),
            arms,
            pl.Series("propensity", [row["propensity"] for row in rows], dtype=pl.Float64),
            pl.Series("reward", [row.get("reward") for row in rows], dtype=pl.Float64),
            pl.Series("round", [row["round"] for row in rows], dtype=pl.Int64),
            pl.Series("version", [row["version"] for row in rows], dtype=pl.Int64),
            *(pl.Series(to, column, dtype=pl.Int64).cast(moment) for to, column in times.items()),
            *(
                pl.Series(to, [row.get(to, False) for row in rows], dtype=pl.Boolean)
                for to in ("cancelled", "corrected")
            ),
            pl.Series("among", among, dtype=pl.List(arms.dtype)),
            *(pl.Series(to, column, dtype=pl.String) for to, column in more.items() if any(column)),
        ]
    )
    return frame


def _namer(arms: Iterable[Arm]) -> Callable[[Arm], Arm]:
    """How arms are named in a column, which has one type: by their names, or all by their JSON."""
    types = {type(arm) for arm in arms}
    if len(types) <= 1:
        return lambda arm: arm
    return float if types == {int, float} else json.dumps


# Tables of others.


def read_table(
    path: PathLike,
    *,
    arm: str = "arm",
    propensity: str = "propensity",
    reward: str = "reward",
) -> polars.DataFrame:
    """A log that others wrote, as CSV or as one Parquet file: a row for each decision, in the order of decisions.

    The columns that hold arm, propensity and reward are given by name. The frame has them as `read_log` gives them,
    with rows counted by ``id`` and ``round``; an empty reward is one that never came.
    """
    pl, path = polars_for("read_table()"), Path(path)
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
    return frame


def _check_column(column: polars.Series, check: Callable[[str, Any], Any], path: Path, first: int) -> None:
    for i, value in enumerate(column):
        try:
            check(column.name, value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}, line {i + first}: {error}") from None
