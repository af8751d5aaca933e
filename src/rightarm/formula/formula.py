"""Formulas: the functions that policies, temperature schedules and problems are made of.

A formula is an ordinary function in NumPy operations. The positional arguments are its *inputs*, and by their names it
says what it depends on; the keyword-only arguments are its *parameters*, and by their annotations they are checked::

    def cautious(t, pulls, mean, z, *, C: Positive = 1.0):
        return mean + C / np.sqrt(pulls + np.log(t)) * z

The same function is called with NumPy arrays for one live decision and compiled for the simulator.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

import rightarm.formula.elementary  # noqa: F401  its functions stand for NumPy's in compiled formulas
from rightarm.errors import WrongType
from rightarm.formula.compile import draws_random_numbers, names_read
from rightarm.formula.identity import identity, with_defaults
from rightarm.formula.parameters import WHOLE, check_choice, check_number, rule_of


class Formula:
    """A formula with its parameters set: immutable, compared by value, and its `repr` makes it again."""

    INPUTS: ClassVar[dict[str, str]] = {}
    WORD: ClassVar[str] = ""  # what errors call it, if not by the class's name
    OPTIONS: ClassVar[frozenset[str]] = frozenset()  # parameters that are no numbers and do not enter the formula
    family: Family
    values: dict[str, Any]

    def __init__(self, family: Family, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            if name in family.read and not isinstance(value, float | tuple | Formula):  # compiled, it would be 0
                raise TypeError(f"{family.name} computes with {name}, which must be a number for that, got {value!r}")
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
        return (self.family.made_of, *self.values.items())

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
        defaults = self.family.defaults
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
        return {"formula": name, "code": self.family.identity, "parameters": values}


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
        """All that another process needs to have the same family, its identity included."""
        kept = {name: value for name, value in vars(self).items() if name != "annotations"}
        return kept | {"identity_where_made": self.identity}

    @functools.cached_property
    def annotations(self) -> dict[str, Any]:
        """The parameters' annotations, with their rules."""
        return typing.get_type_hints(self.function, include_extras=True)

    @property
    def defaults(self) -> dict[str, Any]:
        """The parameters' default values; `inspect.Parameter.empty` for those that must be given."""
        return {parameter.name: parameter.default for parameter in self.parameters}

    def resolved(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters, with values in place of names that stand for them; a policy's estimator may have a name."""
        return dict(given)

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

    @functools.cached_property
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
