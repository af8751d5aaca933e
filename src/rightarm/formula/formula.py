"""Formulas: the functions that policies, temperature schedules and problems are made of.

A formula is an ordinary function in NumPy operations. The positional arguments are its *inputs*, and by their names it
says what it depends on; the keyword-only arguments are its *parameters*, and by their annotations they are checked::

    def cautious(t, pulls, mean, z, *, C: Positive = 1.0):
        return mean + C / np.sqrt(pulls + np.log(t)) * z

The same function is called with NumPy arrays for one live decision and compiled for the simulator.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import numbers
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

import rightarm.formula.elementary  # noqa: F401  its functions stand for NumPy's in compiled formulas
from rightarm.formula.compile import draws_random_numbers, fingerprint, positional


@dataclass(frozen=True)
class Rule:
    """What a parameter must be, beyond a finite number."""

    adjective: str
    holds: Callable[[float], bool]


Positive = Annotated[float, Rule("positive", lambda x: x > 0)]
NonNegative = Annotated[float, Rule("non-negative", lambda x: x >= 0)]
Probability = Annotated[float, Rule("between 0 and 1", lambda x: 0 <= x <= 1)]
WHOLE = Rule("a whole number", lambda x: x == int(x))
Count = Annotated[float, Rule("a whole number from 1 on", lambda x: x >= 1 and x == int(x))]


def check_number(name: str, value: Any, rule: Rule | None = None) -> float:
    """``value`` as a float, or an error that says which parameter it was and what it got."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real | np.number):
        raise TypeError(f"{name} must be a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:  # a whole number of more than 308 digits
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number}")
    if rule is not None and not rule.holds(number):
        raise ValueError(f"{name} must be {rule.adjective}, got {number}")
    return number


def check_count(name: str, value: Any, least: int = 1) -> int:
    """``value`` as an int of at least ``least``; 1e6 and 10**6 are the same to us."""
    number = check_number(name, value)
    if number != int(number) or number < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """``value`` if it is one of ``choices``, or an error that lists them."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return str(value)


class Formula:
    """A formula with its parameters set: immutable, compared by value, and its `repr` makes it again."""

    INPUTS: ClassVar[dict[str, str]] = {}
    WORD: ClassVar[str] = ""  # what errors call it, if not by the class's name
    OPTIONS: ClassVar[frozenset[str]] = frozenset()  # parameters that are no numbers and do not enter the formula
    family: Family
    values: dict[str, Any]

    def __init__(self, family: Family, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values, family=family, values=dict(values))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{self!r} is immutable; make another one with {name}={value!r}")

    @classmethod
    def check(cls, name: str, value: Any, annotation: Any) -> Any:
        """The value of one parameter of such a formula, or an error that names it."""
        if hasattr(annotation, "accept"):  # a formula, or a law of noise
            return annotation.accept(name, value)
        if typing.get_origin(annotation) is typing.Literal:
            return check_choice(name, value, typing.get_args(annotation))
        return check_number(name, value, WHOLE if annotation is int else rule_of(annotation))

    @classmethod
    def accept(cls, name: str, value: Any) -> Formula:
        """``value`` where a formula of this kind is expected as a parameter."""
        if isinstance(value, cls):
            return value
        raise TypeError(f"{name} must be a {cls.__name__.lower()}, got {value!r}")

    @property
    def parts(self) -> Iterator[Formula]:
        """The formulas among the parameters (a temperature schedule is one)."""
        return (value for value in self.values.values() if isinstance(value, Formula))

    @property
    def arguments(self) -> dict[str, Any]:
        """The parameters that the formula itself has, in its order."""
        return self.values

    @property
    def inputs(self) -> frozenset[str]:
        """All that the value depends on besides the parameters."""
        return frozenset(self.family.inputs).union(*(part.inputs for part in self.parts))

    def evaluate(self, inputs: Mapping[str, Any]) -> Any:
        """The formula as it stands, by NumPy."""
        values = {
            name: value.evaluate(inputs) if isinstance(value, Formula) else value
            for name, value in self.arguments.items()
        }
        return self._call(inputs, values)

    def _call(self, inputs: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
        """The function's value, or its error with a word on where it happened."""
        try:
            value = self.family.function(*(inputs[name] for name in self.family.inputs), **values)
        except NameError as error:
            error.add_note(f"in {self.family.name}")
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            error.add_note(f"in {self.family.name}, which is called with arrays: np.where and np.sqrt, not if and math")
            raise
        if value is None:
            raise TypeError(f"{self.family.name} returned nothing; is its `return` missing?")
        return value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return (self.family.identity, *self.values.items())

    def __reduce__(self) -> tuple[Any, ...]:
        if self.family.bare:
            return type(self).accept, ("", self.family.function)
        return functools.partial(self.family, **self.values), ()

    def __repr__(self) -> str:
        if self.family.bare:
            return self.family.name
        return f"{self.family.name}({', '.join(f'{name}={value!r}' for name, value in self.values.items())})"

    def __str__(self) -> str:
        """Short, for tables and legends: without the parameters that have their default value."""
        if self.family.bare:
            return self.family.name
        defaults = {parameter.name: parameter.default for parameter in self.family.parameters}
        texts = [_as_argument(name, value) for name, value in self.values.items() if value != defaults[name]]
        return f"{self.family.name}({', '.join(texts)})"

    def as_argument(self, name: str) -> str:
        """Its text where it is the parameter ``name`` of another formula."""
        return str(self)

    def specification(self) -> dict[str, Any]:
        """The formula as plain data, from which `from_specification` makes it again."""
        values = {name: v.specification() if hasattr(v, "specification") else v for name, v in self.values.items()}
        function = self.family.function
        name = f"{function.__module__}:{function.__qualname__}"
        return {"formula": name, "code": fingerprint(*self.family.identity), "parameters": values}


def _as_argument(name: str, value: Any) -> str:
    if isinstance(value, Formula):
        return value.as_argument(name)
    return f"{name}={value:.6g}" if isinstance(value, float) else str(value)


class Family:
    """What a decorated formula becomes: called with parameters, it makes a checked :class:`Formula` of its kind."""

    def __init__(
        self,
        function: Callable[..., Any],
        kind: type[Formula],
        bare: bool = False,
        columns: Iterable[str] = (),
    ) -> None:
        if not isinstance(function, types.FunctionType):
            raise TypeError(f"a {kind.WORD or kind.__name__.lower()} is made from a function, got {function!r}")
        if draws_random_numbers(function):
            raise TypeError(f"{function.__name__} draws random numbers itself; ask for noise by name instead")
        self.bare = bare  # a plain function where a formula is expected: it stands for itself, without parameters
        self.known_inputs = (*kind.INPUTS, *columns)
        functools.update_wrapper(self, function)
        self.__qualname__ = function.__qualname__
        self.function, self.kind, self.name = function, kind, function.__name__
        signature = inspect.signature(function)
        arguments = signature.parameters.values()
        self.inputs = tuple(a.name for a in arguments if a.kind is a.POSITIONAL_OR_KEYWORD)
        self.parameters = tuple(a for a in arguments if a.kind is a.KEYWORD_ONLY)
        self._check_inputs(arguments)
        self._describe()

    def _describe(self) -> None:
        """What help() and editors show."""
        listed = self._parameter_list() if self.parameters else ""
        self.__doc__ = f"{self.name}({listed})\n\n{inspect.getdoc(self.function) or ''}"
        self.__signature__ = inspect.Signature(
            [a.replace(kind=a.POSITIONAL_OR_KEYWORD) for a in self.parameters], return_annotation=self.kind
        )

    def _check_inputs(self, arguments: Iterable[inspect.Parameter]) -> None:
        named = {*self.inputs, *(p.name for p in self.parameters)}
        for argument in arguments:
            if argument.name not in named or (argument.name in self.inputs and argument.name not in self.known_inputs):
                known = ", ".join(self.known_inputs)
                raise TypeError(
                    f"{self.name}: unknown input {argument.name!r}; a {self.word} formula may ask for {known}, "
                    f"and its parameters stand behind a *"
                )
            if argument.name not in self.inputs and hasattr(self.kind, argument.name) and not self._is_option(argument):
                raise TypeError(
                    f"{self.name}: the parameter {argument.name!r} has the name of something that every "
                    f"{self.word} has; choose another"
                )

    @property
    def word(self) -> str:
        """What errors call such a formula."""
        return self.kind.WORD or self.kind.__name__.lower()

    def _is_option(self, argument: inspect.Parameter) -> bool:
        if argument.name not in self.kind.OPTIONS:
            return False
        annotation = self.annotations.get(argument.name)
        return hasattr(annotation, "accept") or typing.get_origin(annotation) is typing.Literal

    @property
    def identity(self) -> tuple[Any, ...]:
        """What makes two families the same."""
        return (self.function,)

    @functools.cached_property
    def annotations(self) -> dict[str, Any]:
        """The parameters' annotations, with their rules."""
        return typing.get_type_hints(self.function, include_extras=True)

    def bind(self, *arguments: Any, **keywords: Any) -> dict[str, Any]:
        """The parameters by name, defaults included, not yet checked."""
        for unknown in keywords.keys() - {p.name for p in self.parameters}:
            raise TypeError(f"{self.name} has no parameter {unknown!r}; it has {self._parameter_list()}")
        try:
            bound = self.__signature__.bind(*arguments, **keywords)
        except TypeError as error:
            raise TypeError(f"{self.name}({self._parameter_list()}): {error}") from None
        bound.apply_defaults()
        return bound.arguments

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        given, hints = self.bind(*arguments, **keywords), self.annotations
        return self.kind(self, {name: self.kind.check(name, value, hints.get(name)) for name, value in given.items()})

    def _parameter_list(self) -> str:
        texts = (p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in self.parameters)
        return ", ".join(texts) or "none"

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return self.__qualname__


def imported(address: str) -> Any:
    """What stands at ``module:name``."""
    module, _, name = address.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        raise ValueError(f"{address} cannot be imported here") from None


def present(address: str) -> Any:
    """The same, in modules that are imported already: for text from elsewhere, which must not set off anything."""
    module, _, name = str(address).partition(":")
    try:
        return vars(sys.modules[module])[name]
    except KeyError:
        raise ValueError(f"{address} is not there; import its module, or give the policy itself") from None


def from_specification(specification: Mapping[str, Any], find: Callable[[str], Any] = imported) -> Any:
    """The formula that `Formula.specification` described; ``find`` finds what stands at ``module:name``.

    >>> import rightarm as ra
    >>> from_specification(ra.UCB(C=0.5).specification())
    UCB(C=0.5)
    """
    if "law" in specification:
        law = find(specification["law"])
        if not isinstance(law, type) or not hasattr(law, "quantile"):
            raise ValueError(f"{specification['law']} is not a law of noise")
        return law()
    if "estimator" in specification:
        return _estimator_from(specification, find)
    found = family_of(specification, find)
    values = {
        name: from_specification(value, find) if isinstance(value, Mapping) else value
        for name, value in specification["parameters"].items()
    }
    if not isinstance(found, Family | types.FunctionType):
        raise ValueError(f"{specification['formula']} is not a formula")
    return found(**values) if isinstance(found, Family) else found  # a plain function of t is a schedule as it stands


def _estimator_from(specification: Mapping[str, Any], find: Callable[[str], Any]) -> Any:
    found = find(specification["estimator"])
    if not isinstance(found, type) or not hasattr(found, "KEEPS"):
        raise ValueError(f"{specification['estimator']} is not an estimator")
    made = found(**specification["parameters"])
    if made.specification()["code"] != specification["code"]:
        raise ValueError(f"the estimator {specification['estimator']} has changed since this was saved")
    return made


def family_of(specification: Mapping[str, Any], find: Callable[[str], Any] = imported) -> Any:
    """The family, or the plain function, that a specification names, if it is still the same."""
    found = find(specification["formula"])
    identity = found.identity if isinstance(found, Family) else (found,)
    if fingerprint(*identity) != specification["code"]:
        raise ValueError(f"the formula {specification['formula']} is not the one that it was")
    return found


def rule_of(annotation: Any) -> Rule | None:
    """The rule in an annotation such as `Positive`."""
    return next((extra for extra in getattr(annotation, "__metadata__", ()) if isinstance(extra, Rule)), None)


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
            return "0.0"  # an option, which does not enter the formula
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
