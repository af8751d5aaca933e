"""`lift`: what a log's own policy earned beyond a uniform choice, or beyond one arm alone, with an interval."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rightarm.evaluation.common import in_words, rows_in_words, warning_of
from rightarm.evaluation.evaluate import weighted
from rightarm.evaluation.expected import running
from rightarm.evaluation.targets import chooser_of
from rightarm.inference.confidence import check_confidence, joint_lower_bound
from rightarm.logs.rows import Rows, read_rows
from rightarm.text import number, signed
from rightarm.types import F64

UNIFORM = "uniform"


@dataclass(frozen=True)
class Lift:
    """The mean reward of a log's decisions minus what something else would have earned there; `lift` makes it."""

    against: Any
    """``uniform``, or an arm."""
    rows: int
    logged: float
    """The mean reward of the log."""
    other: float
    """The estimate of what the other would have earned per decision, self-normalised."""
    low: float
    """The lower end of the interval of the difference."""
    high: float
    confidence: float
    reward_range: tuple[float, float]
    """What rewards could be: as given, or as the log says, or 0 to 1."""
    floor: float | None
    """The propensity that no arm could fall below, as given or as the log says; None if neither does."""
    left_out: int = 0
    """The rows of the log without a reward, and those whose window of reward is open."""
    open_windows: int = 0
    """How many of these have an open window of reward."""
    warning: str = ""
    """Why none of it is to be trusted, if all rewards of the log are equal."""

    @property
    def estimate(self) -> float:
        """Return the estimate of the difference, per decision."""
        return self.logged - self.other

    def __str__(self) -> str:
        other = "a uniform choice" if self.against == UNIFORM else f"always {self.against}"
        sure = f"{100 * self.confidence:g}%, at any time"
        known = in_words(self.reward_range, self.floor)
        ends = f"between {signed(self.low)} and {signed(self.high)} with {known} ({sure})"
        found = f"{number(self.logged)} per decision, {signed(self.estimate)} against {other}: {ends}"
        rows = rows_in_words(self.rows, self.left_out, self.open_windows)
        found = f"{found}; rows: {rows}" if self.left_out else found
        return f"{found}; warning: {self.warning}" if self.warning else found


def lift(
    log: Any,
    against: Any = UNIFORM,
    *,
    arms: Iterable[Any] | None = None,
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
    bets = [[((1 - scaled) * (weights - 1) + 1, 0.0)], [(scaled * (weights - 1) + 1, 0.0)]]
    if rows.floor is not None:
        law = UNIFORM if against == UNIFORM else {against: 1.0}
        _, (robust,), largest = weighted(rows, chooser_of(law, rows), running(rows))
        bound = largest / rows.check_floor(rows.floor)  # no weight can be larger
        bets[0].append((1 + scaled - robust, bound))
        bets[1].append((1 - scaled + robust, bound))
    least = joint_lower_bound(bets[0], side) - 1
    most = 1 - joint_lower_bound(bets[1], side)
    total = float(weights.sum())
    other = low + span * float(weights @ scaled) / total if total else float("nan")
    mean = float(rows.rewards.mean())
    return Lift(
        against,
        rows=weights.size,
        logged=mean,
        other=other,
        low=span * least,
        high=span * most,
        confidence=confidence,
        reward_range=rows.reward_range,
        floor=rows.floor,
        left_out=rows.left_out,
        open_windows=rows.open_windows,
        warning=warning_of(rows),
    )


def _weights(rows: Rows, against: Any) -> F64:
    """Return how much more often the other would have chosen the arm of each row."""
    if against == UNIFORM:
        sizes = len(rows.names) if rows.among is None else np.array([row.size for row in rows.among])
        return np.asarray(1 / (sizes * rows.propensities))
    if against not in rows.names:
        raise ValueError(f"against must be {UNIFORM!r} or one of {rows.names}, got {against!r}")
    arm = rows.names.index(against)
    if rows.among is not None and not all(arm in row for row in rows.among):
        raise ValueError(f"against must be an arm that every row could choose, got {against!r}")
    return np.asarray((rows.arms == arm) / rows.propensities)
