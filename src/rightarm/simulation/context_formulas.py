"""A problem with contexts compiled: a round's context, the mean reward of every arm in it, and the reward of one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rightarm.formula import Formula, define
from rightarm.formula.compile import fma, pointer, positional
from rightarm.problems.contexts import Context
from rightarm.problems.contextual import ContextProblem, linear
from rightarm.types import F64

CONTEXT = (
    "void(float64, float64, float64, float64, float64[::1], float64[::1], float64[::1], float64[::1])"  # of a round
)
MEANS = "void(float64, float64[::1], float64, float64[:,::1], float64[::1])"
REWARD = "float64(float64, float64[::1], float64, float64, int64, float64, float64, float64, float64[:,::1])"


def fill_context(t: float, u: float, v: float, w: float, normals: Any, uniforms: Any, numbers: Any, out: Any) -> None:
    """The context of a round."""
    write(make(t, u, v, w, normals, uniforms, numbers), out)


def fill_columns(t: float, u: float, v: float, w: float, normals: Any, uniforms: Any, numbers: Any, out: Any) -> None:
    """The same where each number of x is made of its own noise: no array has to be made."""
    for j in range(out.size):
        out[j] = make(t, u, v, w, normals[j], uniforms[j], numbers)


def all_means(t: float, x: Any, label: float, numbers: Any, out: Any) -> None:
    """The mean reward of every arm; ``numbers`` has a column for each arm."""
    for arm in range(out.size):
        out[arm] = mean_of_arm(t, x, label, arm, numbers)


def linear_means(t: float, x: Any, label: float, numbers: Any, out: Any) -> None:
    """The same for x·theta + offset, as vector code over arms."""
    last = np.uint64(x.size)
    for arm in range(out.size):
        out[arm] = numbers[last, arm]
    for j in range(x.size):
        for arm in range(out.size):
            out[arm] = fma(x[j], numbers[j, arm], out[arm])


def one_reward(
    t: float, x: Any, label: float, mean: float, arm: int, u: float, v: float, w: float, numbers: Any
) -> float:
    """The reward of one arm."""
    return reward_of_arm(t, x, label, mean, arm, u, v, w, numbers)


def make(*arguments: Any) -> Any:
    """Stands in `fill_context` for the formula of x."""
    raise NotImplementedError


def write(*arguments: Any) -> Any:
    """Stands in `fill_context` for putting what the formula gave in its place."""
    raise NotImplementedError


def mean_of_arm(*arguments: Any) -> float:
    """Stands in `all_means` for the formula of mean rewards."""
    raise NotImplementedError


def reward_of_arm(*arguments: Any) -> float:
    """Stands in `one_reward` for the formula of rewards."""
    raise NotImplementedError


def put(value: float, out: Any, place: int) -> float:
    """One number of x."""
    out[place] = value
    return 0.0


def put_row(values: Any, out: Any) -> float:
    """All numbers of x."""
    for j in range(out.size):
        out[j] = values[j]
    return 0.0


class Compiled(NamedTuple):
    """A problem's compiled functions, and the numbers that they take."""

    context: Any
    means: Any
    reward: Any
    context_numbers: F64
    numbers: F64
    """Parameters of the formulas of means and rewards; a column for each arm."""


def compiled_problem(problem: ContextProblem) -> Compiled:
    """The compiled functions, the same for all values of the parameters."""
    rows, own = _columns(problem.values, 0)
    more, theirs = _columns(problem.reward.values, len(rows))
    names = "t, x, label, arm, numbers"
    mean = _call("mean_of_arm", names, problem, own)
    reward = _call("reward_of_arm", "t, x, label, mean, arm, u, v, w, numbers", problem.reward, theirs)
    subject, is_linear = f"the problem {problem.family.name}", problem.family.function is linear
    context, context_numbers = _compiled_context(problem.context)
    return Compiled(
        context,
        pointer(subject, linear_means, MEANS) if is_linear else pointer(subject, all_means, MEANS, mean_of_arm=mean),
        pointer(f"the reward of {problem.family.name}", one_reward, REWARD, reward_of_arm=reward),
        context_numbers,
        np.array([*rows, *more], dtype=float).reshape(-1, problem.arms),
    )


def _columns(values: dict[str, Any], first: int) -> tuple[list[Any], list[str]]:
    """The parameters as rows of a value for each arm, and where compiled code finds each of them."""
    rows: list[Any] = []
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


def _call(name: str, arguments: str, formula: Formula, parameters: list[str]) -> Any:
    expression = f"formula({', '.join([*formula.family.inputs, *parameters])})"
    return define(name, arguments, expression, {"formula": positional(formula.family.function)})


def _compiled_context(context: Any) -> tuple[Any, F64]:
    """The formula of x; a blank where contexts are the rows of a data set."""
    if not isinstance(context, Context):
        blank = define("make", "t, u, v, w, normals, uniforms, numbers", "0.0", {})
        nothing = define("write", "value, out", "0.0", {})
        return pointer("a blank", fill_context, CONTEXT, make=blank, write=nothing), np.zeros(0)
    values = [value for value in context.values.values() if isinstance(value, int | float)]
    places = iter(range(len(values)))
    given = [f"numbers[{next(places)}]" if isinstance(v, int | float) else "0.0" for v in context.values.values()]
    subject, making = (
        f"the context {context.family.name}",
        _call("make", "t, u, v, w, normals, uniforms, numbers", context, given),
    )
    if context.by_column:
        return pointer(subject, fill_columns, CONTEXT, make=making), np.array(values, dtype=float)
    size = context.shape
    writes = "put_row(value, out)" if size is None else "put(value, out, 0)"
    if size:
        writes = f"({''.join(f'put(value[{j}], out, {j}), ' for j in range(size))})"
    function = pointer(
        subject,
        fill_context,
        CONTEXT,
        make=making,
        write=define("write", "value, out", writes, {"put": put, "put_row": put_row}),
    )
    return function, np.array(values, dtype=float)
