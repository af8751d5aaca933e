"""The command line, a module for each group of commands."""

from __future__ import annotations

import sys
from typing import Annotated

try:
    import typer
except ImportError:
    sys.exit("the command line needs more packages: pip install 'rightarm[lab]'")

import rightarm
from rightarm.cli import experiments, logs, policies, reproduce, serve, stores, tokens
from rightarm.cli.options import Program

app = typer.Typer(
    cls=Program,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Multi-armed bandits: Boltzmann exploration done right.",
)
app.add_typer(reproduce.app, name="reproduce")
app.add_typer(tokens.app, name="tokens")
for group in (policies, experiments, logs, serve, stores):
    app.add_typer(group.app)


@app.callback(invoke_without_command=True)
def version(show: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    """Options of the program itself."""
    if show:
        typer.echo(f"rightarm {rightarm.__version__}")
        raise typer.Exit


def main() -> None:
    """The program's entry."""
    app(prog_name="rightarm")
