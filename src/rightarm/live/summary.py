"""What a bandit knows of its arms, as a table and as text."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from rightarm.live.fold import State
from rightarm.scores.live import MEAN, PULLS


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
    columns = f"{'arm':<20} {'pulls':>10} {'estimate':>10} {'95% interval':>23} {'share':>7} {'probability':>12}"
    lines = [heading(state), columns]
    for row in table(state):
        interval = "" if row["low"] is None else f"{row['low']:.4g} to {row['high']:.4g}"
        estimate = "" if row["estimate"] is None else f"{row['estimate']:.4g}"
        name, pulls = shortened(row["arm"], 20), f"{row['pulls']:>10.6g}"
        numbers = f"{estimate:>10} {interval:>23} {row['share']:>7.3f} {row['probability']:>12.4g}"
        lines.append(f"{name:<20} {pulls} {numbers}{'  retired' if row['retired'] else ''}")
    return "\n".join(lines)


def shortened(arm: Hashable, width: int) -> str:
    """An arm's name in at most so many letters."""
    name = str(arm)
    return name if len(name) <= width else name[: width - 1] + "…"
