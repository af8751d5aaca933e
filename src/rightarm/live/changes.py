"""How things happen to a live bandit: to its log first and then to its state, wholly or not at all.

A signal handler may raise an exception between any two steps of Python: Ctrl-C, or a timer. So what is about to happen
is noted first, in one step, and the note is taken away when all is done. Whoever finds a note finishes what it says:
what the log has counts, the rest did not happen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rightarm.live.fold import State
from rightarm.logs.events import Event
from rightarm.logs.journal import Journal

# What is about to happen: a function that puts back what it changes, with its argument; a method of `State`, and what
# it takes each time that it is called; and how many events the log had before.
Note = tuple[Callable[[Any], None], Any, Callable[..., None], Iterable[Iterable[Any]], int]


class Changes:
    """The only way to change a state; not to be used by several threads at once, nor in a process that was forked."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.log: Journal | None = None
        self.note: Note | None = None

    def begin(self) -> None:
        """Note that decisions will be drawn: if that is broken off, their random numbers are used another time."""
        state, log = self.state, self.log
        self.note = (state.forget_draws, state.drawn(), _nothing, (), 0 if log is None else log.events)

    def make(
        self,
        put_back: Callable[[Any], None],
        image: Any,
        step: Callable[..., None],
        rows: Iterable[Iterable[Any]],
        events: Callable[..., list[Event]],
        *described: Any,
    ) -> None:
        """Write the events that are ``described``, then call ``step`` with each of ``rows``.

        ``put_back``, called with ``image``, undoes what steps change besides the ledger of decisions.
        """
        log = self.log
        if log is None:
            self.note = (put_back, image, step, rows, 0)
        else:
            written = events(*described)
            self.note = (put_back, image, step, rows, log.events)
            log.write(written)
        for row in rows:
            step(*row)
        self.note = None

    def settle(self) -> None:
        """Finish what was broken off, if anything was; may be broken off itself."""
        note = self.note
        if note is None:
            return
        put_back, image, step, rows, events = note
        put_back(image)
        if self.log is None or self.log.events > events:
            for row in rows:
                step(*row)
        self.state.recount()
        self.note = None


def _nothing(*arguments: Any) -> None:
    pass
