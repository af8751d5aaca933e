"""Formulas: the functions that policies, temperature schedules and problems are made of.

A formula is an ordinary function in NumPy operations. The positional arguments are its *inputs*, and by their names it
says what it depends on; the keyword-only arguments are its *parameters*, and by their annotations they are checked::

    def cautious(t, pulls, mean, z, *, C: Positive = 1.0):
        return mean + C / np.sqrt(pulls + np.log(t)) * z

The same function is called with NumPy arrays for one live decision and compiled for the simulator.
"""

from __future__ import annotations

import inspect
import math
import numbers
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial, update_wrapper
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np

import rightarm.formula.elementary  # noqa: F401  its functions stand for NumPy's in compiled formulas
from rightarm.errors import WrongType, WrongValue
from rightarm.formula.identity import identity, with_defaults
from rightarm.formula.syntax import Function, draws_random_numbers, names_read

Values: TypeAlias = Mapping[str, Any]  # parameters by name: numbers, formulas, laws of noise, estimators


@dataclass(frozen=True)
class Rule:
    """A condition on a parameter, beyond that it is a finite number."""

    adjective: str
    holds: Callable[[float], bool]


Positive = Annotated[float, Rule("positive", lambda x: x > 0)]
NonNegative = Annotated[float, Rule("non-negative", lambda x: x >= 0)]
Probability = Annotated[float, Rule("between 0 and 1", lambda x: 0 <= x <= 1)]
WHOLE = Rule("a whole number", lambda x: x == int(x))
Count = Annotated[float, Rule("a whole number from 1 on", lambda x: x >= 1 and x == int(x))]


def check_number(name: str, value: object, rule: Rule | None = None) -> float:
    """Return ``value`` as a float, or raise an error that says which parameter it was and what it got."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real | np.number):
        raise WrongType(name, f"must be a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:  # a whole number of more than 308 digits
        number = math.inf
    if not math.isfinite(number):
        raise WrongValue(name, f"must be finite, got {number}", code="not_finite")
    if rule is not None and not rule.holds(number):
        raise WrongValue(name, f"must be {rule.adjective}, got {number}", code="out_of_range")
    return number


def check_count(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """Return ``value`` as an int from ``least`` to ``most``; 1e6 and 10**6 are the same to us."""
    number = check_number(name, value)
    if number != int(number) or number < least:
        raise WrongValue(name, f"must be a whole number of at least {least}, got {value!r}", code="out_of_range")
    if most is not None and number > most:
        raise WrongValue(name, f"must be at most {most:,}, got {value!r}", code="out_of_range")
    return int(value)


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of ``choices``, or raise an error that lists them."""
    if value not in choices:
        raise WrongValue(name, f"must be one of {', '.join(map(repr, choices))}, got {value!r}", code="unknown_choice")
    return str(value)


def rule_of(annotation: object) -> Rule | None:
    """Return the rule in an annotation such as `Positive`."""
    return next((extra for extra in getattr(annotation, "__metadata__", ()) if isinstance(extra, Rule)), None)


class Formula:
    """A formula with its parameters set: immutable, compared by value, and its `repr` makes it again."""

    INPUTS: ClassVar[dict[str, str]] = {}
    WORD: ClassVar[str] = ""  # what errors call it, if not by the class's name
    OPTIONS: ClassVar[frozenset[str]] = frozenset()  # parameters that are no numbers and do not enter the formula
    family: Family
    values: dict[str, Any]

    def __init__(self, family: Family, values: Values) -> None:
        for name, value in values.items():
            if name in family.read and not isinstance(value, float | tuple | Formula):  # compiled, it would be 0
                raise TypeError(f"{family.name} computes with {name}, which must be a number for that, got {value!r}")
        self.__dict__.update(values, family=family, values=dict(values))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{self!r} is immutable; make another one with {name}={value!r}")

    @classmethod
    def check(cls, name: str, value: object, annotation: Any) -> Any:
        """Return the value of one parameter of such a formula, or raise an error that names it."""
        if hasattr(annotation, "accept"):  # a formula, or a law of noise
            return annotation.accept(name, value)
        if typing.get_origin(annotation) is typing.Literal:
            return check_choice(name, value, typing.get_args(annotation))
        return check_number(name, value, WHOLE if annotation is int else rule_of(annotation))

    @classmethod
    def accept(cls, name: str, value: object) -> Formula:
        """Return ``value`` if it is a formula of this kind, or raise an error that names the parameter."""
        if isinstance(value, cls):
            return value
        raise WrongType(name, f"must be a {cls.__name__.lower()}, got {value!r}")

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
        """The names of what the value depends on besides the parameters."""
        return frozenset(self.family.inputs).union(*(part.inputs for part in self.parts))

    def evaluate(self, inputs: Mapping[str, Any]) -> Any:
        """Compute the formula as it stands, by NumPy."""
        values = {
            name: value.evaluate(inputs) if isinstance(value, Formula) else value
            for name, value in self.arguments.items()
        }
        return self._call(inputs, values)

    def _call(self, inputs: Mapping[str, Any], values: Values) -> Any:
        """Call the function; an error of its own says where it happened."""
        try:
            result = self.family.function(*(inputs[name] for name in self.family.inputs), **values)
        except NameError as error:
            error.add_note(f"in {self.family.name}")
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            error.add_note(f"in {self.family.name}, which is called with arrays: np.where and np.sqrt, not if and math")
            raise
        if result is None:
            raise TypeError(f"{self.family.name} returned nothing; is its `return` missing?")
        return result

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (self.family.made_of, *self.values.items())

    def __reduce__(self) -> tuple[Function, tuple[object, ...]]:
        if self.family.bare:
            return type(self).accept, ("", self.family.function)
        return partial(self.family, **self.values), ()

    def __repr__(self) -> str:
        if self.family.bare:
            return self.family.name
        return f"{self.family.name}({', '.join(f'{name}={value!r}' for name, value in self.values.items())})"

    def __str__(self) -> str:
        """Write it short, for tables and legends: without the parameters that have their default value."""
        if self.family.bare:
            return self.family.name
        defaults = self.family.defaults
        texts = [_as_argument(name, value) for name, value in self.values.items() if value != defaults[name]]
        return f"{self.family.name}({', '.join(texts)})"

    def as_argument(self, name: str) -> str:
        """Return its text where it is the parameter ``name`` of another formula."""
        return str(self)

    def specification(self) -> dict[str, Any]:
        """Return the formula as plain data, from which `from_specification` makes it again."""
        values = {name: v.specification() if hasattr(v, "specification") else v for name, v in self.values.items()}
        function = self.family.function
        name = f"{function.__module__}:{function.__qualname__}"
        return {"formula": name, "code": self.family.identity, "parameters": values}


def _as_argument(name: str, value: object) -> str:
    if isinstance(value, Formula):
        return value.as_argument(name)
    return f"{name}={value:.6g}" if isinstance(value, float) else str(value)


class Family:
    """A decorated formula: called with parameters, it makes a checked :class:`Formula` of its kind."""

    def __init__(
        self,
        function: Function,
        kind: type[Formula],
        bare: bool = False,
        columns: Iterable[str] = (),
    ) -> None:
        if not isinstance(function, types.FunctionType):
            raise TypeError(f"a {kind.WORD or kind.__name__.lower()} is made from a function, got {function!r}")
        if draws_random_numbers(function):
            raise TypeError(f"{function.__name__} draws random numbers itself; ask for noise by name instead")
        update_wrapper(self, function)
        self.__qualname__ = function.__qualname__
        self.function = function
        self.kind = kind
        self.name = function.__name__
        self.bare = bare  # a plain function where a formula is expected: it stands for itself, without parameters
        arguments = inspect.signature(function).parameters.values()
        self.inputs = tuple(a.name for a in arguments if a.kind is a.POSITIONAL_OR_KEYWORD)
        self.parameters = tuple(a for a in arguments if a.kind is a.KEYWORD_ONLY)
        self._check_arguments(arguments, possible=(*kind.INPUTS, *columns))
        self._describe()

    def _describe(self) -> None:
        """Set what help() and editors show."""
        listed = self._parameter_list() if self.parameters else ""
        self.__doc__ = f"{self.name}({listed})\n\n{inspect.getdoc(self.function) or ''}"
        self.__signature__ = inspect.Signature(
            [a.replace(kind=a.POSITIONAL_OR_KEYWORD) for a in self.parameters], return_annotation=self.kind
        )

    def _check_arguments(self, arguments: Iterable[inspect.Parameter], possible: tuple[str, ...]) -> None:
        """Raise if an input is not possible, or a parameter has a name that means something else."""
        parameters = {parameter.name for parameter in self.parameters}
        word = self.kind.WORD or self.kind.__name__.lower()
        for argument in arguments:
            name = argument.name
            if name in parameters:
                if hasattr(self.kind, name) and not self._is_option(name):
                    raise TypeError(
                        f"{self.name}: the parameter {name!r} has the name of something that every {word} has; "
                        f"choose another"
                    )
            elif name not in self.inputs or name not in possible:
                raise TypeError(
                    f"{self.name}: unknown input {name!r}; a {word} formula may ask for {', '.join(possible)}, "
                    f"and its parameters stand behind a *"
                )

    def _is_option(self, name: str) -> bool:
        if name not in self.kind.OPTIONS:
            return False
        annotation = self.annotations.get(name)
        return hasattr(annotation, "accept") or typing.get_origin(annotation) is typing.Literal

    @property
    def made_of(self) -> tuple[Any, ...]:
        """The functions and constants that make two families the same."""
        return with_defaults(self.function) if self.bare else (self.function,)

    @property
    def identity(self) -> str:
        """A text that is the same wherever the formula is: see `rightarm.formula.identity`.

        It is computed anew each time, because a global constant may have been changed meanwhile. A family that came
        from another process has no source; it brings its identity along.
        """
        brought: str | None = vars(self).get("identity_where_made")
        return brought or identity(*self.made_of)

    def __getstate__(self) -> dict[str, Any]:
        """Return all that another process needs to have the same family, its identity included."""
        state = {name: value for name, value in vars(self).items() if name != "annotations"}
        return state | {"identity_where_made": self.identity}

    @cached_property
    def annotations(self) -> dict[str, Any]:
        """The parameters' annotations, with their rules."""
        return typing.get_type_hints(self.function, include_extras=True)

    @property
    def defaults(self) -> dict[str, Any]:
        """The parameters' default values; `inspect.Parameter.empty` for those that must be given."""
        return {parameter.name: parameter.default for parameter in self.parameters}

    def resolved(self, given: Values) -> dict[str, Any]:
        """Return the parameters, with values in place of names that stand for them, such as that of an estimator."""
        return dict(given)

    def bind(self, *arguments: Any, **keywords: Any) -> dict[str, Any]:
        """Return the parameters by name, defaults included, not yet checked."""
        for unknown in keywords.keys() - {p.name for p in self.parameters}:
            raise TypeError(f"{self.name} has no parameter {unknown!r}; it has {self._parameter_list()}")
        try:
            bound = self.__signature__.bind(*arguments, **keywords)
        except TypeError as error:
            raise TypeError(f"{self.name}({self._parameter_list()}): {error}") from None
        bound.apply_defaults()
        return bound.arguments

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        given = self.bind(*arguments, **keywords)
        hints = self.annotations
        return self.kind(self, {name: self.kind.check(name, value, hints.get(name)) for name, value in given.items()})

    @cached_property
    def read(self) -> frozenset[str]:
        """The names of the inputs and parameters that the formula computes with."""
        return names_read(self.function)

    def _parameter_list(self) -> str:
        texts = (p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in self.parameters)
        return ", ".join(texts) or "none"

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return self.__qualname__
