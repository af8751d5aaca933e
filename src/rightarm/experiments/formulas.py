"""Policies and problems in an experiment file: tables and expressions that become formulas with parameters."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rightarm.errors import polars_for
from rightarm.experiments.document import (
    ExperimentError,
    Table,
    check_keys,
    check_table,
    errors_at,
    inside,
    shown,
    suggestion,
    unknown_key,
)
from rightarm.experiments.sweeps import Entries, Numbers, Sweep, Variant, combined, fixed, names_in, rows, sweep_of
from rightarm.formula import Family, Formula, NonNegative, check_number, rule_of
from rightarm.noise import Law
from rightarm.policies import text as texts
from rightarm.policies.policy import Policy, PolicyFamily
from rightarm.policies.text import FUNCTIONS, Expression, families, is_address
from rightarm.problems import Classification, ContextDistribution, LinearProblem, Problem, ProblemFamily
from rightarm.problems.contextual import per_arm
from rightarm.problems.random import AnyProblem, RandomProblem

DEEPEST = 8  # tables in tables
LARGEST = 2.0**1023  # in size, of numbers that are written down
CORRUPTION = ("arm", "rounds", "pulls", "reward")
DATA_SET = ("file", "label")  # the keys of a data set's table
Made = object
"""What a table describes: a policy, a problem, or a formula that is a parameter of one."""


@dataclass(frozen=True)
class TableKind:
    """A kind of table, such as a policy or a problem, with the words and names that it may use."""

    word: str
    family: type[Family]
    public: Mapping[str, Any]
    """What `use` may name."""
    names: Mapping[str, Any]
    """What expressions may mention."""
    accept: Callable[[str, Made], Made] = lambda text, made: made
    """Gives what a text made, or refuses it."""


_PROBLEMS = texts.problem_kinds()
_CONTEXTS = texts.contexts()
_PARTS = {**families(Family), **texts.laws(), **texts.estimators()}
_POLICIES = {**families(PolicyFamily), **_PARTS}
POLICY = TableKind("policy", PolicyFamily, families(PolicyFamily), _POLICIES, texts.as_policy)
PROBLEM = TableKind("problem", ProblemFamily, _PROBLEMS, {**_PROBLEMS, **_CONTEXTS}, texts.as_problem)
CONTEXT_PART = TableKind("context", Family, _CONTEXTS, _CONTEXTS)
POLICY_PART = TableKind("formula", Family, _PARTS, _POLICIES)
PROBLEM_PART = TableKind("law", ProblemFamily, families(ProblemFamily), _PROBLEMS)
TAKEN = frozenset({"horizon", *FUNCTIONS, *_POLICIES, *_PROBLEMS, *_CONTEXTS})
"""Names that cannot stand for numbers."""


@dataclass(frozen=True)
class Scope:
    """The names that expressions in a file can use: modules next to it, and the numbers under `let`."""

    folder: Path | None
    numbers: tuple[str, ...]
    depth: int = 0

    def find(self, key: str, address: str) -> Any:
        """Return what stands at `module:name`."""
        with errors_at(key):
            try:
                return texts.find(address, self.folder)
            except ValueError:
                raise
            except ModuleNotFoundError as error:
                raise ValueError(f"{address!r} cannot be imported: {error}") from error

    def expression(self, key: str, text: str, kind: TableKind) -> Expression:
        """Return ``text`` parsed, its names found; `module:Name(C=1)` calls something of the user's own."""
        call, of_user = texts.own_call(text, functools.partial(self.find, key))
        names = {**kind.names, **of_user}
        available = ["horizon", *self.numbers, *FUNCTIONS, *names]
        with errors_at(key):
            expression = Expression(call, kind.word, names, available)
        for name in sorted(expression.mentions - set(available)):
            near = suggestion(name, available)
            raise ExperimentError(
                f"{key}: unknown name {name} in {shown(text)}; there are {', '.join(available)}{near}"
            )
        return expression


def read_policies(key: str, value: object, scope: Scope) -> Sweep[Policy]:
    """Return the policies that a table, or an expression, describes."""
    return typing.cast(Sweep[Policy], _read_formula(key, _with_use(key, value, 'use = "UCB"'), POLICY, scope))


def read_problems(key: str, value: object, scope: Scope) -> Sweep[AnyProblem]:
    """Return the problems that a table, or an expression, describes; what corrupts them included."""
    table = dict(_with_use(key, value, 'use = "Bernoulli"'))
    corruptions = _read_corruptions(inside(key, "corrupted"), table.pop("corrupted", None))

    def corrupt(parts: list[Any]) -> AnyProblem:
        problem, *given = parts
        for place, corruption in zip(corruptions, given, strict=True):
            with errors_at(place):
                problem = problem.corrupted(**corruption)
        if isinstance(problem, Problem):
            with errors_at(key):
                _ = problem.means  # those of a user's own formula may not exist
        made: AnyProblem = problem
        return made

    return combined([_read_formula(key, table, PROBLEM, scope), *corruptions.values()], corrupt)


def _read_corruptions(key: str, value: object) -> dict[str, Sweep[Table]]:
    """Return what corrupts a problem, by key: nothing, one table, or a list of them, all of which apply."""
    if value is None:
        return {}
    if not isinstance(value, list):
        return {key: _read_corruption(key, value)}
    return {f"{key}[{i}]": _read_corruption(f"{key}[{i}]", each) for i, each in enumerate(value or [value])}


def _read_corruption(key: str, value: object) -> Sweep[Table]:
    table = check_table(key, value, "{ arm = 0, rounds = 100, reward = 0.0 }")

    def check_name(place: str, name: str, value: object) -> None:
        check_keys(place, {name: value}, CORRUPTION, "a corruption has")

    sweep = rows(key, table, Entries(read_number, check_name)).prefixed("corrupted")
    if "arm" not in names_in(table):
        raise ExperimentError(f"{inside(key, 'arm')}: is missing; a corruption has {', '.join(CORRUPTION)}")
    return sweep


def read_number(key: str, name: str, value: object) -> Sweep[object]:
    """Return a number that may be anything but infinite."""
    with errors_at(key, name):
        check_number(name, value)
    return fixed(value)


def _with_use(key: str, value: object, example: str) -> Table:
    table = {"use": value} if isinstance(value, str) else check_table(key, value, f"{{ {example}, ... }}")
    if "use" not in table:
        near = suggestion("use", table).replace("did you mean", "is it")
        raise ExperimentError(f"{inside(key, 'use')}: is missing, as in {example}{near}")
    return table


def _read_formula(key: str, table: Table, kind: TableKind, scope: Scope) -> Sweep[Made]:
    """Read a table with `use` and parameters."""
    use = table["use"]
    place = inside(key, "use")
    if not isinstance(use, str):
        raise ExperimentError(f"{place}: must be a name, module:name or an expression, as text, got {shown(use)}")
    given = {name: value for name, value in table.items() if name != "use"}
    if is_address(use):
        return _read_found(key, use, scope.find(place, use), given, kind, scope)
    if use.isidentifier():
        if use not in kind.public:
            raise ExperimentError(
                f"{place}: unknown {kind.word} {shown(use)}; there are {', '.join(kind.public)}, or module:name of "
                f"your own{suggestion(use, kind.public)}"
            )
        return _read_found(key, use, kind.public[use], given, kind, scope)
    if ":" in use and not is_address(use.partition("(")[0].strip()):
        raise ExperimentError(f"{place}: must be module:name, as in my_module:MyPolicy, got {shown(use)}")
    for name, value in given.items():
        raise ExperimentError(f"{inside(key, name)}: has no place beside an expression in use, got {shown(value)}")
    return _evaluated(place, scope.expression(place, use, kind), kind.accept)


def _read_found(key: str, use: str, found: Any, given: dict[str, object], kind: TableKind, scope: Scope) -> Sweep[Made]:
    """Read the parameters of a family, or take something ready-made without any."""
    if found is RandomProblem:
        family = _random_family(inside(key, "family"), given.pop("family", None), scope)
        call = _Call(key, family.name, _parameters_of(key, family), functools.partial(RandomProblem, family), kind)
        return call.read(given, scope)
    if found is LinearProblem:
        return _Call(key, "LinearProblem", LINEAR, LinearProblem, kind).read(given, scope)
    if found is Classification:
        return fixed(_read_data_set(key, given, scope.folder))
    if isinstance(found, kind.family):
        call = _Call(key, found.name, _parameters_of(key, found), found, kind)
        return call.read(given, scope).mapped(functools.partial(_accept, key, use, kind))
    for name, value in given.items():
        raise unknown_key(key, name, value, f"{use} takes no parameters; there is use", ("use",))
    return fixed(_accept(key, use, kind, _instance(found)))


def _instance(found: Any) -> Any:
    return found() if isinstance(found, type) and issubclass(found, Law) else found


def _accept(key: str, use: str, kind: TableKind, made: Made) -> Made:
    try:
        return kind.accept(use, made)
    except ValueError as error:
        hint = f"; decorate it with @rightarm.{kind.word}" if isinstance(made, types.FunctionType) else ""
        raise ExperimentError(f"{inside(key, 'use')}: {error}, which is {shown(made)}{hint}") from None


def _random_family(key: str, name: object, scope: Scope) -> ProblemFamily:
    public = families(ProblemFamily)
    found = scope.find(key, name) if isinstance(name, str) and is_address(name) else public.get(str(name))
    if not isinstance(found, ProblemFamily):
        given = "it is missing" if name is None else f"got {shown(name)}"
        raise ExperimentError(
            f"{key}: must be a family of problems, {given}; there are {', '.join(public)}, or module:name of your own"
            f"{suggestion(str(name), public)}"
        )
    return found


def _read_data_set(key: str, given: Table, folder: Path | None) -> Classification:
    """Return the data set in a file, CSV or Parquet, that a table names; a column of it is the class of a row."""
    check_keys(key, given, DATA_SET, "Classification has")
    file, label = (_check_text(key, given, name) for name in DATA_SET)
    place = inside(key, "file")
    path = (folder or Path()) / file
    pl = polars_for("a data set")
    readers = {".csv": pl.read_csv, ".parquet": pl.read_parquet}
    if path.suffix not in readers:
        raise ExperimentError(f"{place}: must end in .csv or .parquet, got {path.name}")
    with errors_at(place):
        frame = readers[path.suffix](path)
    if label not in frame.columns:
        columns = ", ".join(frame.columns)
        raise ExperimentError(f"{inside(key, 'label')}: must be a column of the file, {columns}, got {shown(label)}")
    with errors_at(place):
        return Classification(frame.drop(label).to_numpy(), frame[label].to_list())


def _check_text(key: str, given: Table, name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str):
        got = f"got {shown(value)}" if name in given else "it is missing"
        raise ExperimentError(f'{inside(key, name)}: must be text, as in file = "iris.csv", label = "species"; {got}')
    return value


# Parameters.


@dataclass(frozen=True)
class Parameter:
    """A parameter to which a table may give a value."""

    name: str
    check: Callable[[str, object], object]
    """Returns the value of the parameter of this name, or refuses it."""
    is_required: bool = False
    allowed: str = ""
    """What it may be, as the end of an error; nothing where the error itself says it."""
    is_value: Callable[[list[Any]], bool] = lambda values: False
    """Returns whether a list is one value, and not several to sweep."""
    part: TableKind = POLICY_PART
    """What a table or an expression in its place describes."""
    is_choice: bool = False
    """Whether texts are values, and no expressions."""


def _parameters_of(key: str, family: Family) -> list[Parameter]:
    with errors_at(key):  # annotations of a user's own formula may name what does not exist
        return [_parameter_of(family, each.name, each.default is each.empty) for each in family.parameters]


def _parameter_of(family: Family, name: str, is_required: bool) -> Parameter:
    annotation: Any = family.annotations.get(name)
    is_choice = typing.get_origin(annotation) is typing.Literal
    rule = rule_of(annotation)
    number = f"a number that is {rule.adjective}" if rule else "a whole number" if annotation is int else "a number"
    if issubclass(family.kind, Problem):
        return Parameter(
            name,
            lambda name, value: value if isinstance(value, Formula) else family.kind.check(name, value, annotation),
            is_required,
            f"allowed is {number}, for all arms, or a list with one for each; a list of lists sweeps it",
            # lists of lists, texts and tables are swept, alone
            is_value=lambda values: not all(isinstance(each, list | str | dict) for each in values),
            part=PROBLEM_PART,
        )
    return Parameter(
        name,
        lambda name, value: family.kind.check(name, value, annotation),
        is_required,
        "" if is_choice or hasattr(annotation, "accept") else f"allowed is {number}, or a list of such to sweep it",
        is_choice=is_choice,
    )


def _is_matrix(values: list[Any]) -> bool:
    return all(isinstance(row, list) and not any(isinstance(each, list) for each in row) for row in values)


LINEAR = [
    Parameter("theta", per_arm, is_required=True, is_value=_is_matrix, part=CONTEXT_PART),
    Parameter("context", ContextDistribution.accept, part=CONTEXT_PART),
    Parameter(
        "noise",
        lambda name, value: check_number(name, value, rule_of(NonNegative)),
        allowed="allowed is a number that is non-negative, or a list of such to sweep it",
        part=CONTEXT_PART,
    ),
    Parameter(
        "offset",
        per_arm,
        is_value=lambda values: not any(isinstance(each, list) for each in values),
        part=CONTEXT_PART,
    ),
]


@dataclass(frozen=True)
class _Call:
    """A call whose parameters a table gives, every combination of them."""

    key: str
    name: str
    parameters: Sequence[Parameter]
    make: Callable[..., Made]
    kind: TableKind

    def read(self, given: Table, scope: Scope) -> Sweep[Made]:
        """Return what the call makes of every combination of the parameters."""
        by_name = {parameter.name: parameter for parameter in self.parameters}
        entries = Entries(
            read=lambda key, name, value: _read_parameter(key, by_name[name], value, scope),
            check_name=self._check_name,
            is_value=lambda name, values: by_name[name].is_value(values),
        )
        sweep = rows(self.key, given, entries)
        for parameter in self.parameters:
            if parameter.is_required and parameter.name not in names_in(given):
                raise ExperimentError(
                    f"{inside(self.key, parameter.name)}: is missing; {self.name} has {', '.join(by_name)}"
                )
        return sweep.mapped(self._made)

    def _check_name(self, key: str, name: str, value: object) -> None:
        names = [parameter.name for parameter in self.parameters]
        if name not in names:
            others = ["use", "grid", "zip", *(("corrupted", "known") if self.kind is PROBLEM else ())]
            has = f"{self.name} has {', '.join(names) or 'none'}; besides there are {', '.join(others)}"
            raise unknown_key(key, name, value, has, [*names, *others], word="parameter")

    def _made(self, values: Table) -> Made:
        lengths = {len(value) for value in values.values() if isinstance(value, tuple)}
        hint = "several values of one parameter are swept under grid" if len(lengths) > 1 else ""
        with errors_at(self.key, allowed=hint):
            return self.make(**values)


def _read_parameter(key: str, parameter: Parameter, value: object, scope: Scope) -> Sweep[object]:
    """Read one value of a parameter: a number, a text or a table, checked at once if it depends on nothing else."""

    def check(made: object) -> object:
        with errors_at(key, parameter.name, parameter.allowed):
            return parameter.check(parameter.name, made)

    if isinstance(value, dict):
        if scope.depth >= DEEPEST:
            raise ExperimentError(f"{key}: tables are nested too deeply, got {shown(value)}")
        deeper = replace(scope, depth=scope.depth + 1)
        nested = _read_formula(key, _with_use(key, value, 'use = "inverse_log"'), parameter.part, deeper)
        return nested.prefixed(parameter.name).mapped(check)
    if isinstance(value, str) and not parameter.is_choice:
        if is_address(value):
            found = _instance(scope.find(key, value))
            return fixed(check(found() if isinstance(found, Family) and not found.parameters else found))
        return _evaluated(key, scope.expression(key, value, parameter.part), lambda text, made: check(made))
    if isinstance(value, int) and abs(value) > LARGEST:
        raise ExperimentError(f"{key}: must be finite, got {shown(value)}; {parameter.allowed}")
    return fixed(check(value))


def _evaluated(key: str, expression: Expression, accept: Callable[[str, Made], Made]) -> Sweep[Made]:
    """Return what an expression gives, once the numbers that it mentions have values."""
    mentions = expression.mentions - expression.names.keys()

    def make(numbers: Numbers) -> Made:
        used = {name: numbers[name] for name in sorted(mentions)}
        try:
            with errors_at(key):
                return accept(expression.text, expression.value(used))
        except ExperimentError as error:
            where = [] if expression.text in str(error) else [f"in {shown(expression.text)}"]
            where += [f"{name} = {number!r}" for name, number in used.items()]
            text = f"{error}; {', '.join(where)}" if where else str(error)
            raise ExperimentError(text) from error

    return sweep_of(Variant((), make, mentions)) if mentions else fixed(make({}))
