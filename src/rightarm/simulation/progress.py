"""Progress on standard error: a bar in a terminal, one line of text in a notebook, a line now and then elsewhere."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rightarm.errors import needed_for

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

OFTEN = 0.25  # seconds between two texts in a notebook
SELDOM = 5.0  # where each is a line of its own


@contextlib.contextmanager
def bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show progress over ``total`` rounds; call what it gives with rounds played, from any thread.

    Until the first of them it says that formulas are being compiled.
    """
    if sys.stderr.isatty():
        with _rich(_rounds_columns) as progress:
            task = progress.add_task(f"{title}, compiling", total=total)
            yield lambda rounds: progress.update(task, advance=rounds, description=title)
        return
    with _text(title, SELDOM) as text:
        text.say("compiling")
        played = _Rounds(total)
        yield lambda rounds: text.say(played.add(rounds))


@contextlib.contextmanager
def watched(title: str, every: float = SELDOM) -> Iterator[Callable[[float, object], None]]:
    """Show progress of long work; call what it gives with the share that is done and a text about it.

    Where there is no terminal it is a line every so many seconds, and one at the end.
    """
    if sys.stderr.isatty():
        with _rich(_text_columns) as progress:
            task = progress.add_task(title, total=1.0, text="calibrating")
            yield lambda share, text: progress.update(task, completed=share, text=str(text))
        return
    with _text(title, every) as lines:
        yield lambda share, text: lines.say(str(text))


# In a terminal.


def _rich(columns: Callable[[], tuple[ProgressColumn | str, ...]]) -> Progress:
    with needed_for("progress=True"):
        from rich.console import Console
        from rich.progress import Progress
    return Progress(*columns(), console=Console(stderr=True, force_jupyter=False))


def _rounds_columns() -> tuple[ProgressColumn | str, ...]:
    from rich.progress import BarColumn, ProgressColumn, Task, TimeElapsedColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        """Rounds per second."""

        def render(self, task: Task) -> Text:
            return Text(_rate(task.finished_speed or task.speed or 0.0))

    ends = "{task.percentage:>3.0f}%", Rate(), TimeElapsedColumn(), "left", TimeRemainingColumn()
    return ("[progress.description]{task.description}", BarColumn(), *ends)


def _text_columns() -> tuple[ProgressColumn | str, ...]:
    from rich.progress import BarColumn

    return ("{task.description}", BarColumn(), "{task.fields[text]}")


# Elsewhere.


class _Rounds:
    """Counts rounds, and says how many there were, how fast, and how long the rest takes."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.played = 0
        self.began = time.monotonic()
        self.lock = threading.Lock()

    def add(self, rounds: int) -> str:
        with self.lock:
            self.played += rounds
            rate = self.played / max(time.monotonic() - self.began, 1e-9)
            left = (self.total - self.played) / rate
        return f"{self.played / self.total:4.0%}, {_rate(rate)}, {left:,.0f} s left"


def _rate(rounds: float) -> str:
    return f"{rounds / 1e6:,.1f} M rounds/s"


class _Text:
    """The last text, written now and then: over the one before where a carriage return does that, else below it."""

    def __init__(self, title: str, every: float, over: bool) -> None:
        self.title = title
        self.every = every
        self.over = over
        self.written = -every if over else time.monotonic()
        self.text = ""
        self.longest = 0
        self.lock = threading.Lock()

    def say(self, text: str) -> None:
        with self.lock:
            self.text = text
            if time.monotonic() - self.written >= self.every:
                self._write()

    def _write(self) -> None:
        line = f"{self.title}: {self.text}"
        self.longest = max(self.longest, len(line))
        sys.stderr.write(f"\r{line:<{self.longest}}" if self.over else f"{line}\n")
        sys.stderr.flush()
        self.written = time.monotonic()
        self.text = ""

    def end(self) -> None:
        with self.lock:
            if self.text:
                self._write()
            if self.over:
                sys.stderr.write("\n")
                sys.stderr.flush()


@contextlib.contextmanager
def _text(title: str, every: float) -> Iterator[_Text]:
    text = _Text(title, OFTEN if in_notebook() else every, over=in_notebook())
    try:
        yield text
    finally:
        text.end()


def in_notebook() -> bool:
    """Return whether the program runs in the kernel of a notebook, which has no terminal."""
    python: Any = sys.modules.get("IPython")
    return python is not None and hasattr(python.get_ipython(), "kernel")
