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
together, in every table and at the top. `[[runs]]` say which policies play which problems, if not all play all, and may
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
from typing import Any

from rightarm.lab.experiment import formulas
from rightarm.lab.experiment.cell import Cell
from rightarm.lab.experiment.document import KEYS, overlaid, parsed
from rightarm.lab.experiment.errors import (
    LONGEST_NAME,
    ExperimentError,
    a_table,
    blamed,
    inside,
    shown,
    suggestion,
    unknown,
)
from rightarm.lab.experiment.formulas import Context
from rightarm.lab.experiment.settings import DEFAULTS, ENTRIES, SETTINGS, calculated, let
from rightarm.lab.experiment.sweeps import Label, Numbers, Sweep, Variant, columns, merged
from rightarm.problems import ContextProblem, Problem
from rightarm.problems.random import AnyProblem, RandomProblem
from rightarm.scores.policy import Policy
from rightarm.simulation.contextual import check_pair
from rightarm.simulation.engine import Start
from rightarm.simulation.simulate import check_checkpoints, check_fixed, check_start

RUN_KEYS = ("problems", "policies", *SETTINGS, "grid", "zip")

MOST_CELLS = 100_000  # a slip in a sweep is told at once, not after hours of making cells


@dataclass(frozen=True)
class Experiment:
    """What a file describes, checked: the cells, in the file's order."""

    title: str
    cells: tuple[Cell, ...]
    text: str
    """The file as it was read."""
    path: Path | None = None


def read_experiment(path: str | os.PathLike[str], quick: bool = False) -> Experiment:
    """Read an experiment file; an error says which key is wrong, what it got and what is allowed.

    With ``quick``, what the file has under `[quick]` takes the place of what it has elsewhere.
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
    r"""Read the text of an experiment file; ``where`` is the file that it came from, if any.

    >>> text = 'horizon = 100\nproblems.a = "Bernoulli([0.6, 0.5])"\n[policies.bge]\nuse = "BoltzmannGumbel"\n'
    >>> [cell.names for cell in read_text(text + "C = [0.5, 1.0]").cells]
    [(('problem', 'a'), ('policy', 'bge'), ('C', 0.5)), (('problem', 'a'), ('policy', 'bge'), ('C', 1.0))]
    >>> read_text(text + "c = 0.5")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rightarm.lab.experiment.errors.ExperimentError: policies.bge.c: unknown parameter, got 0.5; ...
    """
    document = parsed(text)
    for name, value in document.items():
        if name not in KEYS:
            raise unknown("", name, value, "key", "a file has", KEYS)
    document = overlaid(document, quick)
    title = document.get("title", where.stem if where else "")
    if not isinstance(title, str) or not title.isprintable():
        raise ExperimentError(f"title: must be a line of text, got {shown(title)}")
    reader = _Reader(document, where)
    return Experiment(title, tuple(reader.cells()), text, where)


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
"""What a policy's expressions may mention of its problem."""


@dataclass(frozen=True)
class _Table:
    """A named problem or policy: all its variants, and the statistics that it starts from."""

    key: str
    name: str
    sweep: Sweep
    variants: tuple[Variant, ...]
    known: tuple[Any, Any] | None = None


class _Reader:
    """Reads one file: problems, policies and settings, and all combinations of them as cells."""

    def __init__(self, document: Mapping[str, Any], where: Path | None) -> None:
        self.document = document
        self.let = let(document)
        named = tuple(name for names in self.let for name in names)
        self.context = Context(None if where is None else where.parent, named)
        self.derived = {name: value for name, value in DERIVED.items() if name not in named}
        self.problems = self._tables("problems", 'a = "Bernoulli([0.6, 0.5])"')
        self.policies = self._tables("policies", 'a = "UCB(C=0.5)"')
        self._check_mentions()
        self.made: dict[tuple[Any, ...], Any] = {}
        self.prefixed = self._ambiguous()

    def _tables(self, key: str, example: str) -> dict[str, _Table]:
        if key not in self.document:
            raise ExperimentError(f"{key}: is missing; a file has problems, policies and a horizon at least")
        listed = a_table(key, self.document[key], f"{{ {example} }}")
        return {name: self._table(key, name, value) for name, value in listed.items()}

    def _table(self, kind: str, name: str, value: Any) -> _Table:
        key, known = inside(kind, name), None
        if not name.strip() == name or not name.isprintable() or not 0 < len(name) <= LONGEST_NAME:
            raise ExperimentError(
                f"{key}: must have a name of up to {LONGEST_NAME} printable characters, got {shown(name)}"
            )
        if kind == "problems":
            if isinstance(value, dict) and "known" in value:
                value = dict(value)
                known = _known(inside(key, "known"), value.pop("known"))
            sweep = formulas.problems(key, value, self.context)
        else:
            sweep = formulas.policies(key, value, replace(self.context, numbers=(*self.context.numbers, *self.derived)))
        _check_cells(key, sweep.count)
        return _Table(key, name, sweep, tuple(sweep.variants()), known)

    def _check_mentions(self) -> None:
        everything = (*self.problems.values(), *self.policies.values())
        mentioned = frozenset[str]().union(*(table.sweep.mentions for table in everything))
        for names in self.let:
            for name in sorted(set(names) - mentioned):
                raise ExperimentError(f"{inside('let', name)}: is mentioned in no problem and no policy")

    def _ambiguous(self) -> frozenset[str]:
        """Names that are swept on both sides, or mean something else: they are told apart as policy.C, problem.C."""
        sides = [
            {name for table in side.values() for variant in table.variants for name, _ in variant.labels}
            for side in (self.problems, self.policies)
        ]
        taken = {"problem", "policy", *SETTINGS, *self.context.numbers}
        return frozenset((sides[0] & sides[1]) | ((sides[0] | sides[1]) & taken))

    def cells(self) -> list[Cell]:
        """All of them, different from each other."""
        runs = _runs(self.document, self.problems, self.policies)
        _check_cells("the file", sum(self._count(run) for run in runs))
        cells = [cell for run in runs for cell in self._of_run(run)]
        _check_different(cells)
        several = [name for name in SETTINGS[:3] if len({getattr(cell, name) for cell in cells}) > 1]
        return [
            Cell(**{**vars(cell), "names": (*cell.names, *((name, getattr(cell, name)) for name in several))})
            for cell in cells
        ]

    def _count(self, run: _Run) -> int:
        """Not fewer cells than a run has."""
        return run.settings.count * sum(
            problem.sweep.count
            * policy.sweep.count
            * math.prod(sweep.count for sweep in self._lets(problem.sweep.mentions | policy.sweep.mentions))
            for problem in run.problems
            for policy in run.policies
        )

    def _lets(self, mentions: frozenset[str]) -> list[Sweep]:
        return [sweep for names, sweep in self.let.items() if not mentions.isdisjoint(names)]

    def _of_run(self, run: _Run) -> Iterator[Cell]:
        settings = [(variant.make({}), _swept_checkpoints(variant)) for variant in run.settings.variants()]
        for problem, policy in itertools.product(run.problems, run.policies):
            for one, other in itertools.product(problem.variants, policy.variants):
                for chosen in itertools.product(*(s.variants() for s in self._lets(one.mentions | other.mentions))):
                    labels = tuple(label for each in chosen for label in each.labels)
                    labels += (*self._labels("policy", other), *self._labels("problem", one))
                    names = (("problem", problem.name), ("policy", policy.name), *labels)
                    numbers = {name: number for each in chosen for name, number in each.make({}).items()}
                    for setting, told in settings:
                        known = {**numbers, "horizon": setting["horizon"]}
                        made = self._made(one, known)
                        player = self._made(other, known | self._of_problem(problem, policy, made, other.mentions))
                        yield self._cell(problem, policy, made, player, setting, names + told)

    def _of_problem(
        self, problem: _Table, policy: _Table, made: AnyProblem, mentions: frozenset[str]
    ) -> dict[str, float]:
        """What a policy's expressions mention of its problem."""
        found = {}
        for name in sorted(mentions & self.derived.keys()):
            if isinstance(made, RandomProblem) and name in ("gap", "V"):
                raise ExperimentError(f"{policy.key}: {name} is not known: every replication draws {problem.key} anew")
            if (name in ("gap", "V")) == isinstance(made, ContextProblem) and name != "arms":
                has = "contexts" if isinstance(made, ContextProblem) else "no contexts"
                raise ExperimentError(f"{policy.key}: {name} is not known: {problem.key} has {has}")
            with blamed(policy.key):
                found[name] = self.derived[name](made)
        return found

    def _labels(self, side: str, variant: Variant) -> tuple[Label, ...]:
        return tuple((f"{side}.{name}" if name in self.prefixed else name, value) for name, value in variant.labels)

    def _made(self, variant: Variant, numbers: Numbers) -> Any:
        """What a variant makes of the numbers that it mentions, made once."""
        own = (id(variant), *(numbers[name] for name in sorted(variant.mentions)))
        if own not in self.made:
            self.made[own] = variant.make(numbers)
        return self.made[own]

    def _cell(
        self,
        problem: _Table,
        policy: _Table,
        made: AnyProblem,
        player: Policy,
        setting: Mapping[str, Any],
        names: tuple[Label, ...],
    ) -> Cell:
        start = None if problem.known is None else _start(problem, policy, made, player)
        horizon, replications, seed = (setting[name] for name in SETTINGS[:3])
        rounds = self._rounds(setting["checkpoints"], start.rounds if start else 0, horizon)
        with blamed(problem.key):
            check_fixed(made)
        with blamed(policy.key):
            check_pair(player, made)
        if isinstance(made, RandomProblem):
            self._check_draw(problem, made, seed)
        return Cell(player, made, horizon, replications, seed, rounds, names, start)

    def _rounds(self, checkpoints: Any, played: int, horizon: int) -> tuple[int, ...]:
        own = ("rounds", str(checkpoints), played, horizon)
        if own not in self.made:
            if horizon <= played:
                raise ExperimentError(f"horizon: must be more than the {played} rounds that are known, got {horizon}")
            with blamed("checkpoints", "checkpoints", "allowed is a number of them, or a list of rounds"):
                self.made[own] = check_checkpoints(checkpoints, played, horizon - played)
        rounds: tuple[int, ...] = self.made[own]
        return rounds

    def _check_draw(self, problem: _Table, random: RandomProblem, seed: int) -> None:
        """See that the laws of a random problem give what its parameters may be, once."""
        own = ("drawn", id(random), seed)
        if own not in self.made:
            with blamed(problem.key):
                self.made[own] = random.draw(seed, 0)


def _swept_checkpoints(variant: Variant) -> tuple[Label, ...]:
    return tuple(label for label in variant.labels if label[0] == "checkpoints")


@dataclass(frozen=True)
class _Run:
    """Which policies play which problems, and how."""

    problems: Sequence[_Table]
    policies: Sequence[_Table]
    settings: Sweep


def _runs(document: Mapping[str, Any], problems: dict[str, _Table], policies: dict[str, _Table]) -> list[_Run]:
    settings = {name: document[name] for name in (*SETTINGS, "grid", "zip") if name in document}
    top = columns("", calculated("", settings, whole=True), ENTRIES)
    given = document.get("runs", [{}])
    if not isinstance(given, list) or not given or not all(isinstance(run, dict) for run in given):
        raise ExperimentError(f'runs: must be tables such as [[runs]] problems = ["a"], got {shown(given)}')
    return [_run(f"runs[{i}]", run, top, problems, policies) for i, run in enumerate(given)]


def _run(
    key: str,
    run: Mapping[str, Any],
    top: dict[tuple[str, ...], Sweep],
    problems: dict[str, _Table],
    policies: dict[str, _Table],
) -> _Run:
    for name, value in run.items():
        if name not in RUN_KEYS:
            raise unknown(key, name, value, "key", "a run has", RUN_KEYS)
    given = {name: value for name, value in run.items() if name not in ("problems", "policies")}
    own = columns(key, calculated(key, given, whole=True), ENTRIES)
    replaced = {name for names in own for name in names}
    kept = {names: sweep for names, sweep in top.items() if not set(names) <= replaced}
    for names in kept:
        for name in sorted(set(names) & replaced):
            raise ExperimentError(f"{inside(key, name)}: cannot replace a part of zip, which has {', '.join(names)}")
    there = {name for names in (*own, *kept) for name in names}
    if "horizon" not in there:
        raise ExperimentError("horizon: is missing; allowed is a whole number of rounds, or a list of such to sweep it")
    defaults = columns("", {name: value for name, value in DEFAULTS.items() if name not in there}, ENTRIES)
    settings = merged([*kept.values(), *own.values(), *defaults.values()])
    return _Run(_chosen(key, "problems", run, problems), _chosen(key, "policies", run, policies), settings)


def _chosen(key: str, kind: str, run: Mapping[str, Any], known: dict[str, _Table]) -> list[_Table]:
    """The tables that a run names, or all."""
    if kind not in run:
        return list(known.values())
    own, names = inside(key, kind), run[kind]
    if not isinstance(names, list) or not names:
        raise ExperimentError(f"{own}: must be a list of names, got {shown(names)}; there are {', '.join(known)}")
    for name in names:
        if not isinstance(name, str) or name not in known:
            near = suggestion(str(name), known) if isinstance(name, str) else ""
            raise ExperimentError(f"{own}: there is no {shown(name)}; there are {', '.join(known)}{near}")
    return [known[name] for name in names]


def _known(key: str, value: Any) -> tuple[Any, Any]:
    """The statistics from which a problem starts, as they are written."""
    table = a_table(key, value, "{ pulls = [1, 1], means = [0.5, 0.25] }")
    for name, given in table.items():
        if name not in ("pulls", "means"):
            raise unknown(key, name, given, "key", "there are", ("pulls", "means"))
        if not isinstance(given, list) or not all(type(each) in (int, float) for each in given):
            raise ExperimentError(f"{inside(key, name)}: must be a list with a number for each arm, got {shown(given)}")
    for name in {"pulls", "means"} - table.keys():
        raise ExperimentError(f"{inside(key, name)}: is missing; pulls and means go together")
    return table["pulls"], table["means"]


def _start(problem: _Table, policy: _Table, made: AnyProblem, player: Policy) -> Start:
    assert problem.known is not None
    key, (pulls, means) = inside(problem.key, "known"), problem.known
    with blamed(key):
        start = check_start([player], made, pulls, means, None)
    if not player.estimator.plain:
        raise ExperimentError(f"{key}: {policy.key} cannot start from it, its estimator keeps more of past rewards")
    return start


def _check_cells(key: str, count: int) -> None:
    if count > MOST_CELLS:
        number = f"{count:,}" if count < 10**15 else f"more than 10^{math.floor(math.log10(count))}"
        raise ExperimentError(f"{key}: would be {number} cells; at most {MOST_CELLS:,} are allowed")


def _check_different(cells: Iterable[Cell]) -> None:
    """Two cells that are the same would be computed twice, under two names."""
    seen: dict[Cell, Cell] = {}
    for cell in cells:
        before = seen.setdefault(cell, cell)
        if before is not cell:
            texts = [", ".join(f"{name} {value}" for name, value in each.names) for each in (before, cell)]
            raise ExperimentError(
                f"policies.{_bare(cell)}: gives a cell twice: ({texts[0]}) and ({texts[1]}) are both {cell.policy!r} "
                f"on {cell.problem!s}, horizon {cell.horizon}, replications {cell.replications}, seed {cell.seed}"
            )


def _bare(cell: Cell) -> str:
    return inside("", str(dict(cell.names)["policy"]))
