"""What a live bandit can say of its arms at any time: intervals, differences, which arm is the best.

All of it is made from every reward that was ever learned, also where the policy has forgotten some (`discount`,
`window`): what holds at any time is about all of them.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from rightarm import inference
from rightarm.estimators.statistics import COUNT, SPREAD
from rightarm.inference import Best, Difference, Means
from rightarm.live.fold import State
from rightarm.types import F64

Statistics = tuple[F64, F64, F64]


def lifetime(state: State) -> Statistics:
    """Of every arm the number of all its rewards, their mean, and Σ (x − mean)²; zeros where that is not known."""
    known = state.known
    if known.estimator.discount is not None or known.estimator.window is not None:
        return np.zeros(known.count), np.zeros(known.count), np.zeros(known.count)
    return known.statistic(COUNT), known.means(), known.statistic(SPREAD)


def reward_range(state: State) -> tuple[float, float] | None:
    """What rewards can be, if that was declared."""
    return None


def means(state: State, confidence: float = 0.95) -> Means:
    """An interval for the mean of every arm."""
    counts, centres, spreads = lifetime(state)
    return inference.means(counts, centres, spreads, reward_range(state), confidence)


def difference(state: State, arm: Hashable, other: Hashable, confidence: float) -> Difference:
    """The difference of two arms' means."""
    both = [state.arm_number("arm", arm), state.arm_number("other", other)]
    if both[0] == both[1]:
        raise ValueError(f"other must be another arm than {arm!r}, got {other!r}")
    counts, centres, spreads = (column[both] for column in lifetime(state))
    names = arm, other
    return inference.difference(counts, centres, spreads, reward_range(state), confidence, names=names)


def best(state: State, confidence: float, tolerance: float) -> Best:
    """Which of the active arms can be the best, and what choosing one for good can cost."""
    active = np.flatnonzero(state.active)
    if not active.size:
        raise ValueError("every arm is retired; restore or add one")
    counts, centres, spreads = (column[active] for column in lifetime(state))
    names = [state.names[i] for i in active]
    return inference.best(counts, centres, spreads, reward_range(state), confidence, tolerance=tolerance, names=names)
