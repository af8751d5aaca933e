"""`connect` and `connect_async`: a service, and its bandits by their names."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, Generic, TypeVar

from rightarm.client.bandits import AsyncBandit, BanditVerbs, RemoteBandit
from rightarm.client.carriers import Awaited, Blocking, Options
from rightarm.client.methods import Awaits, Reading, Verb, Waits
from rightarm.client.requests import by_name, call, get, seconds, send, several, text_of
from rightarm.client.steps import Steps, read
from rightarm.messages import NAME, Arm, Definition, Names
from rightarm.messages import Bandit as Described
from rightarm.scores.policy import Policy

B = TypeVar("B", bound=BanditVerbs)


class ServiceVerbs(Generic[B]):
    """A service; ``service["home"]`` is its bandit of that name, which `create` makes."""

    def __init__(self, carrier: Any, kind: type[B]) -> None:
        self._carrier, self._kind = carrier, kind

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._carrier.options.url}>"

    def __getitem__(self, name: str) -> B:
        if not isinstance(name, str) or not re.fullmatch(NAME, name):
            raise ValueError(f"name must be up to 100 letters, digits, '.', '_' and '-', got {name!r:.200}")
        return self._kind(self._carrier, name)

    @Reading
    def names(self) -> Steps[list[str]]:
        """Return the names of the bandits."""
        found: list[str] = read((yield get("/bandits")), Names).bandits
        return found

    @Verb
    def call(self, operation: str, /, **fields: Any) -> Steps[Any]:
        """Do any operation of the service by its name in ``/openapi.json``; the answer is what JSON makes of it."""
        return (yield from call(self._carrier.operations, operation, fields))

    @Verb
    def create(
        self, /, name: str, arms: Iterable[Arm], policy: Policy | str | None = None, **settings: Any
    ) -> Steps[B]:
        """Make a bandit and give it; ``settings`` are those of `rightarm.Bandit`, and ``late``.

        It is an error if there is one of this name that was made otherwise; if it was made just so, it is given.
        """
        estimator = settings.pop("estimator", None)
        unknown = settings.keys() - set(Definition.__struct_fields__)
        if unknown:
            raise TypeError(f"create takes the settings of a bandit, got {', '.join(sorted(unknown))}")
        settings["window_of_reward"] = seconds(settings.get("window_of_reward"))
        settings["prior"] = by_name(settings.get("prior"))
        formulas = {"policy": policy, "estimator": estimator}
        settings |= {field: text_of(formula) for field, formula in formulas.items() if formula is not None}
        message = Definition(arms=several("arms", arms), **settings)
        bandit = self[name]
        read((yield send("PUT", f"/bandits/{name}", message)), Described)
        return bandit


class Service(ServiceVerbs[RemoteBandit], Waits):
    """A service whose verbs wait for the answers; iteration gives the names of its bandits."""

    def __init__(self, options: Options) -> None:
        super().__init__(Blocking(options), RemoteBandit)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def close(self) -> None:
        """Close the connections; a service in a ``with`` statement does so at its end."""
        self._carrier.client.close()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncService(ServiceVerbs[AsyncBandit], Awaits):
    """A service whose verbs are to be awaited; ``async for`` gives the names of its bandits."""

    def __init__(self, options: Options) -> None:
        super().__init__(Awaited(options), AsyncBandit)

    async def __aiter__(self) -> AsyncIterator[str]:
        for name in await self.names:
            yield name

    async def close(self) -> None:
        """Close the connections; a service in an ``async with`` statement does so at its end."""
        await self._carrier.client.aclose()

    async def __aenter__(self) -> AsyncService:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


def connect(
    url: str, token: str | None = None, *, timeout: float = 5.0, retries: int = 12, transport: Any = None
) -> Service:
    """Connect to a decision service: ``connect(url)["home"]`` has the verbs of `Bandit`, ``create`` makes another.

    - ``token``: as ``rightarm tokens add`` gives it; a service on this machine may need none.
    - ``timeout``: seconds that every step of a request may take: connecting, sending, each part of the answer.
    - ``retries``: how often a request is sent again if no answer comes, or the service is busy, with pauses that
      grow: by itself it outlasts a restart of the service, some 20 seconds. None counts twice.
    - ``transport``: one of httpx, such as `httpx.MockTransport` in tests.

    What the service refuses is a `ValueError`, what it does not have a `LookupError`, what the token is not good for a
    `PermissionError`, and no answer a `ConnectionError`; each is a `rightarm.client.ServiceError` with a ``status``.

    >>> import rightarm as ra
    >>> ra.connect("http://127.0.0.1:8080")["home"]
    <RemoteBandit 'home' of http://127.0.0.1:8080>
    """
    return Service(Options(url, token, timeout, retries, transport))


def connect_async(
    url: str, token: str | None = None, *, timeout: float = 5.0, retries: int = 12, transport: Any = None
) -> AsyncService:
    """`connect` for programs that await: ``decision = await connect_async(url)["home"].ask()``."""
    return AsyncService(Options(url, token, timeout, retries, transport))
