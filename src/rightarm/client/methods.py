"""Methods that are written once, as verbs, and give their result or an awaitable, by the object that has them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, Generic, ParamSpec, overload

from rightarm.client.carriers import Awaited, Blocking
from rightarm.client.steps import R, Steps, T

P = ParamSpec("P")


class Waits:
    """An object whose verbs wait for their answers."""

    _carrier: Blocking

    def _run(self, steps: Steps[T]) -> T:
        return self._carrier.run(steps)


class Awaits:
    """An object whose verbs are to be awaited."""

    _carrier: Awaited

    def _run(self, steps: Steps[T]) -> Awaitable[T]:
        return self._carrier.run(steps)


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
