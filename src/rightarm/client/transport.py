"""HTTP clients that run the requests of a verb, one that blocks and one that awaits, and the methods of both."""

from __future__ import annotations

import functools
import inspect
import random
import re
import time
import weakref
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NamedTuple, ParamSpec, overload

from rightarm.client.service_requests import Lost, R, RemoteOperation, Reply, ServiceRequest, Steps, T, with_retries
from rightarm.errors import needed_for
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

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every request. No client follows redirects, which could carry the token elsewhere."""
        headers = {"Accept": "application/json", "User-Agent": "rightarm"}
        return headers if self.token is None else headers | {"Authorization": f"Bearer {self.token}"}


class Transport:
    """An HTTP client and what it needs to talk to a service."""

    def __init__(self, options: Options) -> None:
        with needed_for("connect()", "client"):
            import httpx

        self.options = options.checked()
        self.chance = random.Random()
        self.operations: dict[str, RemoteOperation] = {}  # by name, once the service was asked for them
        # Errors after which a request may be sent again; others are wrong addresses and the like.
        self.errors = httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError


class Blocking(Transport):
    """Sends requests and waits for their answers; several threads may use it."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        import httpx

        url, _, timeout, _, transport = self.options
        self.client = httpx.Client(base_url=url, headers=self.options.headers, timeout=timeout, transport=transport)
        weakref.finalize(self, self.client.close)  # of a service that was dropped

    def run(self, steps: Steps[T]) -> T:
        """Make all requests of a verb, and return its result."""
        talk = with_retries(steps, self.options.retries, self.chance)
        answer = None
        while True:
            try:
                step = talk.send(answer)
            except StopIteration as done:
                found: T = done.value
                return found
            answer = self._do(step)

    def _do(self, step: ServiceRequest | float) -> Reply | Lost | None:
        if not isinstance(step, ServiceRequest):
            time.sleep(step)
            return None
        try:
            return _reply(self.client.send(_request(self.client, step)))
        except self.errors as error:
            return _lost(error)


class Awaited(Transport):
    """Sends requests and awaits their answers."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        import httpx

        url, _, timeout, _, transport = self.options
        self.client = httpx.AsyncClient(
            base_url=url, headers=self.options.headers, timeout=timeout, transport=transport
        )

    async def run(self, steps: Steps[T]) -> T:
        """Make all requests of a verb, and return its result."""
        talk = with_retries(steps, self.options.retries, self.chance)
        answer = None
        while True:
            try:
                step = talk.send(answer)
            except StopIteration as done:
                found: T = done.value
                return found
            answer = await self._do(step)

    async def _do(self, step: ServiceRequest | float) -> Reply | Lost | None:
        import anyio  # which httpx needs, and which knows asyncio and trio

        if not isinstance(step, ServiceRequest):
            await anyio.sleep(step)
            return None
        try:
            return _reply(await self.client.send(_request(self.client, step)))
        except self.errors as error:
            return _lost(error)


def _request(client: httpx.Client | httpx.AsyncClient, step: ServiceRequest) -> httpx.Request:
    headers = {} if step.body is None else {"Content-Type": "application/json"}
    path = step.path.lstrip("/")
    return client.build_request(step.method, path, params=step.query or None, content=step.body, headers=headers)


def _reply(response: httpx.Response) -> Reply:
    return Reply(response.status_code, response.content, response.headers.get("Retry-After"))


def _lost(error: Exception) -> Lost:
    return Lost(f"{type(error).__name__} {error}".strip())


P = ParamSpec("P")


class Waits:
    """An object whose verbs wait for their answers."""

    _transport: Blocking

    def _run(self, steps: Steps[T]) -> T:
        return self._transport.run(steps)


class Awaits:
    """An object whose verbs are to be awaited."""

    _transport: Awaited

    def _run(self, steps: Steps[T]) -> Awaitable[T]:
        return self._transport.run(steps)


class Verb(Generic[P, R]):
    """A method that talks to the service."""

    def __init__(self, steps: Callable[Concatenate[Any, P], Steps[R]]) -> None:
        self._steps = steps
        self.__doc__ = steps.__doc__
        whole = inspect.signature(steps)
        self._signature = whole.replace(parameters=list(whole.parameters.values())[1:])

    @overload
    def __get__(self, instance: None, owner: type) -> Verb[P, R]: ...
    @overload
    def __get__(self, instance: Waits, owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, instance: Awaits, owner: type) -> Callable[P, Awaitable[R]]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self

        @functools.wraps(self._steps)
        def method(*arguments: P.args, **keywords: P.kwargs) -> Any:
            return instance._run(self._steps(instance, *arguments, **keywords))

        method.__signature__ = self._signature  # type: ignore[attr-defined]
        return method


class Reading(Generic[R]):
    """A property that is read off the service."""

    def __init__(self, steps: Callable[[Any], Steps[R]]) -> None:
        self._steps = steps
        self.__doc__ = steps.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Reading[R]: ...
    @overload
    def __get__(self, instance: Waits, owner: type) -> R: ...
    @overload
    def __get__(self, instance: Awaits, owner: type) -> Awaitable[R]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else instance._run(self._steps(instance))
