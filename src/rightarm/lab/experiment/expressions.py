"""Policies and problems written as text, `UCB(C=0.5)`: read by Python's own parser, and nothing else is run."""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import rightarm.noise
import rightarm.policies
import rightarm.problems
from rightarm.contexts import Features
from rightarm.estimators import NAMED, Estimator, Linear, Logistic
from rightarm.formula import Family, check_number
from rightarm.lab.experiment.modules import find, is_address
from rightarm.problems import Classification, Context, LinearProblem, Problem, ProblemFamily
from rightarm.problems.random import AnyProblem, RandomProblem
from rightarm.scores.policy import Policy, PolicyFamily

OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
UNDERSTOOD: tuple[type, ...] = (
    ast.Constant,
    ast.List,
    ast.Tuple,
    ast.Dict,
    ast.Call,
    ast.keyword,
    ast.Attribute,
    ast.Name,
    ast.Load,
)
UNDERSTOOD += (ast.UnaryOp, ast.BinOp, *OPERATORS)
LONGEST = 100_000  # items of a list
LONGEST_TEXT = 10_000  # characters; the parser's stack is not endless


def _function(name: str, function: Callable[[float], Any]) -> Callable[[Any], float]:
    def of_number(x: Any) -> float:
        with np.errstate(all="ignore"):  # what is not finite is refused where it is used
            return float(function(check_number(f"the argument of {name}", x)))

    return of_number


def decades(first: float, last: float, per_decade: float) -> list[float]:
    """Values from ``first`` to ``last``, spaced evenly on a logarithmic scale, so many in each decade.

    >>> decades(10, 1000, 1)
    [10.0, 100.0, 1000.0]
    """
    low, high, per = (check_number("an argument of decades", value) for value in (first, last, per_decade))
    if not 0 < low < high or per <= 0:
        raise ValueError(f"decades needs 0 < first < last and a positive number, got {first}, {last}, {per_decade}")
    points = round(per * math.log10(high / low)) + 1
    if points > LONGEST:
        raise ValueError(f"decades can give up to {LONGEST:,} values, got {points:,}")
    return [float(value) for value in np.geomspace(low, high, points)]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _function(name, function) for name, function in (("sqrt", np.sqrt), ("log", np.log), ("exp", np.exp))},
    "decades": decades,
}


# What is public.


def families(kind: type[Family]) -> dict[str, Any]:
    """The public families of a kind, by name."""
    module = rightarm.problems if kind is ProblemFamily else rightarm.policies
    found = {name: value for name, value in vars(module).items() if type(value) is kind and name == value.name}
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def laws() -> dict[str, Any]:
    """The laws of noise, by name."""
    return {law.__name__: law for law in rightarm.noise.Law.__subclasses__()}


def estimators() -> dict[str, Any]:
    """The estimators, by name, and the names that policies know some by."""
    return {kind.__name__: kind for kind in (*NAMED.values(), Linear)} | {name: name for name in NAMED}


def contextual() -> dict[str, Any]:
    """The estimators, those for live decisions only among them, and what describes features."""
    return {**estimators(), "Logistic": Logistic, "Features": Features}


def contexts() -> dict[str, Any]:
    """The laws of contexts, by name."""
    return {name: each for name, each in vars(rightarm.problems).items() if getattr(each, "kind", None) is Context}


def problem_kinds() -> dict[str, Any]:
    """All that makes problems, by name; what takes more than a value for each arm has no family."""
    return {
        **families(ProblemFamily),
        **{kind.__name__: kind for kind in (RandomProblem, LinearProblem, Classification)},
    }


# Policies and problems.


def read_policy(text: str, find: Callable[[str], Any] = find) -> Policy:
    """The policy that ``text`` describes; ``find`` finds what it calls `module:name`.

    >>> read_policy("EpsilonGreedy(decreasing(d=0.1))")
    EpsilonGreedy(epsilon=decreasing(d=0.1, c=5.0))
    """
    call, own = own_call(text, find)
    known = {**families(PolicyFamily), **families(Family), **laws(), **contextual(), **own}
    return as_policy(text, Expression(call, "policy", known, list(families(PolicyFamily))).value())


def read_estimator(text: str) -> Estimator:
    """The estimator that ``text`` describes.

    >>> read_estimator("Linear(Features(categories={'device': ['phone', 'desktop']}, required=True))").features
    Features(categories={'device': ['phone', 'desktop']}, required=True)
    """
    kinds = {name: kind for name, kind in contextual().items() if isinstance(kind, type)}
    made = Expression(text, "estimator", kinds, [name for name in kinds if name != "Features"]).value()
    if not isinstance(made, Estimator):
        raise ValueError(f"an estimator such as Linear(['hour']) is expected, got {text!r}")
    return made


def own_call(text: str, find: Callable[[str], Any]) -> tuple[str, dict[str, Any]]:
    """`module:Name(C=1)` as `Name(C=1)`, and what ``find`` finds under that name; other text as it is."""
    address, bracket, arguments = text.strip().partition("(")
    if not is_address(address):
        return text, {}
    name = address.rpartition(":")[2]
    return f"{name}{bracket}{arguments}", {name: find(address)}


def as_policy(text: str, made: Any) -> Policy:
    """What ``text`` made, if it is a policy."""
    if not isinstance(made, Policy):
        raise ValueError(f"a policy such as UCB(C=0.5) is expected, got {text!r}")
    return made


def read_problem(text: str) -> AnyProblem:
    """The problem that ``text`` describes.

    >>> read_problem("Bernoulli([0.51] + [0.5] * 2)")
    Bernoulli(mean=[0.51, 0.5, 0.5])
    """
    call, own = own_call(text, find)
    known = {**problem_kinds(), **own}
    return as_problem(text, Expression(call, "problem", {**known, **contexts()}, list(known)).value())


def as_problem(text: str, made: Any) -> AnyProblem:
    """What ``text`` made, if it is a problem."""
    if not isinstance(made, AnyProblem):
        raise ValueError(f"a problem such as Bernoulli([0.6, 0.5]) is expected, got {text!r}")
    return made


class Expression:
    """Text in names, numbers, lists and calls, parsed once; some of its names may be numbers that come later.

    >>> expression = Expression("[2 * gap] + [0.0] * 2", "mean", {}, ["gap"])
    >>> expression.mentions, expression.value({"gap": 0.25})
    (frozenset({'gap'}), [0.5, 0.0, 0.0])
    """

    def __init__(self, text: str, kind: str, names: Mapping[str, Any], known: list[str]) -> None:
        self.text, self.kind, self.names, self.known = text, kind, {**FUNCTIONS, **names}, known
        self.tree = self._parsed()
        if not all(isinstance(node, UNDERSTOOD) for node in ast.walk(self.tree)):
            raise ValueError(f"{text}: only names, numbers, lists and calls are understood")
        self.mentions = frozenset(node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name))

    def _parsed(self) -> ast.expr:
        if len(self.text) > LONGEST_TEXT:
            raise ValueError(f"the {self.kind} has {len(self.text):,} characters, more than {LONGEST_TEXT:,}")
        try:
            with warnings.catch_warnings(action="ignore"):  # about escapes in strings, which no name has
                return ast.parse(self.text.strip(), mode="eval").body
        except SyntaxError as error:
            raise ValueError(f"the {self.kind} {self.text!r} cannot be read: {error.msg}") from None
        except (RecursionError, MemoryError, ValueError):  # nested too deeply for the parser, or a zero byte
            raise ValueError(f"the {self.kind} {self.text[:60]!r} cannot be read") from None

    def value(self, variables: Mapping[str, float] | None = None) -> Any:
        """What it gives; ``variables`` are numbers by name."""
        names = {**self.names, **(variables or {})}
        for name in sorted(self.mentions - names.keys(), key=self.text.find):
            raise ValueError(f"unknown {self.kind} {name} in {self.text!r}; there are {', '.join(self.known)}")
        tree = self.tree
        if isinstance(tree, ast.Name) and callable(names[tree.id]):  # a name alone stands for a call without parameters
            tree = ast.Call(tree, [], [])
        try:
            return _value(tree, names)
        except RecursionError:
            raise ValueError(f"the {self.kind} {self.text[:60]!r} is nested too deeply") from None
        except (TypeError, ValueError, ArithmeticError) as error:
            raise ValueError(f"{self.text}: {error}") from None


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=int() | float() | str() as value):
            return value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return _listed([_value(item, names) for item in items])
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(operand, names))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return _calculated(type(op), _value(left, names), _value(right, names))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=keywords):
            return names[name](*(_argument(argument, names) for argument in arguments), **_named(keywords, names))
        case ast.Call(func=ast.Attribute(value=inner, attr="corrupted"), args=[], keywords=keywords):
            problem = _value(inner, names)
            if isinstance(problem, Problem | RandomProblem):
                return problem.corrupted(**_named(keywords, names))
        case ast.Name(id=name):
            return names[name]
    raise ValueError("only names, numbers, lists and calls are understood")


def _named(keywords: list[ast.keyword], names: Mapping[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for keyword in keywords:
        if keyword.arg is None:
            raise ValueError("only names, numbers, lists and calls are understood")
        if keyword.arg in given:
            raise ValueError(f"{keyword.arg} is given twice")
        given[keyword.arg] = _argument(keyword.value, names)
    return given


def _argument(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """The value of an argument, which may be a mapping by texts of anything but mappings."""
    if not isinstance(node, ast.Dict):
        return _value(node, names)
    keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
    if not all(isinstance(key, str) for key in keys) or len(set(keys)) < len(keys):
        raise ValueError("the keys of a mapping must be texts that differ")
    values = [_value(value, names) for value in node.values]
    _listed(values)
    return dict(zip(keys, values, strict=True))


def _listed(items: list[Any]) -> list[Any]:
    """A list, in which there may be rows of a table, but nothing deeper: repeated, that would grow without end."""
    rows = [item for item in items if isinstance(item, list)]
    if any(isinstance(inner, list) for row in rows for inner in row):
        raise ValueError("the lists in a list must not contain lists")
    if _size(items) > LONGEST:
        raise ValueError(f"a list can have up to {LONGEST:,} items, got {_size(items):,}")
    return items


def _size(items: list[Any]) -> int:
    """How many values are in a list and in the lists in it, of which an empty one counts too."""
    return sum(max(len(item), 1) if isinstance(item, list) else 1 for item in items)


def _calculated(op: type, left: Any, right: Any) -> Any:
    """Numbers by all operations; lists may be joined and repeated."""
    lists = isinstance(left, list) + isinstance(right, list)
    if lists and op is ast.Mult:
        times = right if isinstance(left, list) else left
        if not isinstance(times, int) or times * _size(left if isinstance(left, list) else right) > LONGEST:
            raise ValueError(f"a list can be repeated up to {LONGEST:,} items, got {times!r} times")
    numbers = isinstance(left, int | float) and isinstance(right, int | float)
    if not numbers and not (lists == 2 and op is ast.Add) and not (lists == 1 and op is ast.Mult):
        raise ValueError(f"{left!r} and {right!r} cannot be put together like that")
    if lists == 2:
        return _listed(left + right)
    if op is ast.Pow and numbers:
        return float(left) ** right  # whole numbers would grow without end
    return OPERATORS[op](left, right)
