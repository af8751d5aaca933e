"""What goes wrong with a decision service, as the exceptions that a bandit in the program itself would raise."""

from __future__ import annotations

import msgspec

from rightarm.messages import Problem


class ServiceError(Exception):
    """The service refused a request, or did not answer."""

    def __init__(
        self, detail: str, status: int | None = None, field: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(detail if status is None else f"{detail} (status {status})")
        self.detail = detail
        self.status = status
        self.field = field
        self.code = code


class RefusedByService(ServiceError, ValueError):
    """The request is wrong, or does not fit to what happened before."""


class NotFound(ServiceError, LookupError):
    """The service has no such bandit, or no such decision."""


class NotAllowed(ServiceError, PermissionError):
    """The token is missing, unknown or revoked, or is not good for this."""


class Unreachable(ServiceError, ConnectionError):
    """The service does not answer, or cannot at the moment; what was asked may have happened or not."""


def error_for(status: int, content: bytes) -> ServiceError:
    """Return the exception for an answer that is no success; its text is the ``detail`` of the problem (RFC 9457)."""
    try:
        problem = msgspec.json.decode(content, type=Problem)
    except msgspec.DecodeError:  # something between here and the service answered
        return _kind(status)(content[:200].decode(errors="replace").strip() or "an answer without a text", status)
    return _kind(status)(problem.detail, status, problem.field, problem.code)


def _kind(status: int) -> type[ServiceError]:
    if status == 404:
        return NotFound
    if status in (401, 403):
        return NotAllowed
    return RefusedByService if 400 <= status < 500 and status != 429 else Unreachable
