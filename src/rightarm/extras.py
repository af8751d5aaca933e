"""Packages that only some uses need, imported when they are needed."""

from __future__ import annotations

import importlib
from typing import Any


def package_for(name: str, what: str, extra: str | None = None) -> Any:
    """The package ``name``, or an error that says what needs it and how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        source = name if extra is None else f"'rightarm[{extra}]'"
        raise ImportError(f"{what} needs {name}: pip install {source}") from error


def polars_for(what: str) -> Any:
    """Polars, or an error that says what needs it and how to get it."""
    return package_for("polars", what, "lab")
