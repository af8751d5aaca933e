"""A bandit's arms at a glance: as a table, as text and as a picture."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from rightarm import display as text
from rightarm.bandit import answers
from rightarm.bandit.ledger import PendingDecision
from rightarm.bandit.state import State
from rightarm.display import counted, html_table, number, wrapped
from rightarm.inference.sequences import ASYMPTOTIC, FEWEST, REMEDY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ESTIMATE = "#0072B2"  # Okabe and Ito's colours
SHARE = "#56B4E9"
PROBABILITY = "#D55E00"
GONE = "#999999"
HEIGHT = 0.32  # inches, of an arm
MOST = 60  # arms; more could not be read
INTERVAL = "95%, at any time"
TITLES = ["arm", "pulls", "estimate", INTERVAL, "share", "probability", ""]


class ArmRow(TypedDict):
    """An arm in a summary; `Bandit.summary` says what is in it."""

    arm: Any
    pulls: float
    estimate: float | None
    mean: float | None
    low: float | None
    high: float | None
    kind: str | None
    share: float
    probability: float | None
    pending: int
    retired: bool
    lacking: str | None


def arm_rows(state: State, due: Sequence[PendingDecision]) -> list[ArmRow]:
    """Return a row for each arm. Decisions that are ``due`` do not wait any more."""
    now = dict[int, float]()
    if any(state.active) and not state.has_contexts:  # else there is no probability without a context
        chances = state.probabilities()
        now = dict(zip(chances.members.tolist(), chances.chance.tolist(), strict=True))
    shown = state.arms.shown()
    pulls = shown[0].tolist()
    estimates = state.unscaled(shown[1]).tolist()
    total = shown[0].sum().item()
    rewards = answers.rewards(state)
    lacking = rewards.short_of()
    found = rewards.intervals(0.95)
    lows = [None if math.isnan(end) else end for end in found.lows.tolist()]
    highs = [None if math.isnan(end) else end for end in found.highs.tolist()]
    pending = state.ledger.pending_counts - np.bincount([one.arm for one in due], minlength=len(state.names))
    return [
        ArmRow(
            arm=name,
            pulls=pulls[i],
            estimate=estimates[i] if pulls[i] else None,
            mean=rewards.means.item(i) if rewards.counts[i] else None,
            low=lows[i],
            high=highs[i],
            kind=None if lows[i] is None else found.kind,
            share=pulls[i] / total if total else 0.0,
            probability=None if state.has_contexts and state.active[i] else now.get(i, 0.0),
            pending=pending.item(i),
            retired=not state.active[i],
            lacking=lacking[i] or None,
        )
        for i, name in enumerate(state.names)
    ]


def heading(state: State, due: Sequence[PendingDecision]) -> str:
    """Return the policy, and how many rewards it has learned and waits for."""
    pending = len(state.ledger.pending) - len(due)
    return f"{state.arms.policy}, {counted(state.arms.learned, 'reward')}, {pending:,} pending"


def as_text(state: State, due: Sequence[PendingDecision]) -> str:
    """Return the table for the eye."""
    below = map(wrapped, _notes(state, due))
    return "\n".join([wrapped(heading(state, due)), text.table(TITLES, _lines(state, due)), *below])


def as_html(state: State, due: Sequence[PendingDecision]) -> str:
    """Return the table for a notebook."""
    return html_table(TITLES, _lines(state, due), title=heading(state, due), notes=_notes(state, due))


def _lines(state: State, due: Sequence[PendingDecision]) -> list[list[str]]:
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
        for row in arm_rows(state, due)
    ]


def _notes(state: State, due: Sequence[PendingDecision]) -> list[str]:
    """Return what one should know of the numbers."""
    found = list[str]()
    warning = answers.warning(state)
    if warning:
        found.append(f"Cannot tell yet which arm is better: {warning}.")
    if due:
        found.append(
            f"Not learned yet: {counted(len(due), 'decision')} whose window has closed; the next ask, tell or "
            "close_windows() does that."
        )
    if state.has_contexts:
        found.append(
            "Estimates and intervals are of the decisions where an arm was chosen. Arms are shown in different "
            "contexts, so these numbers do not compare them: difference(arm, other, where=...) does."
        )
    if state.arms.learned and state.reward_range is None:
        found.append(
            f"Intervals are asymptotic, and an arm has none before {FEWEST} effective rewards: of revenue these are "
            f"the purchases, and fewer if their sizes differ. For an interval {REMEDY}."
        )
    return found


def shortened(arm: Hashable, width: int) -> str:
    """Return an arm's name in at most so many letters."""
    name = str(arm)
    return name if len(name) <= width else name[: width - 1] + "…"


def draw_arms(state: State, due: Sequence[PendingDecision], path: Path | None, title: str | None) -> Figure | Path:
    """Draw estimates with intervals on the left, shares of pulls and probabilities on the right; an arm is a line."""
    from rightarm.pictures import Picture

    rows = arm_rows(state, due)
    left_out = max(0, len(rows) - MOST)
    if left_out:
        rows = sorted(rows, key=lambda row: row["pulls"], reverse=True)[:MOST]
    figure: Figure = Picture(figsize=(9, 1.6 + HEIGHT * max(len(rows), 4)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    _draw_estimates(left, rows, state.has_contexts)
    _draw_shares(right, rows)
    right.set_xlabel(f"{left_out} arms with fewer pulls are not shown" if left_out else "")
    for axes in (left, right):
        axes.grid(axis="x", alpha=0.3)
        axes.set_axisbelow(True)
    figure.legend(loc="outside lower right", ncols=2, frameon=False, fontsize=9)
    warning = answers.warning(state)
    usual = heading(state, due) + (f"; cannot tell yet: {warning}" if warning else "")
    figure.suptitle(textwrap.fill(usual if title is None else title, 100), fontsize=10)
    if path is None:
        return figure
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path


def _draw_estimates(axes: Axes, rows: list[ArmRow], has_contexts: bool) -> None:
    for place, row in enumerate(rows):
        colour = GONE if row["retired"] else ESTIMATE
        if row["low"] is not None and row["high"] is not None:
            axes.plot([row["low"], row["high"]], [place, place], color=colour, linewidth=2, solid_capstyle="butt")
        if row["estimate"] is not None:
            axes.plot(row["estimate"], place, "o", color=colour, markersize=5)
    axes.set_yticks(range(len(rows)), [shortened(row["arm"], 32) + " (retired)" * row["retired"] for row in rows])
    axes.invert_yaxis()
    asymptotic = any(row["kind"] == ASYMPTOTIC for row in rows)
    few = sum(row["lacking"] is not None for row in rows)
    what = "mean reward where it was chosen (compares no arms)\n" if has_contexts else "estimated mean reward; "
    without = f"\n{counted(few, 'arm')} without interval: too few rewards" if few else ""
    axes.set_xlabel(f"{what}interval: {INTERVAL}{', asymptotic' * asymptotic}{without}")


def _draw_shares(axes: Axes, rows: list[ArmRow]) -> None:
    places = np.arange(len(rows))
    now = [row["probability"] for row in rows if row["probability"] is not None]
    has_chances = len(now) == len(rows)
    beside = 0.18 if has_chances else 0.0
    axes.barh(places - beside, [row["share"] for row in rows], 0.34, color=SHARE, label="share of pulls")
    if has_chances:
        axes.barh(places + 0.18, now, 0.34, color=PROBABILITY, label="probability now")
    axes.set_xlim(0, 1)
