"""The estimates of the arms' means in the rounds of a simulation: the plain mean, and Catoni's.

Catoni's stands behind a function pointer, so that the loop over rounds is compiled without it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from rightarm.estimators.sums import BOUND, COUNT, NEXT, add_small, estimate, push
from rightarm.formula.compile import jit, pointer
from rightarm.types import F64, I64

ESTIMATE = (
    "void(int64[::1], float64[::1], float64, float64[:,:,::1], float64[:,:,:,::1], float64[:,:,::1], float64[:,::1],"
    " float64[:,::1], float64[:,::1], float64[::1])"
)
LEFT = np.inf  # marks a lane whose reward has not been taken yet


@jit
def average(arm: I64, pulled: F64, reward: F64, total: F64, lost: F64, mean: F64, new_mean: F64) -> None:
    """Add each lane's reward to its arm's sum, and what rounding took of it to ``lost`` (Knuth's two-sum).

    ``new_mean`` gets the arm's mean. Without the second sum, rewards of 10¹² would lose their ones after 10⁴ pulls.
    """
    for lane in range(arm.size):
        k = np.uint64(arm[lane])
        before, x = total[k, lane], reward[lane]
        sum_now = before + x
        added = sum_now - before
        lost_now = lost[k, lane] + ((before - (sum_now - added)) + (x - added))
        total[k, lane] = sum_now
        lost[k, lane] = lost_now
        mean_now = (sum_now + lost_now) / pulled[lane]
        mean[k, lane] = mean_now
        new_mean[lane] = mean_now


@jit
def catoni_lanes(
    arm: I64,
    reward: F64,
    C: float,
    near: F64,
    rows: F64,
    series: F64,
    powers: F64,
    total: F64,
    mean: F64,
    new_mean: F64,
) -> None:
    """Take each lane's reward into its arm's summary; ``new_mean`` gets the arm's estimate.

    The ordinary case, a small value that brings no new level, has a loop of its own: together with the others it would
    take twice as long, for want of registers.
    """
    left = False
    for lane in range(arm.size):
        k, x = np.uint64(arm[lane]), reward[lane]
        total[k, lane] += x
        v, count = abs(x) / C, near[k, lane, COUNT] + 1
        if v < near[k, lane, BOUND] and count < near[k, lane, NEXT]:
            near[k, lane, COUNT] = count
            add_small(x, v, near, k, lane)
            new_mean[lane] = 0.0
        else:
            new_mean[lane] = LEFT
            left = True
    if left:
        for lane in range(arm.size):
            if new_mean[lane] == LEFT:
                push(reward[lane], C, near, rows, np.uint64(arm[lane]), lane, series, powers)
    for lane in range(arm.size):
        k = np.uint64(arm[lane])
        now = estimate(C, near, k, lane)
        mean[k, lane] = now
        new_mean[lane] = now


def no_lanes(
    arm: I64,
    reward: F64,
    C: float,
    near: F64,
    rows: F64,
    series: F64,
    powers: F64,
    total: F64,
    mean: F64,
    new_mean: F64,
) -> None:
    """A blank, where plain means are enough."""


ESTIMATORS: dict[str, Callable[..., None]] = {"mean": no_lanes, "catoni": catoni_lanes.function}


@functools.cache
def compiled_estimator(name: str) -> Any:
    """The estimator as a compiled function."""
    return pointer(f"the estimator {name}", ESTIMATORS[name], ESTIMATE)
