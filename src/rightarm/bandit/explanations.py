"""Explanations: the coefficients of a linear model, and why an arm was chosen in a context."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rightarm import display as text
from rightarm.bandit.context_arms import ContextArms, EncodedContext, StoredContext
from rightarm.bandit.ledger import AnsweredDecision, DecisionOrId, PendingDecision
from rightarm.bandit.state import State
from rightarm.display import html_table, number, wrapped
from rightarm.errors import polars_for
from rightarm.estimators import ridge_regression
from rightarm.estimators.compiled_estimators import MEAN, PULLS
from rightarm.estimators.context_rows import INTERCEPT, MOMENT_COUNT, MOMENT_SQUARES
from rightarm.estimators.features import Features
from rightarm.estimators.reward_statistics import COUNT
from rightarm.inference.coefficients import APPROXIMATE, SHARED, Coefficients, Gram, Regression, Row
from rightarm.inference.sequences import BOUNDED, FEWEST, check_confidence, effective_rewards
from rightarm.types import F64, I64

if TYPE_CHECKING:
    import polars

ROUNDING = 1e-9  # Σ x² of a column, in units of the ridge that was taken from it, below which it was always 0
NEVER = "never seen"
TOGETHER = "not told apart from other columns"
FEW = f"needs {FEWEST} effective rewards"


# Coefficients.


class Group(NamedTuple):
    """The columns of a category, of which always one is 1: they share a constant with another column."""

    levels: list[int]
    base: int
    """The column to which the constant belongs."""


def coefficients(state: State, confidence: float, only: Hashable | None = None) -> Coefficients:
    """Return a row for each coefficient of each arm, and for each shared one; see `Bandit.coefficients`."""
    if only is not None:
        state.arm_number("arm", only)
    arms = contextual(state)
    level = check_confidence(confidence)
    regression = Regression(gram_of(arms))
    groups = groups_of(arms)
    sigma, kind = _noise(state, regression)
    bounds = regression.bounds(sigma, level)
    private = list[Row]()
    shared = list[Row]()
    for arm in range(arms.count):
        rows = _rows_of(state, arms, regression, groups, arm, bounds.item(arm), kind)
        private += rows[: arms.design.own]
        if arm == 0:
            shared = rows[arms.design.own :]
    found = [row for row in private if only is None or row.arm == only] + shared
    return Coefficients(found, level, kind, _why_none(arms), bool(groups), unit_of(arms))


def _rows_of(
    state: State, arms: ContextArms, regression: Regression, groups: list[Group], arm: int, bound: float, kind: str
) -> list[Row]:
    """Return a row for each coefficient of an arm, the shared ones last."""
    own = arms.design.own
    names = arms.estimator.names
    factor, shift = reward_unit(state)
    units = deviations(arms)
    constant = [bool(i == INTERCEPT) for i in (*arms.design.private, *arms.design.shared)] + [False] * len(names)
    has_values = regression.gram.sizes(arm) > 0
    centring = centred(groups, has_values)
    thetas = factor * (centring @ theta(arms, arm))
    estimates, widths = regression.combined(arm, centring[:, :own], centring[:, own:])
    halves = bound * widths
    rows = list[Row]()
    for j, name in enumerate(names):
        lacking = _lacking(arms, has_values[j], math.isnan(widths[j]), math.isnan(bound))
        added = shift if constant[j] else 0.0
        row = Row(
            state.names[arm] if j < own else SHARED,
            name,
            float(thetas[j]) + added,
            None if lacking else float(factor * (estimates[j] - halves[j]) + added),
            None if lacking else float(factor * (estimates[j] + halves[j]) + added),
            None if lacking else kind,
            float(units[j]),
            constant[j],
            lacking,
            bool(has_values[j]),
        )
        rows.append(row)
    return rows


def contextual(state: State) -> ContextArms:
    """Return the statistics of the arms, if the policy decides by contexts."""
    if not isinstance(state.arms, ContextArms):
        raise TypeError(f"{state.arms.policy!r} has no coefficients: it does not look at contexts")
    return state.arms


def theta(arms: ContextArms, arm: int) -> F64:
    """Return the coefficients of an arm, private ones first, by which the policy decides."""
    return ridge_regression.solution(*ridge_regression.dense(arms.factor, arms.common, arms.design.own, arm))


def gram_of(arms: ContextArms) -> Gram:
    """Return the sums over all rows that were learned, without the ridges."""
    own = arms.design.own
    joint = arms.design.joint
    count = arms.count
    shapes = [(count, own, own), (count, own, joint), (joint, joint), (count, own), (joint,)]
    found = Gram(*map(np.zeros, shapes))
    for arm in range(count):
        R, u = ridge_regression.dense(arms.factor, arms.common, own, arm)
        first = R[:own, :own]
        beside = R[:own, own:]
        found.own[arm] = first.T @ first
        found.cross[arm] = first.T @ beside
        found.own_sums[arm] = first.T @ u[:own]
        found.joint[:] += beside.T @ beside
        found.joint_sums[:] += beside.T @ u[:own]
        if arm == 0:
            last = R[own:, own:]
            found.joint[:] += last.T @ last
            found.joint_sums[:] += last.T @ u[own:]
    for block, ridge in ((found.joint, arms.ridges[0]), *((one, arms.ridges[1]) for one in found.own)):
        sizes = np.diagonal(block) - ridge
        np.fill_diagonal(block, np.where(sizes > ROUNDING * ridge, sizes, 0.0))
    return found


def _noise(state: State, regression: Regression) -> tuple[F64, str]:
    """Return σ of the rewards as the policy sees them, of each arm, NaN if unknown; and the kind of intervals."""
    arms = contextual(state)
    if state.reward_range is not None:
        low, high = map(state.scaled, state.reward_range)
        return np.full(arms.count, (high - low) / 2), BOUNDED
    counts = arms.statistic(COUNT)
    variances = np.empty(arms.count)
    ridge_regression.variances(arms.factor, arms.design.joint, arms.count, variances)
    effective = effective_rewards(*state.lifetime(), state.ledger.extremes())
    if arms.design.joint:
        counts = np.full(arms.count, counts.sum())
        effective = np.full(arms.count, effective.sum())
    left = np.where(effective >= FEWEST, counts - regression.ranks(), np.nan)
    return np.sqrt(variances * counts / np.where(left > 0, left, np.nan)), APPROXIMATE


def unit_of(arms: ContextArms) -> str:
    """Return what predictions are of."""
    return "reward" if arms.estimator.sums else "log-odds"


def reward_unit(state: State) -> tuple[float, float]:
    """Return the factor of coefficients, and what is added to the intercept, to be in the unit of the rewards."""
    if state.scale is None or not contextual(state).estimator.sums:
        return 1.0, 0.0
    shift = state.scale.back(0.0)
    return state.scale.back(1.0) - shift, shift


def _why_none(arms: ContextArms) -> str:
    """Return why no coefficient has an interval; empty if some can have one."""
    if not arms.estimator.sums:
        return "none for log-odds"
    return "none with a discount" if arms.fading < 1.0 else ""


def _lacking(arms: ContextArms, has_values: bool, is_apart: bool, has_few: bool) -> str:
    """Return why a coefficient has no interval; empty if it has one."""
    return _why_none(arms) or (NEVER if not has_values else TOGETHER if is_apart else FEW if has_few else "")


# Columns of a row: which are of one category, and which are standardised.


def groups_of(arms: ContextArms) -> list[Group]:
    """Return the categories in a row, each with the column that has their constant, if there is one."""
    design = arms.design
    plain = {column: place for place, column in enumerate([*design.private.tolist(), *design.shared.tolist()])}
    first = len(plain)  # of the arm's features
    crossed = first + design.arm
    found = list[Group]()
    for levels in _categories(arms.features):
        if INTERCEPT in plain:
            found.append(Group([plain[i] for i in levels], plain[INTERCEPT]))
        if design.crossed:
            found += [Group([crossed + i * design.arm + a for i in levels], first + a) for a in range(design.arm)]
    for levels in _categories(arms.estimator.arm_features):
        if INTERCEPT in plain:
            found.append(Group([first + a for a in levels], plain[INTERCEPT]))
        found += [Group([crossed + i * design.arm + a for a in levels], plain[i]) for i in range(design.crossed)]
    return found


def _categories(features: Features | None) -> Iterator[list[int]]:
    if features is not None:
        yield from map(features.columns_of, features.categories)


def centred(groups: list[Group], has_values: NDArray[np.bool_]) -> F64:
    """Return the matrix that lets the levels of every category average to 0; predictions stay what they are.

    Levels that never came are left out. One level alone is left as it is: nobody knows how much of it is the level's.
    """
    matrix = np.eye(has_values.size)
    for levels, base in groups:
        there = [j for j in levels if has_values[j]]
        if len(there) > 1:
            average = matrix[there].mean(axis=0)
            matrix[there] -= average
            matrix[base] += average
    return matrix


def deviations(arms: ContextArms) -> F64:
    """Return by what each column of a row was divided when it was standardised, at present; 1 where it was not."""
    design = arms.design
    context = np.ones(arms.features.size)
    of_arms = np.ones(design.arm)
    sides = ((context, arms.measured, arms.moments[0]), (of_arms, arms.arm_measured, arms.moments[1]))
    for out, measured, moments in sides:
        deviation = np.sqrt(moments[MOMENT_SQUARES] / np.maximum(moments[MOMENT_COUNT], 1.0))
        out[measured] = np.where(deviation > 0, deviation, 1.0)
    plain = [1.0 if i == INTERCEPT else context[i] for i in (*design.private, *design.shared)]
    return np.concatenate((plain, of_arms, np.outer(context[: design.crossed], of_arms).ravel()))


# Decisions.

Record = dict[str, Any]
BARELY = 1.01  # a propensity of so many times the floor is nearly all the floor's
MOST = 20  # columns, or arms, that a text shows
COLUMNS = ["column", "value", "coefficient", "contribution"]
ARMS = ["arm", "prediction", "pulls", "probability", "score: location", "scale"]


@dataclass(frozen=True)
class Explanation:
    """The reasons for which a decision chose its arm; `Bandit.explain` makes it. Predictions are of the present."""

    decision: int
    arm: Hashable
    propensity: float
    """The probability with which the arm was drawn."""
    group: str | None
    """"holdout" if the decision is known to belong to it."""
    reward: float | None
    """None if there is none, or none yet."""
    prediction: float | None
    """The arm's reward by what was learned until now; None while nothing was."""
    pulls: float
    """How many pulls that prediction is worth."""
    columns: list[Record]
    """What each column of the context contributes to the prediction, the largest first; empty without contexts."""
    arms: list[Record]
    """Every arm that can be chosen: prediction, pulls, probability now, and its score's location and scale."""
    notes: tuple[str, ...]
    by_floor: bool = False
    """True if the arm was drawn by the floor, the policy itself giving it next to nothing."""

    def frame(self) -> polars.DataFrame:
        """Return ``columns`` as a Polars frame, with the decision and its arm; those of decisions can be stacked."""
        pl = polars_for("frame()")
        types = {"decision": pl.Int64, "arm": pl.String, "column": pl.String} | dict.fromkeys(COLUMNS[1:], pl.Float64)
        rows = [{"decision": self.decision, "arm": str(self.arm), **row} for row in self.columns]
        frame: polars.DataFrame = pl.DataFrame(rows, schema=types)
        return frame

    def _drawn_by(self) -> str:
        """Say what drew the arm in the policy's place, if anything did."""
        if not self.by_floor:
            return ", by the holdout" if self.group else ""
        first = max(self.arms, key=lambda row: row["probability"], default=None)
        if first is None or first["arm"] == self.arm:
            return ", by the floor"
        return f", by the floor: the policy prefers {first['arm']} ({number(first['probability'])})"

    def _head(self) -> str:
        reward = "" if self.reward is None else f"; its reward was {number(self.reward)}"
        worth = f"by what is known now its prediction is {number(self.prediction)}, worth {number(self.pulls)} pulls"
        learned = "nothing is known of it" if self.prediction is None else worth
        drawn = f"drawn with probability {number(self.propensity)}{self._drawn_by()}"
        return f"decision {self.decision}: {self.arm}, {drawn}{reward}; {learned}"

    def _column_lines(self) -> list[list[str]]:
        shown = [row for row in self.columns if row["contribution"]][:MOST]
        return [[row["column"], *(number(row[name]) for name in COLUMNS[1:])] for row in shown]

    def _arm_lines(self) -> list[list[str]]:
        return [
            [str(row["arm"]) + " *" * (row["arm"] == self.arm), number(row["prediction"]), number(row["pulls"])]
            + [number(row[name]) for name in ("probability", "location", "scale")]
            for row in self.arms[:MOST]
        ]

    def __str__(self) -> str:
        parts = [wrapped(self._head())]
        if self.columns:
            parts.append(text.table(COLUMNS, self._column_lines()))
        if self.arms:
            parts.append(text.table(ARMS, self._arm_lines(), spare=["scale", "score: location"]))
        return "\n\n".join(parts) + "".join(f"\n{wrapped(note)}" for note in self.notes)

    def _repr_html_(self) -> str:
        first = html_table(COLUMNS, self._column_lines(), title=self._head()) if self.columns else ""
        title = "" if self.columns else self._head()
        return first + html_table(ARMS, self._arm_lines(), title=title, notes=self.notes)


def explain(state: State, decision: DecisionOrId) -> Explanation:
    """Explain why a decision that is pending or remembered chose its arm."""
    name = state.ledger.number_of(decision)
    one = state.ledger.pending.get(name) or state.ledger.answered[name]
    arm = one.arm
    propensity, group, reward = _made(one)
    arms = state.arms
    columns = list[Record]()
    notes = list[str]()
    rows = list[Record]()
    if isinstance(arms, ContextArms):
        assert one.context is not None
        columns = _columns(state, arms, arm, one.context)
        context = _encoded_again(arms, one.context, np.flatnonzero(state.active))
        pulls, mean = _read(arms, arm, context)
        notes.append("Values are in their own unit; coefficients are the present ones, per deviation.")
        if not arms.estimator.sums:
            notes.append(f"Predictions and contributions are {unit_of(arms)}.")
        if arms.design.arm:
            notes.append("Other arms cannot be compared: their features came with the decision and were not kept.")
        else:
            rows = _arm_rows(state, context)
    else:
        pulls = arms.table.item(PULLS, arm)
        mean = arms.table.item(MEAN, arm)
        rows = _arm_rows(state, None)
    if rows:
        notes.append("Arms are as the policy would see them now; * was chosen.")
    return Explanation(
        decision=name,
        arm=state.names[arm],
        propensity=propensity,
        group=group,
        reward=reward,
        prediction=float(_unscaled(state, np.array(mean))) if pulls else None,
        pulls=pulls,
        columns=columns,
        arms=rows,
        notes=tuple(notes),
        by_floor=group is None and propensity <= BARELY * state.settings.floor,
    )


def _encoded_again(arms: ContextArms, context: StoredContext, members: I64) -> EncodedContext:
    """Return the context as its decision saw it, with the row of the chosen arm for every arm.

    It is that of every arm where arms have no features.
    """
    row = np.frombuffer(context.row)
    own = arms.design.own
    joint = np.repeat(row[own:, None], arms.factor.shape[1], axis=1)
    encoded = np.frombuffer(context.encoded)
    return EncodedContext(encoded, None, members, row[:own].copy(), joint, arms.moments, context.could)


def _unscaled(state: State, means: F64) -> F64:
    """Return predictions in the unit of the rewards, if they are of rewards."""
    arms = state.arms
    return means if isinstance(arms, ContextArms) and not arms.estimator.sums else state.unscaled(means)


def _made(one: PendingDecision | AnsweredDecision) -> tuple[float, str | None, float | None]:
    """Return the propensity of a decision, its group if that is remembered, and its reward."""
    if isinstance(one, PendingDecision):
        return one.decision.propensity, one.decision.group, one.so_far
    return one.propensity, None, one.reward


def _read(arms: ContextArms, arm: int, context: EncodedContext) -> tuple[float, float]:
    """Return the pulls and the mean that formulas would see of an arm; the mean is not cut to any range."""
    pulls, mean = np.empty((2, arms.factor.shape[1]))
    ridge_regression.read(context.own, context.joint, arms.factor, arms.common, arms.count, pulls, mean)
    return pulls.item(arm), mean.item(arm)


def _columns(state: State, arms: ContextArms, arm: int, context: StoredContext) -> list[Record]:
    """Return what each column contributes to an arm's prediction, levels of categories against their average."""
    row = np.frombuffer(context.row)
    encoded = context.numbers()
    centring = centred(groups_of(arms), (gram_of(arms).sizes(arm) > 0) | (row != 0))
    factor, shift = reward_unit(state)
    thetas = factor * (centring @ theta(arms, arm))
    places = [*arms.design.private.tolist(), *arms.design.shared.tolist()]
    values = [1.0 if i == INTERCEPT else encoded[i] for i in places] + [None] * (row.size - len(places))
    found = [
        {"column": name, "value": value, "coefficient": coefficient, "contribution": x * coefficient}
        for name, value, x, coefficient in zip(arms.estimator.names, values, row.tolist(), thetas.tolist(), strict=True)
    ]
    if INTERCEPT in places:
        constant = found[places.index(INTERCEPT)]
        constant["coefficient"] += shift
        constant["contribution"] += shift
    elif shift:
        found.append({"column": "0 as the policy sees it", "value": None, "coefficient": None, "contribution": shift})
    return sorted(found, key=lambda one: -abs(one["contribution"]))


def _arm_rows(state: State, context: EncodedContext | None) -> list[Record]:
    """Return every arm that can be chosen, as the policy would see it now."""
    if not any(state.active):
        return []
    members = np.flatnonzero(state.active)
    chances = state.probabilities(members, context)
    pulls = state.arms.table[PULLS, members]
    means = _unscaled(state, state.arms.table[MEAN, members])
    none = np.full(members.size, np.nan)
    locations, scales = state.arms.scores(members) or (none, none)
    return [
        {
            "arm": state.names[arm],
            "prediction": means.item(i) if pulls[i] else None,
            "pulls": pulls.item(i),
            "probability": chances.chance.item(i),
            "location": None if np.isnan(locations[i]) else locations.item(i),
            "scale": None if np.isnan(scales[i]) else scales.item(i),
        }
        for i, arm in enumerate(members.tolist())
    ]
