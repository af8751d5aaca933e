"""The coefficients of a bandit that decides by contexts, with intervals."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

import numpy as np

from rightarm.contexts import Features
from rightarm.contexts.moments import COUNT, SQUARES
from rightarm.estimators import arrowhead
from rightarm.estimators import statistics as kept
from rightarm.estimators.linear import INTERCEPT
from rightarm.inference.coefficients import APPROXIMATE, SHARED, Coefficients, Row
from rightarm.inference.confidence import check_confidence
from rightarm.inference.regression import Gram, Regression
from rightarm.inference.sequences import BOUNDED, FEWEST, effective_rewards
from rightarm.live.contextual import ContextArms
from rightarm.live.state import State
from rightarm.types import F64

ROUNDING = 1e-9  # Σ x² of a column, in units of the ridge that was taken from it, below which it was always 0
NEVER, TOGETHER, FEW = "never seen", "not told apart from other columns", f"needs {FEWEST} effective rewards"


class Group(NamedTuple):
    """The columns of a category, of which always one is 1: they share a constant with another column."""

    levels: list[int]
    base: int
    """The column to which the constant belongs."""


def coefficients(
    state: State, limits: tuple[float, float] | None, confidence: float, only: Hashable | None = None
) -> Coefficients:
    """A row for each coefficient of each arm, and for each shared one; `Bandit.coefficients` says what is in it."""
    if only is not None:
        state.arm_number("arm", only)
    known, level = contextual(state), check_confidence(confidence)
    gram, own = gram_of(known), known.design.own
    regression, groups, names = Regression(gram), groups_of(known), known.estimator.names
    sigma, kind = _noise(state, limits, regression)
    bounds = regression.bounds(sigma, level)
    factor, shift, units = *reward_unit(state), deviations(known)
    constant = [bool(i == INTERCEPT) for i in (*known.design.private, *known.design.shared)] + [False] * len(names)
    private, shared = list[Row](), list[Row]()
    for arm in range(known.count):
        seen = gram.sizes(arm) > 0
        centring = centred(groups, seen)
        thetas = factor * (centring @ theta(known, arm))
        estimates, widths = regression.combined(arm, centring[:, :own], centring[:, own:])
        halves = bounds[arm] * widths
        for j in range(own if arm else len(names)):
            lacking = _lacking(known, seen[j], math.isnan(widths[j]), math.isnan(bounds[arm]))
            ends = (None, None) if lacking else (estimates[j] - halves[j], estimates[j] + halves[j])
            added = shift if constant[j] else 0.0
            low, high = (None if end is None else float(factor * end + added) for end in ends)
            mine, whose = (private, state.names[arm]) if j < own else (shared, SHARED)
            values = float(thetas[j]) + added, low, high, None if lacking else kind
            mine.append(Row(whose, names[j], *values, float(units[j]), constant[j], lacking, bool(seen[j])))
    rows = [row for row in private if only is None or row.arm == only] + shared
    return Coefficients(rows, level, kind, _why_none(known), bool(groups), unit_of(known))


def contextual(state: State) -> ContextArms:
    """What is known of arms, if the policy decides by contexts."""
    if not isinstance(state.known, ContextArms):
        raise TypeError(f"{state.known.policy!r} has no coefficients: it does not look at contexts")
    return state.known


def theta(known: ContextArms, arm: int) -> F64:
    """The coefficients of an arm, private ones first, by which the policy decides."""
    return arrowhead.solution(*arrowhead.dense(known.factor, known.common, known.design.own, arm))


def gram_of(known: ContextArms) -> Gram:
    """The sums over all rows that were learned, without the ridges."""
    own, joint, count = known.design.own, known.design.joint, known.count
    found = Gram(*(np.zeros(shape) for shape in _shapes(count, own, joint)))
    for arm in range(count):
        R, u = arrowhead.dense(known.factor, known.common, own, arm)
        first, beside = R[:own, :own], R[:own, own:]
        found.own[arm], found.cross[arm], found.own_sums[arm] = first.T @ first, first.T @ beside, first.T @ u[:own]
        found.joint[:] += beside.T @ beside
        found.joint_sums[:] += beside.T @ u[:own]
        if arm == 0:
            last = R[own:, own:]
            found.joint[:] += last.T @ last
            found.joint_sums[:] += last.T @ u[own:]
    for block, ridge in ((found.joint, known.ridges[0]), *((one, known.ridges[1]) for one in found.own)):
        sizes = np.diagonal(block) - ridge
        np.fill_diagonal(block, np.where(sizes > ROUNDING * ridge, sizes, 0.0))
    return found


def _shapes(count: int, own: int, joint: int) -> list[tuple[int, ...]]:
    return [(count, own, own), (count, own, joint), (joint, joint), (count, own), (joint,)]


def _noise(state: State, limits: tuple[float, float] | None, regression: Regression) -> tuple[F64, str]:
    """σ of the rewards as the policy sees them, for each arm, NaN where it is not known; and the kind of intervals."""
    known = contextual(state)
    if limits is not None:
        low, high = state.scaled(limits[0]), state.scaled(limits[1])
        return np.full(known.count, (high - low) / 2), BOUNDED
    counts, variances = known.statistic(kept.COUNT), np.empty(known.count)
    arrowhead.variances(known.factor, known.design.joint, known.count, variances)
    effective = effective_rewards(*state.lifetime(), state.ledger.extremes())
    if known.design.joint:
        counts, effective = np.full(known.count, counts.sum()), np.full(known.count, effective.sum())
    left = np.where(effective >= FEWEST, counts - regression.ranks(), np.nan)
    return np.sqrt(variances * counts / np.where(left > 0, left, np.nan)), APPROXIMATE


def unit_of(known: ContextArms) -> str:
    """What predictions are of."""
    return "reward" if known.estimator.sums else "log-odds"


def reward_unit(state: State) -> tuple[float, float]:
    """By what coefficients are multiplied, and what is added to the intercept, to be in the rewards' own unit."""
    if state.scale is None or not contextual(state).estimator.sums:
        return 1.0, 0.0
    shift = state.scale.back(0.0)
    return state.scale.back(1.0) - shift, shift


def _why_none(known: ContextArms) -> str:
    """Why no coefficient has an interval; empty if some can have one."""
    if not known.estimator.sums:
        return "none for log-odds"
    return "none with a discount" if known.fading < 1.0 else ""


def _lacking(known: ContextArms, seen: bool, apart: bool, unknown: bool) -> str:
    """Why a coefficient has no interval; empty if it has one."""
    return _why_none(known) or (NEVER if not seen else TOGETHER if apart else FEW if unknown else "")


# Columns of a row: which are of one category, and which are standardised.


def groups_of(known: ContextArms) -> list[Group]:
    """The categories in a row, each with the column that has their constant, if there is one."""
    estimator, design = known.estimator, known.design
    plain = {column: place for place, column in enumerate([*design.private.tolist(), *design.shared.tolist()])}
    first = len(plain)  # of the arm's features
    crossed = first + design.arm
    found = list[Group]()
    for levels in _categories(known.features):
        if INTERCEPT in plain:
            found.append(Group([plain[i] for i in levels], plain[INTERCEPT]))
        if design.crossed:
            found += [Group([crossed + i * design.arm + a for i in levels], first + a) for a in range(design.arm)]
    for levels in _categories(estimator.arm_features):
        if INTERCEPT in plain:
            found.append(Group([first + a for a in levels], plain[INTERCEPT]))
        found += [Group([crossed + i * design.arm + a for a in levels], plain[i]) for i in range(design.crossed)]
    return found


def _categories(features: Features | None) -> Iterator[list[int]]:
    for name in () if features is None else features.categories:
        assert features is not None
        yield features.columns_of(name)


def centred(groups: list[Group], seen: Any) -> F64:
    """The matrix that lets the levels seen of every category average to 0; predictions stay what they are.

    One level alone is left as it is: nobody knows how much of it is the level's.
    """
    matrix = np.eye(seen.size)
    for levels, base in groups:
        there = [j for j in levels if seen[j]]
        if len(there) > 1:
            average = matrix[there].mean(axis=0)
            matrix[there] -= average
            matrix[base] += average
    return matrix


def deviations(known: ContextArms) -> F64:
    """For each column of a row by what it was divided when it was standardised, at present; 1 where it was not."""
    design = known.design
    context, arms = np.ones(known.features.size), np.ones(design.arm)
    for out, measured, moments in zip(
        (context, arms), (known.measured, known.arm_measured), known.moments, strict=True
    ):
        deviation = np.sqrt(moments[SQUARES] / np.maximum(moments[COUNT], 1.0))
        out[measured] = np.where(deviation > 0, deviation, 1.0)
    plain = [1.0 if i == INTERCEPT else context[i] for i in (*design.private, *design.shared)]
    return np.concatenate((plain, arms, np.outer(context[: design.crossed], arms).ravel()))
