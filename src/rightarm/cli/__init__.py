"""The command line. Each module has an ``app`` with its commands: a new command is one function in one of them."""

from __future__ import annotations

import sys
from typing import Annotated

try:
    import typer
except ImportError:
    sys.exit("the command line needs more packages: install rightarm with its extra [lab]")

import rightarm
from rightarm.cli import experiment_commands, log_commands, policy_commands, service_commands
from rightarm.cli.options import CommandGroup

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Multi-armed bandits: Boltzmann exploration done right.",
)
for group in (policy_commands, experiment_commands, log_commands, service_commands):
    app.add_typer(group.app)


@app.callback(invoke_without_command=True)
def version(show: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    """Show the version."""
    if show:
        typer.echo(f"rightarm {rightarm.__version__}")
        raise typer.Exit


def main() -> None:
    """Run the program."""
    app(prog_name="rightarm")
