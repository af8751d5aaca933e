"""The route that gives all events of a bandit as a file: a log, or what other programs read."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import msgspec
from litestar import Request, Router, get
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Stream

from rightarm.logs.lines import as_line
from rightarm.messages import Message
from rightarm.service.bodies import query_of
from rightarm.service.operations import operation
from rightarm.service.problems import RETRY, Refusal
from rightarm.service.service import MOST_STREAMS, Service
from rightarm.store.exports import ENDINGS, export

Asked = Request[Any, Any, Any]
PAGE = 1_000  # events that are read at once
PIECE = 1 << 18  # bytes of a file that are sent at once
MEDIA = "application/octet-stream"


class Wanted(Message):
    """In which format the events are wanted."""

    format: Literal["jsonl", "parquet", "obp", "vw"] = "jsonl"


@get("/bandits/{name:str}/export", opt=operation("read", media=MEDIA, query=Wanted))
async def export_route(request: Asked, service: NamedDependency[Service], name: FromPath[str]) -> Stream:
    """All events as a log (jsonl, parquet), or the decisions with rewards for obp (npz) or Vowpal Wabbit (dsjson)."""
    kind = query_of(request.query_params.multi_items(), Wanted).format
    if service.streams >= MOST_STREAMS:
        raise Refusal(503, f"{MOST_STREAMS} others read events; try again", None, RETRY)
    headers = {"content-disposition": f'attachment; filename="{name}{ENDINGS[kind]}"'}
    if kind == "jsonl":
        head = await service.in_thread(service.store.head, name)
        return Stream(_lines(service, name, as_line(head.as_event())), media_type=MEDIA, headers=headers)
    folder = tempfile.TemporaryDirectory(prefix="rightarm-export-")
    try:
        path = await service.in_thread(export, service.store, name, Path(folder.name) / f"export{ENDINGS[kind]}")
    except BaseException:
        folder.cleanup()
        raise
    return Stream(_file(service, folder, path), media_type=MEDIA, headers=headers)


async def _lines(service: Service, name: str, head: bytes) -> AsyncIterator[bytes]:
    """A log page by page; while a slow client takes one, nothing is held open in the database."""
    service.streams += 1
    try:
        yield head
        last, page = 0, [b""]
        while page:
            page = await service.in_thread(_page, service, name, last)
            if page:
                yield b"".join(page)
                last = msgspec.json.decode(page[-1])["n"]
    finally:
        service.streams -= 1


def _page(service: Service, name: str, after: int) -> list[bytes]:
    return list(islice(service.store.events(name, after, PAGE), PAGE))


async def _file(service: Service, folder: tempfile.TemporaryDirectory[str], path: Path) -> AsyncIterator[bytes]:
    """A file piece by piece, which is removed at the end."""
    service.streams += 1
    try:
        pieces = _pieces(path)
        while piece := await service.in_thread(next, pieces, b""):
            yield piece
    finally:
        service.streams -= 1
        folder.cleanup()


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def exports_router() -> Router:
    """The routes of this module."""
    return Router("/", route_handlers=[export_route])
