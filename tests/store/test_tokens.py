"""Tokens: what they allow, what is stored of them, and what is not."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from rightarm.store.schema import tokens as table
from sqlalchemy import Engine, create_engine

from rightarm.store.tokens import SCOPES, Token, Tokens


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    engine = create_engine(f"sqlite:///{tmp_path}/store.db")
    table.create(engine)
    return engine


def test_a_token_is_found_until_it_is_revoked(engine: Engine) -> None:
    tokens = Tokens(engine, clock=lambda: 12.0)
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


def test_no_two_tokens_are_alike_and_none_opens_what_another_does(engine: Engine) -> None:
    tokens = Tokens(engine)
    texts = [tokens.add(f"number {i}", "ask") for i in range(20)]
    assert len({text.split("_", 2)[2] for text in texts}) == 20
    swapped = f"ra_{texts[0].split('_')[1]}_{texts[1].split('_', 2)[2]}"
    assert [found.label for text in texts if (found := tokens.find(text))] == [f"number {i}" for i in range(20)]
    assert tokens.find(swapped) is None


WRONG = ["", "ra_", "ra__", "ra_0123456789abcdef_", "Bearer x", "ra_\0_x", "ra_0123456789abcdef_" + "é" * 43, "\udc80"]


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_token_is_not_found(engine: Engine, text: str) -> None:
    tokens = Tokens(engine)
    tokens.add("one", "ask")
    assert tokens.find(text) is None


def test_one_letter_makes_another_token(engine: Engine) -> None:
    tokens = Tokens(engine)
    text = tokens.add("one", "ask")
    for place in (4, len(text) // 2, len(text) - 1):
        other = "1" if text[place] == "0" else "0"
        assert tokens.find(text[:place] + other + text[place + 1 :]) is None
    assert tokens.find(text + "0") is None


def test_only_the_digest_is_stored(engine: Engine) -> None:
    text = Tokens(engine).add("one", "ask")
    with engine.connect() as connection:
        (row,) = connection.execute(table.select())
    assert row.digest == hashlib.sha256(text.encode()).hexdigest()
    secret = text.split("_", 2)[2]
    assert re.fullmatch(r"[\w-]{43}", secret)
    assert not any(secret in str(value) for value in row)
    stored = Path(str(engine.url.database)).read_bytes()
    assert (secret.encode() in stored, row.digest.encode() in stored) == (False, True)


def test_digests_are_compared_in_constant_time_also_of_unknown_ids(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens, compared = Tokens(engine), list[tuple[str, str]]()
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
def test_bandits_by_patterns(engine: Engine, patterns: Any, name: str, allowed: bool) -> None:
    tokens = Tokens(engine)
    found = tokens.find(tokens.add("one", "ask", patterns))
    assert found is not None
    assert (found.allows("ask", name), found.allows("tell", name)) == (allowed, False)


def test_admin_includes_nothing_else(engine: Engine) -> None:
    tokens = Tokens(engine)
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
def test_what_is_wrong_is_named(engine: Engine, given: dict[str, Any], error: str) -> None:
    tokens = Tokens(engine)
    with pytest.raises(ValueError, match=error):
        tokens.add(**{"label": "one", "scopes": "ask", **given})
    assert tokens.list() == []
