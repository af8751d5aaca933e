"""Rewards that each arm is expected to bring in a row of a log: the part of doubly robust estimates that may be wrong.

Whatever is expected of row t, the estimate stays unbiased if it does not depend on the reward of that row, given the
rows before. So everything here is made of the rows before only. Rewards are those scaled to 0 to 1, and so is what is
expected.
"""

from __future__ import annotations

import bisect
import copy
from typing import Any, Protocol

import numpy as np

from rightarm.contexts.moments import standardised, take
from rightarm.estimators import arrowhead
from rightarm.evaluation.targets import contexts_of
from rightarm.formula import check_count
from rightarm.logs.rows import Rows
from rightarm.types import F64, I64

RIDGE = 1.0  # in rows of a standardised column


class Expected(Protocol):
    """Expects rewards row by row, and learns from each row after that."""

    def before(self, row: int) -> F64:
        """Return what every arm is expected to bring in a row, from the rows before it."""

    def learn(self, row: int) -> None:
        """Take the reward of the row that was looked at last."""


class Means:
    """The mean reward of each arm in the rows before, drawn to the mean of all by one row more."""

    def __init__(self, rows: Rows) -> None:
        self.arms = rows.arms
        self.scaled = rows.scaled
        self.pulls = np.zeros(len(rows.names))
        self.sums = np.zeros(len(rows.names))
        self.average = 0.5  # of all rows before, and one of 1/2

    def before(self, row: int) -> F64:
        return np.asarray((self.sums + self.average) / (self.pulls + 1))

    def learn(self, row: int) -> None:
        arm, reward = self.arms[row], self.scaled[row]
        self.pulls[arm] += 1
        self.sums[arm] += reward
        self.average += (reward - self.average) / (row + 2)


class Ridge:
    """Ridge regression on the context, by itself for each arm, of what rewards were beyond the mean of the rows before.

    expected = a_t + z_t · θ̂_arm, where θ̂ is fitted on r_s − a_s in the arm's rows s < t, z_t is (1, the context's
    columns standardised by the rows so far), and a_t the mean of all rewards before and one of 1/2.
    """

    def __init__(self, rows: Rows, contexts: F64) -> None:
        count, size = len(rows.names), contexts.shape[1]
        self.arms = rows.arms
        self.scaled = rows.scaled
        self.contexts = np.ascontiguousarray(contexts)
        self.factor = np.zeros((arrowhead.sizes(size + 1, 0)[0], count))
        for arm in range(count):
            arrowhead.begin(self.factor, arm, size + 1, 0, RIDGE)
        self.nothing = np.zeros((0, count)), np.zeros((0, 2))  # columns that all arms share, and their factor
        self.columns, self.moments = (np.arange(size), np.full(size, -1)), np.zeros((3, size))
        self.row = np.ones(size + 2)  # 1, the standardised context, and what the reward was beyond the mean
        self.pulls, self.found = np.empty(count), np.empty(count)
        self.average = 0.5

    def before(self, row: int) -> F64:
        joint, common = self.nothing
        standardised(self.contexts[row], *self.columns, self.moments, self.row[1:-1])
        arrowhead.read(self.row[:-1], joint, self.factor, common, self.found.size, self.pulls, self.found)
        return np.minimum(np.maximum(self.found + self.average, 0.0), 1.0)

    def learn(self, row: int) -> None:
        reward = float(self.scaled[row])
        take(self.contexts[row], *self.columns, self.moments)
        self.row[-1] = reward - self.average
        arrowhead.take(self.row, int(self.arms[row]), self.row.size - 1, self.factor, self.nothing[1])
        self.row[0] = 1.0  # which was used up
        self.average += (reward - self.average) / (row + 2)


class Better:
    """Of two models the one that has predicted the rows before better, in squares; the first as long as both are level.

    Regression on contexts does harm where rewards are rare or arms have few rows, and large weights make it worse.
    """

    def __init__(self, rows: Rows, first: Expected, second: Expected) -> None:
        self.arms = rows.arms
        self.scaled = rows.scaled
        self.models = first, second
        self.errors = [0.0, 0.0]
        self.found = [np.empty(0), np.empty(0)]

    def before(self, row: int) -> F64:
        self.found = [model.before(row) for model in self.models]
        return self.found[self.errors[1] < self.errors[0]]

    def learn(self, row: int) -> None:
        arm, reward = self.arms[row], float(self.scaled[row])
        for i, (model, found) in enumerate(zip(self.models, self.found, strict=True)):
            self.errors[i] += (reward - found.item(arm)) ** 2
            model.learn(row)


def running(rows: Rows) -> Expected:
    """Return what is expected without anything given: means, or regression on the contexts, if the log has them."""
    means = Means(rows)
    if rows.contexts is None:
        return means
    return Better(rows, means, Ridge(rows, rows.contexts.rows))


# What somebody else expects.


class Given:
    """Rewards that were expected beforehand: a row for each row of the log, and a column for each arm."""

    def __init__(self, rewards: Any, rows: Rows) -> None:
        if not rows.ordered:
            raise ValueError(f"give arms= to say the order of the columns of rewards; the arms are {rows.names!r:.80}")
        length = rows.arms.size + rows.left_out
        try:
            table = np.array(rewards, dtype=float)
        except (TypeError, ValueError):
            table = np.zeros(0)
        if table.shape != (length, len(rows.names)):
            found = f"the shape {table.shape}" if table.size else f"{rewards!r:.80}"
            shape = f"{length} rows and {len(rows.names)} arms"
            raise ValueError(f"rewards must be an array of {shape}, or have fit and predict, got {found}")
        if not np.isfinite(table).all():
            row, arm = np.argwhere(~np.isfinite(table))[0]
            raise ValueError(f"rewards must be finite, got {table[row, arm]} in row {row + 1} for {rows.names[arm]!r}")
        self.table = _scaled(table[rows.places], rows.reward_range)

    def before(self, row: int) -> F64:
        return np.asarray(self.table[row])

    def learn(self, row: int) -> None:
        pass


class Regressor:
    """Expects what a regression predicts, fitted on (context, arm as a unit vector) anew for each part of the log.

    The rows are divided into parts that follow each other; what is expected in a part is fitted on all parts before it.
    In the first one it is what `running` expects.
    """

    def __init__(self, regressor: Any, rows: Rows, folds: int) -> None:
        self.regressor = regressor
        self.rows = rows
        self.contexts = contexts_of(rows, regressor)
        self.first = running(rows)
        count = check_count("folds", folds, least=2, most=rows.arms.size)
        self.starts = [i * rows.arms.size // count for i in range(count + 1)]
        self.table: F64 = np.zeros((0, len(rows.names)))  # of the present part

    def before(self, row: int) -> F64:
        part = bisect.bisect_right(self.starts, row) - 1
        if part == 0:
            return self.first.before(row)
        if row == self.starts[part]:
            self.table = self._predicted(row, self.starts[part + 1])
        return np.asarray(self.table[row - self.starts[part]])

    def learn(self, row: int) -> None:
        if row < self.starts[1]:
            self.first.learn(row)

    def _predicted(self, start: int, stop: int) -> F64:
        """Return what is expected from ``start`` to ``stop``, fitted on the rows before."""
        model, every = copy.deepcopy(self.regressor), self.rows.every
        model.fit(self._design(self.contexts[:start], self.rows.arms[:start]), self.rows.rewards[:start])
        some = self.contexts[start:stop]
        columns = [np.ravel(model.predict(self._design(some, np.full(stop - start, arm)))) for arm in every]
        for column in columns:
            if column.size != stop - start or not np.isfinite(column).all():
                must = "rewards must predict a finite number for each row"
                raise ValueError(f"{must}, got {column!s:.80} from {model!r}")
        return _scaled(np.array(columns, dtype=float).T, self.rows.reward_range)

    def _design(self, contexts: F64, arms: I64) -> F64:
        return np.hstack([contexts, np.eye(len(self.rows.names))[arms]])


def expected_by(rewards: Any, rows: Rows, folds: int) -> tuple[Expected, Expected]:
    """Return what the estimate expects, and what the interval: that may use nothing of unknown origin."""
    if rewards is None:
        one = running(rows)
        return one, one
    if callable(getattr(rewards, "fit", None)) and callable(getattr(rewards, "predict", None)):
        fitted = Regressor(rewards, rows, folds)
        return fitted, fitted
    return Given(rewards, rows), running(rows)


def _scaled(table: F64, limits: tuple[float, float]) -> F64:
    """Return rewards in units of their range, cut off at its ends."""
    return np.clip((table - limits[0]) / (limits[1] - limits[0]), 0.0, 1.0)
