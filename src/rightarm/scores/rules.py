"""Rules that live decisions, exact probabilities and simulations share.

Which arm goes first while some have no reward, how exploration is mixed into probabilities, and how location and scale
are read off a score.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rightarm.formula.compile import jit
from rightarm.types import F64, I64

FORGOTTEN = 1e-100  # pulls, discounted, below which an arm counts as never pulled: formulas divide by them
FAR = 2.0**200  # z beside which every location vanishes, so that the scale is read off to its last digit
CERTAIN = 1 + 1e-9  # what probabilities may amount to, rounding included


def goes_first(pulls: Any, last: Any) -> int:
    """The arm that goes first because none of its rewards counts, or −1 if there is no such arm.

    Of several it is the one of which the ``last`` choice is the longest ago, and of several such the first.
    """
    first = -1
    for k in range(len(pulls)):
        if pulls[k] < FORGOTTEN and (first < 0 or last[k] < last[first]):
            first = k
    return first


def location_and_scale(near: Any, far: Any, distance: float) -> tuple[Any, Any]:
    """Location and scale of a score location + scale·x, from the scores at x = 0 and x = ``distance``."""
    return near, np.where(far == near, 0.0, (far - near) / distance)  # −∞ less −∞ is not a number


@jit
def explored_or_chosen(explored: float, all_explored: float, chance: float) -> float:
    """The probability of an arm: it is explored, or nothing is and it has the largest score."""
    return explored + max(1.0 - all_explored, 0.0) * chance


@jit
def draw(chance: F64, heights: F64, u: float) -> int:
    """The place at which the running sums pass u, which is below 1; never one of probability zero."""
    low, high = 0, chance.size - 1
    while low < high:  # by halves: NumPy's search takes half a second to compile
        middle = (low + high) // 2
        if heights[middle] > u:
            high = middle
        else:
            low = middle + 1
    while chance[low] == 0.0:  # beyond the last sum, if rounding left that below 1
        low -= 1
    return low


@jit
def mix(chance: F64, explored: F64, floor: float, heights: F64) -> bool:
    """Put exploration and then ``floor`` beneath the chances, in place, with running sums; False if there is no way.

    There is none if they are not probabilities: not numbers, negative, or not 1 (of exploration: above 1) in all.
    """
    total, all_chances = 0.0, 0.0
    for i in range(chance.size):
        if not explored[i] >= 0.0 or not chance[i] >= 0.0:
            return False
        total += explored[i]
        all_chances += chance[i]
    if total > CERTAIN or not abs(all_chances - 1.0) < 1e-6:
        return False
    height = 0.0
    for i in range(chance.size):
        own = explored_or_chosen(explored[i], total, chance[i])
        chance[i] = floor + (1.0 - chance.size * floor) * own
        height += chance[i]
        heights[i] = height
    for i in range(chance.size):
        chance[i] /= height  # which is 1 but for rounding
        heights[i] /= height
    return True


@jit
def share_untried(pulls: F64, members: I64, waiting: I64, chance: F64) -> float:
    """The probabilities of arms of which no reward counts; returns what is left for the others.

    If there are no others, all have the same. Those that wait for no reward go first: they share the draw evenly. When
    each of them waits for one, it has one decision in as many as there are arms, until its reward comes.
    """
    untried, free = 0, 0
    for i in range(members.size):
        if pulls[members[i]] < FORGOTTEN:
            untried += 1
            free += waiting[members[i]] == 0
    if untried == members.size:
        chance[:] = 1.0 / members.size
        return 0.0
    for i in range(members.size):
        chance[i] = 0.0
        if pulls[members[i]] < FORGOTTEN:
            if free == 0:
                chance[i] = 1.0 / members.size
            elif waiting[members[i]] == 0:
                chance[i] = 1.0 / free
    return 0.0 if free else 1.0 - untried / members.size
