"""The OpenAPI document: paths from the routes, schemas from the types by which msgspec checks what comes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from litestar import Litestar
from litestar.routes import HTTPRoute

import rightarm
from rightarm import messages
from rightarm.service import decisions, problems
from rightarm.service.operations import JSON, OPT, Operation

REFS = "#/components/schemas/{name}"
ALWAYS = (400, 405, 408, 421, 422, 429, 431, 503)  # 400 and 431: an address or a head that is too long
WITH_TOKEN, WITH_NAME, WITH_BODY = (401, 403), (404,), (413,)
HEADERS = {401: "WWW-Authenticate", 403: "WWW-Authenticate", 429: "Retry-After", 503: "Retry-After"}
ONE_OR_MORE = messages.Choice | messages.Choices

Described = tuple[str, str, Operation]  # path, method, and what is known of it


def document(app: Litestar) -> dict[str, Any]:
    """The document of an application."""
    found = [*_quick(), *_routes(app)]
    types = {messages.Problem: None} | {
        kind: None for _, _, each in found for kind in (each.answer, each.body, each.query) if kind is not None
    }
    kinds = list(types)
    schemas, components = msgspec.json.schema_components(_parts(kinds), ref_template=REFS)
    known = dict(zip(map(_key, _parts(kinds)), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for path, method, each in found:
        paths.setdefault(path, {})[method.lower()] = _operation(path, method, each, known, components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "rightarm",
            "version": rightarm.__version__,
            "description": "Bandits behind HTTP: durable, exact.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _parts(kinds: Iterable[Any]) -> list[Any]:
    """The types, unions of messages taken apart, as msgspec wants them."""
    return list({_key(part): part for kind in kinds for part in _alternatives(kind)}.values())


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return tuple(kind.__args__) if hasattr(kind, "__args__") and not hasattr(kind, "__origin__") else (kind,)


def _key(kind: Any) -> str:
    return repr(kind)


def _quick() -> Iterator[Described]:
    """The routes that Litestar does not know."""
    ask = Operation("ask", ONE_OR_MORE, messages.Ask, conflicts=True, words=decisions.ask.__doc__)
    told, tells = messages.Told | messages.ToldAll, messages.Tell | messages.Tells
    yield "/bandits/{name}/ask", "POST", ask
    yield "/bandits/{name}/tell", "POST", Operation("tell", told, tells, conflicts=True, words=decisions.tell.__doc__)


def _routes(app: Litestar) -> Iterator[Described]:
    for route in app.routes:
        if not isinstance(route, HTTPRoute):
            continue
        for handler in route.route_handlers:
            each: Operation | None = handler.opt.get(OPT)
            if each is not None:
                words = each.words or inspect.getdoc(handler.fn)
                for method in sorted(handler.http_methods):
                    yield route.path_format, str(getattr(method, "value", method)), each._replace(words=words)


def _operation(path: str, method: str, each: Operation, known: dict[str, Any], components: dict[str, Any]) -> Any:
    names = re.findall(r"{(\w+)}", path)
    words = " ".join((each.words or "").split())
    made: dict[str, Any] = {
        "operationId": f"{method.lower()}{re.sub(r'[^a-z]+', '_', path)}".strip("_"),
        "summary": words,
        "parameters": [*map(_in_path, names), *_in_query(each, known, components)],
        "responses": _responses(each, known, bool(names)),
    }
    if each.scope is not None:
        made["security"] = [{"token": []}, {}]
        made["description"] = f"Needs the scope `{each.scope}`."
    if each.body is not None:
        made["requestBody"] = {"required": True, "content": {JSON: {"schema": _schema(each.body, known)}}}
    return made


def _schema(kind: Any, known: dict[str, Any]) -> Any:
    parts = [known[_key(part)] for part in _alternatives(kind)]
    return parts[0] if len(parts) == 1 else {"anyOf": parts}


def _in_path(name: str) -> dict[str, Any]:
    kinds: dict[str, Any] = {
        "name": {"type": "string", "pattern": messages.NAME},
        "id": {"type": "integer", "minimum": 0, "maximum": messages.LARGEST_ID},
    }
    return {"name": name, "in": "path", "required": True, "schema": kinds.get(name, {"type": "string"})}


def _in_query(each: Operation, known: dict[str, Any], components: dict[str, Any]) -> list[dict[str, Any]]:
    if each.query is None:
        return []
    schema = components.pop(each.query.__name__, None) or known[_key(each.query)]
    known[_key(each.query)] = schema  # parameters stand by themselves, not as an object
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": _without_null(kind)}
        for name, kind in schema["properties"].items()
    ]


def _without_null(kind: dict[str, Any]) -> dict[str, Any]:
    """An address has no null: a parameter is there, or is not."""
    others = [one for one in kind.get("anyOf", []) if one != {"type": "null"}]
    return others[0] if len(others) == 1 else kind


def _responses(each: Operation, known: dict[str, Any], named: bool) -> dict[str, Any]:
    schema = {} if each.answer is None else {"schema": _schema(each.answer, known)}
    kinds = (each.media,) if isinstance(each.media, str) else each.media
    good = {"description": "It is done.", "content": dict.fromkeys(kinds, schema)}
    statuses = {*ALWAYS, *(WITH_NAME if named else ()), *(WITH_BODY if each.body is not None else ())}
    statuses |= set(WITH_TOKEN if each.scope is not None else ()) | ({409} if each.conflicts else set())
    found = {"200": good, **({"201": good} if each.made else {})}
    return found | {str(status): _problem(status, known) for status in sorted(statuses)}


def _problem(status: int, known: dict[str, Any]) -> dict[str, Any]:
    content = {problems.MEDIA: {"schema": known[_key(messages.Problem)]}}
    made: dict[str, Any] = {"description": problems.phrase(status), "content": content}
    if status in HEADERS:
        made["headers"] = {HEADERS[status]: {"required": True, "schema": {"type": "string"}}}
    return made
