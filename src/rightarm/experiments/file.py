"""Experiment files: problems, policies, horizon, replications, seed and checkpoints in TOML, read into cells.

    title = "Which C?"
    horizon = [10_000, 100_000]                # a list where a number is expected sweeps it
    replications = 64                          # 64 unless given, as in `ra.simulate`
    seed = 2017                                # 0 unless given
    checkpoints = 100                          # about how many, or a list of rounds; 100 unless given

    [problems.honest]
    use = "Bernoulli"                          # a public name, module:name of one's own, or a call
    mean = "[0.51] + [0.5] * 9"                # or the list itself: one value for each arm; a list of lists sweeps
    corrupted = { arm = 0, rounds = [100, 5_000], reward = 0.0 }     # if wanted; of a list of tables all apply

    [policies.bge]
    use = "BoltzmannGumbel"
    C = "sqrt(c2)"                             # numbers may be written as expressions
    zip = { location = [0.0, 0.5772], estimator = ["mean", "catoni"] }     # taken together, first with first

    [policies.softmax]
    use = "Boltzmann"
    temperature = { use = "inverse_log", c = [0.1, 0.25] }           # or "inverse_log(0.25)"

    [policies]
    moss = "MOSS(horizon=horizon)"             # a short way to write [policies.moss] use = ...

    [let]                                      # numbers for expressions, swept where they are mentioned
    c2 = [0.01, 0.25, 1.0]

    [quick]                                    # what `--quick` replaces: any of the above, by the same keys
    horizon = 1_000
    let.c2 = [0.25]

Everything is combined with everything: each problem with each policy, each value of each sweep. `grid` sweeps a
parameter whose single value is a list already (`grid = { sigma = [1.0, 2.0] }` of a problem), `zip` takes lists
together, in every table and at the top. `[about]` has whatever you like to note about the experiment; it is not read.
`[[runs]]` say which policies play which problems, if not all play all, and may
have a horizon, replications, seed and checkpoints of their own. A problem with
`known = { pulls = [1, 1], means = [0.75, 0.5] }` starts from these statistics, whose rounds the horizon counts.

Settings and numbers under `let` may be written as expressions too. `decades(1e3, 1e6, 4)` gives values from 10³ to 10⁶,
four in each decade, rounded where they are numbers of rounds: `checkpoints = "decades(1e3, 1e6, 4)"`. The expressions
of a policy may mention its problem: `arms`, the number of arms, `gap`, the smallest gap above zero, and `V`, the
largest second moment of an arm's rewards, unless `let` uses these names.

A problem with contexts is played by policies with `estimator = "Linear(columns)"`, `columns` being those of a context:

    [problems.linear]
    use = "LinearProblem"
    theta = [[1.0, 0.0], [0.0, 1.0]]           # a row of coefficients for each arm; a list of such lists sweeps
    context = "GaussianContext(2)"             # or a table { use = "GaussianContext", columns = 2, sigma = [1.0, 2.0] }
    noise = [0.1, 1.0]

    [problems.iris]
    use = "Classification"
    file = "iris.csv"                          # beside this file, or Parquet
    label = "species"                          # the column that has the class; all others are numbers
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from rightarm.experiments.cell import Cell
from rightarm.experiments.document import (
    LONGEST_NAME,
    SETTINGS,
    ExperimentError,
    Table,
    check_keys,
    check_table,
    errors_at,
    inside,
    parse,
    shown,
    suggestion,
)
from rightarm.experiments.formulas import TAKEN, Scope, read_number, read_policies, read_problems
from rightarm.experiments.sweeps import Entries, Label, Numbers, Sweep, Variant, columns, fixed, merged
from rightarm.formula import check_count, check_number
from rightarm.policies.policy import Policy
from rightarm.policies.text import FUNCTIONS, Expression
from rightarm.problems import ContextProblem, Problem
from rightarm.problems.random import AnyProblem, RandomProblem
from rightarm.simulation.context_engine import check_pair
from rightarm.simulation.engine import Start
from rightarm.simulation.simulate import check_checkpoints, check_fixed, check_start

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Columns = Mapping[tuple[str, ...], Sweep[Table]]
"""Sweeps by the names of which each gives values."""

DEFAULTS: dict[str, object] = {"replications": 64, "seed": 0, "checkpoints": 100}
MOST = {"horizon": 2**53, "replications": 2**28, "checkpoints": 100_000}  # a float counts no further; memory
MOST_CELLS = 100_000  # a slip in a sweep is refused at once, not after hours of making cells
RUN_KEYS = ("problems", "policies", *SETTINGS, "grid", "zip")


@dataclass(frozen=True)
class Experiment:
    """An experiment as its file describes it, checked: the cells, in the file's order."""

    title: str
    cells: tuple[Cell, ...]
    text: str
    """The file as it was read."""
    path: Path | None = None


def read_experiment(path: str | os.PathLike[str], quick: bool = False) -> Experiment:
    """Read an experiment file.

    Parameters
    ----------
    path : str or path
        The file.
    quick : bool
        Let the values under `[quick]` take the place of those elsewhere in the file.

    Raises
    ------
    ExperimentError
        If the file is wrong; the text says which key, the value that it has, and what is allowed.
    """
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        got = error.object[error.start : error.start + 4]
        raise ExperimentError(f"{path}: must be text in UTF-8, got {got!r}") from None
    except (OSError, ValueError) as error:
        raise ExperimentError(f"{path}: cannot be read: {error}") from error
    return read_text(text, path, quick)


def read_text(text: str, where: Path | None = None, quick: bool = False) -> Experiment:
    r"""Read the text of an experiment file.

    Parameters
    ----------
    text : str
        The text, in TOML.
    where : Path, optional
        The file that it came from; formulas of your own are looked for beside it.
    quick : bool
        Let the values under `[quick]` take the place of those elsewhere in the file.

    Examples
    --------
    >>> text = 'horizon = 100\nproblems.a = "Bernoulli([0.6, 0.5])"\n[policies.bge]\nuse = "BoltzmannGumbel"\n'
    >>> [cell.names for cell in read_text(text + "C = [0.5, 1.0]").cells]
    [(('problem', 'a'), ('policy', 'bge'), ('C', 0.5)), (('problem', 'a'), ('policy', 'bge'), ('C', 1.0))]
    >>> read_text(text + "c = 0.5")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rightarm.experiments.document.ExperimentError: policies.bge.c: unknown parameter, got 0.5; ...
    """
    document = parse(text, quick)
    title = document.get("title", where.stem if where else "")
    if not isinstance(title, str) or not title.isprintable():
        raise ExperimentError(f"title: must be a line of text, got {shown(title)}")
    let = _read_let(document)
    numbers = tuple(name for names in let for name in names)
    derived = tuple(name for name in DERIVED if name not in numbers)
    folder = None if where is None else where.parent
    problems = _read_problems(document, Scope(folder, numbers))
    policies = _read_policies(document, Scope(folder, (*numbers, *derived)))
    mentions = frozenset[str]().union(*(each.sweep.mentions for each in (*problems.values(), *policies.values())))
    for name in numbers:
        if name not in mentions:
            raise ExperimentError(f"{inside('let', name)}: is mentioned in no problem and no policy")
    runs = _read_runs(document, problems, policies)
    combiner = _Combiner(let, frozenset(derived), _ambiguous_names(problems.values(), policies.values(), numbers))
    return Experiment(title, tuple(combiner.cells(runs)), text, where)


# Settings: horizon, replications, seed, checkpoints, and the numbers under `let`.


def _read_let(document: Table) -> Columns:
    """Return the sweeps of the numbers under `let`, by their names."""
    if "let" not in document:
        return {}

    def check_name(key: str, name: str, value: object) -> None:
        if not name.isidentifier() or name in TAKEN:
            why = "that name means something already" if name in TAKEN else "a name is letters, digits and _"
            raise ExperimentError(f"{inside(key, name)}: cannot be mentioned, {why}, got {shown(value)}")

    given = check_table("let", document["let"], "{ gap = [0.1, 0.2] }")
    return columns("let", _calculated("let", given), Entries(read_number, check_name))


def _read_settings(key: str, table: Table) -> Columns:
    """Return the sweeps of the settings in the file, or in one of its runs."""
    given = {name: value for name, value in table.items() if name in (*SETTINGS, "grid", "zip")}
    return columns(key, _calculated(key, given, whole=True), SETTING_ENTRIES)


def _calculated(key: str, table: Table, whole: bool = False) -> Table:
    """Return a table of numbers, with those that are written as expressions calculated; ``whole`` rounds them."""
    return {
        name: _calculate(inside(key, name), value, whole) if isinstance(value, str) else value
        for name, value in table.items()
    }


def _calculate(key: str, text: str, whole: bool) -> object:
    with errors_at(key):
        value = Expression(text, "name", {}, list(FUNCTIONS)).value()
        if not whole:
            return value
        if not isinstance(value, list):
            return round(check_number(key, value))
        return list(dict.fromkeys(round(check_number(key, each)) for each in value))


def _read_setting(key: str, name: str, value: object) -> Sweep[object]:
    """Read one horizon, number of replications, seed, or choice of checkpoints."""
    if not isinstance(value, list) or name != "checkpoints":
        return fixed(_check_whole(key, name, value, MOST.get(name, math.inf)))
    if not value:
        raise ExperimentError(f"{key}: must have one round at least, got {shown(value)}")
    return fixed([_check_whole(f"{key}[{i}]", name, each, MOST["horizon"]) for i, each in enumerate(value)])


def _check_whole(key: str, name: str, number: Any, most: float) -> int:
    with errors_at(key, name, _allowed(name)):
        count = check_count(name, number, least=0 if name == "seed" else 1)
        if count > most:
            raise ValueError(f"{name} must be at most {most:,}, got {number!r}")
        return count


def _allowed(name: str) -> str:
    if name == "seed":
        return "allowed is a whole number from 0 on, or a list of such to sweep it"
    if name == "checkpoints":
        return f"allowed is a number of them, up to {MOST[name]:,}, or a list of rounds; a list of lists sweeps it"
    return f"allowed is a whole number up to {MOST[name]:,}, or a list of such to sweep it"


SETTING_ENTRIES = Entries(
    read=_read_setting,
    check_name=lambda key, name, value: check_keys(key, {name: value}, SETTINGS, "to be swept there are"),
    is_value=lambda name, values: name == "checkpoints" and not any(isinstance(each, list) for each in values),
)


# Problems and policies.


@dataclass(frozen=True)
class _Named(Generic[T_co]):
    """A problem or a policy by its name, with all its variants."""

    key: str
    name: str
    sweep: Sweep[T_co]
    variants: tuple[Variant[T_co], ...]
    statistics: Sequence[list[float]] | None = None
    """The pulls and means from which a problem starts, if not from nothing."""


def _read_problems(document: Table, scope: Scope) -> dict[str, _Named[AnyProblem]]:
    problems = {}
    for key, name, value in _tables(document, "problems", 'a = "Bernoulli([0.6, 0.5])"'):
        table = dict(value) if isinstance(value, dict) else {}
        statistics = _read_statistics(inside(key, "known"), table.pop("known")) if "known" in table else None
        problems[name] = _named(key, name, read_problems(key, table or value, scope), statistics)
    return problems


def _read_policies(document: Table, scope: Scope) -> dict[str, _Named[Policy]]:
    tables = _tables(document, "policies", 'a = "UCB(C=0.5)"')
    return {name: _named(key, name, read_policies(key, value, scope)) for key, name, value in tables}


def _named(key: str, name: str, sweep: Sweep[T], statistics: Sequence[list[float]] | None = None) -> _Named[T]:
    _check_count(key, sweep.count)
    return _Named(key, name, sweep, tuple(sweep.variants()), statistics)


def _tables(document: Table, kind: str, example: str) -> Iterator[tuple[str, str, object]]:
    """Yield key, name and value of each problem or policy."""
    if kind not in document:
        raise ExperimentError(f"{kind}: is missing; a file has problems, policies and a horizon at least")
    for name, value in check_table(kind, document[kind], f"{{ {example} }}").items():
        key = inside(kind, name)
        if name.strip() != name or not name.isprintable() or not 0 < len(name) <= LONGEST_NAME:
            raise ExperimentError(
                f"{key}: must have a name of up to {LONGEST_NAME} printable characters, got {shown(name)}"
            )
        yield key, name, value


def _read_statistics(key: str, value: object) -> list[list[float]]:
    """Return the pulls and means from which a problem starts, as they are written."""
    table = check_table(key, value, "{ pulls = [1, 1], means = [0.5, 0.25] }")
    check_keys(key, table, ("pulls", "means"), "there are")
    found = []
    for name in ("pulls", "means"):
        given = table.get(name)
        if name not in table:
            raise ExperimentError(f"{inside(key, name)}: is missing; pulls and means go together")
        if not isinstance(given, list) or not all(type(each) in (int, float) for each in given):
            raise ExperimentError(f"{inside(key, name)}: must be a list with a number for each arm, got {shown(given)}")
        found.append(given)
    return found


def _check_count(key: str, count: int) -> None:
    if count > MOST_CELLS:
        number = f"{count:,}" if count < 10**15 else f"more than 10^{math.floor(math.log10(count))}"
        raise ExperimentError(f"{key}: would be {number} cells; at most {MOST_CELLS:,} are allowed")


# Runs: who plays what.


@dataclass(frozen=True)
class _Run:
    """Policies that play problems, and the settings with which they do."""

    problems: Sequence[_Named[AnyProblem]]
    policies: Sequence[_Named[Policy]]
    settings: Sweep[Table]


def _read_runs(
    document: Table, problems: Mapping[str, _Named[AnyProblem]], policies: Mapping[str, _Named[Policy]]
) -> list[_Run]:
    of_file = _read_settings("", document)
    given = document.get("runs", [{}])
    if not isinstance(given, list) or not given or not all(isinstance(run, dict) for run in given):
        raise ExperimentError(f'runs: must be tables such as [[runs]] problems = ["a"], got {shown(given)}')
    runs = []
    for i, run in enumerate(given):
        key = f"runs[{i}]"
        check_keys(key, run, RUN_KEYS, "a run has")
        settings = _settings_of_run(key, of_file, _read_settings(key, run))
        runs.append(_Run(_chosen(key, "problems", run, problems), _chosen(key, "policies", run, policies), settings))
    return runs


def _settings_of_run(key: str, of_file: Columns, of_run: Columns) -> Sweep[Table]:
    """Return the settings of a run: its own, those of the file that they do not replace, and defaults."""
    replaced = {name for names in of_run for name in names}
    rest = {names: sweep for names, sweep in of_file.items() if not set(names) <= replaced}
    for names in rest:
        for name in sorted(set(names) & replaced):
            raise ExperimentError(f"{inside(key, name)}: cannot replace a part of zip, which has {', '.join(names)}")
    given = {name for names in (*of_run, *rest) for name in names}
    if "horizon" not in given:
        raise ExperimentError("horizon: is missing; allowed is a whole number of rounds, or a list of such to sweep it")
    defaults = _read_settings("", {name: value for name, value in DEFAULTS.items() if name not in given})
    return merged([*rest.values(), *of_run.values(), *defaults.values()])


def _chosen(key: str, kind: str, run: Table, named: Mapping[str, _Named[T_co]]) -> list[_Named[T_co]]:
    """Return the problems or policies that a run names, or all."""
    if kind not in run:
        return list(named.values())
    place = inside(key, kind)
    names = run[kind]
    if not isinstance(names, list) or not names:
        raise ExperimentError(f"{place}: must be a list of names, got {shown(names)}; there are {', '.join(named)}")
    for name in names:
        if not isinstance(name, str) or name not in named:
            near = suggestion(name, named) if isinstance(name, str) else ""
            raise ExperimentError(f"{place}: there is no {shown(name)}; there are {', '.join(named)}{near}")
    return [named[name] for name in names]


# Cells: every combination of what a run has.


def _smallest_gap(problem: Problem) -> float:
    gaps = problem.gaps[problem.gaps > 0]
    if not gaps.size:
        raise ValueError(f"gap is not known: all arms of {problem} are equally good")
    return float(gaps.min())


DERIVED: dict[str, Callable[[Any], float]] = {
    "arms": lambda problem: problem.arms,
    "gap": _smallest_gap,
    "V": lambda problem: float(problem.second_moments.max()),
    "columns": lambda problem: problem.columns,
}
"""Numbers of a problem that a policy's expressions may mention."""


def _ambiguous_names(
    problems: Iterable[_Named[AnyProblem]], policies: Iterable[_Named[Policy]], numbers: Iterable[str]
) -> frozenset[str]:
    """Return names that are swept on both sides, or mean something else: policy.C and problem.C tell them apart."""
    of_problems = {name for each in problems for variant in each.variants for name, _ in variant.labels}
    of_policies = {name for each in policies for variant in each.variants for name, _ in variant.labels}
    taken = {"problem", "policy", *SETTINGS, *numbers}
    return frozenset((of_problems & of_policies) | ((of_problems | of_policies) & taken))


class _Pair(NamedTuple):
    """A variant of a policy that plays a variant of a problem."""

    problem: _Named[AnyProblem]
    policy: _Named[Policy]
    problem_variant: Variant[AnyProblem]
    policy_variant: Variant[Policy]

    @property
    def names(self) -> tuple[Label, ...]:
        """The names of both."""
        return (("problem", self.problem.name), ("policy", self.policy.name))

    def derived(self, name: str, problem: AnyProblem) -> float:
        """Return a number of the problem that the policy's expressions mention."""
        has_contexts = isinstance(problem, ContextProblem)
        why = ""
        if name in ("gap", "V") and isinstance(problem, RandomProblem):
            why = f"every replication draws {self.problem.key} anew"
        elif name != "arms" and (name == "columns") != has_contexts:
            why = f"{self.problem.key} has {'contexts' if has_contexts else 'no contexts'}"
        if why:
            raise ExperimentError(f"{self.policy.key}: {name} is not known: {why}")
        with errors_at(self.policy.key):
            return DERIVED[name](problem)

    def start(self, problem: AnyProblem, policy: Policy) -> Start | None:
        """Return the statistics from which the policy starts on the problem, None if from nothing."""
        if self.problem.statistics is None:
            return None
        key = inside(self.problem.key, "known")
        with errors_at(key):
            pulls, means = self.problem.statistics
            start = check_start([policy], problem, pulls, means, None)
        if not policy.estimator.plain:
            raise ExperimentError(
                f"{key}: {self.policy.key} cannot start from it, its estimator keeps more of past rewards"
            )
        return start


class _Combiner:
    """Makes cells of all combinations of problems, policies, numbers and settings."""

    def __init__(self, let: Columns, derived: frozenset[str], ambiguous: frozenset[str]) -> None:
        self.let = let
        self.derived = derived
        self.ambiguous = ambiguous
        self.made: dict[tuple[object, ...], Any] = {}

    def cells(self, runs: Sequence[_Run]) -> list[Cell]:
        """Return all cells of the runs, different from each other."""
        _check_count("the file", sum(self._count(run) for run in runs))
        cells = [cell for run in runs for cell in self._cells_of(run)]
        _check_different(cells)
        varied = [name for name in SETTINGS[:3] if len({getattr(cell, name) for cell in cells}) > 1]
        return [replace(cell, names=(*cell.names, *((name, getattr(cell, name)) for name in varied))) for cell in cells]

    def _count(self, run: _Run) -> int:
        """Return a number that is not less than that of a run's cells."""
        count = 0
        for problem, policy in itertools.product(run.problems, run.policies):
            lets = self._mentioned(problem.sweep.mentions | policy.sweep.mentions)
            count += problem.sweep.count * policy.sweep.count * math.prod(sweep.count for sweep in lets)
        return run.settings.count * count

    def _mentioned(self, mentions: frozenset[str]) -> list[Sweep[Table]]:
        return [sweep for names, sweep in self.let.items() if not mentions.isdisjoint(names)]

    def _cells_of(self, run: _Run) -> Iterator[Cell]:
        settings = [(variant.make({}), variant.labels) for variant in run.settings.variants()]
        for problem, policy in itertools.product(run.problems, run.policies):
            for problem_variant, policy_variant in itertools.product(problem.variants, policy.variants):
                pair = _Pair(problem, policy, problem_variant, policy_variant)
                names = (*self._labels("policy", policy_variant), *self._labels("problem", problem_variant))
                for let in merged(self._mentioned(problem_variant.mentions | policy_variant.mentions)).variants():
                    numbers = let.make({})
                    for setting, labels in settings:
                        checkpoints = (label for label in labels if label[0] == "checkpoints")
                        all_names = (*pair.names, *let.labels, *names, *checkpoints)
                        yield self._cell(pair, numbers, setting, all_names)

    def _labels(self, side: str, variant: Variant[object]) -> tuple[Label, ...]:
        return tuple((f"{side}.{name}" if name in self.ambiguous else name, value) for name, value in variant.labels)

    def _cell(self, pair: _Pair, let: Any, setting: Any, names: tuple[Label, ...]) -> Cell:
        numbers = {**let, "horizon": setting["horizon"]}
        problem: AnyProblem = self._make(pair.problem_variant, numbers)
        mentioned = pair.policy_variant.mentions & self.derived
        numbers |= {name: pair.derived(name, problem) for name in sorted(mentioned)}
        policy: Policy = self._make(pair.policy_variant, numbers)
        start = pair.start(problem, policy)
        rounds = self._rounds(setting["checkpoints"], start.rounds if start else 0, setting["horizon"])
        with errors_at(pair.problem.key):
            check_fixed(problem)
        with errors_at(pair.policy.key):
            check_pair(policy, problem)
        if isinstance(problem, RandomProblem):
            self._check_draw(pair.problem.key, problem, setting["seed"])
        return Cell(
            policy,
            problem,
            horizon=setting["horizon"],
            replications=setting["replications"],
            seed=setting["seed"],
            checkpoints=rounds,
            names=names,
            given_start=start,
        )

    def _make(self, variant: Variant[object], numbers: Numbers) -> Any:
        """Return what a variant makes of the numbers that it mentions, made once."""
        key = (id(variant), *(numbers[name] for name in sorted(variant.mentions)))
        if key not in self.made:
            self.made[key] = variant.make(numbers)
        return self.made[key]

    def _rounds(self, checkpoints: Any, played: int, horizon: int) -> tuple[int, ...]:
        key = ("rounds", str(checkpoints), played, horizon)
        if key not in self.made:
            if horizon <= played:
                raise ExperimentError(f"horizon: must be more than the {played} rounds that are known, got {horizon}")
            with errors_at("checkpoints", "checkpoints", "allowed is a number of them, or a list of rounds"):
                self.made[key] = check_checkpoints(checkpoints, played, horizon - played)
        rounds: tuple[int, ...] = self.made[key]
        return rounds

    def _check_draw(self, key: str, problem: RandomProblem, seed: int) -> None:
        """See once that the distributions of a random problem give what its parameters may be."""
        draw = ("drawn", id(problem), seed)
        if draw not in self.made:
            with errors_at(key):
                self.made[draw] = problem.draw(seed, 0)


def _check_different(cells: Iterable[Cell]) -> None:
    """Refuse two cells that are the same: they would be computed twice, under two names."""
    found: dict[Cell, Cell] = {}
    for cell in cells:
        before = found.setdefault(cell, cell)
        if before is not cell:
            name = inside("policies", str(dict(cell.names)["policy"]))
            raise ExperimentError(
                f"{name}: gives a cell twice: ({before.title}) and ({cell.title}) are both {cell.policy!r} "
                f"on {cell.problem!s}, horizon {cell.horizon}, replications {cell.replications}, seed {cell.seed}"
            )
