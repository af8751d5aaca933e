"""Problems compiled: rewards for many replications side by side, and, with contexts, the parts of a round.

A template such as `fill_rewards` has the loop, and the problem's formula takes the place of a function that it calls.
Code is the same for all values of the parameters, which compiled functions take as an array, ``numbers``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rightarm.formula import Family, Formula, define
from rightarm.formula.compile import fma, pointer, positional
from rightarm.problems import Problem
from rightarm.problems.contexts import ContextDistribution
from rightarm.problems.contextual import ContextProblem, linear
from rightarm.simulation.lanes import CompiledFunction
from rightarm.types import F32, F64, I64

REWARDS = "void(float64, int64[::1], float64[::1], float64[:,::1], float32[::1], float64[:,::1], float64[::1])"
REWARD_ARGUMENTS = "t, pulls, arm, u, v, w, numbers, lane, lanes"


def fill_rewards(t: float, arm: I64, pulls: F64, uniform: F64, w: F32, numbers: F64, out: F64) -> None:
    """Compute the rewards of the pulled arms; ``numbers`` has a row for each parameter, of arms or of arms × lanes."""
    for lane in range(out.size):
        u = uniform[0, lane]
        v = uniform[1, lane]
        w_lane = np.float64(w[lane])
        out[lane] = reward(t, pulls[lane], arm[lane], u, v, w_lane, numbers, lane, out.size)


def reward(*arguments: Any) -> float:
    """Stand in `fill_rewards` for the problem's formula, of REWARD_ARGUMENTS."""
    raise NotImplementedError


def compiled_reward(family: Family, by_lane: bool) -> CompiledFunction:
    """Return the compiled rewards of a family of problems: one problem for all lanes, or one for each."""
    column = "arm * lanes + lane" if by_lane else "arm"
    parameters = [f"numbers[{i}, {column}]" for i in range(len(family.parameters))]
    formula = _call("reward", REWARD_ARGUMENTS, family, parameters)
    made: CompiledFunction = pointer(f"the problem {family.name}", fill_rewards, REWARDS, reward=formula)
    return made


def reward_numbers(*problems: Problem) -> F64:
    """Return the parameters of one problem, parameters × arms, or of one for each lane, parameters × arms·lanes."""
    numbers = np.array([list(each.values.values()) for each in problems], dtype=np.float64)
    return np.moveaxis(numbers, 0, -1).reshape(len(problems[0].values), -1)


# With contexts.

CONTEXT = "void(float64, float64, float64, float64, float64[::1], float64[::1], float64[::1], float64[::1])"
CONTEXT_ARGUMENTS = "t, u, v, w, normals, uniforms, numbers"
MEANS = "void(float64, float64[::1], float64, float64[:,::1], float64[::1])"
ONE_REWARD = "float64(float64, float64[::1], float64, float64, int64, float64, float64, float64, float64[:,::1])"


def fill_context(t: float, u: float, v: float, w: float, normals: F64, uniforms: F64, numbers: F64, out: F64) -> None:
    """Compute the context of a round."""
    write(make(t, u, v, w, normals, uniforms, numbers), out)


def fill_columns(t: float, u: float, v: float, w: float, normals: F64, uniforms: F64, numbers: F64, out: F64) -> None:
    """Compute a context each of whose numbers has noise of its own: no array has to be made."""
    for j in range(out.size):
        out[j] = make(t, u, v, w, normals[j], uniforms[j], numbers)


def all_means(t: float, x: F64, label: float, numbers: F64, out: F64) -> None:
    """Compute the mean reward of every arm; ``numbers`` has a column for each arm."""
    for arm in range(out.size):
        out[arm] = mean_of_arm(t, x, label, arm, numbers)


def linear_means(t: float, x: F64, label: float, numbers: F64, out: F64) -> None:
    """Compute x·theta + offset for every arm, as vector code over arms."""
    last = np.uint64(x.size)
    for arm in range(out.size):
        out[arm] = numbers[last, arm]
    for j in range(x.size):
        for arm in range(out.size):
            out[arm] = fma(x[j], numbers[j, arm], out[arm])


def one_reward(
    t: float, x: F64, label: float, mean: float, arm: int, u: float, v: float, w: float, numbers: F64
) -> float:
    """Compute the reward of one arm."""
    return reward_of_arm(t, x, label, mean, arm, u, v, w, numbers)


def make(*arguments: Any) -> Any:
    """Stand in `fill_context` for the formula of x."""
    raise NotImplementedError


def write(*arguments: Any) -> Any:
    """Stand in `fill_context` for putting what the formula gave in its place."""
    raise NotImplementedError


def mean_of_arm(*arguments: Any) -> float:
    """Stand in `all_means` for the formula of mean rewards."""
    raise NotImplementedError


def reward_of_arm(*arguments: Any) -> float:
    """Stand in `one_reward` for the formula of rewards."""
    raise NotImplementedError


def put(value: float, out: F64, place: int) -> float:
    """Put one number of x in its place."""
    out[place] = value
    return 0.0


def put_row(values: F64, out: F64) -> float:
    """Put all numbers of x in their places."""
    for j in range(out.size):
        out[j] = values[j]
    return 0.0


class CompiledProblem(NamedTuple):
    """The compiled functions of a problem with contexts, and the numbers that they take."""

    context: CompiledFunction
    means: CompiledFunction
    reward: CompiledFunction
    context_numbers: F64
    numbers: F64
    """Parameters of the formulas of means and rewards; a column for each arm."""


def compiled_context_problem(problem: ContextProblem) -> CompiledProblem:
    """Return the compiled functions, the same for all values of the parameters."""
    rows, mean_parameters = _columns(problem.values, 0)
    more_rows, reward_parameters = _columns(problem.reward.values, len(rows))
    subject = f"the problem {problem.family.name}"
    if problem.family.function is linear:
        means = pointer(subject, linear_means, MEANS)
    else:
        mean = _call("mean_of_arm", "t, x, label, arm, numbers", problem.family, mean_parameters)
        means = pointer(subject, all_means, MEANS, mean_of_arm=mean)
    arguments = "t, x, label, mean, arm, u, v, w, numbers"
    paid = _call("reward_of_arm", arguments, problem.reward.family, reward_parameters)
    return CompiledProblem(
        context=_compiled_context(problem.context),
        means=means,
        reward=pointer(f"the reward of {problem.family.name}", one_reward, ONE_REWARD, reward_of_arm=paid),
        context_numbers=np.array(_numbers(problem.context), dtype=float),
        numbers=np.array([*rows, *more_rows], dtype=float).reshape(-1, problem.arms),
    )


def _columns(values: dict[str, Any], first: int) -> tuple[list[Sequence[float]], list[str]]:
    """Return the parameters as rows of a value for each arm, and where compiled code finds each of them."""
    rows: list[Sequence[float]] = []
    texts = []
    for value in values.values():
        place = first + len(rows)
        if isinstance(value[0], tuple):
            rows += list(zip(*value, strict=True))
            texts.append(f"numbers[{place}:{first + len(rows)}, arm]")
        else:
            rows.append(value)
            texts.append(f"numbers[{place}, arm]")
    return rows, texts


def _call(name: str, arguments: str, family: Family, parameters: Sequence[str]) -> Any:
    """Return a function of ``arguments`` that calls a formula with its inputs and parameters."""
    expression = f"formula({', '.join([*family.inputs, *parameters])})"
    return define(name, arguments, expression, {"formula": positional(family.function)})


def _numbers(context: Formula | Any) -> list[float]:
    """Return the parameters of a context's formula that are numbers; none where contexts are rows of a data set."""
    values = context.values.values() if isinstance(context, ContextDistribution) else ()
    return [value for value in values if isinstance(value, int | float)]


def _compiled_context(context: Formula | Any) -> CompiledFunction:
    """Return the formula of x; a blank where contexts are the rows of a data set."""
    if not isinstance(context, ContextDistribution):
        blank = define("make", CONTEXT_ARGUMENTS, "0.0", {})
        nothing = define("write", "value, out", "0.0", {})
        return pointer("a blank", fill_context, CONTEXT, make=blank, write=nothing)  # type: ignore[no-any-return]
    places = iter(range(len(_numbers(context))))
    given = [f"numbers[{next(places)}]" if isinstance(v, int | float) else "0.0" for v in context.values.values()]
    subject = f"the context {context.family.name}"
    making = _call("make", CONTEXT_ARGUMENTS, context.family, given)
    if context.by_column:
        return pointer(subject, fill_columns, CONTEXT, make=making)  # type: ignore[no-any-return]
    size = context.shape
    writes = "put_row(value, out)" if size is None else "put(value, out, 0)"
    if size:
        writes = f"({''.join(f'put(value[{j}], out, {j}), ' for j in range(size))})"
    writing = define("write", "value, out", writes, {"put": put, "put_row": put_row})
    return pointer(subject, fill_context, CONTEXT, make=making, write=writing)  # type: ignore[no-any-return]
