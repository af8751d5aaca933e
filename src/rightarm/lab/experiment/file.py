"""Experiment files: problems, policies, horizon, replications, seed and checkpoints in TOML, read into cells.

    title = "Which C?"
    horizon = [10_000, 100_000]                # a list where a number is expected sweeps it
    replications = 64                          # 64 unless given, as in `ra.simulate`
    seed = 2017                                # 0 unless given
    checkpoints = 100                          # about how many, or a list of rounds; 100 unless given

    [problems.honest]
    use = "Bernoulli"                          # a public name, module:name of one's own, or an expression
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
"""

from __future__ import annotations

import itertools
import math
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rightarm.formula import check_count, check_number
from rightarm.lab.experiment import formulas
from rightarm.lab.experiment.cell import Cell
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
from rightarm.lab.experiment.expressions import FUNCTIONS, Expression
from rightarm.lab.experiment.formulas import Context, a_number
from rightarm.lab.experiment.sweeps import Entries, Label, Numbers, Sweep, Variant, columns
from rightarm.problems import Problem
from rightarm.problems.random import RandomProblem
from rightarm.scores.policy import Policy
from rightarm.simulation.engine import Start
from rightarm.simulation.simulate import check_checkpoints, check_start

SETTINGS = ("horizon", "replications", "seed", "checkpoints")
DEFAULTS: dict[str, Any] = {"replications": 64, "seed": 0, "checkpoints": 100}
KEYS = ("title", *SETTINGS, "problems", "policies", "let", "runs", "grid", "zip", "quick")
RUN_KEYS = ("problems", "policies", *SETTINGS, "grid", "zip")

MOST_CELLS = 100_000  # a slip in a sweep is told at once, not after hours of making cells
MOST = {"horizon": 2**53, "replications": 2**28, "checkpoints": 100_000}  # a float counts no further; memory


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
    document = _parsed(text)
    for name, value in document.items():
        if name not in KEYS:
            raise unknown("", name, value, "key", "a file has", KEYS)
    document = _overlaid(document, quick)
    title = document.get("title", where.stem if where else "")
    if not isinstance(title, str) or not title.isprintable():
        raise ExperimentError(f"title: must be a line of text, got {shown(title)}")
    reader = _Reader(document, where)
    return Experiment(title, tuple(reader.cells()), text, where)


def _parsed(text: str) -> dict[str, Any]:
    """The TOML as plain data."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).rpartition(" (at ")
        ends = _place(text.rstrip(), len(text.rstrip()))
        raise ExperimentError(f"{place.rstrip(')') if 'line' in place else ends}: {message}") from None
    except RecursionError:
        raise ExperimentError("the file is nested too deeply") from None
    except ValueError as error:  # a number of more digits than Python reads
        long = re.search(r"[0-9_]{1000,}", text)
        raise ExperimentError(f"{_place(text, long.start() if long else 0)}: {error}") from None


def _overlaid(document: dict[str, Any], quick: bool) -> dict[str, Any]:
    """The document without its `[quick]` table, or with what that table has in the place of what it replaces."""
    rest = {name: value for name, value in document.items() if name != "quick"}
    if "quick" not in document:
        if quick:
            raise ExperimentError("quick: is missing; a file that can be run quickly has a table [quick]")
        return rest
    overlay = a_table("quick", document["quick"], "{ horizon = 1_000 }")
    for name, value in overlay.items():
        if name not in KEYS[:-1]:
            raise unknown("quick", name, value, "key", "it has", KEYS[:-1])
    return _merged(rest, overlay) if quick else rest


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Tables merged key by key; anything else is replaced."""
    both = {
        name: _merged(below[name], value) if isinstance(value, dict) and isinstance(below.get(name), dict) else value
        for name, value in above.items()
    }
    return {**below, **both}


def _place(text: str, position: int) -> str:
    before = text[:position]
    return f"line {before.count(chr(10)) + 1}, column {position - before.rfind(chr(10))}"


def _smallest_gap(problem: Problem) -> float:
    gaps = problem.gaps[problem.gaps > 0]
    if not gaps.size:
        raise ValueError(f"gap is not known: all arms of {problem} are equally good")
    return float(gaps.min())


DERIVED: dict[str, Callable[[Any], float]] = {
    "arms": lambda problem: problem.arms,
    "gap": _smallest_gap,
    "V": lambda problem: float(problem.second_moments.max()),
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
    """One file on its way to cells."""

    def __init__(self, document: Mapping[str, Any], where: Path | None) -> None:
        self.document = document
        self.let = _let(document)
        let = tuple(name for names in self.let for name in names)
        self.context = Context(None if where is None else where.parent, let)
        self.derived = {name: value for name, value in DERIVED.items() if name not in let}
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
        self, problem: _Table, policy: _Table, made: Problem | RandomProblem, mentions: frozenset[str]
    ) -> dict[str, float]:
        """What a policy's expressions mention of its problem."""
        found = {}
        for name in sorted(mentions & self.derived.keys()):
            if isinstance(made, RandomProblem) and name != "arms":
                raise ExperimentError(f"{policy.key}: {name} is not known: every replication draws {problem.key} anew")
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
        made: Problem | RandomProblem,
        player: Policy,
        setting: Mapping[str, Any],
        names: tuple[Label, ...],
    ) -> Cell:
        start = None if problem.known is None else _start(problem, policy, made, player)
        horizon, replications, seed = (setting[name] for name in SETTINGS[:3])
        rounds = self._rounds(setting["checkpoints"], start.rounds if start else 0, horizon)
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


def _let(document: Mapping[str, Any]) -> dict[tuple[str, ...], Sweep]:
    if "let" not in document:
        return {}

    def check(key: str, name: str, value: Any) -> None:
        if not name.isidentifier() or name in formulas.TAKEN:
            taken = "that name means something already" if name in formulas.TAKEN else "a name is letters, digits and _"
            raise ExperimentError(f"{inside(key, name)}: cannot be mentioned, {taken}, got {shown(value)}")

    given = a_table("let", document["let"], "{ gap = [0.1, 0.2] }")
    return columns("let", _calculated("let", given), Entries(a_number, check))


def _calculated(key: str, table: Mapping[str, Any], whole: bool = False) -> dict[str, Any]:
    """A table of numbers, with those that are written as expressions calculated; ``whole`` rounds them."""
    return {name: _value(inside(key, name), v, whole) if isinstance(v, str) else v for name, v in table.items()}


def _value(key: str, text: str, whole: bool) -> Any:
    with blamed(key):
        value = Expression(text, "name", {}, list(FUNCTIONS)).value()
        if not whole:
            return value
        rounded = [round(check_number(key, each)) for each in (value if isinstance(value, list) else [value])]
    return list(dict.fromkeys(rounded)) if isinstance(value, list) else rounded[0]


def _runs(document: Mapping[str, Any], problems: dict[str, _Table], policies: dict[str, _Table]) -> list[_Run]:
    settings = {name: document[name] for name in (*SETTINGS, "grid", "zip") if name in document}
    top = columns("", _calculated("", settings, whole=True), _ENTRIES)
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
    own = columns(key, _calculated(key, given, whole=True), _ENTRIES)
    replaced = {name for names in own for name in names}
    kept = {names: sweep for names, sweep in top.items() if not set(names) <= replaced}
    for names in kept:
        for name in sorted(set(names) & replaced):
            raise ExperimentError(f"{inside(key, name)}: cannot replace a part of zip, which has {', '.join(names)}")
    there = {name for names in (*own, *kept) for name in names}
    if "horizon" not in there:
        raise ExperimentError("horizon: is missing; allowed is a whole number of rounds, or a list of such to sweep it")
    defaults = columns("", {name: value for name, value in DEFAULTS.items() if name not in there}, _ENTRIES)
    settings = Sweep.combined(
        [*kept.values(), *own.values(), *defaults.values()],
        lambda made: {name: value for each in made for name, value in each.items()},
    )
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


def _allowed(name: str) -> str:
    if name == "seed":
        return "allowed is a whole number from 0 on, or a list of such to sweep it"
    if name == "checkpoints":
        return f"allowed is a number of them, up to {MOST[name]:,}, or a list of rounds; a list of lists sweeps it"
    return f"allowed is a whole number up to {MOST[name]:,}, or a list of such to sweep it"


def _setting(key: str, name: str, value: Any) -> Sweep:
    """One horizon, number of replications, seed, or choice of checkpoints."""

    def whole(own: str, number: Any, most: float) -> int:
        with blamed(own, name, _allowed(name)):
            count = check_count(name, number, least=0 if name == "seed" else 1)
            if count > most:
                raise ValueError(f"{name} must be at most {most:,}, got {number!r}")
            return count

    if isinstance(value, list) and name == "checkpoints":
        if not value:
            raise ExperimentError(f"{key}: must have one round at least, got {shown(value)}")
        made: int | list[int] = [whole(f"{key}[{i}]", each, MOST["horizon"]) for i, each in enumerate(value)]
    else:
        made = whole(key, value, MOST.get(name, math.inf))
    return Sweep.of(Variant((), lambda numbers: made))


def _check_setting(key: str, name: str, value: Any) -> None:
    if name not in SETTINGS:
        raise unknown(key, name, value, "key", "to be swept there are", SETTINGS)


def _is_rounds(name: str, values: list[Any]) -> bool:
    return name == "checkpoints" and not any(isinstance(each, list) for each in values)


_ENTRIES = Entries(_setting, _check_setting, _is_rounds)


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


def _start(problem: _Table, policy: _Table, made: Problem | RandomProblem, player: Policy) -> Start:
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
