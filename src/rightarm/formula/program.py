"""Formulas as source that the compiler reads: trees of formulas flattened into expressions over numbers."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rightarm.formula.compile import positional
from rightarm.formula.formula import Formula


@dataclass(frozen=True)
class Program:
    """Formulas' trees as compilable source: expressions over inputs, and the functions they call.

    ``common`` are the parameters' values that are the same for a whole round, computed once per round; the
    ``expressions`` are computed for every arm and replication and find those as ``p[0]``, ``p[1]``, ...
    """

    common: tuple[str, ...]
    expressions: tuple[str, ...]
    functions: dict[str, types.FunctionType]
    numbers: tuple[float, ...]


def program(formulas: Iterable[Formula], per_round: frozenset[str], names: Mapping[str, str]) -> Program:
    """Flatten ``formulas``; a part whose inputs are all in ``per_round`` is evaluated once per round.

    ``names`` says where an input is found that is not an argument by its own name.
    """
    functions: dict[str, types.FunctionType] = {}
    constants: list[float] = []
    common: list[str] = []

    def call(node: Formula, argument: Callable[[Any], str]) -> str:
        name = f"f{len(functions)}"
        functions[name] = positional(node.family.function)
        inputs = (names.get(own, own) for own in node.family.inputs)
        return f"{name}({', '.join([*inputs, *map(argument, node.arguments.values())])})"

    def number(value: Any) -> str:
        if not isinstance(value, float):
            return "0.0"  # an option, which the formula does not read
        constants.append(value)
        return f"numbers[{len(constants) - 1}]"

    def once(value: Any) -> str:
        return call(value, once) if isinstance(value, Formula) else number(value)

    def everywhere(value: Any) -> str:
        if isinstance(value, Formula) and not value.inputs <= per_round:
            return call(value, everywhere)
        common.append(once(value))
        return f"p[{len(common) - 1}]"

    expressions = tuple(call(formula, everywhere) for formula in formulas)
    return Program(tuple(common), expressions, functions, tuple(constants))


def define(name: str, arguments: str, expression: str, functions: Mapping[str, Any]) -> types.FunctionType:
    """The function ``name(arguments)`` that returns ``expression``."""
    namespace: dict[str, Any] = dict(functions)
    exec(f"def {name}({arguments}):\n    return {expression}", namespace)  # the source is made above, of our own words
    function: types.FunctionType = namespace[name]
    function.__module__ = __name__
    return function
