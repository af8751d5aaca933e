"""The OpenAPI document: paths from the table of operations, schemas from the types that msgspec checks."""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, get_args, get_origin

import msgspec

from rightarm import __version__, messages
from rightarm.service import problems

if TYPE_CHECKING:
    from rightarm.service.operations import Operation

JSON = "application/json"
REFS = "#/components/schemas/{name}"
ALWAYS = (400, 405, 408, 421, 422, 429, 431, 503)  # 400 and 431: an address or a head that is too long
WITH_TOKEN, WITH_NAME, WITH_BODY = (401, 403), (404,), (413,)
HEADERS = {401: "WWW-Authenticate", 403: "WWW-Authenticate", 405: "Allow", 429: "Retry-After", 503: "Retry-After"}
IN_PATH: dict[str, Any] = {
    "name": {"type": "string", "pattern": messages.NAME},
    "id": {"type": "integer", "minimum": 0, "maximum": messages.LARGEST_ID},
}
NULL = {"type": "null"}

Schemas = dict[Any, Any]


def document(operations: Iterable[Operation]) -> dict[str, Any]:
    """Return the document of some operations."""
    table = list(operations)
    kinds = dict.fromkeys([messages.Problem])
    for each in table:
        for kind in (*_parts(each.body), *_parts(each.query), *_parts(each.answer)):
            kinds[kind] = None
    found, components = msgspec.json.schema_components(list(kinds), ref_template=REFS)
    schemas: Schemas = dict(zip(kinds, found, strict=True))
    for kind in messages.Answer.__subclasses__():  # an answer always has all its fields
        if kind.__name__ in components:
            components[kind.__name__]["required"] = list(components[kind.__name__]["properties"])
    components = plain(components)
    paths: dict[str, dict[str, Any]] = {}
    for each in table:
        parameters = [] if each.query is None else _in_query(components[each.query.__name__])
        paths.setdefault(each.path, {})[each.verb.lower()] = _entry(each, parameters, schemas)
    for each in table:  # parameters stand by themselves, not as an object
        if each.query is not None:
            components.pop(each.query.__name__, None)
    return {
        "openapi": "3.1.0",
        "info": {"title": "rightarm", "version": __version__, "description": "Bandits behind HTTP: durable, exact."},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _parts(kind: Any) -> tuple[Any, ...]:
    """Return the messages that a type may be; a result of the library is the message that it is sent as."""
    if kind is None:
        return ()
    parts: tuple[Any, ...] = get_args(kind) if get_origin(kind) is types.UnionType else (kind,)
    return tuple(_sent_as(part) for part in parts)


def _sent_as(kind: Any) -> Any:
    is_result: bool = dataclasses.is_dataclass(kind)
    return messages.sent_as(kind) if is_result else kind


def plain(schema: Any) -> Any:
    """Return a schema that generators of clients understand too.

    They do not know arrays whose items have schemas of their own, take an object without named properties for an empty
    one, and a field with a default for one that is always there.

    >>> plain({"type": "array", "prefixItems": [{"type": "number"}] * 2, "items": False, "minItems": 2})
    {'type': 'array', 'minItems': 2, 'items': {'type': 'number'}}
    """
    if isinstance(schema, list):
        return [plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: plain(value) for name, value in schema.items()}
    if isinstance(made.get("prefixItems"), list):
        first = made.pop("prefixItems")[0]
        made.pop("items", None)
        made["items"] = first
    if isinstance(made.get("enum"), list):
        made.setdefault("type", "string")
    if made.get("type") == "object" and "properties" not in made:
        made.setdefault("additionalProperties", True)
    default = made.pop("default", None) if not isinstance(made.get("default"), dict) else None
    if default is not None:
        said = f"{made['description']} " if "description" in made else ""
        made["description"] = f"{said}Unless given: {msgspec.json.encode(default).decode()}."
    return made


def _entry(each: Operation, parameters: list[Any], schemas: Schemas) -> dict[str, Any]:
    """Return what the document says of one operation."""
    names = re.findall(r"{(\w+)}", each.path)
    made: dict[str, Any] = {
        "operationId": each.function.__name__,
        "summary": " ".join((inspect.getdoc(each.function) or "").split()),
        "parameters": [
            *({"name": name, "in": "path", "required": True, "schema": IN_PATH[name]} for name in names),
            *parameters,
        ],
        "responses": _responses(each, schemas),
    }
    if each.scope is not None:
        made["security"] = [{"token": []}, {}]
        made["description"] = f"Needs the scope `{each.scope}`."
    if each.body is not None:
        content = {JSON: {"schema": _schema(each.body, schemas)}}
        made["requestBody"] = {"required": True, "content": content}
    return made


def _schema(kind: Any, schemas: Schemas) -> Any:
    parts = [plain(schemas[part]) for part in _parts(kind)]
    return parts[0] if len(parts) == 1 else {"anyOf": parts}


def _in_query(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parameters of an address; it has no null: a parameter is there, or is not."""
    found = []
    for name, kind in schema["properties"].items():
        others = [one for one in kind.get("anyOf", []) if one != NULL]
        own = others[0] if len(others) == 1 else kind
        found.append({"name": name, "in": "query", "required": name in schema.get("required", []), "schema": own})
    return found


def _responses(each: Operation, schemas: Schemas) -> dict[str, Any]:
    """Return all answers that an operation can have, by their statuses."""
    schema = {} if each.answer is None else {"schema": _schema(each.answer, schemas)}
    good = {"description": "It is done.", "content": {each.media: schema}}
    statuses = set(ALWAYS)
    if "{name}" in each.path:
        statuses.update(WITH_NAME)
    if each.body is not None:
        statuses.update(WITH_BODY)
    if each.scope is not None:
        statuses.update(WITH_TOKEN)
    if each.conflicts:
        statuses.add(409)
    found = {"200": good, **({"201": good} if each.creates else {})}
    return found | {str(status): _problem(status, schemas) for status in sorted(statuses)}


def _problem(status: int, schemas: Schemas) -> dict[str, Any]:
    content = {problems.MEDIA: {"schema": schemas[messages.Problem]}}
    made: dict[str, Any] = {"description": problems.phrase(status), "content": content}
    if status in HEADERS:
        made["headers"] = {HEADERS[status]: {"required": True, "schema": {"type": "string"}}}
    return made
