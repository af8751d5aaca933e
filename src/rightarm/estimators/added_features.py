"""Features that are added to a linear model: what was learned without them, as the larger model would have learned it.

The features that are added were missing until now, in every context and of every arm. So each column of the larger
model had a value that is known: 0, or 1 where it says that a feature is missing, or a column of the smaller model, of
which it is a copy. As a matrix that is E, one source for each column:

    row' = E row,    A' = ridge' + E (A − ridge) Eᵀ,    b' = E b.

- *Columns that were 0* have just their ridge. The factor of the smaller model is embedded as it is, to the last digit:
  the source of a column stands before its copies, so that E only spreads the rows of a triangle.
- *Columns that were copies*: the column "missing" of a feature is a copy of the intercept, its product with a feature
  of an arm one of that feature. The ridge of the source, which all copies would share, is taken out again (a downdate
  by rotations: Golub and Van Loan, Matrix Computations, section 6.5.4), after the ridges of all copies were added, so
  that what is left is never close to singular.
- *The ridge* that follows from the number of features grows with them, and that of private columns with the first
  shared one: the larger model has its own ridges, in all columns.
- *Standardising* does not see missing values: moments of numbers that are added begin at zero.

A feature that is added and required cannot be missing. Until now it is taken to be 0 in all its columns, after
standardising, so that it contributes nothing.

The rewards of `Logistic` depend on what was believed when they were learned: what that model made of them stays, and is
extended in the same way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rightarm.errors import WrongValue
from rightarm.estimators.context_rows import INTERCEPT
from rightarm.estimators.features import ALWAYS, NOTHING, Features
from rightarm.estimators.ridge_regression import COUNTING, RESIDUALS, dense, new_common, sizes, take
from rightarm.types import F64, I64

if TYPE_CHECKING:
    from rightarm.estimators.linear import Linear

SAME = ("interactions", "ridge", "private_ridge", "standardise", "intercept", "discount")
NO_FEATURES = Features()


@dataclass(frozen=True)
class Extension:
    """The way from the numbers of a linear model to those of a model with more features; `extended` makes it."""

    before: Linear
    after: Linear
    context: I64
    """For each column of an encoded context its source, as `Features.sources` has it."""
    arm: I64
    """The same for the encoded features of an arm."""
    columns: I64
    """For each column of a row that is learned, private ones first, its source, or NOTHING."""

    def encoded(self, context: F64) -> F64:
        """Return an encoded context, or a table of them, with the features that were added missing.

        A number that was added and is required is 0 here. That is not a value: what was learned of the context is its
        `row`, and no moments should see this again.
        """
        return _spread(context, self.context)

    def arm_features(self, encoded: F64) -> F64:
        """Return the encoded features of an arm, or a table of arms, with the features that were added missing."""
        return _spread(encoded, self.arm)

    def row(self, row: F64) -> F64:
        """Return a row that was learned, or will be, as the larger model has it."""
        return _spread(row, self.columns)

    def moments(self, moments: tuple[F64, F64]) -> tuple[F64, F64]:
        """Return the moments of contexts and of arms' features; of numbers that were added no values were seen."""
        if not self.after.standardise:
            return moments
        of_contexts = _moments(moments[0], self.before.features, self.after.features)
        old_arm = self.before.arm_features or NO_FEATURES
        new_arm = self.after.arm_features or NO_FEATURES
        return of_contexts, _moments(moments[1], old_arm, new_arm)

    def model(self, factor: F64, common: F64, count: int | None = None) -> tuple[F64, F64]:
        """Return the factor of the larger model, and what its arms have in common.

        Parameters
        ----------
        factor : array
            The smaller model, a column for each arm; see `rightarm.estimators.ridge_regression`.
        common : array
            The part of the smaller model that all arms share.
        count : int, optional
            The number of arms, if ``factor`` has room for more.

        Returns
        -------
        tuple of two arrays
            The same two of the larger model, with room for as many arms.
        """
        arms = factor.shape[1] if count is None else count
        larger = _Larger(self, factor.shape[1], arms)
        larger.embed(factor, common)
        larger.add_ridges()
        larger.take_out_ridges()
        return larger.factor, larger.common


def extended(before: Linear, after: Linear) -> Extension:
    """Return the way from a linear model to one with more features, which were missing until now.

    Parameters
    ----------
    before : Linear
        The smaller model.
    after : Linear
        A model with all its features, in the same order, and others among them. A feature that was required may be so
        no more.

    Raises
    ------
    WrongValue
        If anything else differs, or if what the larger model would have learned does not follow from what the smaller
        one knows; the error says what it is.

    Examples
    --------
    >>> import rightarm as ra
    >>> before = ra.estimators.Linear(["hour"])
    >>> after = ra.estimators.Linear(ra.estimators.Features(numbers=["hour", "age"], required=["hour"]))
    >>> after.names
    ['1', 'hour', 'age', 'age missing']
    >>> extended(before, after).row(np.array([1.0, 0.5])).tolist()
    [1.0, 0.5, 0.0, 1.0]
    """
    if type(before) is not type(after):
        raise WrongValue("estimator", f"must stay {type(before).__name__}, got {type(after).__name__}")
    for name in SAME:
        if getattr(before, name) != getattr(after, name):
            raise WrongValue(name, f"must stay {getattr(before, name)!r}, got {getattr(after, name)!r}")
    context = before.features.sources(after.features)
    arm = (before.arm_features or NO_FEATURES).sources(after.arm_features or NO_FEATURES, "arm_features")
    columns = _columns(before, after, context, arm)
    _check_ridges(after, columns)
    return Extension(before, after, context, arm, columns)


# Columns and their sources.


def _columns(before: Linear, after: Linear, context: I64, arm: I64) -> I64:
    """Return for each column of the larger model's row its source in that of the smaller one, or NOTHING."""
    old = before.design
    new = after.design
    places = {int(column): place for place, column in enumerate([*old.private, *old.shared])}
    features = len(places)
    products = features + old.arm

    def place_of(in_context: int, in_arm: int) -> int:
        """Return the place of a product, each part of which is a column, 0 or 1."""
        if NOTHING in (in_context, in_arm):
            return NOTHING
        if in_context >= 0 and in_arm >= 0:
            return products + in_context * old.arm + in_arm
        if in_arm >= 0:
            return features + in_arm
        if in_context >= 0:
            return places[in_context]
        if not before.intercept:
            text = "must require what is added if the model has no intercept: what is missing until now would be a 1"
            raise WrongValue("features", text)
        return places[INTERCEPT]

    plain = [ALWAYS if column == INTERCEPT else int(context[column]) for column in (*new.private, *new.shared)]
    found = [place_of(source, ALWAYS) for source in plain]
    _check_private(before, after, plain, found)
    found += [place_of(ALWAYS, int(source)) for source in arm]
    crossed = context[: new.crossed] if new.arm else context[:0]
    found += [place_of(int(in_context), int(in_arm)) for in_context in crossed for in_arm in arm]
    return np.array(found, dtype=np.int64)


def _check_private(before: Linear, after: Linear, plain: list[int], found: list[int]) -> None:
    """Raise if a column of the smaller model is private in one model and shared in the other."""
    old = before.design
    new = after.design
    columns = (*new.private, *new.shared)
    for place, (column, source) in enumerate(zip(columns, plain, strict=True)):
        is_kept = column == INTERCEPT or source >= 0
        if is_kept and (place < new.own) != (found[place] < old.own):
            name = "the intercept" if column == INTERCEPT else after.features.names[column]
            kinds = ("private", "shared") if found[place] < old.own else ("shared", "private")
            raise WrongValue("private", f"must leave {name} {kinds[0]}, as it is, got a model where it is {kinds[1]}")


def _check_ridges(after: Linear, columns: I64) -> None:
    """Raise if a column is a copy of another one and nothing but the ridge could tell them apart, and there is none."""
    ridges = _ridges(after)
    for source in _copied(columns):
        if not (ridges[columns == source] > 0).all():
            raise WrongValue("ridge", "must be positive where features are added that can be missing, got 0")


def _copied(columns: I64) -> list[int]:
    """Return the sources that several columns have."""
    sources, counts = np.unique(columns[columns != NOTHING], return_counts=True)
    copied: list[int] = sources[counts > 1].tolist()
    return copied


def _spread(values: F64, sources: I64) -> F64:
    """Return the values of columns, the last axis, by their sources."""
    padded = np.concatenate([values, np.zeros((*values.shape[:-1], 1)), np.ones((*values.shape[:-1], 1))], axis=-1)
    size = values.shape[-1]
    found: F64 = padded[..., np.where(sources >= 0, sources, np.where(sources == NOTHING, size, size + 1))]
    return found


def _moments(moments: F64, before: Features, after: Features) -> F64:
    """Return the moments of measured numbers, found by their names."""
    found = np.zeros((len(moments), len(after.numbers)))
    for place, name in enumerate(before.numbers):
        found[:, after.numbers.index(name)] = moments[:, place]
    return found


# The factor.


class _Larger:
    """The factor of the larger model while it is made."""

    def __init__(self, extension: Extension, room: int, count: int) -> None:
        self.count = count
        self.columns = extension.columns
        self.copied = _copied(extension.columns)
        self.old = extension.before.design
        self.new = extension.after.design
        self.old_ridges = _ridges(extension.before)
        self.ridges = _ridges(extension.after)
        self.factor = np.zeros((sizes(self.new.own, self.new.joint)[0], room))
        self.common = new_common(self.new.joint, extension.after.ridges[0])
        sources, first = np.unique(extension.columns, return_index=True)
        self.rows = first[sources != NOTHING]
        """For each column of the smaller model the same one of the larger; its copies come after it."""

    def embed(self, factor: F64, common: F64) -> None:
        """Spread the rows of the smaller model; a column that was added, a copy or not, has just its ridge yet."""
        for arm in range(self.count):
            R, u = dense(factor, common, self.old.own, arm)
            wide = np.diag(np.sqrt(self.ridges))
            wide[self.rows] = _spread(R, self.columns)
            target = np.zeros(self.ridges.size)
            target[self.rows] = u
            self._put(wide, target, arm)
            self.factor[COUNTING, arm] = factor[COUNTING, arm]
            self.factor[RESIDUALS, self._pool(arm)] += factor[RESIDUALS, arm]

    def add_ridges(self) -> None:
        """Add to the columns of the smaller model what the larger one has more of; to those with copies all of it."""
        for source, place in enumerate(self.rows):
            before = 0.0 if source in self.copied else self.old_ridges[source]
            if self.ridges[place] > before:
                row = np.zeros(self.ridges.size + 1)
                row[place] = math.sqrt(self.ridges[place] - before)
                for arm in self._arms(source):
                    residual = take(row.copy(), arm, self.new.own, self.factor, self.common)
                    self.factor[RESIDUALS, self._pool(arm)] += residual

    def take_out_ridges(self) -> None:
        """Take out the ridges of columns that have copies, as the smaller model had them."""
        for source in self.copied:
            row = np.where(self.columns == source, math.sqrt(self.old_ridges[source]), 0.0)
            for arm in self._arms(source):
                R, u = dense(self.factor, self.common, self.new.own, arm)
                left = _take_out(R, u, row)
                self._put(R, u, arm)
                pool = self._pool(arm)
                self.factor[RESIDUALS, pool] = max(self.factor[RESIDUALS, pool] - left, 0.0)

    def _arms(self, source: int) -> range:
        """Return the arms that have a column of the smaller model; one stands for all where it is shared."""
        return range(self.count if source < self.old.own else min(self.count, 1))

    def _pool(self, arm: int) -> int:
        """Return the arm at which the residuals of an arm are summed."""
        return 0 if self.new.joint else arm

    def _put(self, R: F64, u: F64, arm: int) -> None:
        """Write an arm's triangle and vector, with the part that all arms share."""
        own = self.new.own
        place = 0
        inverse = np.divide(1.0, np.diagonal(R), out=np.zeros(u.size), where=np.diagonal(R) != 0)
        for j in range(own):
            entries = np.concatenate([[inverse[j]], R[j, j:], [u[j]]])
            self.factor[place : place + entries.size, arm] = entries
            place += entries.size
        self.common[:, 0] = inverse[own:]
        self.common[:, 1:-1] = R[own:, own:]
        self.common[:, -1] = u[own:]


def _ridges(model: Linear) -> F64:
    """Return the ridge of each column, private ones first."""
    shared, private = model.ridges
    return np.repeat([float(private), float(shared)], [model.design.own, model.design.joint])


def _take_out(R: F64, u: F64, row: F64) -> float:
    """Take a row with the reward 0 out of a factor, which changes in place; return the square of its residual.

    An orthogonal matrix makes (R, 0) of R without the row and, beneath it, the row. It is found from R⁻ᵀ row, and
    undone from the last column to the first.
    """
    size = u.size
    v = row.copy()
    for j in range(size):
        v[j] = v[j] / R[j, j] if R[j, j] > 0.0 else 0.0
        v[j + 1 :] -= v[j] * R[j, j + 1 :]
    cosine = np.empty(size)
    sine = np.empty(size)
    rest = math.sqrt(1.0 - float(v @ v))
    for j in reversed(range(size)):
        length = math.hypot(rest, v[j])
        cosine[j] = rest / length
        sine[j] = v[j] / length
        rest = length
    outside = np.zeros(size)
    for j in reversed(range(size)):
        inside = R[j].copy()
        R[j] = cosine[j] * inside - sine[j] * outside
        outside = cosine[j] * outside + sine[j] * inside
    reward = 0.0
    for j in range(size):
        reward = (reward - sine[j] * u[j]) / cosine[j]
        u[j] = cosine[j] * u[j] - sine[j] * reward
    return reward * reward
