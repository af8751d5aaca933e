"""What is wrong in an experiment file, said with the key, the value that it got and what is allowed."""

from __future__ import annotations

import contextlib
import difflib
import math
import re
import reprlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

LONGEST_MESSAGE = 2_000  # characters
LONGEST_NAME = 100


class ExperimentError(ValueError):
    """An experiment file is wrong; the text begins with the key."""

    def __init__(self, text: str) -> None:
        super().__init__(text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]} …")


class _Short(reprlib.Repr):
    """Values as errors show them: short, also those that Python refuses to write."""

    def repr_int(self, x: int, level: int) -> str:
        digits = math.ceil(x.bit_length() * math.log10(2))
        return str(x) if digits < 60 else f"a whole number of {digits:,} digits"


_short = _Short()
_short.maxstring, _short.maxother, _short.maxlevel, _short.maxdict = 80, 80, 3, 6


def shown(value: Any) -> str:
    """``value`` in an error, not too long.

    >>> shown([0.5, "a"]), shown(16**9999)
    ("[0.5, 'a']", 'a whole number of 12,041 digits')
    """
    return _short.repr(value)


def inside(key: str, name: str) -> str:
    """The key ``name`` in the table ``key``, as TOML writes it.

    >>> inside("policies", "bge"), inside("policies", "BGE, mean")
    ('policies.bge', 'policies."BGE, mean"')
    """
    plain = len(name) <= LONGEST_NAME and re.fullmatch(r"[A-Za-z0-9_-]+", name)
    text = (
        name if plain else '"' + "".join(c if c.isprintable() and c not in '"\\' else "?" for c in name[:LONGEST_NAME])
    )
    text += "" if plain else '"' if len(name) <= LONGEST_NAME else '…"'
    return f"{key}.{text}" if key else text


def suggestion(name: str, allowed: Iterable[str]) -> str:
    """A near miss among what is allowed, as the end of an error.

    >>> suggestion("horizn", ["horizon", "seed"])
    '; did you mean horizon?'
    """
    folded = {own.lower(): own for own in allowed}
    near = difflib.get_close_matches(name[:80].lower(), folded, 1)
    return f"; did you mean {folded[near[0]]}?" if near else ""


def unknown(
    key: str, name: str, value: Any, what: str, has: str, allowed: Sequence[str], besides: Sequence[str] = ()
) -> ExperimentError:
    """The error about a key that means nothing; ``besides`` are keys of another sort that have their place there."""
    listed = ", ".join(allowed) or "none"
    more = f"; besides there are {', '.join(besides)}" if besides else ""
    return ExperimentError(
        f"{inside(key, name)}: unknown {what}, got {shown(value)}; {has} {listed}{more}"
        f"{suggestion(name, (*allowed, *besides))}"
    )


@contextlib.contextmanager
def blamed(key: str, name: str = "", allowed: str = "") -> Iterator[None]:
    """Let an error that arises for the value of ``key`` say so; ``name`` is what the error calls it."""
    try:
        yield
    except ExperimentError:
        raise
    except (Exception, SystemExit) as error:  # users' own modules and formulas run here, and may raise anything
        text = str(error) if isinstance(error, TypeError | ValueError) else f"{type(error).__name__}: {error}"
        if found := re.match(rf"{re.escape(name)}(\[\d+\])? (?=must )", text) if name else None:
            key, text = f"{key}{found[1] or ''}", text[found.end() :]
        raise ExperimentError(f"{key}: {text}{allowed and f'; {allowed}'}") from error


def a_table(key: str, value: Any, example: str) -> dict[str, Any]:
    """``value`` if it is a table with something in it."""
    if not isinstance(value, dict) or not value:
        raise ExperimentError(f"{key}: must be a table such as {example}, got {shown(value)}")
    return value


def a_list(key: str, value: Any) -> list[Any]:
    """``value`` if it is a list with something in it."""
    if not isinstance(value, list) or not value:
        raise ExperimentError(f"{key}: must be a list of values to sweep, got {shown(value)}")
    return value
