"""Statistics that every estimator keeps of an arm's rewards: how many count, their sum, their spread about the mean.

They are a row of numbers for each arm of each replication. All of this is compiled, and the same live and in
simulation, where the plain mean alone has a loop of its own (`rightarm.estimators.compiled_estimators.average`).
"""

from __future__ import annotations

import math

from rightarm.formula.compile import jit
from rightarm.types import F64

# Places in the row of an arm.
COUNT = 0  # the rewards that count
SUM = 1
LOST = 2  # what rounding took of the sum
SPREAD = 3  # Σ (x − mean)²
OWN = 4  # from here on: the estimator's own numbers

# How many times larger a spread may have been, times √rewards, so that rounding it all that time is below 1e-12 of what
# is left: 4.4 deviations of so many roundings of 2⁻⁵⁴.
LARGER = 2.0**12
SHIFTED = 2.0**16  # how many times larger than the spread the square of the mean may be
LOST_DIGITS = math.inf  # stands for how large a spread was, if too few digits are left of it


@jit
def two_sum(a: float, b: float) -> tuple[float, float]:
    """Return a + b, and what rounding took of it (Knuth's way, which need not know which is larger)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@jit
def mean_of(total: float, lost: float, count: float) -> float:
    """Return a mean from a compensated sum: else rewards of 10¹² would lose their ones after 10⁴ pulls."""
    return (total + lost) / count


@jit
def plain_mean(kept: F64, k: int, lane: int) -> float:
    """Return the mean of an arm's rewards."""
    return mean_of(kept[k, lane, SUM], kept[k, lane, LOST], kept[k, lane, COUNT])


@jit
def variance(kept: F64, k: int, lane: int) -> float:
    """Return the mean squared distance of an arm's rewards from their mean; zero where nothing counts."""
    return kept[k, lane, SPREAD] / kept[k, lane, COUNT] if kept[k, lane, COUNT] > 0.0 else 0.0


@jit
def add_to_sum(kept: F64, k: int, lane: int, value: float) -> None:
    """Add to the compensated sum of rewards."""
    total, lost = two_sum(kept[k, lane, SUM], value)
    kept[k, lane, SUM] = total
    kept[k, lane, LOST] += lost


@jit
def count_reward(kept: F64, k: int, lane: int, reward: float) -> None:
    """Count a reward. The mean is made of a sum, so that equal rewards in another order make the same mean: a tie."""
    before = plain_mean(kept, k, lane) if kept[k, lane, COUNT] > 0.0 else reward
    kept[k, lane, COUNT] += 1.0
    add_to_sum(kept, k, lane, reward)
    change = (reward - before) * (reward - plain_mean(kept, k, lane))
    kept[k, lane, SPREAD] += max(change, 0.0)  # rounded means of equal rewards could make it negative


@jit
def leave_out(kept: F64, k: int, lane: int, reward: float) -> bool:
    """Undo `count_reward`; return whether the reward was so large that what is left must be summed again."""
    before = plain_mean(kept, k, lane)
    spread = kept[k, lane, SPREAD]
    kept[k, lane, COUNT] -= 1.0
    if kept[k, lane, COUNT] == 0.0:
        for i in range(OWN):
            kept[k, lane, i] = 0.0
        return False
    add_to_sum(kept, k, lane, -reward)
    change = (reward - before) * (reward - plain_mean(kept, k, lane))
    rest = max(kept[k, lane, SPREAD] - change, 0.0)
    kept[k, lane, SPREAD] = rest if kept[k, lane, COUNT] > 1.0 else 0.0  # one reward has no spread
    return spread * math.sqrt(kept[k, lane, COUNT]) > LARGER * kept[k, lane, SPREAD]


@jit
def fade(kept: F64, k: int, lane: int, discount: float) -> None:
    """Let all rewards so far count less, by a factor."""
    for i in range(OWN):
        kept[k, lane, i] *= discount


@jit
def correct_reward(kept: F64, k: int, lane: int, before: float, after: float, weight: float, largest: float) -> float:
    """Replace a reward that counts by ``weight``: what there would be had ``after`` come in the place of ``before``.

    With m and m' the means before and after it, Σ (x − mean)² grows by
    weight · (after − before) · (after − m' + before − m).

    ``largest`` is the largest spread that earlier corrections found. Returns it with this one, or LOST_DIGITS if the
    spread was so much larger than it is now that the rewards have to be counted again.
    """
    count = kept[k, lane, COUNT]
    mean = plain_mean(kept, k, lane)
    largest = max(largest, kept[k, lane, SPREAD])
    if count == weight:
        kept[k, lane, SUM] = weight * after
        kept[k, lane, LOST] = 0.0
        kept[k, lane, SPREAD] = 0.0
        return 0.0
    add_to_sum(kept, k, lane, -weight * before)
    add_to_sum(kept, k, lane, weight * after)
    total, lost = two_sum(kept[k, lane, SUM], kept[k, lane, LOST])  # else all that is left may be in what was lost
    kept[k, lane, SUM] = total
    kept[k, lane, LOST] = lost
    mean_now = plain_mean(kept, k, lane)
    spread = max(kept[k, lane, SPREAD] + weight * (after - before) * ((after - mean_now) + (before - mean)), 0.0)
    kept[k, lane, SPREAD] = spread
    has_digits = largest * math.sqrt(count) <= LARGER * spread
    is_centred = max(mean * mean, mean_now * mean_now) <= SHIFTED * spread
    return largest if has_digits and is_centred else LOST_DIGITS
