"""``rightarm serve``, ``verify``, ``migrate``, ``backup``, ``export`` and ``tokens``: the service and its store."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from rightarm.cli.options import connected, opened, refusals
from rightarm.display import number, table
from rightarm.errors import needed_for

app = typer.Typer()


@app.command()
def serve(
    store: Annotated[str, typer.Option(help="Where bandits live: sqlite:///home.db or postgresql://user@host/name.")],
    host: Annotated[str, typer.Option(help="The address; others than loopback ones need tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any that is free.")] = 8080,
    module: Annotated[
        list[str] | None, typer.Option(help="A module with policies of your own, `module:Name(C=1)`; may come again.")
    ] = None,
    host_name: Annotated[
        list[str] | None,
        typer.Option(help="A name by which requests may call it where nobody needs a token; may come again."),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Requests a second of each token that has no rate of its own.")
    ] = None,
) -> None:
    """Answer requests for decisions over HTTP; every answer is written before it is given.

    rightarm serve --store sqlite:///home.db

    Prints its address when it is ready; /openapi.json says what can be asked. SIGTERM or Ctrl-C ends it after all
    requests that are under way.
    """
    with needed_for("rightarm serve", "service"):
        from rightarm.service.app import serve as run
        from rightarm.service.service import Service
        from rightarm.store import Commits, open_store

    if rate is not None and rate <= 0:
        raise ValueError(f"rate must be positive, in requests a second, got {rate}")
    with refusals():
        opened = open_store(store)
    try:
        opened.hold()
        service = Service(Commits(opened), module or [], rate, host_names=host_name or [])
        run(service, host, port, lambda address: typer.echo(f"rightarm answers at {address}"))
    finally:
        opened.close()


# The store of a service.

Store = Annotated[str, typer.Argument(help="Such as sqlite:///home.db or postgresql://user@host/database.")]


@app.command()
def verify(store: Store) -> None:
    """Apply all events of a store again, make every decision again, and say whether the store has just what follows.

    rightarm verify sqlite:///home.db
    """
    with connected(store) as database:
        from rightarm.store.verify import verify as look

        found = look(database)
    for finding in found.findings:
        typer.echo(f"{finding.bandit + ': ' if finding.bandit else ''}{finding.text}")
    looked = f"{found.bandits:,} bandits, {found.events:,} events, {found.decisions:,} decisions"
    typer.echo(f"{looked}: {'damaged' if found.findings else 'all as it should be'}")
    if found.findings:
        raise typer.Exit(1)


@app.command()
def migrate(store: Store) -> None:
    """Bring the tables of a store to the version that this rightarm needs.

    rightarm migrate sqlite:///home.db
    """
    with connected(store) as database:
        from rightarm.store.migrations import migrate as bring

        before, after = bring(database)
    typer.echo(f"the tables are of version {after}" + ("" if before == after else f", and were of {before or 'none'}"))


@app.command()
def backup(
    store: Store, target: Annotated[str, typer.Argument(help="An empty store, also of the other kind.")]
) -> None:
    """Copy a store at one moment, while the service goes on; also from SQLite to PostgreSQL, or back.

    The copy has the secret keys by which bandits draw their decisions: protect it as you protect the store.

    rightarm backup sqlite:///home.db sqlite:///copy.db
    """
    with connected(store) as source, connected(target, must_exist=False) as made:
        from rightarm.store.store_exports import backup as copy

        events = copy(source, made)
    typer.echo(f"{events:,} events are copied")


@app.command()
def export(
    store: Store,
    name: Annotated[str, typer.Argument(help="The bandit.")],
    target: Annotated[Path, typer.Argument(help="A new file: .jsonl, .parquet, .npz (obp), .dsjson or .txt (VW).")],
) -> None:
    """Write all events of a bandit to a file, by its ending, while the service goes on.

    rightarm export sqlite:///home.db home home.jsonl
    """
    with opened(store, must_exist=True) as found:
        from rightarm.store.store_exports import export as write

        typer.echo(f"wrote {write(found, name, target)}")


# Tokens.

tokens = typer.Typer(
    name="tokens", no_args_is_help=True, help="Tokens of the decision service: make them, list them, revoke them."
)
app.add_typer(tokens)

StoreOption = Annotated[str, typer.Option(help="Such as sqlite:///home.db or postgresql://user@host/database.")]


@tokens.command()
def add(
    label: Annotated[str, typer.Argument(help="Whom it is for: what `rightarm tokens list` shows.")],
    store: StoreOption,
    scopes: Annotated[str, typer.Option(help="Some of ask, tell, read, admin, with commas between them.")] = "ask,tell",
    bandits: Annotated[str, typer.Option(help="Names of bandits, with commas between them; * is any text.")] = "*",
    rate: Annotated[float | None, typer.Option(help="Requests a second; any number unless given.")] = None,
) -> None:
    """Make a token and show it, this once: the store keeps a digest only.

    rightarm tokens add shop --store sqlite:///home.db --scopes ask,tell --bandits 'shop-*'
    """
    with opened(store) as found:
        typer.echo(found.tokens.add(label, scopes, bandits, rate))


@tokens.command("list")
def show(store: StoreOption) -> None:
    """List the tokens, without their secrets.

    rightarm tokens list --store sqlite:///home.db
    """
    head = ["label", "scopes", "bandits", "id", "rate", "made", "revoked"]
    with opened(store, must_exist=True) as found:
        rows = [
            [
                token.label,
                ",".join(token.scopes),
                ",".join(token.bandits),
                token.id,
                "" if token.rate is None else number(token.rate),
                _day(token.created),
                _day(token.revoked),
            ]
            for token in found.tokens.list()
        ]
    typer.echo(table(head, rows, words=3) if rows else "there are no tokens")


@tokens.command()
def revoke(
    id: Annotated[str, typer.Argument(help="What `rightarm tokens list` shows under id.")], store: StoreOption
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
