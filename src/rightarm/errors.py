"""Errors that name the parameter and what it got, and the one for an extra that is not installed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType
from typing import TypeVar

# Both are what Python would raise: a `ValueError` or a `TypeError`. The field comes first in the text, and stands by
# itself in ``field``; ``code`` is a short name of what is wrong, for programs. Made of a whole text alone they have no
# field: so they are pickled, and put behind other words (`placed`).

E = TypeVar("E", bound=Exception)


class WrongValue(ValueError):
    """A value that cannot be taken.

    >>> error = WrongValue("reward", "must be from 0 to 1, got 7.0", code="out_of_range")
    >>> print(error, error.field, error.code)
    reward must be from 0 to 1, got 7.0 reward out_of_range
    """

    def __init__(self, field: str, what: str = "", code: str = "invalid") -> None:
        super().__init__(f"{field} {what}" if what else field)
        self.field = field if what else None
        self.code = code


class WrongType(TypeError):
    """A value of a type that cannot be taken.

    >>> import pickle
    >>> error = pickle.loads(pickle.dumps(WrongType("arms", "must be several names, got 7")))
    >>> print(error, error.field, error.code)
    arms must be several names, got 7 arms wrong_type
    """

    def __init__(self, field: str, what: str = "", code: str = "wrong_type") -> None:
        super().__init__(f"{field} {what}" if what else field)
        self.field = field if what else None
        self.code = code


def placed(error: E, place: str) -> E:
    """Return an error with a place, such as the row of a table, in front of its text; field and code stay.

    >>> error = placed(WrongValue("hour", "must be a number, got 'x'"), "row 2")
    >>> print(error, error.field)
    row 2: hour must be a number, got 'x' hour
    """
    made = type(error)(f"{place}: {error}")
    made.__dict__.update(error.__dict__)
    return made


@contextlib.contextmanager
def needed_for(what: str, extra: str | None = "lab") -> Iterator[None]:
    """Say of imports within, where a package is missing, what needs it and how to get it.

    ``extra`` is the extra of rightarm that has the package; without one it is installed by itself.

    >>> with needed_for("plot()"):
    ...     import no_such_package
    Traceback (most recent call last):
        ...
    ImportError: plot() needs no_such_package: install rightarm with its extra [lab]
    """
    try:
        yield
    except ModuleNotFoundError as error:
        remedy = f"pip install {error.name}" if extra is None else f"install rightarm with its extra [{extra}]"
        raise ImportError(f"{what} needs {error.name}: {remedy}") from error


def polars_for(what: str) -> ModuleType:
    """Return Polars, or raise an error that says what needs it and how to get it."""
    with needed_for(what):
        import polars
    return polars
