"""Parts that commands share: options, how numbers are read, and how a command ends that cannot go on."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
import typer.core

from rightarm.formula import check_count

if TYPE_CHECKING:
    from rightarm.store import Store
    from rightarm.store.connections import Database


def stop(reason: object, code: int = 1) -> NoReturn:
    """End the program with one line that says why."""
    typer.echo(f"rightarm: {reason}", err=True)
    raise typer.Exit(code)


class CommandGroup(typer.core.TyperGroup):
    """All commands: warnings and errors are one line each. ``RIGHTARM_TRACEBACK=1`` shows where an error comes from."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *where: typer.echo(f"warning: {message}", err=True)
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                stop("stopped", 130)
            except BrokenPipeError:  # `rightarm results ... | head` has seen enough
                raise
            except (ImportError, OSError, TypeError, ValueError) as error:
                if os.environ.get("RIGHTARM_TRACEBACK"):
                    raise
                wrong_input = isinstance(error, FileNotFoundError | TypeError | ValueError)
                stop(_in_words(error), 2 if wrong_input else 1)


def _in_words(error: Exception) -> str:
    """Return an error as one reads it; those of the system have a number that says nothing to most."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


@contextlib.contextmanager
def resumable() -> Iterator[None]:
    """Run work that keeps what is finished: Ctrl-C, or a worker that fails, ends it with a line that says so."""
    from rightarm.experiments.runner import RunError

    try:
        yield
    except RunError as error:
        stop(f"{error}; what was finished is kept")
    except KeyboardInterrupt:
        stop("stopped; what was finished is kept, and the same command goes on from there", 130)


@contextlib.contextmanager
def opened(url: str, *, must_exist: bool = False) -> Iterator[Store]:
    """Open a store, which is made unless it must exist; what it refuses ends the program with one line."""
    with refusals():
        from rightarm.store import open_store
        from rightarm.store.connections import connect

        if must_exist:
            connect(url, must_exist=True).close()
        with contextlib.closing(open_store(url)) as store:
            yield store


@contextlib.contextmanager
def connected(url: str, *, must_exist: bool = True) -> Iterator[Database]:
    """Open the database of a store, as it is; what it refuses ends the program with one line."""
    with refusals():
        from rightarm.store.connections import connect

        with contextlib.closing(connect(url, must_exist=must_exist)) as database:
            yield database


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """Turn what a store refuses into errors that end the program with one line."""
    from rightarm.errors import needed_for

    with needed_for("a store", "service"):
        from rightarm.store import Missing, Refused
    try:
        yield
    except Missing as error:
        raise ValueError(error.detail) from None
    except Refused as error:
        raise OSError(error.detail) from None


def whole(name: str, least: int, help: str) -> object:
    """Return an option that is a whole number, which may be written 1e5."""

    def read(text: str | int) -> int:
        try:
            return check_count(name, int(text) if str(text).isdecimal() else float(text), least)
        except ValueError:
            raise typer.BadParameter(f"{name} must be a whole number of at least {least}, got {text}") from None

    return typer.Option(parser=read, metavar="N", help=help)


def picture(path: Path) -> Path:
    """Return a path that a picture can be written to; its folder is made before the work that could be lost."""
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(f"output must end in .png, .svg or .pdf, got {path}")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


Replications = Annotated[
    int | None,
    whole("replications", 16, "Of every cell, at least 16; the file's own unless given."),
]
Seed = Annotated[int, whole("seed", 0, "The seed.")]
FilesSeed = Annotated[int | None, whole("seed", 0, "The seed; the file's own unless given.")]
Workers = Annotated[int | None, whole("workers", 1, "Threads, or local Dask workers; one per core unless given.")]
Dask = Annotated[str | None, typer.Option(help="A Dask scheduler's address, or 'local' for worker processes here.")]
Quick = Annotated[bool, typer.Option("--quick", help="A smaller version, for a first look.")]
