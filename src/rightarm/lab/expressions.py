"""Policies and problems written as text, `UCB(C=0.5)`: read by Python's own parser, and nothing else is run."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import rightarm.noise
import rightarm.policies
import rightarm.problems
from rightarm.formula import Family
from rightarm.policies.policy import Policy, PolicyFamily
from rightarm.problems import Problem, ProblemFamily
from rightarm.simulation.random_problem import RandomProblem

OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
LONGEST = 100_000  # items of a list


def families(kind: type[Family]) -> dict[str, Any]:
    """The public families of a kind, by name."""
    module = rightarm.problems if kind is ProblemFamily else rightarm.policies
    found = {name: value for name, value in vars(module).items() if type(value) is kind and name == value.name}
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def read_policy(text: str) -> Policy:
    """The policy that ``text`` describes.

    >>> read_policy("EpsilonGreedy(decreasing(d=0.1))")
    EpsilonGreedy(epsilon=decreasing(d=0.1, c=5.0))
    """
    laws = {law.__name__: law for law in rightarm.noise.Law.__subclasses__()}
    made = _read(text, {**families(PolicyFamily), **families(Family), **laws}, "policy", list(families(PolicyFamily)))
    if not isinstance(made, Policy):
        raise ValueError(f"a policy such as UCB(C=0.5) is expected, got {text!r}")
    return made


def read_problem(text: str) -> Problem | RandomProblem:
    """The problem that ``text`` describes.

    >>> read_problem("Bernoulli([0.51] + [0.5] * 2)")
    Bernoulli(mean=[0.51, 0.5, 0.5])
    """
    known = {**families(ProblemFamily), "RandomProblem": RandomProblem}
    made = _read(text, known, "problem", list(known))
    if not isinstance(made, Problem | RandomProblem):
        raise ValueError(f"a problem such as Bernoulli([0.6, 0.5]) is expected, got {text!r}")
    return made


def _read(text: str, names: dict[str, Any], kind: str, known: list[str]) -> Any:
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"the {kind} {text!r} cannot be read: {error.msg}") from None
    if isinstance(tree, ast.Name):  # a name alone stands for a call without parameters
        tree = ast.Call(tree, [], [])
    try:
        return _value(tree, names)
    except KeyError as error:
        raise ValueError(f"unknown {kind} {error.args[0]} in {text!r}; there are {', '.join(known)}") from None
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ValueError(f"{text}: {error}") from None


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    match node:
        case ast.Constant(value=int() | float() | str() as value) if not isinstance(value, bool):
            return value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item, names) for item in items]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(operand, names))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return _calculated(type(op), _value(left, names), _value(right, names))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=keywords) if all(k.arg for k in keywords):
            named = {str(keyword.arg): _value(keyword.value, names) for keyword in keywords}
            return names[name](*(_value(argument, names) for argument in arguments), **named)
        case ast.Call(func=ast.Attribute(value=inner, attr="corrupted"), args=[], keywords=keywords):
            problem = _value(inner, names)
            if isinstance(problem, Problem | RandomProblem):
                return problem.corrupted(**{str(keyword.arg): _value(keyword.value, names) for keyword in keywords})
        case ast.Name(id=name):
            return names[name]
    raise ValueError("only names, numbers, lists and calls are understood")


def _calculated(op: type, left: Any, right: Any) -> Any:
    """Numbers by all operations; lists may be joined and repeated."""
    lists = isinstance(left, list) + isinstance(right, list)
    if lists and op is ast.Mult:
        times = right if isinstance(left, list) else left
        if not isinstance(times, int) or times * len(left if isinstance(left, list) else right) > LONGEST:
            raise ValueError(f"a list can be repeated up to {LONGEST:,} items, got {times!r} times")
    numbers = isinstance(left, int | float) and isinstance(right, int | float)
    if not numbers and not (lists == 2 and op is ast.Add) and not (lists == 1 and op is ast.Mult):
        raise ValueError(f"{left!r} and {right!r} cannot be put together like that")
    if op is ast.Pow and numbers:
        return float(left) ** right  # whole numbers would grow without end
    return OPERATORS[op](left, right)
