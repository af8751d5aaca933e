"""How things happen to a live bandit: to its log first and then to its state, wholly or not at all.

A signal handler may raise an exception between any two steps of Python: Ctrl-C, or a timer. So what is about to happen
is noted first, in one step, and the note is taken away when all is done. Whoever finds a note finishes what it says:
what the log has counts, the rest did not happen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rightarm.live.fold import State
from rightarm.logs.events import Event
from rightarm.logs.writer import LogWriter

Step = tuple[Any, ...]
"""A method of `State`, and what it takes."""


class Note(NamedTuple):
    """What is about to happen, and how to begin it anew."""

    put_back: Callable[[], None]
    steps: Sequence[Step]
    events: int
    """How many events the log had before."""


class Changes:
    """The only way to change a state; not to be used by several threads at once."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.log: LogWriter | None = None
        self.note: Note | None = None

    def make(self, put_back: Callable[[], None], steps: Sequence[Step], events: Callable[[], list[Event]]) -> None:
        """Write events, then take steps; ``put_back`` undoes what steps change besides the ledger of decisions."""
        log = self.log
        if log is None:
            self.note = Note(put_back, steps, 0)
        else:
            written = events()
            self.note = Note(put_back, steps, log.events)
            log.write(written)
        for step, *arguments in steps:
            step(*arguments)
        self.note = None

    def settle(self) -> None:
        """Finish what was broken off, if anything was; may be broken off itself."""
        note = self.note
        if note is None:
            return
        note.put_back()
        if self.log is None or self.log.events > note.events:
            for step, *arguments in note.steps:
                step(*arguments)
        self.state.recount()
        self.note = None
