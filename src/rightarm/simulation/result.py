"""The result of a simulation: arrays, a table, a picture, a file."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rightarm.formula import from_specification
from rightarm.policies.policy import Policy
from rightarm.problems import Problem, problem_from_specification
from rightarm.simulation.engine import Start
from rightarm.simulation.types import F64, I64

if TYPE_CHECKING:
    import polars

FORMAT = 1
QUANTILES = (0.05, 0.5, 0.95)


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

    @classmethod
    def of(
        cls, policies: Sequence[Policy], problem: Problem, start: Start, seed: int, rounds: I64, regret: F64, pulls: I64
    ) -> Result:
        """The result of having played ``policies`` on ``problem``."""
        specification = {
            "policies": [policy.specification() for policy in policies],
            "problem": problem.specification(),
            "means": problem.means.tolist(),
            "title": str(problem),
            "start": {"pulls": list(start.pulls), "means": list(start.means)},
            "seed": seed,
            "versions": versions(),
        }
        result = cls(tuple(map(str, policies)), rounds, regret, pulls, specification)
        result.__dict__.update(policies=tuple(policies), problem=problem)  # no need to find them again
        return result

    @functools.cached_property
    def policies(self) -> tuple[Policy, ...]:
        """The policies; in a loaded result one of the user's own must be importable, and still be the same formula."""
        return tuple(from_specification(policy) for policy in self.specification["policies"])

    @functools.cached_property
    def problem(self) -> Problem:
        """The problem; in a loaded result likewise."""
        return problem_from_specification(self.specification["problem"])

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
        final = self.regret[:, :, -1]
        error = (
            final.std(axis=1, ddof=1) / np.sqrt(final.shape[1]) if final.shape[1] > 1 else np.full(len(final), np.nan)
        )
        arm = int(np.argmax(self.specification["means"]))
        best = (self.pulls[:, :, arm] - self.specification["start"]["pulls"][arm]).mean(axis=1) / self.horizon
        return [
            {
                "policy": label,
                "regret": float(final[i].mean()),
                "standard error": float(error[i]),
                **{f"{q:.0%} quantile": float(np.quantile(final[i], q)) for q in QUANTILES},
                "pulls of the best arm": float(best[i]),
            }
            for i, label in enumerate(self.labels)
        ]

    def summary(self) -> polars.DataFrame:
        """Final regret of each policy: mean, standard error, quantiles, and the best arm's share of the pulls."""
        frame: polars.DataFrame = _polars("summary()").DataFrame(self.table())
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

    def plot(self, path: str | os.PathLike[str], *, title: str | None = None, log: bool = False) -> Path:
        """Draw mean regret with 95% confidence bands against the round, as PNG, SVG or PDF by the path's ending."""
        from rightarm.simulation.figure import draw_regret

        return draw_regret(self, Path(path), title=title, log=log)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write everything to a Parquet file, a row for each policy and replication; an old file is replaced whole."""
        pl = _polars("save()")
        path = Path(path)
        policies, replications, _ = self.regret.shape
        frame = pl.DataFrame(
            {
                "policy": np.repeat(np.array(self.labels, dtype=object), replications).tolist(),
                "replication": np.tile(np.arange(replications), policies),
                "regret": self.regret.reshape(policies * replications, -1),
                "pulls": self.pulls.reshape(policies * replications, -1),
            }
        )
        note = {"format": FORMAT, "labels": self.labels, "rounds": self.rounds.tolist(), **self.specification}
        part = path.with_name(path.name + ".part")
        frame.write_parquet(part, metadata={"rightarm": json.dumps(note)})
        os.replace(part, path)
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """Read what `save` wrote."""
        pl = _polars("load()")
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
        return cls(labels, rounds, regret, pulls, content)


def versions() -> dict[str, str]:
    """What computed a result."""
    packages = {name: importlib.metadata.version(name) for name in ("rightarm", "numpy", "numba")}
    return packages | {"python": platform.python_version(), "machine": platform.machine()}


def _polars(what: str) -> Any:
    try:
        import polars
    except ImportError as error:
        raise ImportError(f"{what} needs polars: pip install 'rightarm[lab]'") from error
    return polars
