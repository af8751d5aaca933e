"""Events in Parquet: a file of them, as `convert_log` writes it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rightarm.extras import polars_for
from rightarm.files import write_whole
from rightarm.logs.events import Event

PARQUET = ".parquet"
LINES = ".jsonl"
AS_JSON = (  # columns that hold JSON, since a column has one type only
    *("arm", "among", "arms", "before", "after"),
    *("unit", "meta", "ids", "part", "reason", "prior", "settings"),
    *("context", "arm_features"),
)
WHOLE = ("n", "id", "round", "version", "first")
COLUMNS = {
    "event": "String",
    **dict.fromkeys(WHOLE, "Int64"),
    **dict.fromkeys(("propensity", "reward", "time", "error"), "Float64"),
    **dict.fromkeys((*AS_JSON, "group", "format", "log", "status", "by"), "String"),
}


def write_events(events: Iterable[Event], path: Path) -> None:
    """Write events, or a head and numbered events, as one Parquet file."""
    pl = polars_for("a log in Parquet")
    rows = [event | {name: json.dumps(event[name]) for name in AS_JSON if name in event} for event in events]
    content = io.BytesIO()
    pl.DataFrame(rows, schema={name: getattr(pl, kind) for name, kind in COLUMNS.items()}).write_parquet(content)
    write_whole(path, content.getvalue())


def has_events(path: Path) -> bool:
    """Whether a Parquet file holds events, and not somebody's table."""
    pl = polars_for("a log in Parquet")
    try:
        return "event" in pl.read_parquet_schema(path)
    except pl.exceptions.PolarsError:  # whoever reads it says what is wrong
        return False


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file of events; `event_of` makes an event of each."""
    pl = polars_for("a log in Parquet")
    try:
        frame = pl.read_parquet(path)
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{path} cannot be read as Parquet: {error}") from None
    if "event" not in frame.columns:
        raise ValueError(f"{path} has no column 'event', so it is no log of rightarm; read_table reads other tables")
    yield from frame.iter_rows(named=True)


def event_of(row: dict[str, Any]) -> Event:
    """The event that a row holds, unchecked."""
    event = {name: value for name, value in row.items() if value is not None}
    return event | {name: json.loads(event[name]) for name in AS_JSON if name in event}
