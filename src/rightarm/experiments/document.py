"""The TOML of an experiment file as plain data, and errors that name the key, the value it has and what is allowed."""

from __future__ import annotations

import contextlib
import difflib
import math
import re
import reprlib
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence

Table = Mapping[str, object]
"""A table of the file: values of any type, by key."""

SETTINGS = ("horizon", "replications", "seed", "checkpoints")
KEYS = ("title", *SETTINGS, "problems", "policies", "let", "runs", "grid", "zip", "about", "quick")
LONGEST_MESSAGE = 2_000  # characters
LONGEST_NAME = 100


class ExperimentError(ValueError):
    """An experiment file is wrong; the text begins with the key."""

    def __init__(self, text: str) -> None:
        super().__init__(text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]} …")


# The document.


def parse(text: str, quick: bool = False) -> dict[str, object]:
    """Return the document that a text is; with ``quick``, the table `[quick]` is laid over the rest."""
    document = _parse_toml(text)
    check_keys("", document, KEYS, "a file has")
    rest = {name: value for name, value in document.items() if name != "quick"}
    if "quick" not in document:
        if quick:
            raise ExperimentError("quick: is missing; a file that can be run quickly has a table [quick]")
        return rest
    overlay = check_table("quick", document["quick"], "{ horizon = 1_000 }")
    check_keys("quick", overlay, KEYS[:-1], "it has")
    return _merge(rest, overlay) if quick else rest


def _parse_toml(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).rpartition(" (at ")
        stripped = text.rstrip()
        where = place.rstrip(")") if "line" in place else _place(stripped, len(stripped))
        raise ExperimentError(f"{where}: {message}") from None
    except RecursionError:
        raise ExperimentError("the file is nested too deeply") from None
    except ValueError as error:  # a number of more digits than Python reads
        long = re.search(r"[0-9_]{1000,}", text)
        raise ExperimentError(f"{_place(text, long.start() if long else 0)}: {error}") from None


def _merge(below: Table, above: Table) -> dict[str, object]:
    """Merge tables key by key; anything else is replaced."""
    merged = dict(below)
    for name, value in above.items():
        beneath = below.get(name)
        is_both_tables = isinstance(value, dict) and isinstance(beneath, dict)
        merged[name] = _merge(beneath, value) if is_both_tables else value  # type: ignore[arg-type]
    return merged


def _place(text: str, position: int) -> str:
    before = text[:position]
    return f"line {before.count(chr(10)) + 1}, column {position - before.rfind(chr(10))}"


# Checks and errors.


class _Short(reprlib.Repr):
    """Values as errors show them: short, also those that Python refuses to write."""

    def repr_int(self, x: int, level: int) -> str:
        digits = math.ceil(x.bit_length() * math.log10(2))
        return str(x) if digits < 60 else f"a whole number of {digits:,} digits"


_short = _Short()
_short.maxstring = 80
_short.maxother = 80
_short.maxlevel = 3
_short.maxdict = 6


def shown(value: object) -> str:
    """Return ``value`` as an error shows it, not too long.

    >>> shown([0.5, "a"]), shown(16**9999)
    ("[0.5, 'a']", 'a whole number of 12,041 digits')
    """
    return _short.repr(value)


def inside(key: str, name: str) -> str:
    """Return the key ``name`` in the table ``key``, as TOML writes it.

    >>> inside("policies", "bge"), inside("policies", "BGE, mean")
    ('policies.bge', 'policies."BGE, mean"')
    """
    text = name
    if len(name) > LONGEST_NAME or not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        printable = "".join(c if c.isprintable() and c not in '"\\' else "?" for c in name[:LONGEST_NAME])
        text = f'"{printable}"' if len(name) <= LONGEST_NAME else f'"{printable}…"'
    return f"{key}.{text}" if key else text


def suggestion(name: str, allowed: Iterable[str]) -> str:
    """Return a near miss among what is allowed, as the end of an error.

    >>> suggestion("horizn", ["horizon", "seed"])
    '; did you mean horizon?'
    """
    folded = {each.lower(): each for each in allowed}
    near = difflib.get_close_matches(name[:80].lower(), folded, 1)
    return f"; did you mean {folded[near[0]]}?" if near else ""


def check_keys(key: str, table: Table, allowed: Sequence[str], has: str) -> None:
    """Refuse keys that mean nothing; ``has`` introduces the list of those that do."""
    for name, value in table.items():
        if name not in allowed:
            raise unknown_key(key, name, value, f"{has} {', '.join(allowed)}", allowed)


def unknown_key(
    key: str, name: str, value: object, has: str, allowed: Sequence[str], word: str = "key"
) -> ExperimentError:
    """Return the error about a key that means nothing."""
    return ExperimentError(f"{inside(key, name)}: unknown {word}, got {shown(value)}; {has}{suggestion(name, allowed)}")


@contextlib.contextmanager
def errors_at(key: str, name: str = "", allowed: str = "") -> Iterator[None]:
    """Let an error that arises for the value of ``key`` say so; ``name`` is what the error calls it."""
    try:
        yield
    except ExperimentError:
        raise
    except (Exception, SystemExit) as error:  # users' own modules and formulas run here, and may raise anything
        text = str(error) if isinstance(error, TypeError | ValueError) else f"{type(error).__name__}: {error}"
        found = re.match(rf"{re.escape(name)}(\[\d+\])? (?=must )", text) if name else None
        if found:
            key = f"{key}{found[1] or ''}"
            text = text[found.end() :]
        raise ExperimentError(f"{key}: {text}{allowed and f'; {allowed}'}") from error


def check_table(key: str, value: object, example: str) -> dict[str, object]:
    """Return ``value`` if it is a table with something in it."""
    if not isinstance(value, dict) or not value:
        raise ExperimentError(f"{key}: must be a table such as {example}, got {shown(value)}")
    return value


def check_list(key: str, value: object) -> list[object]:
    """Return ``value`` if it is a list with something in it."""
    if not isinstance(value, list) or not value:
        raise ExperimentError(f"{key}: must be a list of values to sweep, got {shown(value)}")
    return value
