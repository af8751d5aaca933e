"""The result of a simulation: arrays, a table, a picture, a file."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import platform
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rightarm.extras import polars_for
from rightarm.formula import from_specification
from rightarm.problems import Problem
from rightarm.problems.random import RandomProblem, any_problem_from_specification
from rightarm.scores.policy import Policy
from rightarm.simulation.engine import Start
from rightarm.types import F64, I64

if TYPE_CHECKING:
    import polars

FORMAT = 1
QUANTILES = {"quantile_05": 0.05, "median": 0.5, "quantile_95": 0.95}


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
        problem: Problem | RandomProblem,
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
    def problem(self) -> Problem | RandomProblem:
        """The problem; in a loaded result likewise."""
        return any_problem_from_specification(self.specification["problem"])

    @property
    def means(self) -> F64:
        """The mean reward of every arm in every replication, shape (replications, arms)."""
        if self.drawn_means is not None:
            return self.drawn_means
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
        best_arms = best_of(self.means)
        played = self.pulls - np.array(self.specification["start"]["pulls"])
        best = (played * best_arms).sum(axis=2).mean(axis=1) / self.horizon
        return [
            {"policy": label, **final_regret(self.regret[i, :, -1]), "best_arm_share": float(best[i])}
            for i, label in enumerate(self.labels)
        ]

    def summary(self) -> polars.DataFrame:
        """Final regret of each policy: mean, standard error, quantiles, the best arm's share; and its parameters.

        A parameter is a column, empty for policies that do not have it: a sweep can be filtered and plotted by it.
        """
        parameters = [parameters_of(policy) for policy in self.specification["policies"]]
        names = list(dict.fromkeys(name for row in parameters for name in row))
        rows = [
            {**row, **{name: own.get(name) for name in names}}
            for row, own in zip(self.table(), parameters, strict=True)
        ]
        frame: polars.DataFrame = polars_for("summary()").DataFrame(rows, infer_schema_length=None)
        return frame

    def __str__(self) -> str:
        rows = self.table()
        width = max(len("policy"), *map(len, self.labels))
        titles = list(rows[0])[1:]
        lines = [f"{'policy':<{width}}  " + "  ".join(f"{title:>14}" for title in titles)]
        for row in rows:
            numbers = "  ".join(f"{row[title]:>{max(14, len(title))}.6g}" for title in titles)
            lines.append(f"{row['policy']:<{width}}  {numbers}")
        title, replications = self.specification["title"], self.regret.shape[1]
        head = f"{title}: regret after {self.horizon:,} rounds, {replications:,} replications"
        return "\n".join([head, *lines])

    def __repr__(self) -> str:
        shape = f"{self.regret.shape[1]:,} replications, {self.horizon:,} rounds, seed {self.seed}"
        return f"<Result: {', '.join(self.labels)}; {shape}>"

    def plot(
        self,
        path: str | os.PathLike[str],
        *,
        against: str | None = None,
        title: str | None = None,
        log: bool = False,
        bounds: Mapping[str, Callable[[I64], Any]] | None = None,
    ) -> Path:
        """Draw mean regret with 95% confidence bands against the round, as PNG, SVG or PDF by the path's ending.

        ``against="C"`` draws the final regret of a sweep against that parameter instead, a curve for each kind of
        policy, and a level line for each policy that does not have it. ``bounds`` are lines to be drawn beside the
        curves, functions of the round by name.
        """
        from rightarm.simulation.figure import draw_against, draw_regret

        if against is None:
            return draw_regret(self, Path(path), title=title, log=log, bounds=bounds or {})
        return draw_against(self, self.curves(against), against, Path(path), title=title, log=log)

    def curves(self, parameter: str) -> dict[str, list[tuple[float, int]]]:
        """For each kind of policy that has ``parameter``, its values in order, each with the policy's index."""
        curves: dict[str, list[tuple[float, int]]] = {}
        for i, policy in enumerate(self.specification["policies"]):
            own = parameters_of(policy)
            if isinstance(own.get(parameter), float):
                value = own.pop(parameter)
                others = ", ".join(
                    f"{n}={v:.4g}" if isinstance(v, float) else v for n, v in own.items() if n != "family"
                )
                curves.setdefault(f"{own['family']} ({others})" if others else own["family"], []).append((value, i))
        if not curves:
            rows = [parameters_of(policy) for policy in self.specification["policies"]]
            known = sorted({name for row in rows for name, value in row.items() if isinstance(value, float)})
            raise ValueError(
                f"against must be a parameter of one of the policies, {', '.join(known)}, got {parameter!r}"
            )
        return {name: sorted(points) for name, points in curves.items()}

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


def final_regret(regret: F64) -> dict[str, float]:
    """Mean, standard error and quantiles of the regret of several replications.

    >>> final_regret(np.array([1.0, 2.0, 3.0]))["median"]
    2.0
    """
    error = regret.std(ddof=1) / np.sqrt(regret.size) if regret.size > 1 else np.nan
    quantiles = np.quantile(regret, list(QUANTILES.values())).tolist()
    return {
        "regret": float(regret.mean()),
        "standard_error": float(error),
        **dict(zip(QUANTILES, quantiles, strict=True)),
    }


def best_of(means: F64) -> NDArray[np.bool_]:
    """Which arms of each row are the best; there may be several."""
    best: NDArray[np.bool_] = means == means.max(axis=-1, keepdims=True)
    return best


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
