"""Exceptions that a real timer raises in the middle of things."""

from __future__ import annotations

import gc
import random
import signal
from collections.abc import Callable
from typing import Any


class Interrupt(BaseException):
    """What the signal handler raises, as Ctrl-C does."""


class TimeIsUp(TimeoutError):
    """Another one; to Python it is an error of the operating system."""


def interrupted(
    step: Callable[[], Any],
    times: int,
    within: float,
    seed: int = 1,
    error: type[BaseException] = Interrupt,
    after: Callable[[], Any] = lambda: None,
) -> None:
    """Do ``step`` again and again, and interrupt it so often, each time after less than ``within`` seconds.

    ``after`` is done after each interrupt, undisturbed.

    What Python clears away ignores exceptions, so another one comes a second later, and garbage is not collected
    meanwhile: callbacks of other tests' libraries would be interrupted, and that would be reported.
    """
    moments = random.Random(seed)

    def handler(*_: object) -> None:
        raise error

    gc.disable()
    before = signal.signal(signal.SIGALRM, handler)
    try:
        for _ in range(times):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-6 + within * moments.random(), 1.0)
                while True:
                    step()
            except error:
                signal.setitimer(signal.ITIMER_REAL, 0)
                after()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()
