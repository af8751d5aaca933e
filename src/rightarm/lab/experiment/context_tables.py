"""Problems with contexts as an experiment file describes them: coefficients in rows, and data sets in files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rightarm.extras import polars_for
from rightarm.formula import Family, NonNegative
from rightarm.lab.experiment.errors import ExperimentError, blamed, inside, shown, unknown
from rightarm.problems import Classification, Context, ContextProblem
from rightarm.problems.contextual import per_arm

FILE, LABEL = "file", "label"  # the keys of a data set's table


class Rows:
    """What coefficients may be: a list with a row of numbers for each arm; a list of such lists sweeps them."""

    accept = staticmethod(per_arm)

    @staticmethod
    def is_value(values: list[Any]) -> bool:
        """Whether a list is one value, and not several to sweep."""
        return all(isinstance(row, list) and not any(isinstance(each, list) for each in row) for row in values)


class PerArm:
    """A number for all arms, or a list with one for each; a list of lists sweeps it."""

    accept = staticmethod(per_arm)

    @staticmethod
    def is_value(values: list[Any]) -> bool:
        """Whether a list is one value, and not several to sweep."""
        return not any(isinstance(each, list) for each in values)


def LinearProblem(x, *, theta: Rows, context: Context = None, noise: NonNegative = 1.0, offset: PerArm = 0.0):  # type: ignore
    """The parameters of a linear problem."""


LINEAR = Family(LinearProblem, ContextProblem)


def classification(key: str, given: Mapping[str, Any], folder: Path | None) -> Classification:
    """The data set in a file, CSV or Parquet, that a table names, and which of its columns is the class of a row."""
    for name, value in given.items():
        if name not in (FILE, LABEL):
            raise unknown(key, name, value, "key", "Classification has", (FILE, LABEL))
    for name in (FILE, LABEL):
        if not isinstance(given.get(name), str):
            got = f"got {shown(given[name])}" if name in given else "it is missing"
            raise ExperimentError(
                f'{inside(key, name)}: must be text, as in file = "iris.csv", label = "species"; {got}'
            )
    with blamed(inside(key, FILE)):
        frame = _read((folder or Path()) / given[FILE])
    if given[LABEL] not in frame.columns:
        known = ", ".join(frame.columns)
        raise ExperimentError(f"{inside(key, LABEL)}: must be a column of the file, {known}, got {shown(given[LABEL])}")
    with blamed(inside(key, FILE)):
        return Classification(frame.drop(given[LABEL]).to_numpy(), frame[given[LABEL]].to_list())


def _read(path: Path) -> Any:
    pl = polars_for("a data set")
    if path.suffix not in (".csv", ".parquet"):
        raise ValueError(f"must end in .csv or .parquet, got {path.name}")
    return pl.read_csv(path) if path.suffix == ".csv" else pl.read_parquet(path)
