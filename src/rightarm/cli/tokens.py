"""``rightarm tokens``: who may use the decision service, and for what."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from rightarm.cli.options import opened
from rightarm.text import number, table

app = typer.Typer(no_args_is_help=True, help="Tokens of the decision service: make them, list them, revoke them.")

Store = Annotated[str, typer.Option(help="Such as sqlite:///home.db or postgresql://user@host/database.")]


@app.command()
def add(
    label: Annotated[str, typer.Argument(help="Whom it is for: what `rightarm tokens list` shows.")],
    store: Store,
    scopes: Annotated[str, typer.Option(help="Some of ask, tell, read, admin, with commas between them.")] = "ask,tell",
    bandits: Annotated[str, typer.Option(help="Names of bandits, with commas between them; * is any text.")] = "*",
    rate: Annotated[float | None, typer.Option(help="Requests a second; any number unless given.")] = None,
) -> None:
    """Make a token and show it, this once: the store keeps a digest only.

    rightarm tokens add shop --store sqlite:///home.db --scopes ask,tell --bandits 'shop-*'
    """
    with opened(store) as found:
        typer.echo(found.tokens.add(label, scopes, bandits, rate))


@app.command("list")
def show(store: Store) -> None:
    """List the tokens, without their secrets.

    rightarm tokens list --store sqlite:///home.db
    """
    head = ["label", "scopes", "bandits", "id", "rate", "made", "revoked"]
    with opened(store, must_exist=True) as found:
        tokens = found.tokens.list()
    rows = [
        [
            *(token.label, ",".join(token.scopes), ",".join(token.bandits), token.id),
            *("" if token.rate is None else number(token.rate), _day(token.created), _day(token.revoked)),
        ]
        for token in tokens
    ]
    typer.echo(table(head, rows, words=3) if rows else "there are no tokens")


@app.command()
def revoke(
    id: Annotated[str, typer.Argument(help="What `rightarm tokens list` shows under id.")], store: Store
) -> None:
    """Make a token invalid, for good.

    rightarm tokens revoke 0123456789abcdef --store sqlite:///home.db
    """
    with opened(store, must_exist=True) as found:
        revoked = found.tokens.revoke(id)
    if not revoked:
        raise ValueError(f"id must be that of a token that is not revoked, got {id!r}")
    typer.echo(f"revoked {id}")


def _day(time: float | None) -> str:
    return "" if time is None else f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d}"
