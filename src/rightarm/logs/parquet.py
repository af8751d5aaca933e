"""Events in Parquet: a column for each field of the events, and a row for the head and for each event."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from rightarm.extras import polars_for
from rightarm.files import write_whole
from rightarm.logs.events import ENCODER, KINDS, AnyEvent, Event
from rightarm.logs.lines import Head

PARQUET = ".parquet"
PLAIN = {inspect.IntType: "Int64", inspect.FloatType: "Float64", inspect.StrType: "String"}
FOR_HEAD = {"format": "String", "log": "String", "first": "Int64"}


def _columns() -> dict[str, str]:
    """Return the type of the column of each field, "JSON" where Parquet has none."""
    columns = {"n": "Int64", "event": "String"}
    for kind in KINDS.values():
        described = inspect.type_info(kind)
        assert isinstance(described, inspect.StructType)
        for field in described.fields:
            own = field.type
            some = own.types if isinstance(own, inspect.UnionType) else (own,)
            types = {PLAIN.get(type(one), "JSON") for one in some if not isinstance(one, inspect.NoneType)}
            if field.name in columns:
                types.add(columns[field.name])
            columns[field.name] = types.pop() if len(types) == 1 else "JSON"
    return columns | FOR_HEAD


COLUMNS = _columns()
AS_JSON = [name for name, kind in COLUMNS.items() if kind == "JSON"]


def write_events(head: Head | None, events: Iterable[Event], path: Path) -> None:
    """Write a log as one Parquet file."""
    pl = polars_for("a log in Parquet")
    rows = [] if head is None else [_row(head.plain())]
    for n, event in enumerate(events, start=1):
        rows.append(_row({"n": n, **msgspec.to_builtins(event)}))
    schema = {name: pl.String if kind == "JSON" else getattr(pl, kind) for name, kind in COLUMNS.items()}
    content = io.BytesIO()
    pl.DataFrame(rows, schema=schema).write_parquet(content)
    write_whole(path, content.getvalue())


def _row(plain: dict[str, Any]) -> dict[str, Any]:
    return plain | {name: ENCODER.encode(plain[name]).decode() for name in AS_JSON if name in plain}


def has_events(path: Path) -> bool:
    """Say whether a Parquet file holds events, and not somebody's table."""
    pl = polars_for("a log in Parquet")
    try:
        return "event" in pl.read_parquet_schema(path)
    except pl.exceptions.PolarsError:  # whoever reads it says what is wrong
        return False


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file of events, without what is empty in them."""
    pl = polars_for("a log in Parquet")
    try:
        frame = pl.read_parquet(path)
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{path} cannot be read as Parquet: {error}") from None
    if "event" not in frame.columns:
        raise ValueError(f"{path} has no column 'event', so it is no log of rightarm; read_table reads other tables")
    for row in frame.iter_rows(named=True):
        yield {name: value for name, value in row.items() if value is not None}


def plain_of(row: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that a row holds."""
    return row | {name: msgspec.json.decode(row[name]) for name in AS_JSON if name in row}


def event_from(plain: dict[str, Any]) -> Event:
    """Return the event that has these fields, checked."""
    event: Event = msgspec.convert({name: value for name, value in plain.items() if name != "n"}, AnyEvent)
    return event
