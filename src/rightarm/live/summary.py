"""What a bandit knows of its arms: as a table, as text and as a picture."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rightarm import text
from rightarm.inference.sequences import ASYMPTOTIC, FEWEST, REMEDY
from rightarm.live import answers
from rightarm.live.ledger import Waiting
from rightarm.live.state import State
from rightarm.notebook import html_table
from rightarm.text import counted, number, wrapped

ESTIMATE, SHARE, PROBABILITY, GONE = "#0072B2", "#56B4E9", "#D55E00", "#999999"  # Okabe and Ito's colours
HEIGHT = 0.32  # inches, of an arm
MOST = 60  # arms; more could not be read
INTERVAL = "95%, at any time"


def table(state: State, due: Sequence[Waiting]) -> list[dict[str, Any]]:
    """A row for each arm; `Bandit.table` says what is in it. Decisions that are ``due`` do not wait any more."""
    known, now = state.known, dict[int, float]()
    contextual = known.estimator.asks_context  # then there is no probability without a context
    if any(state.active) and not contextual:
        law = state.law()
        now = dict(zip(law.members.tolist(), law.chance.tolist(), strict=True))
    shown = known.shown()
    pulls, estimates, total = shown[0].tolist(), state.unscaled(shown[1]).tolist(), shown[0].sum().item()
    rewards = answers.rewards(state)
    found, counts, means, lacks = rewards.intervals(0.95), rewards.counts, rewards.means, rewards.short_of()
    pending = state.ledger.waiting - np.bincount([one.arm for one in due], minlength=len(state.names))
    lows, highs = ([None if math.isnan(end) else end for end in ends.tolist()] for ends in (found.lows, found.highs))
    return [
        {
            "arm": name,
            "pulls": pulls[i],
            "estimate": estimates[i] if pulls[i] else None,
            "mean": means.item(i) if counts[i] else None,
            "low": lows[i],
            "high": highs[i],
            "kind": None if lows[i] is None else found.kind,
            "share": pulls[i] / total if total else 0.0,
            "probability": None if contextual and state.active[i] else now.get(i, 0.0),
            "pending": pending.item(i),
            "retired": not state.active[i],
            "lacking": lacks[i] or None,
        }
        for i, name in enumerate(state.names)
    ]


def heading(state: State, due: Sequence[Waiting]) -> str:
    """The policy, and how many rewards it has learned and waits for."""
    pending = len(state.ledger.pending) - len(due)
    return f"{state.known.policy}, {state.known.told:,} rewards, {pending:,} pending"


TITLES = ["arm", "pulls", "estimate", INTERVAL, "share", "probability", ""]


def as_text(state: State, due: Sequence[Waiting]) -> str:
    """The table for the eye."""
    below = map(wrapped, notes(state, due))
    return "\n".join([wrapped(heading(state, due)), text.table(TITLES, lines(state, due)), *below])


def as_html(state: State, due: Sequence[Waiting]) -> str:
    """The table for a notebook."""
    return html_table(TITLES, lines(state, due), title=heading(state, due), notes=notes(state, due))


def lines(state: State, due: Sequence[Waiting]) -> list[list[str]]:
    """The table's lines for the eye."""
    return [
        [
            shortened(row["arm"], 40),
            number(row["pulls"], 6),
            number(row["estimate"]),
            row["lacking"] or f"{number(row['low'])} to {number(row['high'])}",
            f"{row['share']:.3f}",
            number(row["probability"]),
            "retired" if row["retired"] else "",
        ]
        for row in table(state, due)
    ]


def notes(state: State, due: Sequence[Waiting]) -> list[str]:
    """What one should know of the numbers."""
    found, warning = list[str](), answers.warning(state)
    if warning:
        found.append(f"Cannot tell yet which arm is better: {warning}.")
    if due:
        found.append(
            f"Not learned yet: {text.counted(len(due), 'decision')} whose window has closed; the next ask, tell or "
            "close_windows() does that."
        )
    if state.known.estimator.asks_context:
        found.append(
            "Estimates and intervals are of the decisions where an arm was chosen. Arms are shown in different "
            "contexts, so these numbers do not compare them: difference(arm, other, where=...) does."
        )
    if state.known.told and answers.limits(state) is None:
        found.append(
            f"Intervals are asymptotic, and an arm has none before {FEWEST} effective rewards: of revenue these are "
            f"the purchases, and fewer if their sizes differ. For an interval {REMEDY}."
        )
    return found


def shortened(arm: Hashable, width: int) -> str:
    """An arm's name in at most so many letters."""
    name = str(arm)
    return name if len(name) <= width else name[: width - 1] + "…"


def draw_arms(rows: list[dict[str, Any]], path: Path | None, title: str) -> Any:
    """Estimates with intervals on the left, shares of pulls and probabilities on the right; an arm is a line."""
    from rightarm.pictures import Picture

    left_out = max(0, len(rows) - MOST)
    rows = sorted(rows, key=lambda row: row["pulls"], reverse=True)[:MOST] if left_out else rows
    figure = Picture(figsize=(9, 1.6 + HEIGHT * max(len(rows), 4)), layout="constrained")
    means, shares = figure.subplots(1, 2, sharey=True)
    places = np.arange(len(rows))
    for place, row in zip(places, rows, strict=True):
        colour = GONE if row["retired"] else ESTIMATE
        if row["low"] is not None:
            means.plot([row["low"], row["high"]], [place, place], color=colour, linewidth=2, solid_capstyle="butt")
        if row["estimate"] is not None:
            means.plot(row["estimate"], place, "o", color=colour, markersize=5)
    contextual = any(row["probability"] is None for row in rows)
    beside = 0.0 if contextual else 0.18
    shares.barh(places - beside, [row["share"] for row in rows], 0.34, color=SHARE, label="share of pulls")
    if not contextual:
        now = [row["probability"] for row in rows]
        shares.barh(places + 0.18, now, 0.34, color=PROBABILITY, label="probability now")
    means.set_yticks(places, [shortened(row["arm"], 32) + " (retired)" * row["retired"] for row in rows])
    means.invert_yaxis()
    asymptotic = any(row["kind"] == ASYMPTOTIC for row in rows)
    few = sum(row["lacking"] is not None for row in rows)
    what = "mean reward where it was chosen (compares no arms)\n" if contextual else "estimated mean reward; "
    without = f"\n{counted(few, 'arm')} without interval: too few rewards" if few else ""
    means.set_xlabel(f"{what}interval: {INTERVAL}{', asymptotic' * asymptotic}{without}")
    shares.set_xlim(0, 1)
    shares.set_xlabel(f"{left_out} arms with fewer pulls are not shown" if left_out else "")
    for axes in (means, shares):
        axes.grid(axis="x", alpha=0.3)
        axes.set_axisbelow(True)
    figure.legend(loc="outside lower right", ncols=2, frameon=False, fontsize=9)
    figure.suptitle(textwrap.fill(title, 100), fontsize=10)
    if path is None:
        return figure
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path
