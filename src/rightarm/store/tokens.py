"""Access tokens: who may do what with which bandits. The store keeps a digest of each, never the token itself."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from sqlalchemy import Row, insert, select, update

from rightarm.formula import check_number
from rightarm.store.connections import Database
from rightarm.store.schema import tokens as table

SCOPES = ("ask", "tell", "read", "admin")
LONGEST_LABEL = 200
SHAPE = re.compile(r"ra_([0-9a-f]{16})_[A-Za-z0-9_-]{43}")  # the id, and 32 random bytes
PATTERN = re.compile(r"[A-Za-z0-9*][A-Za-z0-9._*-]{0,99}")  # the name of a bandit, in which * is any text
NO_DIGEST = "0" * 64  # a digest that no token has


class Token(NamedTuple):
    """A token without its secret."""

    id: str
    label: str
    scopes: tuple[str, ...]
    """What it may: ask, tell, read; or admin, which is to make and change bandits, and includes none of the others."""
    bandits: tuple[str, ...]
    """Names of bandits, in which * stands for any text."""
    rate: float | None
    """How many requests a second it may make; None for any number."""
    created: float
    revoked: float | None

    def allows(self, scope: str, bandit: str) -> bool:
        """Return whether the token is good for ``scope`` with the bandit of that name."""
        return scope in self.scopes and any(fnmatchcase(bandit, pattern) for pattern in self.bandits)


class Tokens:
    """The tokens of a store.

    >>> import tempfile
    >>> from rightarm.store import open_store
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = open_store(f"sqlite:///{folder.name}/home.db")
    >>> tokens = store.tokens
    >>> text = tokens.add("the shop", ["ask", "tell"], "shop-*")
    >>> found = tokens.find(text)
    >>> found.label, found.allows("ask", "shop-home"), found.allows("ask", "blog"), found.allows("read", "shop-home")
    ('the shop', True, False, False)
    >>> tokens.revoke(found.id), tokens.find(text)
    (True, None)
    >>> store.close()
    >>> folder.cleanup()
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def add(
        self, label: str, scopes: str | Iterable[str], bandits: str | Iterable[str] = "*", rate: float | None = None
    ) -> str:
        """Make a token and return it, ``ra_<id>_<secret>``: it can be seen this once, and never again.

        Parameters
        ----------
        label : str
            Whom it is for.
        scopes : str or iterable of str
            Some of ask, tell, read and admin.
        bandits : str or iterable of str
            Names of bandits, in which * stands for any text.
        rate : float, optional
            Requests a second that it may make.
        """
        number = secrets.token_hex(8)
        text = f"ra_{number}_{secrets.token_urlsafe(32)}"
        row = {
            "id": number,
            "label": _label(label),
            "digest": _digest(text),
            "scopes": " ".join(_scopes(scopes)),
            "bandits": " ".join(_patterns(bandits)),
            "rate": None if rate is None else _rate(rate),
            "created": self._clock(),
        }
        with self._database.transaction() as connection:
            connection.execute(insert(table).values(row))
        return text

    def list(self) -> list[Token]:
        """Return all tokens, the oldest first, those that were revoked too."""
        with self._database.reads() as connection:
            rows = connection.execute(select(table).order_by(table.c.created, table.c.id))
            return [_token(row) for row in rows]

    def revoke(self, id: str) -> bool:
        """Make a token invalid for good; False if there is none with this id, or it was revoked before."""
        with self._database.transaction() as connection:
            current = (table.c.id == id) & table.c.revoked.is_(None)
            return connection.execute(update(table).where(current).values(revoked=self._clock())).rowcount == 1

    def find(self, text: str) -> Token | None:
        """Return the token that ``text`` is, if it is one that was not revoked.

        An unknown id takes the same comparison as a known one, and none of them ends at the first letter that differs:
        how long an answer takes tells nothing of digests.
        """
        shaped = SHAPE.fullmatch(text)
        number = shaped[1] if shaped else ""
        with self._database.reads() as connection:
            row = connection.execute(select(table).where(table.c.id == number)).one_or_none()
        same = hmac.compare_digest(_digest(text), NO_DIGEST if row is None else row.digest)
        return _token(row) if row is not None and same and row.revoked is None else None

    def any(self) -> bool:
        """Return whether there ever was a token: a store does not open to all because the last one was revoked."""
        with self._database.reads() as connection:
            return connection.execute(select(table.c.id).limit(1)).first() is not None


def _digest(text: str) -> str:
    """Return the SHA-256 of a token. Slow hashes protect what people think up; nobody guesses 256 random bits."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _token(row: Row[tuple[object, ...]]) -> Token:
    return Token(
        id=row.id,
        label=row.label,
        scopes=tuple(row.scopes.split()),
        bandits=tuple(row.bandits.split()),
        rate=row.rate,
        created=row.created,
        revoked=row.revoked,
    )


def _label(label: str) -> str:
    if not isinstance(label, str) or not 1 <= len(label) <= LONGEST_LABEL or not label.isprintable():
        raise ValueError(f"label must be a line of 1 to {LONGEST_LABEL} printable characters, got {label!r:.60}")
    return label


def _scopes(scopes: str | Iterable[str]) -> list[str]:
    """Return the scopes in their usual order, each once."""
    given = _several("scopes", scopes)
    for scope in given:
        if scope not in SCOPES:
            raise ValueError(f"scopes must be some of {', '.join(SCOPES)}, got {scope!r}")
    return [scope for scope in SCOPES if scope in given]


def _patterns(bandits: str | Iterable[str]) -> list[str]:
    given = _several("bandits", bandits)
    for pattern in given:
        if not PATTERN.fullmatch(pattern):
            raise ValueError(f"bandits must be names, in which * stands for any text, got {pattern!r:.60}")
    return given


def _several(name: str, given: str | Iterable[str]) -> list[str]:
    """Return several words, given as such or as one text with commas or spaces between them."""
    words = given.replace(",", " ").split() if isinstance(given, str) else list(given)
    if not words or not all(isinstance(word, str) for word in words):
        raise ValueError(f"{name} must be one or more words, got {given!r:.60}")
    return words


def _rate(rate: float) -> float:
    value = check_number("rate", rate)
    if value <= 0:
        raise ValueError(f"rate must be positive, in requests a second, got {value}")
    return value
