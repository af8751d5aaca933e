"""Policies and problems written as text, `UCB(C=0.5)`: read by Python's own parser, and nothing else is run."""

from __future__ import annotations

import ast
import contextlib
import importlib
import math
import operator
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import rightarm.noise
import rightarm.policies
import rightarm.problems
from rightarm.estimators import ESTIMATORS, NAMED, Estimator
from rightarm.estimators.features import Features
from rightarm.formula import Family, check_number
from rightarm.policies import schedules
from rightarm.policies.policy import Policy, PolicyFamily
from rightarm.problems import Classification, ContextDistribution, LinearProblem, Problem, ProblemFamily
from rightarm.problems.random import AnyProblem, RandomProblem

Value: TypeAlias = Any  # of an expression: a number, a text, a list, a policy, a problem, or what they are made of
Names: TypeAlias = Mapping[str, Value]
Function: TypeAlias = Callable[..., Value]
Find: TypeAlias = Callable[[str], Value]  # finds what stands at ``module:name``

ADDRESS = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def is_address(text: str) -> bool:
    """Return whether ``text`` has the form `module:name`.

    >>> is_address("my.policies:Sloth"), is_address("UCB(C=0.5)")
    (True, False)
    """
    return ADDRESS.fullmatch(text) is not None


def find(address: str, folder: Path | None = None) -> Value:
    """Import what stands at `module:name`, the module being looked for in ``folder`` and in the current folder first.

    >>> find("rightarm.policies:UCB1", None)()
    UCB1()
    """
    module, _, name = address.partition(":")
    folders = [] if folder is None else [str(folder.resolve())]
    with _first_on_path([*folders, os.getcwd()]) as places:
        _check_same(module.partition(".")[0], places)
        found = importlib.import_module(module)
    try:
        return getattr(found, name)
    except AttributeError:
        public = ", ".join(sorted(own for own in vars(found) if not own.startswith("_")))
        raise ValueError(f"the module {module} has no {name}; it has {public}") from None


@contextlib.contextmanager
def _first_on_path(places: list[str]) -> Iterator[list[str]]:
    sys.path[:0] = places
    importlib.invalidate_caches()  # the module may have been written a moment ago
    try:
        yield places
    finally:
        for place in places:
            if place in sys.path:  # what the module itself did to the path is its own business
                sys.path.remove(place)


def _check_same(package: str, places: list[str]) -> None:
    """Say so if a module of that name was imported from elsewhere: Python would give that one, silently."""
    there = PathFinder.find_spec(package, places)
    loaded = sys.modules.get(package)
    origin = getattr(loaded, "__file__", None)
    if loaded is not None and there is not None and there.origin is not None and there.origin != origin:
        raise ValueError(
            f"{there.origin} cannot be imported: another module {package} is there already, {origin or 'built in'}; "
            "give it another name"
        )


OPERATORS: dict[type, Function] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
LITERALS = (ast.Constant, ast.List, ast.Tuple, ast.Dict)
UNDERSTOOD: tuple[type, ...] = (*LITERALS, ast.Call, ast.keyword, ast.Attribute, ast.Name, ast.Load)
UNDERSTOOD += (ast.UnaryOp, ast.BinOp, *OPERATORS)
LONGEST = 100_000  # items of a list
LONGEST_TEXT = 10_000  # characters; the parser's stack is not endless


def _function(name: str, function: Callable[[float], float]) -> Callable[[object], float]:
    def of_number(x: Value) -> float:
        with np.errstate(all="ignore"):  # what is not finite is refused where it is used
            return float(function(check_number(f"the argument of {name}", x)))

    return of_number


def decades(first: float, last: float, per_decade: float) -> list[float]:
    """Return values from ``first`` to ``last``, spaced evenly on a logarithmic scale, so many in each decade.

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


FUNCTIONS: dict[str, Function] = {
    **{name: _function(name, function) for name, function in (("sqrt", np.sqrt), ("log", np.log), ("exp", np.exp))},
    "decades": decades,
}


# What is public.


def families(kind: type[Family]) -> dict[str, Value]:
    """Return the public policies, problems or schedules, by name; schedules are plain families."""
    module = {PolicyFamily: rightarm.policies, ProblemFamily: rightarm.problems, Family: schedules}[kind]
    found = {name: value for name, value in module.FAMILIES.items() if type(value) is kind}
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def laws() -> dict[str, Value]:
    """Return the noise laws, by name: those of the library, and those of modules that are imported."""
    return {law.__name__: law for law in rightarm.noise.Law.__subclasses__()} | rightarm.noise.LAWS


def estimators() -> dict[str, Value]:
    """Return the estimators, by name, and the short names of some."""
    simulated: dict[str, Value] = {name: kind for name, kind in ESTIMATORS.items() if kind.sums}
    return simulated | {name: name for name in NAMED}


def contextual() -> dict[str, Value]:
    """Return the estimators, those for live decisions only among them, and what describes features."""
    return {**estimators(), **ESTIMATORS, "Features": Features}


def contexts() -> dict[str, Value]:
    """Return the distributions of contexts, by name."""
    return {name: each for name, each in rightarm.problems.FAMILIES.items() if each.kind is ContextDistribution}


def problem_kinds() -> dict[str, Value]:
    """Return all that makes problems, by name; what takes more than a value for each arm has no family."""
    others = {kind.__name__: kind for kind in (RandomProblem, LinearProblem, Classification)}
    return {**families(ProblemFamily), **others}


# Policies and problems.


def read_policy(text: str, find: Find = find) -> Policy:
    """Make the policy that a text describes.

    Parameters
    ----------
    text
        A call such as ``"UCB(C=0.5)"``; ``"my.module:Sloth(C=1)"`` calls a policy of one's own.
    find
        Finds what stands at `module:name`; by default it is imported.

    Raises
    ------
    ValueError
        If the text cannot be read, or does not make a policy.

    Examples
    --------
    >>> read_policy("EpsilonGreedy(decreasing(d=0.1))")
    EpsilonGreedy(epsilon=decreasing(d=0.1, c=5.0))
    """
    call, own = own_call(text, find)
    known = {**families(PolicyFamily), **families(Family), **laws(), **contextual(), **own}
    return as_policy(text, Expression(call, "policy", known, list(families(PolicyFamily))).value())


def read_estimator(text: str) -> Estimator:
    """Make the estimator that a text describes.

    Examples
    --------
    >>> read_estimator("Linear(Features(categories={'device': ['phone', 'desktop']}, required=True))").features
    Features(categories={'device': ['phone', 'desktop']}, required=True)
    """
    kinds = {name: kind for name, kind in contextual().items() if isinstance(kind, type)}
    made = Expression(text, "estimator", kinds, [name for name in kinds if name != "Features"]).value()
    if not isinstance(made, Estimator):
        raise ValueError(f"an estimator such as Linear(['hour']) is expected, got {text!r}")
    return made


def own_call(text: str, find: Find) -> tuple[str, dict[str, Value]]:
    """Return `module:Name(C=1)` as `Name(C=1)`, and what ``find`` finds under that name; other text as it is."""
    address, bracket, arguments = text.strip().partition("(")
    if not is_address(address):
        return text, {}
    name = address.rpartition(":")[2]
    return f"{name}{bracket}{arguments}", {name: find(address)}


def as_policy(text: str, made: Value) -> Policy:
    """Return what a text made, if it is a policy."""
    if not isinstance(made, Policy):
        raise ValueError(f"a policy such as UCB(C=0.5) is expected, got {text!r}")
    return made


def read_problem(text: str) -> AnyProblem:
    """Make the problem that a text describes, such as ``"Bernoulli([0.6, 0.5])"``.

    Examples
    --------
    >>> read_problem("Bernoulli([0.51] + [0.5] * 2)")
    Bernoulli(mean=[0.51, 0.5, 0.5])
    """
    call, own = own_call(text, find)
    known = {**problem_kinds(), **own}
    return as_problem(text, Expression(call, "problem", {**known, **contexts()}, list(known)).value())


def as_problem(text: str, made: Value) -> AnyProblem:
    """Return what a text made, if it is a problem."""
    if not isinstance(made, AnyProblem):
        raise ValueError(f"a problem such as Bernoulli([0.6, 0.5]) is expected, got {text!r}")
    return made


class Expression:
    """Text in names, numbers, lists and calls, parsed once; some of its names may be numbers that come later.

    >>> expression = Expression("[2 * gap] + [0.0] * 2", "mean", {}, ["gap"])
    >>> expression.mentions, expression.value({"gap": 0.25})
    (frozenset({'gap'}), [0.5, 0.0, 0.0])
    """

    def __init__(self, text: str, kind: str, names: Names, known: list[str]) -> None:
        self.text = text
        self.kind = kind
        self.names = {**FUNCTIONS, **names}
        self.known = known
        self.tree = self._parse()
        if not all(isinstance(node, UNDERSTOOD) for node in ast.walk(self.tree)):
            raise ValueError(f"{text}: only names, numbers, lists and calls are understood")
        self.mentions = frozenset(node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name))

    def _parse(self) -> ast.expr:
        if len(self.text) > LONGEST_TEXT:
            raise ValueError(f"the {self.kind} has {len(self.text):,} characters, more than {LONGEST_TEXT:,}")
        try:
            with warnings.catch_warnings(action="ignore"):  # about escapes in strings, which no name has
                return ast.parse(self.text.strip(), mode="eval").body
        except SyntaxError as error:
            raise ValueError(f"the {self.kind} {self.text!r} cannot be read: {error.msg}") from None
        except (RecursionError, MemoryError, ValueError):  # nested too deeply for the parser, or a zero byte
            raise ValueError(f"the {self.kind} {self.text[:60]!r} cannot be read") from None

    def value(self, variables: Mapping[str, float] | None = None) -> Value:
        """Compute it; ``variables`` are numbers by name."""
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


def _value(node: ast.expr, names: Names) -> Value:
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


def _named(keywords: list[ast.keyword], names: Names) -> dict[str, Value]:
    given: dict[str, Value] = {}
    for keyword in keywords:
        if keyword.arg is None:
            raise ValueError("only names, numbers, lists and calls are understood")
        if keyword.arg in given:
            raise ValueError(f"{keyword.arg} is given twice")
        given[keyword.arg] = _argument(keyword.value, names)
    return given


def _argument(node: ast.expr, names: Names) -> Value:
    """Return the value of an argument, which may be a mapping by texts of anything but mappings."""
    if not isinstance(node, ast.Dict):
        return _value(node, names)
    keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
    if not all(isinstance(key, str) for key in keys) or len(set(keys)) < len(keys):
        raise ValueError("the keys of a mapping must be texts that differ")
    values = [_value(value, names) for value in node.values]
    _listed(values)
    return dict(zip(keys, values, strict=True))


def _listed(items: list[Value]) -> list[Value]:
    """Return a list, which may have rows of a table, but nothing deeper: repeated, that would grow without end."""
    rows = [item for item in items if isinstance(item, list)]
    if any(isinstance(inner, list) for row in rows for inner in row):
        raise ValueError("the lists in a list must not contain lists")
    if _size(items) > LONGEST:
        raise ValueError(f"a list can have up to {LONGEST:,} items, got {_size(items):,}")
    return items


def _size(items: list[Value]) -> int:
    """Count the values in a list and in the lists in it, of which an empty one counts too."""
    return sum(max(len(item), 1) if isinstance(item, list) else 1 for item in items)


def _calculated(op: type, left: Value, right: Value) -> Value:
    """Combine numbers by all operations; lists may be joined and repeated."""
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
