"""Options that several commands have, and what happens when one is interrupted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Annotated

import typer

from rightarm.formula import check_count


def at_least(name: str, least: int) -> Callable[[int | None], int | None]:
    """A check of an option that says which value it got."""

    def check(value: int | None) -> int | None:
        try:
            return None if value is None else check_count(name, value, least)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    return check


Replications = Annotated[
    int | None,
    typer.Option(callback=at_least("replications", 2), help="Replications of every point, not the usual number."),
]
StudyReplications = Annotated[
    int | None,
    typer.Option(callback=at_least("replications", 16), help="Of every simulation; fewer than 16 tell nothing."),
]
Seed = Annotated[int, typer.Option(callback=at_least("seed", 0), help="The seed.")]
Workers = Annotated[
    int | None, typer.Option(callback=at_least("workers", 1), help="Threads; one per core unless given.")
]
Quick = Annotated[bool, typer.Option("--quick", help="A smaller version, for a first look.")]


@contextlib.contextmanager
def working(title: str, rounds: int) -> Iterator[Callable[[int], None]]:
    """A progress bar; Ctrl-C ends with a word on how to go on."""
    from rightarm.simulation.progress import bar

    try:
        with bar(title, rounds) as on_rounds:
            yield on_rounds
    except KeyboardInterrupt:
        typer.echo("stopped; what was finished is kept, and the same command goes on from there", err=True)
        raise typer.Exit(130) from None
