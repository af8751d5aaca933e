"""The result of a simulation: arrays, a summary, a picture, a file."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import math
import os
import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rightarm import display as text
from rightarm.display import html_table
from rightarm.errors import polars_for
from rightarm.formula import from_specification
from rightarm.policies.policy import Policy
from rightarm.problems import Problem
from rightarm.problems.random import AnyProblem, any_problem_from_specification
from rightarm.simulation.engine import Plan, Start
from rightarm.simulation.panels import Line, MeanCurve, Panel, final_against, mean_and_error, relabelled
from rightarm.types import F64, I64

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes

Row = Mapping[str, Any]  # numbers and texts by name
Specification = dict[str, Any]  # plain data, as JSON has it
Bound = Callable[[I64], ArrayLike]  # a line beside the curves, as a function of the round

FORMAT = 1
QUANTILES = {"quantile_05": 0.05, "median": 0.5, "quantile_95": 0.95}
TITLES = {
    "regret": "regret",
    "standard_error": "± s.e.",
    "quantile_05": "5%",
    "median": "median",
    "quantile_95": "95%",
    "best_arm_share": "best arm",
}
"""The statistics of final regret, each with its title in tables that people read."""
SPARE = ("5%", "95%", "median")  # the titles that go first where a terminal is narrow


@dataclass(frozen=True, eq=False)
class Result:
    """Pseudo-regret and pulls of several policies on one problem.

    Regret counts the gap of every pull of the rounds simulated: Σ_i Δ_i N_i.
    """

    labels: tuple[str, ...]
    """The policies, in short."""
    rounds: I64
    """The checkpoints, shape (P,)."""
    regret: F64
    """Pseudo-regret, shape (policies, replications, P)."""
    pulls: I64
    """Final pulls, shape (policies, replications, arms)."""
    specification: Specification
    """Policies, problem, start, seed and versions, as plain data."""
    drawn_means: F64 | None = None
    """The means of each replication's own problem, shape (replications, arms), where the problem is a random one."""

    @classmethod
    def of(
        cls,
        plans: Sequence[Plan],
        start: Start,
        seed: int,
        *,
        rounds: I64,
        regret: F64,
        pulls: I64,
        drawn_means: F64 | None = None,
    ) -> Result:
        """Return the result of having played ``plans``, several policies on one problem."""
        problem = plans[0].problem
        specification = {
            "policies": [plan.policy_specification for plan in plans],
            "problem": plans[0].problem_specification,
            "means": problem.means.tolist() if isinstance(problem, Problem) else None,
            "title": plans[0].title,
            "start": start.specification(),
            "seed": seed,
            "versions": versions(),
        }
        labels = distinct([plan.label for plan in plans])
        result = cls(labels, rounds, regret, pulls, specification, drawn_means)
        played = tuple(plan.policy for plan in plans)
        result.__dict__.update(policies=played, problem=problem)  # no need to find them again
        return result

    @functools.cached_property
    def policies(self) -> tuple[Policy, ...]:
        """Return the policies; in a loaded result a user's policy must be importable, and still be the same formula."""
        return tuple(from_specification(policy) for policy in self.specification["policies"])

    @functools.cached_property
    def problem(self) -> AnyProblem:
        """Return the problem; in a loaded result a user's problem must be importable likewise."""
        return any_problem_from_specification(self.specification["problem"])

    @property
    def means(self) -> F64:
        """The mean reward of every arm in every replication, shape (replications, arms).

        Not a number where the problem has contexts: no arm has one mean then.
        """
        if self.drawn_means is not None:
            return self.drawn_means
        if self.specification["means"] is None:
            return np.full(self.pulls.shape[1:], np.nan)
        return np.broadcast_to(np.array(self.specification["means"]), self.pulls.shape[1:])

    @property
    def seed(self) -> int:
        """The seed, also where none was given."""
        return int(self.specification["seed"])

    def repeat(self, **changes: Any) -> Result:
        """Run it again: the same arrays, bit for bit, unless something is changed (``replications=1_000``, say)."""
        from rightarm.simulation.simulate import simulate

        settings = {"horizon": self.horizon, "replications": self.regret.shape[1], "seed": self.seed}
        if "horizon" not in changes:
            settings["checkpoints"] = self.rounds.tolist()
        return simulate(self.policies, self.problem, **(settings | self.specification["start"] | changes))

    @property
    def horizon(self) -> int:
        """The rounds played; statistics to start from do not count."""
        before: list[int] = self.specification["start"]["pulls"]
        return int(self.rounds[-1]) - sum(before)

    def _rows(self) -> list[Specification]:
        """Return the statistics of each policy's final regret."""
        played = self.pulls - np.array(self.specification["start"]["pulls"])
        best = [best_share(own, self.means, self.horizon) for own in played]
        return [
            {"policy": label, **final_regret(self.regret[i, :, -1]), "best_arm_share": best[i]}
            for i, label in enumerate(self.labels)
        ]

    def summary(self) -> polars.DataFrame:
        """Return the final regret of each policy: mean, standard error, quantiles; the best arm's share; parameters.

        A parameter is a column, empty for policies that do not have it: a sweep can be filtered and plotted by it.
        Lists and mappings, such as the features of a linear model, are texts.
        """
        parameters = [parameters_of(policy) for policy in self.specification["policies"]]
        names = list(dict.fromkeys(name for row in parameters for name in row))
        nested = {name for row in parameters for name, value in row.items() if isinstance(value, dict | list)}
        rows = [
            {**row, **{name: _cell(own.get(name), name in nested) for name in names}}
            for row, own in zip(self._rows(), parameters, strict=True)
        ]
        frame: polars.DataFrame = polars_for("summary()").DataFrame(rows, infer_schema_length=None)
        return frame

    def _head(self) -> str:
        title = self.specification["title"]
        replications = self.regret.shape[1]
        return f"{title}: regret after {self.horizon:,} rounds, {replications:,} replications"

    def _shown(self) -> tuple[list[str], list[list[str]]]:
        """Return the titles and the rows of the table that people read."""
        rows = self._rows()
        titles = titles_of(rows)
        return ["policy", *titles.values()], [[row["policy"], *formatted(row, titles)] for row in rows]

    def __str__(self) -> str:
        return f"{text.wrapped(self._head())}\n{text.table(*self._shown(), spare=SPARE)}"

    def _repr_html_(self) -> str:
        return html_table(*self._shown(), title=self._head())

    def __repr__(self) -> str:
        shape = f"{self.regret.shape[1]:,} replications, {self.horizon:,} rounds, seed {self.seed}"
        return f"<Result: {', '.join(self.labels)}; {shape}>"

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        against: str | None = None,
        title: str | None = None,
        log: bool = False,
        bounds: Mapping[str, Bound] | None = None,
        labels: Mapping[str, str] | Sequence[str] | None = None,
        figsize: tuple[float, float] | None = None,
        ax: Axes | None = None,
    ) -> Any:
        """Draw mean regret with 95% confidence bands against the round.

        Parameters
        ----------
        path
            A file to draw into: PNG, SVG or PDF by its ending. Without one, a new figure is drawn.
        against
            A parameter: the final regret of a sweep is drawn against it instead, a curve for each kind of policy, and
            a level line for each policy that does not have it.
        title
            What stands above; the problem unless given.
        log
            Make axes logarithmic; a band goes down to a tenth of its mean there, at most.
        bounds
            Lines to draw beside the curves, functions of the round by name.
        labels
            Other names for the legend: one for each curve, or by the name that a curve has otherwise.
        figsize
            The figure's width and height in inches.
        ax
            Axes of a figure of your own to draw onto.

        Returns
        -------
        Path or matplotlib.figure.Figure
            The path that was given, or else the figure. Matplotlib's rcParams hold for all of them.
        """
        from rightarm.simulation.figure import draw

        panel = self._regret(bounds or {}) if against is None else self._against(against)
        panel = replace(panel, title=self.specification["title"] if title is None else title)
        return draw([relabelled(panel, labels)], None if path is None else Path(path), ax=ax, figsize=figsize, log=log)

    def _regret(self, bounds: Mapping[str, Bound]) -> Panel:
        lines = [Line(label, self.rounds, bound(self.rounds)) for label, bound in bounds.items()]
        return Panel("", self._measured(), lines, begin=float(self.rounds[-1] - self.horizon))

    def _against(self, parameter: str) -> Panel:
        measured = self._measured()
        points = self.curves(parameter)
        joined = [MeanCurve.joined(label, [(x, measured[i]) for x, i in own]) for label, own in points.items()]
        shown = {i for own in points.values() for _, i in own}
        return final_against(parameter, "", joined, [curve for i, curve in enumerate(measured) if i not in shown])

    def _measured(self) -> list[MeanCurve]:
        return [
            MeanCurve.of(label, self.rounds, regret) for label, regret in zip(self.labels, self.regret, strict=True)
        ]

    def curves(self, parameter: str) -> dict[str, list[tuple[float, int]]]:
        """Return, for each kind of policy that has ``parameter``, its values in order, each with the policy's index."""
        rows = [parameters_of(policy) for policy in self.specification["policies"]]
        curves: dict[str, list[tuple[float, int]]] = {}
        for i, own in enumerate(rows):
            value = self._value(i, own, parameter)
            if isinstance(value, float):
                others = ", ".join(_named(name, own[name]) for name in _telling(rows, own) if name != parameter)
                curves.setdefault(f"{own['family']} ({others})" if others else own["family"], []).append((value, i))
        if not curves:
            known = sorted({name for row in rows for name, value in row.items() if isinstance(value, float)})
            raise ValueError(
                f"against must be a parameter of one of the policies, {', '.join(known)}, got {parameter!r}"
            )
        return {name: sorted(points) for name, points in curves.items()}

    def _value(self, i: int, own: Row, parameter: str) -> Any:
        """Return a policy's value of ``parameter``; what an estimator has by default is not in its specification."""
        _, of_estimator, name = parameter.partition("estimator_")
        if parameter in own or not of_estimator or "estimator" not in own:
            return own.get(parameter)
        return getattr(self.policies[i].estimator, name, None)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write everything to a Parquet file, a row for each policy and replication; an old file is replaced whole."""
        pl = polars_for("save()")
        path = Path(path)
        if path.suffix != ".parquet":
            raise ValueError(f"path must end in .parquet, got {path}")
        policies, replications, _ = self.regret.shape
        frame = pl.DataFrame(
            {
                "policy": np.repeat(np.array(self.labels, dtype=object), replications).tolist(),
                "replication": np.tile(np.arange(replications), policies),
                "regret": self.regret.reshape(policies * replications, -1),
                "pulls": self.pulls.reshape(policies * replications, -1),
            }
            | ({} if self.drawn_means is None else {"means": np.tile(self.drawn_means, (policies, 1))})
        )
        note = {"format": FORMAT, "labels": self.labels, "rounds": self.rounds.tolist(), **self.specification}
        part = path.with_name(path.name + ".part")
        frame.write_parquet(part, metadata={"rightarm": json.dumps(note)})
        os.replace(part, path)
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """Read what `save` wrote."""
        pl = polars_for("load()")
        note = pl.read_parquet_metadata(path).get("rightarm")
        if note is None:
            raise ValueError(f"{path} is not a result of rightarm")
        content = json.loads(note)
        if content.pop("format") != FORMAT:
            raise ValueError(
                f"{path} was written in another format than {FORMAT}; read it with the version that wrote it"
            )
        labels = tuple(content.pop("labels"))
        rounds = np.array(content.pop("rounds"))
        frame = pl.read_parquet(path)
        shape = (len(labels), len(frame) // len(labels), -1)
        regret, pulls = (frame[name].to_numpy().reshape(shape) for name in ("regret", "pulls"))
        drawn_means = frame["means"].to_numpy()[: shape[1]] if "means" in frame.columns else None
        return cls(labels, rounds, regret, pulls, content, drawn_means)


class ResultsByProblem(Mapping[str, Result]):
    """The results of a simulation over several problems, by the problems' names and in their order."""

    def __init__(self, results: Mapping[str, Result]) -> None:
        self._results = dict(results)

    def __getitem__(self, name: str) -> Result:
        if name not in self._results:
            raise KeyError(f"there is no problem {name!r}; there are {', '.join(self._results)}")
        return self._results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def summary(self) -> polars.DataFrame:
        """Return `Result.summary` of all, with the problem as the first column."""
        pl = polars_for("summary()")
        frames = [
            result.summary().select(pl.lit(name).alias("problem"), pl.all()) for name, result in self._results.items()
        ]
        frame: polars.DataFrame = pl.concat(frames)
        return frame

    def __str__(self) -> str:
        return "\n\n".join(str(result) for result in self._results.values())

    def _repr_html_(self) -> str:
        return "".join(result._repr_html_() for result in self._results.values())

    def __repr__(self) -> str:
        return f"<ResultsByProblem: {', '.join(self._results)}>"


def final_regret(regret: F64) -> dict[str, float]:
    """Return mean, standard error and quantiles of the regret of several replications.

    >>> final_regret(np.array([1.0, 2.0, 3.0]))["median"]
    2.0
    """
    mean, error = mean_and_error(regret)
    quantiles = np.quantile(regret, list(QUANTILES.values())).tolist()
    return {
        "regret": float(mean),
        "standard_error": float(error),
        **dict(zip(QUANTILES, quantiles, strict=True)),
    }


def titles_of(rows: Sequence[Row]) -> dict[str, str]:
    """Return the titles of the statistics that a table shows: no best arm where contexts decide which it is.

    >>> list(titles_of([{"best_arm_share": math.nan}])) == list(titles_of([{"best_arm_share": 0.5}]))[:-1]
    True
    """
    shares = [row["best_arm_share"] for row in rows]
    none = bool(shares) and all(share is not None and math.isnan(share) for share in shares)
    return {name: title for name, title in TITLES.items() if not (none and name == "best_arm_share")}


def formatted(row: Row, names: Iterable[str] = tuple(TITLES)) -> list[str]:
    """Return statistics of a row as tables show them, those of `TITLES` unless named.

    >>> row = {"regret": 1234.56, "standard_error": np.nan, **dict.fromkeys(QUANTILES, 0.5), "best_arm_share": 0.75}
    >>> formatted(row)
    ['1,235', '–', '0.5', '0.5', '0.5', '75.0%']
    """
    return [
        text.percent(row[name])
        if name == "best_arm_share"
        else text.number(row[name], 3 if name == "standard_error" else 4)
        for name in names
    ]


def best_of(means: F64) -> NDArray[np.bool_]:
    """Return which arms of each row are the best; there may be several."""
    best: NDArray[np.bool_] = means == means.max(axis=-1, keepdims=True)
    return best


def best_share(pulls: I64, means: F64, horizon: int) -> float:
    """Return the best arm's share of ``pulls`` (replications × arms); NaN where no arm is the best in all contexts.

    >>> best_share(np.array([[3, 1], [1, 3]]), np.array([[0.5, 0.25], [0.5, 0.25]]), horizon=4)
    0.5
    """
    if np.isnan(means).any():
        return math.nan
    return float((pulls * best_of(means)).sum(axis=1).mean() / horizon)


def parameters_of(policy: Specification) -> Specification:
    """Return the family and the parameters of a policy's specification, those of a schedule with its name."""
    row: Specification = {"family": policy["formula"].rpartition(":")[2]}
    for name, value in policy["parameters"].items():
        if isinstance(value, dict) and "law" in value:
            row[name] = value["law"].rpartition(":")[2]
        elif isinstance(value, dict) and "estimator" in value:
            row[name] = value["estimator"].rpartition(":")[2]
            row |= {f"{name}_{inner}": given for inner, given in value["parameters"].items()}
        elif isinstance(value, dict) and value["formula"] == "rightarm.policies.boltzmann:constant":
            row[name] = value["parameters"]["c"]
        elif isinstance(value, dict):
            inner = parameters_of(value)
            row[name] = inner.pop("family")
            row |= inner
        else:
            row[name] = value
    return row


def _telling(rows: Sequence[Row], own: Row) -> list[str]:
    """Return the parameters by which a kind of policy is named: numbers and words, and of others those that differ."""
    alike = [row for row in rows if row.get("estimator") == own.get("estimator")]
    several = {name for row in alike for name in own if row.get(name) != own[name]}
    return [n for n, v in own.items() if n != "family" and (isinstance(v, float | str) or n in several)]


def _cell(value: Any, nested: bool) -> Any:
    """Return a value for a column of parameters: text if a value of the column is nested, for a column has one type."""
    return text.short(value) if nested and value is not None else value


def _named(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={text.short(value)}"


def distinct(labels: list[str]) -> tuple[str, ...]:
    """Return labels that differ: the second of two equal ones gets a number."""
    total = Counter(labels)
    number = Counter[str]()
    differing = []
    for label in labels:
        number[label] += 1
        differing.append(f"{label} #{number[label]}" if total[label] > 1 else label)
    return tuple(differing)


def versions() -> dict[str, str]:
    """Return the versions of what computed a result."""
    return dict(_versions())


@functools.cache  # looking for packages takes a millisecond, and every cell of a sweep asks
def _versions() -> dict[str, str]:
    packages = {name: importlib.metadata.version(name) for name in ("rightarm", "numpy", "numba")}
    return packages | {"python": platform.python_version(), "machine": platform.machine()}
