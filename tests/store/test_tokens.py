"""Tokens: what they allow, what is stored of them, and what is not."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from rightarm.store import Unavailable
from rightarm.store.connections import Database, connect
from rightarm.store.migrations import prepare
from rightarm.store.schema import tokens as table
from rightarm.store.tokens import SCOPES, Token, Tokens


@pytest.fixture
def database(store_url: str) -> Iterator[Database]:
    with closing(connect(store_url)) as found:
        prepare(found)
        yield found


def test_a_token_is_found_until_it_is_revoked(database: Database) -> None:
    tokens = Tokens(database, clock=lambda: 12.0)
    assert not tokens.any()
    text = tokens.add("the shop", ["tell", "ask"], ["shop-*", "blog"], rate=50)
    found = tokens.find(text)
    assert found is not None
    expected = Token(text.split("_")[1], "the shop", ("ask", "tell"), ("shop-*", "blog"), 50.0, 12.0, None)
    assert found == expected
    assert tokens.list() == [found]
    assert tokens.revoke("0" * 16) is False
    assert (tokens.revoke(found.id), tokens.revoke(found.id)) == (True, False)
    assert tokens.find(text) is None
    assert tokens.list() == [found._replace(revoked=12.0)]
    assert tokens.any(), "the store goes on asking for tokens"


def test_no_two_tokens_are_alike_and_none_opens_what_another_does(database: Database) -> None:
    tokens = Tokens(database)
    texts = [tokens.add(f"number {i}", "ask") for i in range(20)]
    assert len({text.split("_", 2)[2] for text in texts}) == 20
    swapped = f"ra_{texts[0].split('_')[1]}_{texts[1].split('_', 2)[2]}"
    assert [found.label for text in texts if (found := tokens.find(text))] == [f"number {i}" for i in range(20)]
    assert tokens.find(swapped) is None


WRONG = ["", "ra_", "ra__", "ra_0123456789abcdef_", "Bearer x", "ra_\0_x", "ra_0123456789abcdef_" + "é" * 43, "\udc80"]


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_token_is_not_found(database: Database, text: str) -> None:
    tokens = Tokens(database)
    tokens.add("one", "ask")
    assert tokens.find(text) is None


def test_one_letter_makes_another_token(database: Database) -> None:
    tokens = Tokens(database)
    text = tokens.add("one", "ask")
    for place in (4, len(text) // 2, len(text) - 1):
        other = "1" if text[place] == "0" else "0"
        assert tokens.find(text[:place] + other + text[place + 1 :]) is None
    assert tokens.find(text + "0") is None


def test_only_the_digest_is_stored(database: Database) -> None:
    text = Tokens(database).add("one", "ask")
    with database.reads() as connection:
        (row,) = connection.execute(table.select())
    assert row.digest == hashlib.sha256(text.encode()).hexdigest()
    secret = text.split("_", 2)[2]
    assert re.fullmatch(r"[\w-]{43}", secret)
    assert not any(secret in str(value) for value in row)


def test_digests_are_compared_in_constant_time_also_of_unknown_ids(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens, compared = Tokens(database), list[tuple[str, str]]()
    text = tokens.add("one", "ask")

    def compare(one: str, other: str) -> bool:
        compared.append((one, other))
        return one == other

    monkeypatch.setattr("hmac.compare_digest", compare)
    for asked in (text, "ra_0123456789abcdef_" + "x" * 43, "nonsense"):
        tokens.find(asked)
    assert [(len(one), len(other)) for one, other in compared] == [(64, 64)] * 3


@pytest.mark.parametrize(
    ("patterns", "name", "allowed"),
    [
        ("*", "anything", True),
        ("shop-*", "shop-home", True),
        ("shop-*", "Shop-home", False),
        ("shop-*", "my-shop-home", False),
        ("a,b", "b", True),
        (["a", "b"], "ab", False),
        ("a.c", "abc", False),
        ("*-eu", "shop-eu", True),
    ],
)
def test_bandits_by_patterns(database: Database, patterns: Any, name: str, allowed: bool) -> None:
    tokens = Tokens(database)
    found = tokens.find(tokens.add("one", "ask", patterns))
    assert found is not None
    assert (found.allows("ask", name), found.allows("tell", name)) == (allowed, False)


def test_admin_includes_nothing_else(database: Database) -> None:
    tokens = Tokens(database)
    found = tokens.find(tokens.add("one", "admin"))
    assert found is not None
    assert [scope for scope in SCOPES if found.allows(scope, "home")] == ["admin"]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"label": ""}, "label must be a line of 1 to 200 printable characters, got ''"),
        ({"label": "two\nlines"}, "label must be"),
        ({"label": "x" * 201}, "label must be"),
        ({"scopes": "ask write"}, "scopes must be some of ask, tell, read, admin, got 'write'"),
        ({"scopes": []}, r"scopes must be one or more words, got \[\]"),
        ({"bandits": ""}, "bandits must be one or more words, got ''"),
        ({"bandits": "shop/[a-z]"}, r"bandits must be names, in which \* stands for any text, got 'shop/\[a-z\]'"),
        ({"bandits": ["a b"]}, "bandits must be names"),
        ({"rate": 0}, "rate must be positive, in requests a second, got 0"),
        ({"rate": float("nan")}, "rate must be"),
    ],
)
def test_what_is_wrong_is_named(database: Database, given: dict[str, Any], error: str) -> None:
    tokens = Tokens(database)
    with pytest.raises(ValueError, match=error):
        tokens.add(**{"label": "one", "scopes": "ask", **given})
    assert tokens.list() == []


def test_a_token_is_found_while_somebody_writes(sqlite_url: str) -> None:
    with closing(connect(sqlite_url)) as database:
        prepare(database)
        tokens = Tokens(database)
        text = tokens.add("one", "ask")
        with database.transaction():
            assert tokens.find(text) is not None
            assert tokens.any()


def test_a_database_that_is_gone_is_unavailable(sqlite_url: str) -> None:
    with closing(connect(sqlite_url)) as database:
        prepare(database)
        with closing(sqlite3.connect(str(database.file))) as other:
            other.execute("DROP TABLE tokens")
        tokens = Tokens(database)
        for call in (tokens.any, tokens.list, lambda: tokens.find("x"), lambda: tokens.add("one", "ask")):
            with pytest.raises(Unavailable, match="the database does not answer"):
                call()
