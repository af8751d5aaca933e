"""The TOML of an experiment file as plain data, with `[quick]` laid over it where that is asked for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from rightarm.lab.experiment.errors import ExperimentError, a_table, unknown
from rightarm.lab.experiment.settings import SETTINGS

KEYS = ("title", *SETTINGS, "problems", "policies", "let", "runs", "grid", "zip", "quick")


def parsed(text: str) -> dict[str, Any]:
    """The TOML as plain data."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).rpartition(" (at ")
        ends = _place(text.rstrip(), len(text.rstrip()))
        raise ExperimentError(f"{place.rstrip(')') if 'line' in place else ends}: {message}") from None
    except RecursionError:
        raise ExperimentError("the file is nested too deeply") from None
    except ValueError as error:  # a number of more digits than Python reads
        long = re.search(r"[0-9_]{1000,}", text)
        raise ExperimentError(f"{_place(text, long.start() if long else 0)}: {error}") from None


def overlaid(document: dict[str, Any], quick: bool) -> dict[str, Any]:
    """The document without its `[quick]` table, or with what that table has in the place of what it replaces."""
    rest = {name: value for name, value in document.items() if name != "quick"}
    if "quick" not in document:
        if quick:
            raise ExperimentError("quick: is missing; a file that can be run quickly has a table [quick]")
        return rest
    overlay = a_table("quick", document["quick"], "{ horizon = 1_000 }")
    for name, value in overlay.items():
        if name not in KEYS[:-1]:
            raise unknown("quick", name, value, "key", "it has", KEYS[:-1])
    return _merged(rest, overlay) if quick else rest


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Tables merged key by key; anything else is replaced."""
    both = {
        name: _merged(below[name], value) if isinstance(value, dict) and isinstance(below.get(name), dict) else value
        for name, value in above.items()
    }
    return {**below, **both}


def _place(text: str, position: int) -> str:
    before = text[:position]
    return f"line {before.count(chr(10)) + 1}, column {position - before.rfind(chr(10))}"
