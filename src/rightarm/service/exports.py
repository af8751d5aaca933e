"""The route that gives all events of a bandit as a file: a log, or what other programs read."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Literal

from litestar import Request, Router, get
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Stream

from rightarm.logs.lines import as_line
from rightarm.messages import LARGEST_ID, Message
from rightarm.service.bodies import query_of
from rightarm.service.operations import operation
from rightarm.service.reads import lines
from rightarm.service.service import Service
from rightarm.store.exports import ENDINGS, export

Asked = Request[Any, Any, Any]
PIECE = 1 << 18  # bytes of a file that are sent at once
MEDIA = "application/octet-stream"


class Wanted(Message):
    """In which format the events are wanted."""

    format: Literal["jsonl", "parquet", "obp", "vw"] = "jsonl"


@get("/bandits/{name:str}/export", opt=operation("read", media=MEDIA, query=Wanted))
async def export_route(request: Asked, service: NamedDependency[Service], name: FromPath[str]) -> Stream:
    """All events as a log (jsonl, parquet), or the decisions with rewards for obp (npz) or Vowpal Wabbit (dsjson)."""
    kind = query_of(request.query_params.multi_items(), Wanted).format
    headers = {"content-disposition": f'attachment; filename="{name}{ENDINGS[kind]}"'}
    if kind == "jsonl":
        head = await service.in_thread(service.store.head, name)
        log = await lines(service, name, 0, LARGEST_ID, as_line(head.as_event()))
        return Stream(log, media_type=MEDIA, headers=headers)
    service.check_streams()
    folder = tempfile.TemporaryDirectory(prefix="rightarm-export-")
    try:
        with service.streaming():
            path = await service.in_thread(export, service.store, name, Path(folder.name) / f"export{ENDINGS[kind]}")
    except BaseException:
        folder.cleanup()
        raise
    return Stream(_file(service, folder, path), media_type=MEDIA, headers=headers)


async def _file(service: Service, folder: tempfile.TemporaryDirectory[str], path: Path) -> AsyncIterator[bytes]:
    """A file piece by piece, which is removed at the end."""
    with folder, service.streaming():
        pieces = _pieces(path)
        while piece := await service.in_thread(next, pieces, b""):
            yield piece


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def exports_router() -> Router:
    """The routes of this module."""
    return Router("/", route_handlers=[export_route])
