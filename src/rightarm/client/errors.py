"""What goes wrong with a decision service, as the exceptions that a bandit in the program itself would raise."""

from __future__ import annotations

import msgspec

from rightarm.messages import Problem


class ServiceError(Exception):
    """The service refused a request, or did not answer."""

    def __init__(self, detail: str, status: int | None = None, field: str | None = None) -> None:
        super().__init__(detail if status is None else f"{detail} (status {status})")
        self.detail, self.status, self.field = detail, status, field


class RefusedByService(ServiceError, ValueError):
    """The request is wrong, or does not fit to what happened before."""


class NotFound(ServiceError, LookupError):
    """The service has no such bandit, or no such decision."""


class NotAllowed(ServiceError, PermissionError):
    """The token is missing, unknown or revoked, or is not good for this."""


class Unreachable(ServiceError, ConnectionError):
    """The service does not answer, or cannot at the moment; what was asked may have happened or not."""


def error_for(status: int, content: bytes) -> ServiceError:
    """The exception for an answer that is no success; its text is the ``detail`` of the problem (RFC 9457)."""
    try:
        problem = msgspec.json.decode(content, type=Problem)
        detail, field = problem.detail, problem.field
    except msgspec.DecodeError:  # something between here and the service answered
        detail, field = content[:200].decode(errors="replace").strip() or "an answer without a text", None
    return _kind(status)(detail, status, field)


def _kind(status: int) -> type[ServiceError]:
    if status == 404:
        return NotFound
    if status in (401, 403):
        return NotAllowed
    return RefusedByService if 400 <= status < 500 and status != 429 else Unreachable
