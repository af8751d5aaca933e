"""Policies and problems as an experiment file describes them, with every value that is swept."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rightarm.formula import Family, Formula, check_number, rule_of
from rightarm.lab.experiment.context_tables import LINEAR, classification
from rightarm.lab.experiment.errors import ExperimentError, a_table, blamed, inside, shown, suggestion, unknown
from rightarm.lab.experiment.expressions import (
    FUNCTIONS,
    Expression,
    as_policy,
    as_problem,
    contexts,
    estimators,
    families,
    laws,
    own_call,
    problem_kinds,
)
from rightarm.lab.experiment.modules import find, is_address
from rightarm.lab.experiment.sweeps import Entries, Numbers, Sweep, Variant, rows
from rightarm.noise import Law
from rightarm.problems import Classification, ContextProblem, LinearProblem, Problem, ProblemFamily
from rightarm.problems.random import AnyProblem, RandomProblem
from rightarm.scores.policy import PolicyFamily

DEEPEST = 8  # tables in tables
LARGEST = 2.0**1023  # in size, of numbers that are written down
CORRUPTION = ("arm", "rounds", "pulls", "reward")


@dataclass(frozen=True)
class Kind:
    """What a table is to describe: a policy, a problem, or the formula that is a parameter of one."""

    word: str
    family: type[Family]
    known: Mapping[str, Any]
    """The public ones, by name."""
    names: Mapping[str, Any]
    """What expressions may mention."""
    accept: Callable[[str, Any], Any]
    """Gives what was made, or refuses it."""


def _any(text: str, made: Any) -> Any:
    return made


_PROBLEMS = problem_kinds()
_CONTEXTS = contexts()
_PARTS = {**families(Family), **laws(), **estimators()}
_POLICIES = {**families(PolicyFamily), **_PARTS}
POLICY = Kind("policy", PolicyFamily, families(PolicyFamily), _POLICIES, as_policy)
PROBLEM = Kind("problem", ProblemFamily, _PROBLEMS, {**_PROBLEMS, **_CONTEXTS}, as_problem)
CONTEXT_PART = Kind("context", Family, _CONTEXTS, _CONTEXTS, _any)
POLICY_PART = Kind("formula", Family, _PARTS, _POLICIES, _any)
PROBLEM_PART = Kind("law", ProblemFamily, families(ProblemFamily), _PROBLEMS, _any)
TAKEN = frozenset({"horizon", *FUNCTIONS, *_POLICIES, *_PROBLEMS, *_CONTEXTS})


@dataclass(frozen=True)
class Context:
    """What holds for a whole file: the folder beside which own modules are found, and the numbers under `let`."""

    folder: Path | None
    numbers: tuple[str, ...]
    depth: int = 0

    def find(self, key: str, address: str) -> Any:
        """What stands at `module:name`."""
        with blamed(key):
            try:
                return find(address, self.folder)
            except ValueError:
                raise
            except ModuleNotFoundError as error:
                raise ValueError(f"{address!r} cannot be imported: {error}") from error

    def expression(self, key: str, text: str, kind: Kind) -> Expression:
        """``text`` parsed, its names known; `module:Name(C=1)` calls something of the user's own."""
        call, own = own_call(text, functools.partial(self.find, key))
        names, variables = {**kind.names, **own}, ("horizon", *self.numbers)
        known = [*variables, *FUNCTIONS, *names]
        with blamed(key):
            expression = Expression(call, kind.word, names, known)
        for name in sorted(expression.mentions - set(known)):
            raise ExperimentError(
                f"{key}: unknown name {name} in {shown(text)}; there are {', '.join(known)}{suggestion(name, known)}"
            )
        return expression


def policies(key: str, value: Any, context: Context) -> Sweep:
    """The policies that a table, or an expression, describes."""
    return _formula(key, _with_use(key, value, 'use = "UCB"'), POLICY, context)


def problems(key: str, value: Any, context: Context) -> Sweep:
    """The problems that a table, or an expression, describes; what corrupts them included."""
    table = dict(_with_use(key, value, 'use = "Bernoulli"'))
    corruptions = _corruptions(inside(key, "corrupted"), table.pop("corrupted", None))

    def made(parts: list[Any]) -> AnyProblem:
        problem: AnyProblem = parts[0]
        for own, corruption in zip(corruptions, parts[1:], strict=True):
            with blamed(own):
                problem = problem.corrupted(**corruption)
        if isinstance(problem, Problem):
            with blamed(key):
                _ = problem.means  # those of a user's own formula may not exist
        return problem

    return Sweep.combined([_formula(key, table, PROBLEM, context), *corruptions.values()], made)


def _corruptions(key: str, value: Any) -> dict[str, Sweep]:
    """What corrupts a problem, by key: nothing, one table, or a list of them, all of which apply."""
    if value is None:
        return {}
    if not isinstance(value, list):
        return {key: _corruption(key, value)}
    return {f"{key}[{i}]": _corruption(f"{key}[{i}]", each) for i, each in enumerate(value or [value])}


def _corruption(key: str, value: Any) -> Sweep:
    table = a_table(key, value, "{ arm = 0, rounds = 100, reward = 0.0 }")

    def check(own: str, name: str, value: Any) -> None:
        if name not in CORRUPTION:
            raise unknown(own, name, value, "key", "a corruption has", CORRUPTION)

    sweep = rows(key, table, Entries(a_number, check)).labelled("corrupted")
    if "arm" not in names_in(table):
        raise ExperimentError(f"{inside(key, 'arm')}: is missing; a corruption has {', '.join(CORRUPTION)}")
    return sweep


def a_number(key: str, name: str, value: Any) -> Sweep:
    """A number that may be anything but infinite."""
    with blamed(key, name):
        check_number(name, value)
    return Sweep.fixed(value)


def _with_use(key: str, value: Any, example: str) -> Mapping[str, Any]:
    table = {"use": value} if isinstance(value, str) else a_table(key, value, f"{{ {example}, ... }}")
    if "use" not in table:
        near = suggestion("use", table).replace("did you mean", "is it")
        raise ExperimentError(f"{inside(key, 'use')}: is missing, as in {example}{near}")
    return table


def _formula(key: str, table: Mapping[str, Any], kind: Kind, context: Context) -> Sweep:
    """A table with `use` and parameters."""
    use, own = table["use"], inside(key, "use")
    if not isinstance(use, str):
        raise ExperimentError(f"{own}: must be a name, module:name or an expression, as text, got {shown(use)}")
    given = {name: value for name, value in table.items() if name != "use"}
    if is_address(use):
        return _of_found(key, use, context.find(own, use), given, kind, context)
    if use.isidentifier():
        if use not in kind.known:
            raise ExperimentError(
                f"{own}: unknown {kind.word} {shown(use)}; there are {', '.join(kind.known)}, or module:name of your "
                f"own{suggestion(use, kind.known)}"
            )
        return _of_found(key, use, kind.known[use], given, kind, context)
    if ":" in use and not is_address(use.partition("(")[0].strip()):
        raise ExperimentError(f"{own}: must be module:name, as in my_module:MyPolicy, got {shown(use)}")
    for name, value in given.items():
        raise ExperimentError(f"{inside(key, name)}: has no place beside an expression in use, got {shown(value)}")
    return _written(own, context.expression(own, use, kind), kind.accept)


def _instance(found: Any) -> Any:
    return found() if isinstance(found, type) and issubclass(found, Law) else found


def _of_found(key: str, use: str, found: Any, given: dict[str, Any], kind: Kind, context: Context) -> Sweep:
    """A family with its parameters, or something ready-made without any."""
    if found is RandomProblem:
        name = given.pop("family", None)
        family = _random_family(inside(key, "family"), name, context)
        return _called(key, family, functools.partial(RandomProblem, family), given, kind, context)
    if found is LinearProblem:
        return _called(key, LINEAR, LinearProblem, given, kind, context)
    if found is Classification:
        return Sweep.fixed(classification(key, given, context.folder))
    if isinstance(found, kind.family):
        return _called(key, found, found, given, kind, context).mapped(_accepted(key, use, kind))
    found = _instance(found)
    for name, value in given.items():
        raise unknown(key, name, value, "key", f"{use} takes no parameters; there is", ("use",))
    accept = _accepted(key, use, kind)
    accept(found)
    return Sweep.fixed(found)


def _accepted(key: str, use: str, kind: Kind) -> Callable[[Any], Any]:
    def accept(made: Any) -> Any:
        try:
            return kind.accept(use, made)
        except ValueError as error:
            function = isinstance(made, types.FunctionType)
            hint = f"; decorate it with @rightarm.{kind.word}" if function else ""
            raise ExperimentError(f"{inside(key, 'use')}: {error}, which is {shown(made)}{hint}") from None

    return accept


def _random_family(key: str, name: Any, context: Context) -> ProblemFamily:
    known = families(ProblemFamily)
    found = context.find(key, name) if isinstance(name, str) and is_address(name) else known.get(str(name))
    if not isinstance(found, ProblemFamily):
        given = "it is missing" if name is None else f"got {shown(name)}"
        raise ExperimentError(
            f"{key}: must be a family of problems, {given}; there are {', '.join(known)}, or module:name of your own"
            f"{suggestion(str(name), known)}"
        )
    return found


def _called(
    key: str, family: Family, make: Callable[..., Any], given: dict[str, Any], kind: Kind, context: Context
) -> Sweep:
    """Every combination of the parameters that a table gives to a family."""
    names = [parameter.name for parameter in family.parameters]

    def check(own: str, name: str, value: Any) -> None:
        if name not in names:
            besides = ("use", "grid", "zip", *(("corrupted", "known") if kind is PROBLEM else ()))
            raise unknown(own, name, value, "parameter", f"{family.name} has", names, besides)

    def is_value(name: str, values: list[Any]) -> bool:
        annotation: Any = family.annotations.get(name)
        if hasattr(annotation, "is_value"):
            return bool(annotation.is_value(values))
        return issubclass(family.kind, Problem) and _is_per_arm(values)

    read = functools.partial(_parameter, family=family, kind=kind, context=context)
    sweep = rows(key, given, Entries(read, check, is_value))
    for parameter in family.parameters:
        if parameter.default is parameter.empty and parameter.name not in names_in(given):
            raise ExperimentError(f"{inside(key, parameter.name)}: is missing; {family.name} has {', '.join(names)}")

    def made(values: dict[str, Any]) -> Any:
        lengths = {len(value) for value in values.values() if isinstance(value, tuple)}
        hint = "several values of one parameter are swept under grid" if len(lengths) > 1 else ""
        with blamed(key, allowed=hint):
            return make(**values)

    return sweep.mapped(made)


def names_in(table: Mapping[str, Any]) -> set[str]:
    """The names to which a table gives values, by themselves or under `grid` or `zip`."""
    return {*table, *table.get("grid", ()), *table.get("zip", ())}


def _is_per_arm(value: list[Any]) -> bool:
    """Whether a list is one value for each arm; lists of lists, texts and tables are swept, alone."""
    return not all(isinstance(each, list | str | dict) for each in value)


def _parameter(key: str, name: str, value: Any, *, family: Family, kind: Kind, context: Context) -> Sweep:
    """One value of a parameter: a number, a text or a table, checked at once if it depends on nothing else."""
    part = PROBLEM_PART if issubclass(family.kind, Problem) else POLICY_PART
    part = CONTEXT_PART if issubclass(family.kind, ContextProblem) else part
    with blamed(key):
        annotation = family.annotations.get(name)
    check = functools.partial(_checked, key, name, family, annotation)
    if isinstance(value, dict):
        if context.depth >= DEEPEST:
            raise ExperimentError(f"{key}: tables are nested too deeply, got {shown(value)}")
        deeper = replace(context, depth=context.depth + 1)
        nested = _formula(key, _with_use(key, value, 'use = "inverse_log"'), part, deeper)
        return nested.labelled(name).mapped(check)
    if isinstance(value, str) and typing.get_origin(annotation) is not typing.Literal:
        if is_address(value):
            found = _instance(context.find(key, value))
            return Sweep.fixed(check(found() if isinstance(found, Family) and not found.parameters else found))
        return _written(key, context.expression(key, value, part), lambda text, made: check(made))
    if isinstance(value, int) and abs(value) > LARGEST:
        raise ExperimentError(f"{key}: must be finite, got {shown(value)}; {_allowed(family, annotation)}")
    return Sweep.fixed(check(value))


def _checked(key: str, name: str, family: Family, annotation: Any, value: Any) -> Any:
    if issubclass(family.kind, Problem) and isinstance(value, Formula):
        return value  # the law of a random problem's parameter
    with blamed(key, name, _allowed(family, annotation)):
        return family.kind.check(name, value, annotation)


def _allowed(family: Family, annotation: Any) -> str:
    """What a parameter may be, as the end of an error; nothing where the error itself says it."""
    if hasattr(annotation, "accept") or typing.get_origin(annotation) is typing.Literal:
        return ""
    rule = rule_of(annotation)
    number = f"a number that is {rule.adjective}" if rule else "a whole number" if annotation is int else "a number"
    if issubclass(family.kind, Problem):
        return f"allowed is {number}, for all arms, or a list with one for each; a list of lists sweeps it"
    return f"allowed is {number}, or a list of such to sweep it"


def _written(key: str, expression: Expression, accept: Callable[[str, Any], Any]) -> Sweep:
    """What an expression gives, once the numbers that it mentions are known."""
    mentions = expression.mentions - expression.names.keys()

    def make(numbers: Numbers) -> Any:
        used = {name: numbers[name] for name in sorted(mentions)}
        try:
            with blamed(key):
                return accept(expression.text, expression.value(used))
        except ExperimentError as error:
            where = [] if expression.text in str(error) else [f"in {shown(expression.text)}"]
            where += [f"{name} = {number!r}" for name, number in used.items()]
            raise ExperimentError("; ".join([str(error), *([", ".join(where)] if where else [])])) from error

    if not mentions:
        return Sweep.fixed(make({}))
    return Sweep.of(Variant((), make, mentions))
