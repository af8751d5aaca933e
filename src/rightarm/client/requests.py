"""What verbs send: requests with messages as their bodies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import msgspec

from rightarm.client.steps import Known, Sending, Steps
from rightarm.estimators import Estimator
from rightarm.live.ledger import whole_id
from rightarm.logs.events import Decision
from rightarm.messages import Message
from rightarm.scores.policy import Policy


def send(method: str, path: str, message: Message | dict[str, Any]) -> Sending:
    """Return a request with a message."""
    plain = msgspec.to_builtins(message, enc_hook=_plain, str_keys=True)
    return Sending(method, path, json.dumps(plain, allow_nan=False).encode())  # msgspec would write NaN as null


def get(path: str, **query: Any) -> Sending:
    """Return a request for something to read."""
    return Sending("GET", path, query=tuple((name, str(value)) for name, value in query.items() if value is not None))


def operations_of(document: bytes) -> dict[str, Known]:
    """Read the OpenAPI document of a service: its operations, by their names."""
    found = {}
    for path, verbs in msgspec.json.decode(document)["paths"].items():
        for verb, entry in verbs.items():
            query = frozenset(each["name"] for each in entry["parameters"] if each["in"] == "query")
            found[entry["operationId"]] = Known(verb.upper(), path, query)
    return found


def call(known: dict[str, Known], operation: str, fields: dict[str, Any]) -> Steps[Any]:
    """Do any operation of a service by its name; which there are it says itself."""
    if not known:
        known.update(operations_of((yield get("/openapi.json"))))
    if operation not in known:
        raise ValueError(f"operation must be one of {', '.join(sorted(known))}, got {operation!r:.200}")
    verb, template, query = known[operation]
    in_path = {name for name in fields if f"{{{name}}}" in template}
    path = template.format(**{name: quote(str(fields[name]), safe="") for name in in_path})
    rest = {name: value for name, value in fields.items() if name not in in_path}
    if verb == "GET":
        unknown = rest.keys() - query
        if unknown:
            takes = ", ".join(sorted(query)) or "nothing"
            raise TypeError(f"{operation} takes {takes}, got {', '.join(sorted(unknown))}")
        content = yield get(path, **rest)
    else:
        content = yield send(verb, path, rest)
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError:  # lines, or a file
        return content


def _plain(value: Any) -> Any:
    """Turn values of NumPy and others into those of JSON."""
    for kind in (str, bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"a service can be sent what JSON knows, got {value!r:.200}")


def number_of(decision: Any) -> int:
    """Return the id of a decision, given as such or by its id."""
    return whole_id(decision, decision.id if isinstance(decision, Decision) else decision)


def text_of(formula: Policy | Estimator | str) -> str:
    """Write a policy or an estimator as text that a service reads; one of a user's own with the module that has it.

    >>> import rightarm as ra
    >>> text_of(ra.UCB(C=0.5))
    'UCB(C=0.5)'
    """
    if isinstance(formula, str):
        return formula
    if not isinstance(formula, Policy):
        return repr(formula)
    function = formula.family.function
    if function.__module__.startswith("rightarm."):
        return repr(formula)
    if function.__module__ == "__main__" or function.__qualname__ != function.__name__ or formula.family.bare:
        raise ValueError(
            f"policy must be one of a module, where a service can find it, got {formula!r} of this program"
        )
    return f"{function.__module__}:{formula!r}"


def seconds(span: float | timedelta | None) -> float | None:
    """Return a span of time in seconds."""
    return span.total_seconds() if isinstance(span, timedelta) else span


def by_name(features: Mapping[Any, Any] | None) -> dict[str, Any] | None:
    """Return what is given for arms, by their names as text."""
    return None if features is None else {str(arm): value for arm, value in features.items()}


def several(name: str, arms: Iterable[Any]) -> list[Any]:
    """Return several arms as a list."""
    if isinstance(arms, str | bytes) or not isinstance(arms, Iterable):
        raise TypeError(f"{name} must be several arms, got {arms!r:.200}")
    return list(arms)
