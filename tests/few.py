"""A few values of a parameter for `make test`, and the others for `make test-all`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def few(count: int, values: Iterable[Any]) -> list[Any]:
    """Mark all values but the first ones: they are tried in `make test-all` only."""
    return [value if i < count else pytest.param(value, marks=pytest.mark.full) for i, value in enumerate(values)]


def some(names: Iterable[Any], values: Iterable[Any]) -> list[Any]:
    """Mark all values but the named ones: they are tried in `make test-all` only."""
    named = set(names)
    rows = [(value, value if isinstance(value, tuple) else (value,)) for value in values]
    return [value if value in named else pytest.param(*row, marks=pytest.mark.full) for value, row in rows]
