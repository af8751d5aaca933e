"""A policy's formulas made ready for the compiler: checked, and flattened into expressions over numbers."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from rightarm.formula import Formula
from rightarm.formula.compile import define, positional
from rightarm.policies.inputs import ArmsState, one_each
from rightarm.policies.policy import PROBE_ROUND, Policy
from rightarm.types import F64

PER_ROUND = frozenset({"t", "arms"})  # inputs that are the same for all arms and replications of a round


@dataclass(frozen=True)
class Program:
    """Formulas as expressions over their inputs, and the functions that the expressions call.

    ``common`` are values of parameters that are the same for a whole round, and computed once per round. The
    ``expressions`` are computed for every arm and replication, and find those values as ``p[0]``, ``p[1]``, ...
    ``numbers`` are the parameters themselves, which compiled code takes as an array.
    """

    common: tuple[str, ...] = ()
    expressions: tuple[str, ...] = ()
    functions: Mapping[str, types.FunctionType] = field(default_factory=dict)
    numbers: tuple[float, ...] = ()

    def define_common(self) -> types.FunctionType:
        """Return the function that computes the common values of a round."""
        values = "".join(f"{value}, " for value in self.common)
        return define("common", "t, arms, numbers", f"({values})", self.functions)


def program(formulas: Iterable[Formula], places: Mapping[str, str]) -> Program:
    """Flatten formulas, whose parameters may be formulas themselves.

    Parameters
    ----------
    formulas
        They become the program's expressions, in their order.
    places
        Where compiled code finds an input that is not an argument by its own name, such as ``memory[0, k]``.
    """
    functions: dict[str, types.FunctionType] = {}
    numbers: list[float] = []
    common: list[str] = []

    def call(formula: Formula, argument: Callable[[object], str]) -> str:
        name = f"f{len(functions)}"
        functions[name] = positional(formula.family.function)
        inputs = (places.get(each, each) for each in formula.family.inputs)
        return f"{name}({', '.join([*inputs, *map(argument, formula.arguments.values())])})"

    def once_per_round(value: object) -> str:
        if isinstance(value, Formula):
            return call(value, once_per_round)
        if not isinstance(value, float):
            return "0.0"  # an option, which the formula does not read
        numbers.append(value)
        return f"numbers[{len(numbers) - 1}]"

    def everywhere(value: object) -> str:
        if isinstance(value, Formula) and not value.inputs <= PER_ROUND:
            return call(value, everywhere)
        common.append(once_per_round(value))
        return f"p[{len(common) - 1}]"

    expressions = tuple(call(formula, everywhere) for formula in formulas)
    return Program(tuple(common), expressions, functions, tuple(numbers))


def column_places(names: Iterable[str], lane: str = "") -> dict[str, str]:
    """Return where compiled code finds an arm's columns, and the largest and the smallest of all arms."""
    places = {}
    for column, name in enumerate(names):
        places[name] = f"memory[{column}, k{lane}]"
        places[f"best_{name}"] = f"top[{column}{lane}]"
        places[f"worst_{name}"] = f"bottom[{column}{lane}]"
    return places


def check_formulas(policy: Policy) -> None:
    """Raise, and say why, if a policy's formulas would compile to something else than they say, or have no value."""
    try:
        _check_arm_by_arm(policy)
        _check_lessons(policy)
    except ArithmeticError as error:  # a parameter is so large or so small that a formula divides by zero or overflows
        raise ValueError(f"{policy!r} has no value in round {PROBE_ROUND:g}: {error}") from error


def _check_arm_by_arm(policy: Policy) -> None:
    """Raise if a score mixes the arms: compiled code has one arm at a time, where a sum over arms is a sum over one."""
    random = np.random.default_rng(20170529)
    pulls = random.integers(1, 21, 4).astype(float)
    means = random.random(4)
    z = random.random(4)
    columns = {name: random.random(4) for name in policy.memory_names}
    inputs = ArmsState(PROBE_ROUND, pulls, means, columns, None, arms=4).inputs(z)

    def values(formula: Formula, arms: slice) -> F64:
        of_arms = {name: value[arms] if np.ndim(value) else value for name, value in inputs.items()}
        return one_each(policy.family.name, formula.evaluate(of_arms), means[arms].shape)

    for formula in (policy, policy.explore):
        if formula is None:
            continue
        with np.errstate(all="ignore"):
            together = values(formula, slice(None))
            again = values(formula, slice(None))
            alone = np.concatenate([values(formula, slice(i, i + 1)) for i in range(pulls.size)])
        if not np.array_equal(together, again, equal_nan=True):
            raise TypeError(f"{policy.family.name} gives another score each time; ask for noise by name instead")
        if not np.allclose(together, alone, rtol=1e-9, equal_nan=True):
            raise TypeError(
                f"{policy.family.name} mixes the arms in a sum, mean or maximum, which cannot be compiled: "
                f"ask for t (the pulls of all arms and one), best, worst or arms instead"
            )


def _check_lessons(policy: Policy) -> None:
    """Raise if the formula of a column does not give one number; here the error can say which."""
    inputs = {"t": PROBE_ROUND, "arms": 4.0, "pulls": 5.0, "mean": 0.5, "variance": 0.25, "reward": 0.5}
    inputs |= {"probability": 0.5, **dict.fromkeys(policy.columns, 0.25)}
    for place, parts in (("learn", policy.learn), ("keep", policy.keep)):
        for name, part in parts.items():
            with np.errstate(all="ignore"):
                value = part.evaluate(inputs)
            if isinstance(value, tuple | list) or np.ndim(value):
                raise TypeError(f"{policy.family.name}: {place}[{name!r}] must give one number, got {value!r:.200}")
