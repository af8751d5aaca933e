"""What a bandit knows of its arms, as a table and as text."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from rightarm import text
from rightarm.live.fold import State
from rightarm.scores.live import MEAN, PULLS
from rightarm.text import number, wrapped


def table(state: State) -> list[dict[str, Any]]:
    """A row for each arm; `Bandit.table` says what is in it."""
    known, now = state.known, dict[int, float]()
    if any(state.active):
        law = state.law()
        now = dict(zip(law.members.tolist(), law.chance.tolist(), strict=True))
    pulls, estimates = known.row(PULLS).tolist(), known.row(MEAN).tolist()
    means, halves = known.means().tolist(), known.half_widths().tolist()
    return [
        {
            "arm": name,
            "pulls": pulls[i],
            "estimate": estimates[i] if pulls[i] else None,
            "low": means[i] - halves[i] if halves[i] < np.inf else None,
            "high": means[i] + halves[i] if halves[i] < np.inf else None,
            "share": pulls[i] / known.total if known.total else 0.0,
            "probability": now.get(i, 0.0),
            "pending": state.ledger.waiting[i],
            "retired": not state.active[i],
        }
        for i, name in enumerate(state.names)
    ]


def heading(state: State) -> str:
    """The policy, and how many rewards it has learned and waits for."""
    return f"{state.known.policy}, {state.known.told:,} rewards, {len(state.ledger.pending):,} pending"


def as_text(state: State) -> str:
    """The table for the eye."""
    titles = ["arm", "pulls", "estimate", "95% interval", "share", "probability", ""]
    lines = [
        [
            shortened(row["arm"], 40),
            number(row["pulls"], 6),
            number(row["estimate"]),
            "" if row["low"] is None else f"{number(row['low'])} to {number(row['high'])}",
            f"{row['share']:.3f}",
            number(row["probability"]),
            "retired" if row["retired"] else "",
        ]
        for row in table(state)
    ]
    return f"{wrapped(heading(state))}\n{text.table(titles, lines)}"


def shortened(arm: Hashable, width: int) -> str:
    """An arm's name in at most so many letters."""
    name = str(arm)
    return name if len(name) <= width else name[: width - 1] + "…"
