"""Packages that only some uses need, imported when they are needed."""

from __future__ import annotations

from typing import Any


def polars_for(what: str) -> Any:
    """Polars, or an error that says what needs it and how to get it."""
    try:
        import polars
    except ImportError as error:
        raise ImportError(f"{what} needs polars: pip install 'rightarm[lab]'") from error
    return polars
