"""`rightarm tokens`: a secret is shown once, and never again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from rightarm.cli import app
from rightarm.store import open_store


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/home.db"


def tokens(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["tokens", *arguments])


def test_a_token_from_its_making_to_its_end(store: str) -> None:
    assert tokens("list", "--store", store).exit_code == 2  # there is no store: a name that was mistyped, perhaps
    open_store(store).close()
    assert tokens("list", "--store", store).output == "there are no tokens\n"
    options = ["--scopes", "ask,read", "--bandits", "shop-*", "--rate", "20"]
    made = tokens("add", "the shop", "--store", store, *options)
    text = made.output.strip()
    assert re.fullmatch(r"ra_[0-9a-f]{16}_[\w-]{43}", text)
    opened = open_store(store)
    found = opened.tokens.find(text)
    assert found is not None
    assert (found.scopes, found.bandits, found.rate) == (("ask", "read"), ("shop-*",), 20.0)
    listed = tokens("list", "--store", store).output
    assert [word in listed for word in ("the shop", "ask,read", "shop-*", found.id, "20")] == [True] * 5
    assert text.split("_", 2)[2][:8] not in listed
    assert tokens("revoke", found.id, "--store", store).output == f"revoked {found.id}\n"
    assert opened.tokens.find(text) is None
    again = tokens("revoke", found.id, "--store", store)
    assert again.exit_code == 2
    assert f"id must be that of a token that is not revoked, got '{found.id}'" in again.output
    opened.close()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--scopes", "ask,write"], "scopes must be some of ask, tell, read, admin, got 'write'"),
        (["--bandits", "a/b"], "bandits must be names"),
        (["--rate", "0"], "rate must be positive"),
    ],
)
def test_errors_are_a_line(store: str, options: list[str], error: str) -> None:
    done = tokens("add", "one", "--store", store, *options)
    assert done.exit_code == 2
    assert error in done.output
    assert tokens("list", "--store", store).output == "there are no tokens\n"
