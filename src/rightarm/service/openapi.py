"""The OpenAPI document: paths from the table of operations, schemas from the types that msgspec checks."""

from __future__ import annotations

import dataclasses
import http
import inspect
import re
import types
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from rightarm import __version__, messages
from rightarm.service import problem_details

if TYPE_CHECKING:
    from rightarm.service.operations import Operation

REFS = "#/components/schemas/{name}"
ALWAYS = (400, 405, 408, 421, 422, 429, 431, 503)  # 400 and 431: an address or a head that is too long
HEADERS = {401: "WWW-Authenticate", 403: "WWW-Authenticate", 405: "Allow", 429: "Retry-After", 503: "Retry-After"}

Json = dict[str, Any]
IN_PATH: dict[str, Json] = {
    "name": {"type": "string", "pattern": messages.NAME},
    "id": {"type": "integer", "minimum": 0, "maximum": messages.LARGEST_ID},
}
Kind = type | types.UnionType
Schemas = dict[Kind, Json]


def document(operations: Iterable[Operation]) -> Json:
    """Return the document of some operations."""
    table = list(operations)
    kinds: dict[Kind, None] = {messages.ProblemDetails: None}
    for each in table:
        for kind in (each.body, each.query, each.answer):
            kinds |= dict.fromkeys(_parts(kind))
    found, components = msgspec.json.schema_components(list(kinds), ref_template=REFS)
    schemas = dict(zip(kinds, found, strict=True))
    for answer in messages.AnswerMessage.__subclasses__():  # an answer always has all its fields
        if answer.__name__ in components:
            components[answer.__name__]["required"] = list(components[answer.__name__]["properties"])
    components = {name: plain(schema) for name, schema in components.items()}
    paths: dict[str, Json] = {}
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


def _parts(kind: Kind | None) -> list[Kind]:
    """Return the messages that a type may be; a result of the library is the message that it is sent as."""
    if kind is None:
        return []
    parts: tuple[type, ...] = get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    return [messages.sent_as(part) if dataclasses.is_dataclass(part) else part for part in parts]


def plain(schema: Any) -> Any:
    """Return a schema that generators of clients understand too.

    They do not know arrays whose items have schemas of their own, take an object without named properties for an empty
    one, and a field with a default for one that is always there.

    >>> plain({"type": "array", "prefixItems": [{"type": "number"}] * 2, "items": False, "minItems": 2})
    {'type': 'array', 'items': {'type': 'number'}, 'minItems': 2}
    """
    if isinstance(schema, list):
        return [plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: plain(value) for name, value in schema.items()}
    if isinstance(made.get("prefixItems"), list):
        made["items"] = made.pop("prefixItems")[0]
    if isinstance(made.get("enum"), list):
        made.setdefault("type", "string")
    if made.get("type") == "object" and "properties" not in made:
        made.setdefault("additionalProperties", True)
    if not isinstance(made.get("default"), dict):
        default = made.pop("default", None)
        if default is not None:
            text = f"Unless given: {msgspec.json.encode(default).decode()}."
            made["description"] = f"{made['description']} {text}" if "description" in made else text
    return made


def _entry(each: Operation, parameters: list[Json], schemas: Schemas) -> Json:
    """Return what the document says of one operation."""
    names = re.findall(r"{(\w+)}", each.path)
    in_path = [{"name": name, "in": "path", "required": True, "schema": IN_PATH[name]} for name in names]
    made: Json = {
        "operationId": each.function.__name__,
        "summary": " ".join((inspect.getdoc(each.function) or "").split()),
        "parameters": in_path + parameters,
        "responses": _responses(each, schemas),
    }
    if each.scope is not None:
        made["security"] = [{"token": []}, {}]
        made["description"] = f"Needs the scope `{each.scope}`."
    if each.body is not None:
        content = {"application/json": {"schema": _schema(each.body, schemas)}}
        made["requestBody"] = {"required": True, "content": content}
    return made


def _schema(kind: Kind, schemas: Schemas) -> Json:
    parts: list[Json] = [plain(schemas[part]) for part in _parts(kind)]
    return parts[0] if len(parts) == 1 else {"anyOf": parts}


def _in_query(schema: Json) -> list[Json]:
    """Return the parameters of an address; it has no null: a parameter is there, or is not."""
    found = []
    for name, kind in schema["properties"].items():
        others = [one for one in kind.get("anyOf", []) if one != {"type": "null"}]
        single = others[0] if len(others) == 1 else kind
        found.append({"name": name, "in": "query", "required": name in schema.get("required", []), "schema": single})
    return found


def _responses(each: Operation, schemas: Schemas) -> Json:
    """Return all answers that an operation can have, by their statuses."""
    schema = {} if each.answer is None else {"schema": _schema(each.answer, schemas)}
    good = {"description": "It is done.", "content": {each.media: schema}}
    statuses = set(ALWAYS)
    if "{name}" in each.path:
        statuses.add(404)
    if each.body is not None:
        statuses.add(413)
    if each.scope is not None:
        statuses.update((401, 403))
    if each.conflicts:
        statuses.add(409)
    found: Json = {"200": good, "201": good} if each.creates else {"200": good}
    return found | {str(status): _problem(status, schemas) for status in sorted(statuses)}


def _problem(status: int, schemas: Schemas) -> Json:
    content = {problem_details.MEDIA: {"schema": schemas[messages.ProblemDetails]}}
    made: Json = {"description": http.HTTPStatus(status).phrase, "content": content}
    if status in HEADERS:
        made["headers"] = {HEADERS[status]: {"required": True, "schema": {"type": "string"}}}
    return made
