"""`lift`: what a log's own policy earned beyond a uniform choice, or beyond one arm alone, with an interval."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from rightarm.display import number, signed
from rightarm.evaluation.evaluate import running_model, weighted
from rightarm.evaluation.targets import Estimate, chooser_of, facts, warning_of
from rightarm.inference.sequences import check_confidence, joint_lower_bound
from rightarm.logs.log import LogLike
from rightarm.logs.rows import Rows, read_rows
from rightarm.types import F64

UNIFORM = "uniform"


@dataclass(frozen=True, kw_only=True)
class Lift(Estimate):
    """The mean reward of a log's decisions minus what something else would have earned there; `lift` makes it.

    The interval is of the difference.

    Attributes
    ----------
    against
        "uniform", or an arm.
    logged
        The mean reward of the log.
    other
        The estimate of what the other would have earned per decision, self-normalised.
    rows, left_out, open_windows, low, high, confidence, reward_range, floor, warnings
        Those of every estimate: the rows used and not used, the interval, what was assumed, and what is wrong.
    """

    against: Hashable
    logged: float
    other: float

    @property
    def estimate(self) -> float:
        """Return the estimate of the difference, per decision."""
        return self.logged - self.other

    def __str__(self) -> str:
        other = "a uniform choice" if self.against == UNIFORM else f"always {self.against}"
        sure = f"{100 * self.confidence:g}%, at any time"
        ends = f"between {signed(self.low)} and {signed(self.high)} with {self.assumptions()} ({sure})"
        found = [f"{number(self.logged)} per decision, {signed(self.estimate)} against {other}: {ends}"]
        if self.left_out:
            found.append(f"rows: {self.rows_in_words()}")
        return "; ".join([*found, *(f"warning: {warning}" for warning in self.warnings)])


def lift(
    log: LogLike,
    against: Hashable = UNIFORM,
    *,
    arms: Iterable[Hashable] | None = None,
    reward_range: tuple[float, float] | None = None,
    missing: float | None = None,
    confidence: float = 0.95,
    floor: float | None = None,
) -> Lift:
    """Estimate what a log earned beyond a uniform choice among the same arms, or beyond ``against``, an arm.

    With w_t = π(A_t)/p_t, the weight of row t for the other choice π, and rewards r_t scaled to 0 to 1, the mean of

        (1 − r_t)(w_t − 1)  ≥  −1      and of      r_t (1 − w_t)  ≤  1

    given the rows before is what the row's own choice earns beyond the other. So the first bounds the lift from below
    and the second from above, by betting, with all weights that there are. If no propensity could fall below ``floor``,
    the doubly robust r_t − Σ_a π(a) q_t(a) − w_t (r_t − q_t(A_t)) has its share of the bets too: much narrower where
    rewards are rare. The interval holds at any time, for logs of policies that learn, and where rewards drift; it needs
    right propensities (`sample_ratio`), a log that could choose what the other chooses, and rewards in their range.

    Parameters
    ----------
    against
        "uniform", or an arm.
    log, arms, reward_range, missing, confidence, floor
        Those of `evaluate`.

    Returns
    -------
    Lift
        The estimate of the difference, and its interval.

    References
    ----------
    Karampatziakis, Mineiro and Ramdas, "Off-policy confidence sequences", ICML 2021.

    Examples
    --------
    >>> arms, chances, rewards = ["a", "b", "b", "b"], [0.25, 0.75, 0.75, 0.75], [0, 1, 1, 1]
    >>> found = lift({"arm": arms * 300, "propensity": chances * 300, "reward": rewards * 300})
    >>> round(found.estimate, 4), round(found.low, 4), round(found.high, 4)
    (0.25, 0.2065, 0.2637)
    """
    rows = read_rows(log, arms, reward_range=reward_range, missing=missing, floor=floor)
    low, high = rows.reward_range
    span = high - low
    scaled = rows.scaled
    weights = _weights(rows, against)
    side = (1 + check_confidence(confidence)) / 2
    below = [((1 - scaled) * (weights - 1) + 1, 0.0)]
    above = [(scaled * (weights - 1) + 1, 0.0)]
    if rows.floor is not None:
        other_policy = UNIFORM if against == UNIFORM else {against: 1.0}
        found = weighted(rows, chooser_of(other_policy, rows), running_model(rows))
        bound = found.largest / rows.check_floor(rows.floor)  # no weight can be larger
        below.append((1 + scaled - found.robust[0], bound))
        above.append((1 - scaled + found.robust[0], bound))
    least = joint_lower_bound(below, side) - 1
    most = 1 - joint_lower_bound(above, side)
    total = float(weights.sum())
    other = low + span * float(weights @ scaled) / total if total else float("nan")
    return Lift(
        **facts(rows, rows.floor, confidence),
        against=against,
        low=span * least,
        high=span * most,
        logged=float(rows.rewards.mean()),
        other=other,
        warnings=tuple(filter(None, [warning_of(rows)])),
    )


def _weights(rows: Rows, against: Hashable) -> F64:
    """Return how much more often the other would have chosen the arm of each row."""
    if against == UNIFORM:
        sizes = len(rows.names) if rows.allowed is None else np.array([row.size for row in rows.allowed])
        return np.asarray(1 / (sizes * rows.propensities))
    if against not in rows.names:
        raise ValueError(f"against must be {UNIFORM!r} or one of {rows.names}, got {against!r}")
    arm = rows.names.index(against)
    if rows.allowed is not None and not all(arm in row for row in rows.allowed):
        raise ValueError(f"against must be an arm that every row could choose, got {against!r}")
    return np.asarray((rows.arms == arm) / rows.propensities)
