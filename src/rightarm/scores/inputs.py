"""What a policy is given for one live decision, and what its formulas give back, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

F64 = NDArray[np.float64]
Memory = Mapping[str, ArrayLike]


def one_each(place: str, value: Any, shape: tuple[int, ...]) -> F64:
    """``value`` as one number for each arm, or an error that says which formula gave something else."""
    if isinstance(value, tuple | list) or np.ndim(value) > len(shape) or np.size(value) not in (1, *shape):
        raise TypeError(f"{place} must give one number for each arm, got {value!r:.200}")
    return np.broadcast_to(np.asarray(value, dtype=float), shape)


def named_inputs(t: Any, pulls: Any, mean: Any, z: Any, arms: int, best: Any, worst: Any) -> dict[str, Any]:
    """What a formula may ask for, by its name."""
    return {"t": t, "pulls": pulls, "mean": mean, "z": z, "best": best, "worst": worst, "arms": float(arms)}


def check_statistics(pulls: ArrayLike, means: ArrayLike) -> tuple[F64, F64]:
    """Pulls and means as arrays, or an error that says what is wrong with them."""
    pulls, means = np.asarray(pulls, dtype=float), np.asarray(means, dtype=float)
    if pulls.ndim != 1 or pulls.shape != means.shape or not pulls.size:
        raise ValueError(f"pulls and means must be two rows of one length, got shapes {pulls.shape} and {means.shape}")
    if not np.isfinite(pulls).all() or (pulls < 0).any() or (pulls != np.floor(pulls)).any():
        raise ValueError(f"pulls must be whole numbers from 0 on, got {pulls.tolist()}")
    if not np.isfinite(means[pulls > 0]).all():
        raise ValueError(f"means must be finite where an arm was pulled, got {means.tolist()}")
    return pulls, means


def check_memory(columns: Sequence[str], memory: Memory | None, arms: int) -> dict[str, F64]:
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
