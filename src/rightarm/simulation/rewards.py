"""A problem compiled: the rewards of one round, for many replications side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from rightarm.formula import define
from rightarm.formula.compile import pointer, positional
from rightarm.problems import Problem
from rightarm.types import F64

REWARD = "void(float64, int64[::1], float64[::1], float64[:,::1], float32[::1], float64[:,::1], float64[::1])"


def reward_lanes(t: float, arm: Any, pulls: Any, uniform: Any, w: Any, numbers: Any, out: Any) -> None:
    """Rewards of the pulled arms; ``numbers`` has a row for each parameter, in it the arms, or the arms × lanes."""
    for lane in range(out.size):
        u, v, w_lane = uniform[0, lane], uniform[1, lane], np.float64(w[lane])
        out[lane] = reward(t, pulls[lane], arm[lane], u, v, w_lane, numbers, lane, out.size)


def reward(
    t: float, pulls: float, arm: int, u: float, v: float, w: float, numbers: Any, lane: int, lanes: int
) -> float:
    """Stands in `reward_lanes` for the problem's formula."""
    raise NotImplementedError


def compiled_reward(problem: Problem, *others: Problem) -> tuple[Any, F64]:
    """The compiled rewards and the numbers they take, of one problem for all lanes or of a problem for each."""
    column = "arm * lanes + lane" if others else "arm"
    parameters = [f"numbers[{i}, {column}]" for i in range(len(problem.values))]
    expression = f"formula({', '.join([*problem.family.inputs, *parameters])})"
    functions = {"formula": positional(problem.family.function)}
    subject = f"the problem {problem.family.name}"
    function = pointer(
        subject,
        reward_lanes,
        REWARD,
        reward=define("reward", "t, pulls, arm, u, v, w, numbers, lane, lanes", expression, functions),
    )
    numbers = np.array([list(each.values.values()) for each in (problem, *others)], dtype=np.float64)
    return function, np.moveaxis(numbers, 0, -1).reshape(len(problem.values), -1)
