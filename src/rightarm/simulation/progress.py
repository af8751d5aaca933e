"""The progress bar, by rich."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

try:
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
except ImportError as error:
    raise ImportError("progress=True needs rich: pip install 'rightarm[lab]'") from error


class RateColumn(ProgressColumn):
    """Rounds per second."""

    def render(self, task: Task) -> Text:
        """The column's text."""
        return Text(f"{(task.finished_speed or task.speed or 0) / 1e6:,.1f} M rounds/s")


@contextlib.contextmanager
def bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on standard error over ``total`` rounds; call what it gives with rounds played.

    Until the first of them it says that formulas are compiled, which new ones are; without rounds there is no bar.
    """
    if not total:
        yield lambda rounds: None
        return
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
