"""Intervals for the coefficients of a linear model that hold at any time, whatever chose the rows.

Rows are x_t, rewards r_t = x_t · θ + noise that is σ-sub-Gaussian given all that came before; a row may depend on all
rewards before it. Let G = Σ x xᵀ, S = Σ x · noise. For any fixed v > 0, with probability 1 − δ at all times at once

    ‖S‖ in the norm of (v + G)⁻¹  ≤  σ √(2 log(√(det(v + G)/det v) / δ))  =  β

(Abbasi-Yadkori, Pál and Szepesvári, "Improved algorithms for linear stochastic bandits", NeurIPS 2011, theorem 1).
Let θ̂ be the least squares without any ridge. A combination w · θ can be told from the rows if w = G c for some c; then
w · θ̂ − w · θ = c · S, whose size is at most ‖c‖ in the norm of (v + G), times β. No bound on θ is needed, and all
combinations are right at once. What no row tells apart, as two columns that are always equal, has no interval.

Rows of many arms are private columns and shared ones: G is an arrowhead, and all of it is done block by block.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rightarm.types import F64

FIXED = 100.0  # v for every column, narrowest from some hundred rewards of an arm on; must not depend on the data
SINGULAR = 1e-8  # an eigenvalue of columns scaled to size 1 below which nothing is known of its direction
WITHIN = 1e-5  # share of a combination that may be in such a direction: rounding


class Gram(NamedTuple):
    """Σ row rowᵀ, and Σ row · reward, of arms whose rows are private columns and shared ones."""

    own: F64
    """Private with private columns of each arm: K × P × P."""
    cross: F64
    """Private with shared columns of each arm: K × P × S."""
    joint: F64
    """Shared with shared columns, of all arms: S × S."""
    own_sums: F64
    joint_sums: F64

    def sizes(self, arm: int) -> F64:
        """Σ x² of every column of an arm, private ones first; of shared ones over all arms."""
        return np.concatenate((np.diagonal(self.own[arm]), np.diagonal(self.joint)))


class Inverse(NamedTuple):
    """A generalised inverse of a matrix, or of several, and which combinations it is one for."""

    matrix: F64
    scale: F64
    unknown: F64
    """The directions of which nothing is known, of scaled columns; zeros for the others."""
    rank: NDArray[np.int64]

    def knows(self, combinations: F64) -> NDArray[np.bool_]:
        """Whether each combination, a row, is one that can be told."""
        scaled = combinations * self.scale
        outside = np.linalg.norm(scaled @ self.unknown, axis=-1)
        return np.asarray(outside <= WITHIN * np.linalg.norm(scaled, axis=-1))


class Regression:
    """Least squares without a ridge, from sums; what is known of which combination of coefficients."""

    def __init__(self, gram: Gram) -> None:
        self.gram = gram
        self.own = _inverse(gram.own, np.diagonal(gram.own, axis1=-2, axis2=-1))
        self.solved = self.own.matrix @ gram.cross  # K × P × S
        rest = gram.joint - np.einsum("kps,kpt->st", gram.cross, self.solved)
        self.joint = _inverse(rest, np.diagonal(gram.joint))
        self.joint_rest = gram.joint_sums - np.einsum("kps,kp->s", self.solved, gram.own_sums)
        self.lengths = np.einsum("kps,kpt->st", self.solved, self.solved)

    def combined(self, arm: int, own: F64, joint: F64) -> tuple[F64, F64]:
        """The estimate of each combination of an arm's coefficients and shared ones, a row each, and its width.

        The half of its interval is the width times β; both are NaN where it cannot be told.
        """
        first = own @ self.own.matrix[arm]
        rest = joint - first @ self.gram.cross[arm]
        shared = rest @ self.joint.matrix
        shift = shared @ self.solved[arm].T
        private = first - shift
        estimate = first @ self.gram.own_sums[arm] + shared @ self.joint_rest
        others = np.einsum("ms,st,mt->m", shared, self.lengths, shared) - (shift**2).sum(axis=1)
        square = (own * private).sum(axis=1) + (joint * shared).sum(axis=1)
        square += FIXED * ((private**2).sum(axis=1) + (shared**2).sum(axis=1) + np.maximum(others, 0.0))
        known = Inverse(*(part[arm] for part in self.own)).knows(own) & self.joint.knows(rest)
        return np.where(known, estimate, np.nan), np.where(known, np.sqrt(np.maximum(square, 0.0)), np.nan)

    def log_volumes(self) -> F64:
        """log √(det(v + G)/det v) for each arm: of its own columns, or of all arms' together if any are shared."""
        grown = np.eye(self.gram.own.shape[-1]) + self.gram.own / FIXED
        own = np.linalg.slogdet(grown)[1] / 2
        if not self.gram.joint.size:
            return np.asarray(own)
        solved = np.linalg.solve(grown, self.gram.cross / FIXED)
        rest = np.eye(len(self.gram.joint)) + self.gram.joint / FIXED
        rest -= np.einsum("kps,kpt->st", self.gram.cross / FIXED, solved)
        return np.full(own.shape, own.sum() + np.linalg.slogdet(rest)[1] / 2)

    def ranks(self) -> NDArray[np.int64]:
        """How many combinations the rows tell apart: of each arm, or of all together if columns are shared."""
        if not self.gram.joint.size:
            return self.own.rank
        return np.full(self.own.rank.shape, self.own.rank.sum() + self.joint.rank)

    def bounds(self, sigma: F64 | float, confidence: float) -> F64:
        """β for each arm."""
        return np.asarray(sigma * np.sqrt(2 * (self.log_volumes() - math.log1p(-confidence))))


def _inverse(matrices: F64, sizes: F64) -> Inverse:
    """A generalised inverse; ``sizes`` are those of the columns, 0 where a column was always 0."""
    scale = np.where(sizes > 0, 1 / np.sqrt(np.where(sizes > 0, sizes, 1.0)), 1.0)
    alive = (sizes > 0) * scale
    values, vectors = np.linalg.eigh(alive[..., :, None] * matrices * alive[..., None, :])
    known = values > SINGULAR
    unknown = vectors * ~known[..., None, :]
    parts = vectors * np.where(known, 1 / np.where(known, values, 1.0), 0.0)[..., None, :]
    inverse = scale[..., :, None] * (parts @ np.swapaxes(vectors, -1, -2)) * scale[..., None, :]
    nothing = scale[..., :, None] * unknown
    onto = np.eye(sizes.shape[-1]) - nothing @ np.linalg.pinv(nothing)  # the shortest solutions: narrower intervals
    return Inverse(onto @ inverse @ onto, scale, unknown, known.sum(axis=-1))
