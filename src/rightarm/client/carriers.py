"""The two ways in which requests travel: one blocks until an answer is there, one awaits it. Both need httpx."""

from __future__ import annotations

import random
import re
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from rightarm.client.steps import Known, Lost, Reply, Sending, Steps, T, patiently
from rightarm.extras import needed_for
from rightarm.formula import check_count, check_number

if TYPE_CHECKING:
    import httpx


class Options(NamedTuple):
    """The address of a service, and the patience with it."""

    url: str
    token: str | None
    timeout: float
    retries: int
    transport: Any

    def checked(self) -> Options:
        """Return the same, or raise an error that names what is wrong."""
        if not isinstance(self.url, str) or not self.url.startswith(("http://", "https://")):
            raise ValueError(f"url must begin with http:// or https://, got {self.url!r}")
        token = self.token.strip() if isinstance(self.token, str) else self.token  # a file ends with a new line
        if token is not None and not (isinstance(token, str) and re.fullmatch(r"[!-~]+", token)):
            raise ValueError("token must be one that `rightarm tokens add` gave, got something else")  # it is a secret
        if check_number("timeout", self.timeout) <= 0:
            raise ValueError(f"timeout must be positive, in seconds, got {self.timeout}")
        return self._replace(token=token, retries=check_count("retries", self.retries, least=0))

    def client(self, kind: Callable[..., Any]) -> Any:
        """Return a client of httpx. It follows no redirects, which could carry the token elsewhere."""
        headers = {"Accept": "application/json", "User-Agent": "rightarm"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        return kind(base_url=self.url, headers=headers, timeout=self.timeout, transport=self.transport)


def _httpx() -> Any:
    with needed_for("connect()", "client"):
        import httpx
    return httpx


class Blocking:
    """Sends requests and waits for their answers; several threads may use it."""

    def __init__(self, options: Options) -> None:
        self.httpx, self.options, self.chance = _httpx(), options.checked(), random.Random()
        self.operations: dict[str, Known] = {}  # by name, once the service was asked for them
        self.client: httpx.Client = self.options.client(self.httpx.Client)
        weakref.finalize(self, self.client.close)  # of a service that was dropped

    def run(self, steps: Steps[T]) -> T:
        """Make all requests of a verb, and return what it gives."""
        talk, answer = patiently(steps, self.options.retries, self.chance), None
        while True:
            try:
                step = talk.send(answer)
            except StopIteration as done:
                found: T = done.value
                return found
            answer = self._do(step)

    def _do(self, step: Sending | float) -> Reply | Lost | None:
        if not isinstance(step, Sending):
            time.sleep(step)
            return None
        try:
            return _reply(self.client.request(**_arguments(step)))
        except _lost(self.httpx) as error:
            return Lost(_reason(error))


class Awaited:
    """Sends requests and awaits their answers."""

    def __init__(self, options: Options) -> None:
        self.httpx, self.options, self.chance = _httpx(), options.checked(), random.Random()
        self.operations: dict[str, Known] = {}  # by name, once the service was asked for them
        self.client: httpx.AsyncClient = self.options.client(self.httpx.AsyncClient)

    async def run(self, steps: Steps[T]) -> T:
        """Make all requests of a verb, and return what it gives."""
        talk, answer = patiently(steps, self.options.retries, self.chance), None
        while True:
            try:
                step = talk.send(answer)
            except StopIteration as done:
                found: T = done.value
                return found
            answer = await self._do(step)

    async def _do(self, step: Sending | float) -> Reply | Lost | None:
        import anyio  # which httpx needs, and which knows asyncio and trio

        if not isinstance(step, Sending):
            await anyio.sleep(step)
            return None
        try:
            return _reply(await self.client.request(**_arguments(step)))
        except _lost(self.httpx) as error:
            return Lost(_reason(error))


def _arguments(request: Sending) -> dict[str, Any]:
    headers = {} if request.body is None else {"Content-Type": "application/json"}
    where = {"method": request.method, "url": request.path.lstrip("/"), "params": request.query or None}
    return {**where, "content": request.body, "headers": headers}


def _reply(response: httpx.Response) -> Reply:
    return Reply(response.status_code, response.content, response.headers.get("Retry-After"))


def _lost(httpx: Any) -> tuple[type[Exception], ...]:
    """Return the errors after which a request may be sent again; others are wrong addresses and the like."""
    return httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError


def _reason(error: Exception) -> str:
    return f"{type(error).__name__} {error}".strip()
