"""Catoni's estimates in the rounds of a simulation: they stand where `kernels.average` stands for plain means."""

from __future__ import annotations

import numpy as np

from rightarm.catoni import BOUND, COUNT, NEXT, add_small, estimate, push
from rightarm.compile import jit
from rightarm.simulation.types import F64, I64

LEFT = np.inf  # marks a lane whose reward has not been taken yet


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
