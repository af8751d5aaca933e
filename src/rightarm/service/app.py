"""The application: routes, the layer around them, and what goes on in the background."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from litestar import Litestar, MediaType, Request, Response, get
from litestar.connection import ASGIConnection
from litestar.di import Provide
from litestar.handlers import BaseRouteHandler

from rightarm.service import problems
from rightarm.service.access import check_allowed
from rightarm.service.background import background
from rightarm.service.bandits import bandits_router
from rightarm.service.bodies import LARGEST, check_name
from rightarm.service.exports import exports_router
from rightarm.service.gate import Gate
from rightarm.service.openapi import document
from rightarm.service.operations import OPT, Operation, operation
from rightarm.service.reads import reads_router
from rightarm.service.service import Service


def build(service: Service, started: Callable[[], object] = lambda: None) -> Gate:
    """The whole ASGI application of a service; ``started`` is called when every bandit is loaded."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Litestar) -> AsyncIterator[None]:
        async with background(service, started):
            yield

    app = Litestar(
        route_handlers=[bandits_router(), reads_router(), exports_router(), openapi_json],
        dependencies={"service": Provide(lambda: service, sync_to_thread=False)},
        exception_handlers={Exception: problems.handler},
        guards=[allowed],
        lifespan=[lifespan],
        openapi_config=None,
        request_max_body_size=LARGEST,
        signature_namespace={"Service": Service},
        logging_config=None,
    )
    app.state.openapi = msgspec.json.encode(document(app))
    return Gate(app, service)


def allowed(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Let a request pass to its route if its token has the scope for the bandit that the path names."""
    needed: Operation | None = handler.opt.get(OPT)
    name = connection.path_params.get("name")
    if name is not None:
        check_name(name)
    if needed is not None and needed.scope is not None and connection.scope["path"] != "/bandits":
        check_allowed(connection.scope["state"]["caller"], needed.scope, "*" if name is None else name)


@get("/openapi.json", opt=operation(None, dict[str, Any]), media_type=MediaType.JSON)
async def openapi_json(request: Request[Any, Any, Any]) -> Response[bytes]:
    """This document."""
    return Response(request.app.state.openapi, media_type=MediaType.JSON)
