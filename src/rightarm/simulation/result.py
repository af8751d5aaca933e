"""The result of a simulation: arrays, a table, a picture, a file."""

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
from numpy.typing import NDArray

from rightarm import text
from rightarm.extras import polars_for
from rightarm.formula import from_specification
from rightarm.notebook import html_table
from rightarm.problems import Problem
from rightarm.problems.random import AnyProblem, any_problem_from_specification
from rightarm.scores.policy import Policy
from rightarm.simulation.engine import Start
from rightarm.simulation.panels import Line, Panel, final_against, relabelled
from rightarm.simulation.statistics import MeanCurve, mean_and_error
from rightarm.types import F64, I64

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes

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
    specification: dict[str, Any]
    """Policies, problem, start, seed and versions, as plain data."""
    drawn_means: F64 | None = None
    """The means of each replication's own problem, shape (replications, arms), where the problem is a random one."""

    @classmethod
    def of(
        cls,
        policies: Sequence[Policy],
        problem: AnyProblem,
        start: Start,
        seed: int,
        rounds: I64,
        regret: F64,
        pulls: I64,
        drawn_means: F64 | None = None,
    ) -> Result:
        """The result of having played ``policies`` on ``problem``."""
        specification = {
            "policies": [policy.specification() for policy in policies],
            "problem": problem.specification(),
            "means": problem.means.tolist() if isinstance(problem, Problem) else None,
            "title": str(problem),
            "start": start.specification(),
            "seed": seed,
            "versions": versions(),
        }
        labels = distinct([str(policy) for policy in policies])
        result = cls(labels, rounds, regret, pulls, specification, drawn_means)
        result.__dict__.update(policies=tuple(policies), problem=problem)  # no need to find them again
        return result

    @functools.cached_property
    def policies(self) -> tuple[Policy, ...]:
        """The policies; in a loaded result one of the user's own must be importable, and still be the same formula."""
        return tuple(from_specification(policy) for policy in self.specification["policies"])

    @functools.cached_property
    def problem(self) -> AnyProblem:
        """The problem; in a loaded result likewise."""
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
        """Run it again; the same arrays, bit for bit, unless something is changed (``replications=1_000``, say)."""
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

    def table(self) -> list[dict[str, Any]]:
        """The summary as rows."""
        played = self.pulls - np.array(self.specification["start"]["pulls"])
        best = [best_share(own, self.means, self.horizon) for own in played]
        return [
            {"policy": label, **final_regret(self.regret[i, :, -1]), "best_arm_share": best[i]}
            for i, label in enumerate(self.labels)
        ]

    def summary(self) -> polars.DataFrame:
        """Final regret of each policy: mean, standard error, quantiles, the best arm's share; and its parameters.

        A parameter is a column, empty for policies that do not have it: a sweep can be filtered and plotted by it.
        Lists and mappings, such as the features of a linear model, are texts.
        """
        parameters = [parameters_of(policy) for policy in self.specification["policies"]]
        names = list(dict.fromkeys(name for row in parameters for name in row))
        nested = {name for row in parameters for name, value in row.items() if isinstance(value, dict | list)}
        rows = [
            {**row, **{name: _cell(own.get(name), name in nested) for name in names}}
            for row, own in zip(self.table(), parameters, strict=True)
        ]
        frame: polars.DataFrame = polars_for("summary()").DataFrame(rows, infer_schema_length=None)
        return frame

    def _head(self) -> str:
        title, replications = self.specification["title"], self.regret.shape[1]
        return f"{title}: regret after {self.horizon:,} rounds, {replications:,} replications"

    def _shown(self) -> tuple[list[str], list[list[str]]]:
        """The titles and the rows of the table that people read."""
        rows = self.table()
        titles = titles_of(rows)
        return ["policy", *titles.values()], [[row["policy"], *told(row, titles)] for row in rows]

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
        bounds: Mapping[str, Callable[[I64], Any]] | None = None,
        labels: Mapping[str, str] | Sequence[str] | None = None,
        figsize: tuple[float, float] | None = None,
        ax: Axes | None = None,
    ) -> Any:
        """Draw mean regret with 95% confidence bands against the round.

        Into a file, PNG, SVG or PDF by the path's ending, and its path is given back; onto ``ax``, axes of a figure of
        your own; or into a new figure, which is given back. Matplotlib's rcParams hold for all of them.

        - ``against="C"`` draws the final regret of a sweep against that parameter instead, a curve for each kind of
          policy, and a level line for each policy that does not have it.
        - ``log`` makes axes logarithmic; a band goes down to a tenth of its mean there, at most.
        - ``bounds`` are lines to be drawn beside the curves, functions of the round by name.
        - ``labels`` are other names for the legend: one for each curve, or by the name that a curve has otherwise.
        - ``figsize`` is the figure's width and height in inches.
        """
        from rightarm.simulation.figure import draw

        panel = self._regret(bounds or {}) if against is None else self._against(against)
        panel = replace(panel, title=self.specification["title"] if title is None else title)
        return draw([relabelled(panel, labels)], None if path is None else Path(path), ax=ax, figsize=figsize, log=log)

    def _regret(self, bounds: Mapping[str, Callable[[I64], Any]]) -> Panel:
        lines = [Line(label, self.rounds, bound(self.rounds)) for label, bound in bounds.items()]
        return Panel("", self._measured(), lines, begin=float(self.rounds[-1] - self.horizon))

    def _against(self, parameter: str) -> Panel:
        measured, points = self._measured(), self.curves(parameter)
        joined = [MeanCurve.joined(label, [(x, measured[i]) for x, i in own]) for label, own in points.items()]
        shown = {i for own in points.values() for _, i in own}
        return final_against(parameter, "", joined, [curve for i, curve in enumerate(measured) if i not in shown])

    def _measured(self) -> list[MeanCurve]:
        return [
            MeanCurve.of(label, self.rounds, regret) for label, regret in zip(self.labels, self.regret, strict=True)
        ]

    def curves(self, parameter: str) -> dict[str, list[tuple[float, int]]]:
        """For each kind of policy that has ``parameter``, its values in order, each with the policy's index."""
        rows = [parameters_of(policy) for policy in self.specification["policies"]]
        curves: dict[str, list[tuple[float, int]]] = {}
        for i, own in enumerate(rows):
            value = self._value(i, own, parameter)
            if isinstance(value, float):
                others = ", ".join(_told(name, own[name]) for name in _telling(rows, own) if name != parameter)
                curves.setdefault(f"{own['family']} ({others})" if others else own["family"], []).append((value, i))
        if not curves:
            known = sorted({name for row in rows for name, value in row.items() if isinstance(value, float)})
            raise ValueError(
                f"against must be a parameter of one of the policies, {', '.join(known)}, got {parameter!r}"
            )
        return {name: sorted(points) for name, points in curves.items()}

    def _value(self, i: int, own: Mapping[str, Any], parameter: str) -> Any:
        """A policy's value of ``parameter``; what an estimator has by default is not in its specification."""
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
        labels, rounds = tuple(content.pop("labels")), np.array(content.pop("rounds"))
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
        """`Result.summary` of all, with the problem as the first column."""
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
    """Mean, standard error and quantiles of the regret of several replications.

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


def titles_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The statistics with their titles that a table of these rows shows: no best arm where contexts decide which it is.

    >>> list(titles_of([{"best_arm_share": math.nan}])) == list(titles_of([{"best_arm_share": 0.5}]))[:-1]
    True
    """
    shares = [row["best_arm_share"] for row in rows]
    none = bool(shares) and all(share is not None and math.isnan(share) for share in shares)
    return {name: title for name, title in TITLES.items() if not (none and name == "best_arm_share")}


def told(row: Mapping[str, Any], names: Iterable[str] = tuple(TITLES)) -> list[str]:
    """Statistics of a row as tables show them, those of `TITLES` unless named.

    >>> told({"regret": 1234.56, "standard_error": np.nan, **dict.fromkeys(QUANTILES, 0.5), "best_arm_share": 0.75})
    ['1,235', '–', '0.5', '0.5', '0.5', '75.0%']
    """
    return [
        text.percent(row[name])
        if name == "best_arm_share"
        else text.number(row[name], 3 if name == "standard_error" else 4)
        for name in names
    ]


def best_of(means: F64) -> NDArray[np.bool_]:
    """Which arms of each row are the best; there may be several."""
    best: NDArray[np.bool_] = means == means.max(axis=-1, keepdims=True)
    return best


def best_share(pulls: I64, means: F64, horizon: int) -> float:
    """The best arm's share of ``pulls`` (replications × arms); not a number where no arm is the best in all contexts.

    >>> best_share(np.array([[3, 1], [1, 3]]), np.array([[0.5, 0.25], [0.5, 0.25]]), horizon=4)
    0.5
    """
    if np.isnan(means).any():
        return math.nan
    return float((pulls * best_of(means)).sum(axis=1).mean() / horizon)


def parameters_of(policy: dict[str, Any]) -> dict[str, Any]:
    """The family and the parameters of a policy's specification; those of a schedule under the schedule's name."""
    row: dict[str, Any] = {"family": policy["formula"].rpartition(":")[2]}
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


def _telling(rows: Sequence[Mapping[str, Any]], own: Mapping[str, Any]) -> list[str]:
    """The parameters by which a kind of policy is named: numbers and words, and of others those that differ."""
    alike = [row for row in rows if row.get("estimator") == own.get("estimator")]
    several = {name for row in alike for name in own if row.get(name) != own[name]}
    return [n for n, v in own.items() if n != "family" and (isinstance(v, float | str) or n in several)]


def _cell(value: Any, nested: bool) -> Any:
    """A value in a column of parameters; text where some value of the column is nested, for a column has one type."""
    return text.short(value) if nested and value is not None else value


def _told(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={text.short(value)}"


def distinct(labels: list[str]) -> tuple[str, ...]:
    """Labels that differ: the second of two equal ones gets a number."""
    total, seen = Counter(labels), Counter[str]()
    differing = []
    for label in labels:
        seen[label] += 1
        differing.append(f"{label} #{seen[label]}" if total[label] > 1 else label)
    return tuple(differing)


def versions() -> dict[str, str]:
    """What computed a result."""
    return dict(_versions())


@functools.cache  # looking for packages takes a millisecond, and every cell of a sweep asks
def _versions() -> dict[str, str]:
    packages = {name: importlib.metadata.version(name) for name in ("rightarm", "numpy", "numba")}
    return packages | {"python": platform.python_version(), "machine": platform.machine()}
