"""What a live bandit can say of its arms at any time: intervals, differences, which arm is the best.

All of it is made from every reward that was ever learned, also where the policy has forgotten some (`discount`,
`window`): what holds at any time is about all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rightarm import inference
from rightarm.inference import Best, Difference
from rightarm.inference.one_value import one_value
from rightarm.inference.sequences import Rewards, rewards_of
from rightarm.live import segments
from rightarm.live.state import State
from rightarm.logs.journal import Journal
from rightarm.types import F64, I64


def limits(state: State) -> tuple[float, float] | None:
    """What rewards can be, if all that were learned are so: 0.1.0 let policies for [0, 1] learn others."""
    found = state.reward_range
    return found if found is None or state.within(*found) else None


def warning(state: State) -> str:
    """Say why no answer is to be trusted yet, where all rewards so far are equal; empty otherwise."""
    value, ledger, settings = state.only_reward(), state.ledger, state.settings
    if value is None:
        return ""
    silent: Collection[int] = ledger.pending  # of which there may be very many: not copied without need
    if settings.at_close:
        silent = [number for number, one in ledger.pending.items() if one.so_far is None]
    answered = [number for number, one in ledger.answered.items() if one.reward is not None]
    closed = [number for number, one in ledger.answered.items() if one.reward is None]
    silent = [*silent, *closed] if closed else silent
    return one_value(int(state.lifetime()[0].sum()), value, answered, silent, settings.default)


def rewards(state: State) -> Rewards:
    """What is known of the rewards of every arm."""
    counts, centres, spreads = state.lifetime()
    return rewards_of(counts, centres, spreads, limits(state), None, extremes(state))


def extremes(state: State, arms: Sequence[int] | I64 | None = None) -> tuple[F64, F64] | None:
    """The lowest and the highest reward of every arm, or of some; None where a range makes them needless."""
    if limits(state) is not None:
        return None
    lows, highs = state.ledger.extremes()
    return (lows, highs) if arms is None else (lows[arms], highs[arms])


def difference(
    state: State,
    log: Journal | None,
    arm: Hashable,
    other: Hashable,
    where: Mapping[str, Any] | None,
    confidence: float,
) -> Difference:
    """The difference of two arms' means; where the policy decides by contexts, of the same people."""
    both = [state.arm_number("arm", arm), state.arm_number("other", other)]
    if both[0] == both[1]:
        raise ValueError(f"other must be another arm than {arm!r}, got {other!r}")
    if state.known.estimator.asks_context:
        found = segments.difference(state, log, arm, other, where, confidence, limits(state))
        return replace(found, warning=warning(state))
    if where is not None:
        raise TypeError(f"where must be left out: {state.known.policy!r} does not look at contexts, got {where!r:.80}")
    counts, centres, spreads = (column[both] for column in state.lifetime())
    options: dict[str, Any] = {"extremes": extremes(state, both), "names": (arm, other)}
    found = inference.difference(counts, centres, spreads, limits(state), confidence, **options)
    return replace(found, warning=warning(state))


def harmful(state: State, budget: float) -> list[Hashable]:
    """The active arms that are worse than the control by more than ``budget``.

    The error is 5% over all arms that ever were or will be: the j-th has a share of 1/(j(j + 1)) of it.
    """
    control, found, edges = state.index[state.settings.control], list[Hashable](), extremes(state)
    for i in np.flatnonzero(state.active).tolist():
        if i == control:
            continue
        confidence = 1 - 0.05 / ((i + 1) * (i + 2))
        counts, centres, spreads = (column[[i, control]] for column in state.lifetime())
        own = None if edges is None else (edges[0][[i, control]], edges[1][[i, control]])
        if inference.harm(counts, centres, spreads, budget, limits(state), confidence, extremes=own):
            found.append(state.names[i])
    return found


def best(state: State, confidence: float, tolerance: float) -> Best:
    """Which of the active arms can be the best, and what choosing one for good can cost."""
    if state.known.estimator.asks_context:
        raise ValueError(
            f"which arm is the best depends on the context that {state.known.policy!r} decides by: "
            "difference(arm, other, where=...) compares two arms in a segment"
        )
    active = np.flatnonzero(state.active)
    if not active.size:
        raise ValueError("every arm is retired; restore or add one")
    counts, centres, spreads = (column[active] for column in state.lifetime())
    options: dict[str, Any] = {"extremes": extremes(state, active), "names": [state.names[i] for i in active]}
    found = inference.best(counts, centres, spreads, limits(state), confidence, tolerance=tolerance, **options)
    return replace(found, warning=warning(state))
