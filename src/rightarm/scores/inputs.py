"""What formulas may ask for: their inputs by name, and the state of the arms that they are computed from, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rightarm.scores.rules import FORGOTTEN
from rightarm.types import F64

INPUTS = {
    "t": "the round, counted from 1",
    "pulls": "how often the arm was pulled",
    "mean": "the mean of the arm's rewards",
    "z": "fresh noise, one draw for every arm and round",
    "best": "the largest mean of all arms",
    "worst": "the smallest mean of all arms",
    "arms": "the number of arms",
    "variance": "the variance of the arm's rewards about their mean, Σ (x − mean)² / pulls",
    "best_variance": "the largest variance of all arms",
    "worst_variance": "the smallest variance of all arms",
    "gap_variance": "how uncertain the gap to the best mean is, in variances of one reward: 1/pulls + 1/pulls of the "
    "best arm, or what a context makes of it; 0 for the best arm itself",
}
VARIANCES = frozenset({"variance", "best_variance", "worst_variance"})
STATISTICS = VARIANCES | {
    "pulls",
    "mean",
    "best",
    "worst",
    "gap_variance",
}  # what is not known of an arm before its first pull

Memory = Mapping[str, ArrayLike] | None
Variances = ArrayLike | None


def one_each(place: str, value: Any, shape: tuple[int, ...]) -> F64:
    """``value`` as one number for each arm, or an error that says which formula gave something else."""
    if isinstance(value, tuple | list) or np.ndim(value) > len(shape) or np.size(value) not in (1, *shape):
        raise TypeError(f"{place} must give one number for each arm, got {value!r:.200}")
    return np.broadcast_to(np.asarray(value, dtype=float), shape)


def gap_variances(pulls: F64, means: F64) -> F64:
    """How uncertain the gap of each arm to the best mean is, arms being independent.

    Of several arms with the best mean, the gap is that to the one of which the least is known.
    """
    best, uncertain = means == np.max(means), 1 / np.maximum(pulls, FORGOTTEN)
    return np.where(best, 0.0, uncertain + np.max(uncertain[best]))


class State(NamedTuple):
    """What is known of some arms before a decision."""

    t: Any
    pulls: F64
    means: F64
    memory: Mapping[str, F64]  # the policy's columns
    variances: F64 | None
    arms: int  # how many there are in all

    def inputs(self, z: Any) -> dict[str, Any]:
        """What a formula may ask for, by its name."""
        columns = dict(self.memory) if self.variances is None else {"variance": self.variances, **self.memory}
        known = {"t": self.t, "pulls": self.pulls, "mean": self.means, "z": z, "arms": float(self.arms)}
        return known | {"best": np.max(self.means), "worst": np.min(self.means)} | with_extremes(columns)


def with_extremes(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns with the largest and the smallest value of each, by the names that formulas know them by."""
    named: dict[str, Any] = {}
    for name, column in columns.items():
        named |= {name: column, f"best_{name}": np.max(column), f"worst_{name}": np.min(column)}
    return named


def check_variances(asker: Any, asked: bool, variances: Variances, pulls: F64) -> F64 | None:
    """The arms' variances as an array, or an error if they are asked for and missing, or wrong."""
    if variances is None:
        if asked and pulls.any():
            raise ValueError(f"{asker!r} asks for variance: give variances= with a value for each arm")
        return np.zeros(pulls.size) if asked else None
    values = np.asarray(variances, dtype=float)
    if values.shape != pulls.shape or not np.isfinite(values[pulls > 0]).all() or (values < 0).any():
        raise ValueError(f"variances must be {pulls.size} numbers from 0 on, one per arm, got {values.tolist()}")
    return values


def check_statistics(pulls: ArrayLike, means: ArrayLike, whole: bool = True) -> tuple[F64, F64]:
    """Pulls and means as arrays, or an error that says what is wrong with them.

    ``whole``: pulls are whole numbers, as they are unless an estimator forgets.
    """
    pulls, means = np.asarray(pulls, dtype=float), np.asarray(means, dtype=float)
    if pulls.ndim != 1 or pulls.shape != means.shape or not pulls.size:
        raise ValueError(f"pulls and means must be two rows of one length, got shapes {pulls.shape} and {means.shape}")
    if not np.isfinite(pulls).all() or (pulls < 0).any() or (whole and (pulls != np.floor(pulls)).any()):
        raise ValueError(f"pulls must be {'whole ' if whole else ''}numbers from 0 on, got {pulls.tolist()}")
    if not np.isfinite(means[pulls > 0]).all():
        raise ValueError(f"means must be finite where an arm was pulled, got {means.tolist()}")
    return pulls, means


def check_memory(columns: Sequence[str], memory: Memory, arms: int) -> dict[str, F64]:
    """The columns that a policy remembers as arrays, zeros if nothing is given, or an error that says what is wrong."""
    given = dict.fromkeys(columns, np.zeros(arms)) if memory is None else memory
    if not isinstance(given, Mapping):
        raise TypeError(f"memory must be a mapping from columns to a value for each arm, got {given!r}")
    if set(given) != set(columns):
        raise ValueError(f"memory must have the columns {', '.join(columns) or '(none)'}, got {list(given)}")
    return {name: _check_column(name, given[name], arms) for name in columns}


def _check_column(name: str, values: ArrayLike, arms: int) -> F64:
    must = f"memory[{name!r}] must be {arms} finite numbers, one per arm"
    try:
        column = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"{must}, got {values!r}") from None
    if column.shape != (arms,) or not np.isfinite(column).all():
        raise ValueError(f"{must}, got {column.tolist()}")
    return column
