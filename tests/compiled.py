"""The compiled formulas as functions of arrays, so that tests can call them one by one."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from naive import F64, I64
from rightarm.noise.law import Law, compiled_law
from rightarm.policies.compiled_scores import compiled_policy
from rightarm.policies.inputs import EARLY, LATE
from rightarm.policies.policy import Policy
from rightarm.problems import Problem
from rightarm.simulation.compiled_problems import compiled_reward, reward_numbers
from rightarm.simulation.kernels import gap_variances

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]


@numba.njit(nogil=True)
def _draw(law: Any, words: U32, out: F32) -> None:
    law(words, out)


@numba.njit
def _call(function: Any, arguments: Any) -> None:
    function(*arguments)


COMPILED = functools.cache(compiled_policy)  # which looks at the formulas again at every call


def draws(law: Law, words: U32) -> F32:
    """The draws that the compiled law makes of ``words``."""
    out = np.empty(words.shape, np.float32)
    _draw(compiled_law(law), words.ravel(), out.reshape(-1))
    return out


def scores(
    policy: Policy,
    t: int,
    pulls: Sequence[int],
    means: Sequence[float],
    z: Sequence[float],
    memory: Mapping[str, Sequence[float]] | None = None,
    variances: Sequence[float] | None = None,
) -> F64:
    """Scores of one state, arm by arm, as the simulator computes them: whole, or from a location and a scale."""
    made = COMPILED(policy)
    count, mean, arms = np.array(pulls, dtype=float), np.array(means, dtype=float), float(len(pulls))
    given = memory or {name: [0.0] * len(pulls) for name in policy.columns}
    spread = [] if variances is None else [np.array(variances, dtype=float)]
    inputs = {"pulls": count, "mean": mean, "arms": arms, **({"variance": spread[0]} if spread else {})}
    kept = [part.evaluate(inputs) for part in policy.keep.values()]
    gaps = [np.empty((mean.size, 1))] if policy.asks_gap_variance else []
    for out in gaps:
        gap_variances(count[:, None], mean[:, None], np.array([mean.max()]), np.empty(1), out)
    table = [*(given[name] for name in policy.columns), *kept, *spread, *(out[:, 0] for out in gaps)]
    columns = np.array(table, dtype=float)
    columns = columns.reshape(-1, len(pulls))

    def line(early: float, late: float, count: F64, mean: F64, columns: F64) -> tuple[F64, F64]:
        location, scale = np.empty_like(mean), np.empty_like(mean)
        _call(made.affine, (early, late, arms, count, mean, columns[:, None], made.numbers, location, scale))
        return location, scale

    result: F64 = np.empty(mean.size)
    noise = np.array(z, dtype=np.float32)
    if policy.steady:
        location, scale = line(EARLY, LATE, count, mean, columns)
        result = location + scale * noise
    elif policy.clocked:
        location, scale = line(EARLY, LATE, count, mean, columns)
        reference = (np.ones(1), np.zeros(1), np.zeros((len(columns), 1)))
        early, now, late = (line(x, x, *reference)[0][0] for x in (EARLY, float(t), LATE))
        result = location + scale * (now - early) / (late - early)
    else:
        rows = (count[:, None], mean[:, None], noise[:, None])
        extremes = (np.array([mean.max()]), np.array([mean.min()]))
        tops = (columns.max(axis=1, keepdims=True), columns.min(axis=1, keepdims=True))
        state = (float(t), arms, *rows, *extremes, columns[..., None], *tops)
        _call(made.score, (*state, made.numbers, result[:, None]))
    return result


def rewards(problem: Problem, t: int, arm: I64, pulls: F64, uniform: F64, w: F32) -> F64:
    """What the compiled problem pays for pulls of ``arm``, a lane each; ``uniform`` is u and v."""
    function, numbers = compiled_reward(problem.family, by_lane=False), reward_numbers(problem)
    out = np.empty(arm.size)
    _call(function, (float(t), arm, pulls, uniform, w, numbers, out))
    return out
