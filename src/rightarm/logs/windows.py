"""Which decisions of a bandit with windows of reward count: those whose window has closed.

While windows are open, quick rewards are there and silence is not. So an open one does not count, whether a reward has
come or not, and a closed one that stayed silent has the default reward.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rightarm.formula import check_number
from rightarm.types import F64, I64

AT_CLOSE = "at close"

Flags = NDArray[np.bool_]


class Window(NamedTuple):
    """How long the rewards of a decision are awaited, and what silence is worth."""

    seconds: float
    default: float | None
    at_close: bool
    """Whether a reward leaves a decision waiting, so that whatever answers it also closes its window."""

    def ran_out(self, places: I64, times: F64) -> Flags:
        """Say which of the decisions that are events of these numbers had a whole window before some later event.

        ``times`` are those of all events. Where a clock jumps ahead and comes back, decisions made after the jump
        are still open, as they are for the bandit.
        """
        latest_from = np.maximum.accumulate(times[::-1])[::-1]
        return np.asarray(times[places - 1] + self.seconds <= latest_from[places - 1])

    def rewards(self, rewards: F64, answered: Flags, ran_out: Flags) -> tuple[F64, Flags]:
        """Give the rewards that count, NaN where none does, and say which decisions are still open.

        A window that has run out before the bandit wrote so has what the bandit will give it: the reward so far, or
        the default.
        """
        closed = ran_out | answered if self.at_close else ran_out
        silent = ran_out & ~answered & np.isnan(rewards)
        worth = np.nan if self.default is None else self.default
        given_up = answered & np.isnan(rewards)  # cancelled: nothing is awaited
        return np.where(closed, np.where(silent, worth, rewards), np.nan), ~closed & ~given_up


def window_of(settings: Mapping[str, Any]) -> Window | None:
    """Return the window of a bandit with these settings, None if it has none."""
    seconds, default = settings.get("window_of_reward"), settings.get("default")
    if seconds is None:
        return None
    return Window(
        check_number("window_of_reward", seconds),
        None if default is None else check_number("default", default),
        settings.get("learn") == AT_CLOSE,
    )
