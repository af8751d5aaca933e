"""``rightarm serve``."""

from __future__ import annotations

from typing import Annotated

import typer

from rightarm.cli.options import refusals
from rightarm.extras import needed_for

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
        from rightarm.service.server import serve as run
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
