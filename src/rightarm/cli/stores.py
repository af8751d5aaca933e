"""Commands about the store of a service: is it right, bring it up to date, copy it, take something out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rightarm.cli.options import connected, opened

app = typer.Typer()

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
        from rightarm.store.backup import backup as copy

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
        from rightarm.store.exports import export as write

        typer.echo(f"wrote {write(found, name, target)}")
