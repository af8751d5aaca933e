"""The progress bar, by rich."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from rightarm.extras import needed_for

with needed_for("progress=True"):
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text


class RateColumn(ProgressColumn):
    """Rounds per second."""

    def render(self, task: Task) -> Text:
        """The column's text."""
        return Text(f"{(task.finished_speed or task.speed or 0) / 1e6:,.1f} M rounds/s")


@contextlib.contextmanager
def bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on standard error over ``total`` rounds; call what it gives with rounds played.

    Until the first of them it says that formulas are being compiled.
    """
    columns = (
        TextColumn("[progress.description]{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        RateColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(f"{title}, compiling", total=total)
        yield lambda rounds: progress.update(task, advance=rounds, description=title)


@contextlib.contextmanager
def watched(title: str, every: float = 5.0) -> Iterator[Callable[[float, object], None]]:
    """A bar on standard error for long work; call what it gives with the share that is done and a text about it.

    Where there is no terminal it is a line every so many seconds, and one at the end.
    """
    console = Console(stderr=True)
    if console.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"))
        with Progress(*columns, console=console) as progress:
            task = progress.add_task(title, total=1.0, text="calibrating")
            yield lambda share, text: progress.update(task, completed=share, text=str(text))
        return
    lines = _Lines(title, every)
    try:
        yield lines.say
    finally:
        lines.end()


class _Lines:
    """The last text, written now and then."""

    def __init__(self, title: str, every: float) -> None:
        self.title, self.every = title, every
        self.written, self.text = time.monotonic(), ""

    def say(self, share: float, text: object) -> None:
        self.text = str(text)
        if time.monotonic() - self.written >= self.every:
            self.end()

    def end(self) -> None:
        if self.text:
            print(f"{self.title}: {self.text}", file=sys.stderr, flush=True)
        self.written, self.text = time.monotonic(), ""
