"""The contexts of a log, and the features of its arms, as arrays with names for their columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rightarm.contexts import Features
from rightarm.logs.events import Specification
from rightarm.logs.log import check_lengths, listed
from rightarm.types import F64, I64


class Contexts(NamedTuple):
    """The contexts of decisions, a row of numbers for each."""

    rows: F64
    names: list[str]
    """What the columns are called."""

    def keeping(self, kept: I64) -> Contexts:
        """Return some of the rows."""
        return Contexts(self.rows[kept], self.names)


class ArmFeatures(NamedTuple):
    """The features of the arms that each decision could choose: a table for each, with a row for each of its arms."""

    tables: list[F64]
    names: list[str]

    def keeping(self, kept: I64) -> ArmFeatures:
        """Return those of some decisions."""
        return ArmFeatures([self.tables[i] for i in kept.tolist()], self.names)


# Contexts.


def context_columns(
    log: Mapping[str, Any], length: int, features: Features | None, own: Features | None
) -> Contexts | None:
    """Return the column ``context`` of a log, None if a decision has no context.

    It has rows of numbers, which are encoded already, mappings, or is a frame or a mapping of columns itself. What is
    named is encoded by ``features``, or is numbers. ``own`` are the features that the log says it has.
    """
    if "context" not in log:
        return None
    column = log["context"]
    if isinstance(column, np.ndarray) and column.ndim == 2 and column.dtype.kind in "biuf":
        found = _encoded(column.astype(float), own, features)
    elif isinstance(column, Mapping) or hasattr(type(column), "columns"):
        found = _by_name(column, list(getattr(column, "columns", column)), features)
    else:
        rows = listed(column)
        if any(row is None for row in rows):
            return None
        named = bool(rows) and all(isinstance(row, Mapping) for row in rows)
        found = _by_name(rows, list(rows[0]), features) if named else _encoded(_table(rows), own, features)
    check_lengths([length, len(found.rows)])
    return found


def _by_name(contexts: Any, names: list[str], features: Features | None) -> Contexts:
    """Encode contexts whose features are named; without features they are numbers."""
    known = features or Features.accept("context", names)
    return Contexts(known.encode_many(contexts), known.names)


def _encoded(table: F64, *known: Features | None) -> Contexts:
    """Take contexts that are numbers already, with the names of the features that are known."""
    wrong = ~np.isfinite(table).all(axis=1)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(f"context must be finite numbers, got {table[i].tolist()!r:.80} in row {i + 1}")
    return Contexts(table, column_names(table.shape[1], *known))


def column_names(size: int, *known: Features | None) -> list[str]:
    """Return the names of so many columns, by the first features that have as many."""
    plain = Features.accept("context", size)
    return next(one.names for one in (*known, plain) if one is not None and one.size == size)


def _table(rows: list[Any]) -> F64:
    """Return rows of numbers as an array."""
    for i, row in enumerate(rows):
        if not hasattr(row, "__len__") or isinstance(row, str | Mapping):
            raise TypeError(f"context must be a row of numbers or a mapping, got {row!r:.80} in row {i + 1}")
        if len(row) != len(rows[0]):
            raise ValueError(
                f"context must have as many numbers in every row, got {len(rows[0])} in row 1 and {len(row)} in row "
                f"{i + 1}; a log without the column context is evaluated without contexts"
            )
    try:
        return np.array(rows, dtype=float).reshape(len(rows), -1)
    except (TypeError, ValueError):
        text = "context must be numbers; Features.encode_many makes numbers of other values"
        raise TypeError(f"{text}, got {rows[0]!r:.80} in row 1") from None


# Features of arms.


def arm_columns(
    log: Mapping[str, Any], arms: list[tuple[Any, ...]] | None, place: Mapping[Any, int], own: Features | None
) -> ArmFeatures | None:
    """Return the column ``arm_features`` of a log, None if a decision has none: arms in the order of their numbers.

    ``arms`` has the arms of each decision in the order in which the log gives their features.
    """
    rows = listed(log["arm_features"]) if "arm_features" in log else [None]
    if any(row is None for row in rows):
        return None
    if arms is None:
        raise ValueError("arm_features need the column among, or arms, which say whose features they are")
    check_lengths([len(arms), len(rows)])
    orders = {some: np.argsort([place[arm] for arm in some]) for some in set(arms)}
    tables = list[F64]()
    size: int | None = None
    for i, (row, some) in enumerate(zip(rows, arms, strict=True)):
        table = _arm_table(row)
        size = table.shape[-1] if size is None else size
        if table.shape != (len(some), size) or not np.isfinite(table).all():
            raise ValueError(
                f"arm_features must be finite numbers, as many for every arm, got {row!r:.80} in row {i + 1}"
            )
        tables.append(table[orders[some]])
    return ArmFeatures(tables, column_names(size or 0, own))


def _arm_table(row: Any) -> F64:
    try:
        return np.array(row, dtype=float)
    except (TypeError, ValueError):  # a list that is uneven, or not of numbers
        return np.full((1, 1), np.nan)


def features_of(policy: Specification | None) -> tuple[Features | None, Features | None]:
    """Return the features of contexts and those of arms that a policy looks at, None where it looks at none."""
    given: Any = policy
    for name in ("parameters", "estimator", "parameters"):
        given = given.get(name) if isinstance(given, Mapping) else None
    if not isinstance(given, Mapping) or "features" not in given:
        return None, None
    arms = given.get("arm_features")
    context = Features.accept("features", given["features"])
    return context, None if arms is None else Features.accept("arm_features", arms)
