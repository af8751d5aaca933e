"""Catoni's estimates in the rounds of a simulation: they stand where `kernels.average` stands for plain means."""

from __future__ import annotations

import numpy as np

from rightarm.catoni import estimate, push
from rightarm.compile import jit
from rightarm.simulation.types import F64, I64


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
    """Take each lane's reward into its arm's summary; ``new_mean`` gets the arm's estimate."""
    for lane in range(arm.size):
        k = np.uint64(arm[lane])
        total[k, lane] += reward[lane]
        push(reward[lane], C, near, rows, k, lane, series, powers)
        now = estimate(C, near, k, lane)
        mean[k, lane] = now
        new_mean[lane] = now
