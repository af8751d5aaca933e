"""Packages that only some uses need, imported when they are needed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def needed_for(what: str, extra: str | None = "lab") -> Iterator[None]:
    """Imports within say, where a package is missing, what needs it and how to get it.

    ``extra`` is the extra of rightarm that has the package; without one it is installed by itself.

    >>> with needed_for("plot()"):
    ...     import no_such_package
    Traceback (most recent call last):
        ...
    ImportError: plot() needs no_such_package: pip install 'rightarm[lab]'
    """
    try:
        yield
    except ImportError as error:
        source = error.name if extra is None else f"'rightarm[{extra}]'"
        raise ImportError(f"{what} needs {error.name}: pip install {source}") from error


def polars_for(what: str) -> Any:
    """Polars, or an error that says what needs it and how to get it."""
    with needed_for(what):
        import polars
    return polars
