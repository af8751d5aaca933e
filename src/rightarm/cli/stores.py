"""Commands about the store of a service: is it right, bring it up to date, copy it."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer()

Store = Annotated[str, typer.Argument(help="Such as sqlite:///home.db or postgresql://user@host/database.")]


@app.command()
def verify(store: Store) -> None:
    """Fold all events of a store again, and say whether everything that it has follows from them.

    rightarm verify sqlite:///home.db
    """
    from rightarm.store.connections import connect
    from rightarm.store.verify import verify as look

    found = look(connect(store, must_exist=True))
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
    from rightarm.store.connections import connect
    from rightarm.store.migrations import migrate as bring

    before, after = bring(connect(store, must_exist=True))
    typer.echo(f"the tables are of version {after}" + ("" if before == after else f", and were of {before or 'none'}"))


@app.command()
def backup(
    store: Store, target: Annotated[str, typer.Argument(help="An empty store, also of the other kind.")]
) -> None:
    """Copy a store at one moment, while the service goes on; also from SQLite to PostgreSQL, or back.

    rightarm backup sqlite:///home.db sqlite:///copy.db
    """
    from rightarm.store.backup import backup as copy
    from rightarm.store.connections import connect

    events = copy(connect(store, must_exist=True), connect(target))
    typer.echo(f"{events:,} events are copied")
