"""What is the same for every law of noise: arms that cannot have the largest score, scales of zero, unusual sizes.

A score that is +∞ is larger than all others: such arms share the probability, as they share a tie in a simulation.
A score of scale zero is its location: of such arms only those with the largest location can win, in equal shares where
no arm with noise is there, and among arms with noise as if their scale were very small. An arm at −∞ never wins, unless
all are.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rightarm.formula.compile import jit
from rightarm.types import F64, I64

SMALL = 2.0**-400  # squares of numbers beyond it, or its inverse, may overflow
NOTHING = 2.0**-80  # scale over the largest one that shows no more
LEAST = 2.0**-400  # the same for exponential noise
BAD_FIRST, BAD_SECOND = -1, -2  # in place of a number of arms: which of the two rows of numbers is wrong


@jit
def contenders(location: F64, scale: F64, arms: I64) -> int:
    """Name the arms that can have the largest score; how many there are, or what is wrong."""
    best, highest = -np.inf, -np.inf
    for j in range(scale.size):
        if not 0.0 <= scale[j] < np.inf:
            return BAD_SECOND
        if location[j] != location[j]:
            return BAD_FIRST
        if scale[j] == 0.0:
            best = max(best, location[j])
        highest = max(highest, location[j])
    count = 0
    for j in range(scale.size):
        if location[j] == -np.inf < highest or location[j] < np.inf == highest:
            continue
        if scale[j] > 0.0 or location[j] == best or location[j] == np.inf:
            arms[count] = j
            count += 1
    return count


@jit
def usual(location: F64, scale: F64, nothing: float) -> bool:
    """Bring numbers to a usual size: the largest score is the same after a shift and a common factor.

    Locations are counted from the largest, or large ones would swallow small scales. A scale that is nothing beside the
    largest one, zero for instance, is as good as ``nothing`` times that. False if all scales are zero.
    """
    largest, top = 0.0, -np.inf  # loops, not max() and slices, which take long to compile; here and below
    for j in range(scale.size):
        largest, top = max(largest, scale[j]), max(top, location[j])
    common = largest if not SMALL < largest < 1.0 / SMALL and largest > 0.0 else 1.0
    for j in range(scale.size):
        location[j] = max((location[j] * 0.5 - top * 0.5) / common * 2.0, -1.0 / SMALL)
        scale[j] = max(scale[j] / common, largest / common * nothing)
    return largest > 0.0


@jit
def shared(
    location: F64, scale: F64, chance: F64, all_arms: Callable[[F64, F64, F64], None], nothing: float = NOTHING
) -> int:
    """Leave arms that cannot win out, and have ``all_arms`` find the probabilities of the others."""
    arms = np.empty(scale.size, np.int64)
    count = contenders(location, scale, arms)
    if count < 0:
        return count
    first, second, found = np.empty(count), np.empty(count), np.empty(count)
    for i in range(count):
        first[i], second[i], found[i] = location[arms[i]], scale[arms[i]], 1.0 / count
    if math.isfinite(first[0]) and usual(first, second, nothing):
        all_arms(first, second, found)
    for j in range(chance.size):
        chance[j] = 0.0
    for i in range(count):
        chance[arms[i]] = found[i]
    return count


@jit
def nobody(location: F64, scale: F64, chance: F64) -> None:
    """Do nothing: without noise, no arm has a probability that must be integrated."""


@jit
def of_fixed(location: F64, scale: F64, chance: F64) -> int:
    """The probabilities of scores without noise."""
    return shared(location, np.zeros(scale.size), chance, nobody)
