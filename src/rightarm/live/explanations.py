"""Why a decision chose its arm: what its context contributed, and how the arms compare there now."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rightarm import text
from rightarm.estimators import arrowhead
from rightarm.estimators.compiled import MEAN, PULLS
from rightarm.estimators.linear import INTERCEPT
from rightarm.extras import polars_for
from rightarm.live.coefficients import centred, gram_of, groups_of, reward_unit, theta, unit_of
from rightarm.live.contextual import Context, ContextArms, Seen
from rightarm.live.ledger import Answer, Waiting
from rightarm.live.state import State
from rightarm.notebook import html_table
from rightarm.text import number, wrapped
from rightarm.types import F64, I64

if TYPE_CHECKING:
    import polars

BARELY = 1.01  # a propensity of so many times the floor is nearly all the floor's
MOST = 20  # columns, or arms, that a text shows
COLUMNS = ["column", "value", "coefficient", "contribution"]
ARMS = ["arm", "prediction", "pulls", "probability", "score: location", "scale"]


@dataclass(frozen=True)
class Explanation:
    """Why a decision chose its arm; `Bandit.explain` makes it. Predictions are those of the present."""

    decision: int
    arm: Hashable
    propensity: float
    """The probability with which the arm was drawn."""
    group: str | None
    """"holdout" if the decision is known to belong to it."""
    reward: float | None
    """None if there is none, or none yet."""
    prediction: float | None
    """The arm's reward by what is known now; None while nothing is known."""
    pulls: float
    """How many pulls that prediction is worth."""
    columns: list[dict[str, Any]]
    """What each column of the context contributes to the prediction, the largest first; empty without contexts."""
    arms: list[dict[str, Any]]
    """Every arm that can be chosen: prediction, pulls, probability now, and its score's location and scale."""
    notes: tuple[str, ...]
    by_floor: bool = False
    """Whether the arm was drawn by the floor, the policy itself giving it next to nothing."""

    def table(self) -> list[dict[str, Any]]:
        """A row for each column: the decision, its arm, and what the column contributes; empty without contexts."""
        return [{"decision": self.decision, "arm": self.arm, **row} for row in self.columns]

    def frame(self) -> polars.DataFrame:
        """`table` as a Polars frame; those of several decisions can be put together."""
        pl = polars_for("frame()")
        types = {"decision": pl.Int64, "arm": pl.String, "column": pl.String} | dict.fromkeys(COLUMNS[1:], pl.Float64)
        rows = [row | {"arm": str(row["arm"])} for row in self.table()]
        frame: polars.DataFrame = pl.DataFrame(rows, schema=types)
        return frame

    def _held(self) -> str:
        """What drew the arm in the policy's place, if anything did."""
        if not self.by_floor:
            return ", by the holdout" if self.group else ""
        first = max(self.arms, key=lambda row: row["probability"], default=None)
        if first is None or first["arm"] == self.arm:
            return ", by the floor"
        return f", by the floor: the policy prefers {first['arm']} ({number(first['probability'])})"

    def _head(self) -> str:
        reward = "" if self.reward is None else f"; its reward was {number(self.reward)}"
        worth = f"by what is known now its prediction is {number(self.prediction)}, worth {number(self.pulls)} pulls"
        known = "nothing is known of it" if self.prediction is None else worth
        drawn = f"drawn with probability {number(self.propensity)}{self._held()}"
        return f"decision {self.decision}: {self.arm}, {drawn}{reward}; {known}"

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


def explain(state: State, decision: Any) -> Explanation:
    """Why a decision that is pending or remembered chose its arm."""
    name, known = state.ledger.number_of(decision), state.known
    arm, propensity, group, reward, context = _made(state.ledger.pending.get(name) or state.ledger.answered[name])
    if arm < 0:
        raise ValueError(f"decision {name} cannot be explained: an earlier version of rightarm answered it")
    columns, notes, arms = list[dict[str, Any]](), list[str](), list[dict[str, Any]]()
    if isinstance(known, ContextArms):
        assert context is not None
        columns = _columns(state, known, arm, context)
        seen = _seen_again(known, context, np.flatnonzero(state.active))
        pulls, mean = _read(known, arm, seen)
        notes.append("Values are in their own unit; coefficients are the present ones, per deviation.")
        if not known.estimator.sums:
            notes.append(f"Predictions and contributions are {unit_of(known)}.")
        if known.design.arm:
            notes.append("Other arms cannot be compared: their features came with the decision and were not kept.")
        elif any(state.active):
            arms = _arms(state, seen)
    else:
        pulls, mean = known.table.item(PULLS, arm), known.table.item(MEAN, arm)
        arms = _arms(state, None)
    prediction = float(_unscaled(state, np.array(mean))) if pulls else None
    notes += ["Arms are as the policy would see them now; * was chosen."] if arms else []
    drawn = state.names[arm], propensity, group, reward
    by_floor = group is None and propensity <= BARELY * state.settings.floor
    return Explanation(name, *drawn, prediction, pulls, columns, arms, tuple(notes), by_floor)


def _seen_again(known: ContextArms, context: Context, members: I64) -> Seen:
    """The context as its decision saw it, with the row of the chosen arm for every arm.

    It is that of every arm where arms have no features.
    """
    row, own = np.frombuffer(context.row), known.design.own
    joint = np.repeat(row[own:, None], known.factor.shape[1], axis=1)
    return Seen(np.frombuffer(context.encoded), None, members, row[:own].copy(), joint, known.moments, context.could)


def _unscaled(state: State, means: F64) -> F64:
    """Predictions in the unit of the rewards, if they are of rewards."""
    known = state.known
    return means if isinstance(known, ContextArms) and not known.estimator.sums else state.unscaled(means)


def _made(one: Waiting | Answer) -> tuple[int, float, str | None, float | None, Context | None]:
    """Of a decision the number of its arm, its propensity, its group if that is known, its reward and its context."""
    if isinstance(one, Waiting):
        return one.arm, one.decision.propensity, one.decision.group, one.so_far, one.context
    return one.arm, one.propensity, None, one.reward, one.context


def _read(known: ContextArms, arm: int, seen: Seen) -> tuple[float, float]:
    """The pulls and the mean that formulas would see of an arm; the mean is not cut to any range."""
    pulls, mean = np.empty((2, known.factor.shape[1]))
    arrowhead.read(seen.own, seen.joint, known.factor, known.common, known.count, pulls, mean)
    return pulls.item(arm), mean.item(arm)


def _columns(state: State, known: ContextArms, arm: int, context: Context) -> list[dict[str, Any]]:
    """What each column contributes to an arm's prediction, levels of categories against their average."""
    row, encoded, design = np.frombuffer(context.row), context.numbers(), known.design
    centring = centred(groups_of(known), (gram_of(known).sizes(arm) > 0) | (row != 0))
    factor, shift = reward_unit(state)
    thetas = factor * (centring @ theta(known, arm))
    places = [*design.private.tolist(), *design.shared.tolist()]
    values = [1.0 if i == INTERCEPT else encoded[i] for i in places] + [None] * (row.size - len(places))
    found = [
        {"column": name, "value": value, "coefficient": coefficient, "contribution": x * coefficient}
        for name, value, x, coefficient in zip(
            known.estimator.names, values, row.tolist(), thetas.tolist(), strict=True
        )
    ]
    if INTERCEPT in places:
        constant = found[places.index(INTERCEPT)]
        constant["coefficient"] += shift
        constant["contribution"] += shift
    elif shift:
        found.append({"column": "0 as the policy sees it", "value": None, "coefficient": None, "contribution": shift})
    return sorted(found, key=lambda one: -abs(one["contribution"]))


def _arms(state: State, seen: Seen | None) -> list[dict[str, Any]]:
    """Every arm that can be chosen, as the policy would see it now."""
    if not any(state.active):
        return []
    members = np.flatnonzero(state.active)
    law = state.law(members, seen)
    pulls, means = state.known.table[PULLS, members], _unscaled(state, state.known.table[MEAN, members])
    none = np.full(members.size, np.nan)
    locations, scales = state.known.scores(members) or (none, none)
    return [
        {
            "arm": state.names[arm],
            "prediction": means.item(i) if pulls[i] else None,
            "pulls": pulls.item(i),
            "probability": law.chance.item(i),
            "location": None if np.isnan(locations[i]) else locations.item(i),
            "scale": None if np.isnan(scales[i]) else scales.item(i),
        }
        for i, arm in enumerate(members.tolist())
    ]
