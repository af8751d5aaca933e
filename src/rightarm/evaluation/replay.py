"""`replay`: a policy run over a log that was collected evenly at random, on the rows where both choose alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rightarm.evaluation.common import (
    as_html,
    as_text,
    in_words,
    rows_in_words,
    warning_of,
)
from rightarm.evaluation.targets import Target, chooser_of, features_for, name_of
from rightarm.formula import check_count
from rightarm.inference.confidence import interval
from rightarm.logs.rows import Rows, read_rows
from rightarm.types import F64

ROUNDED = 1e-3  # relative error that propensities in the files of others may have


@dataclass(frozen=True)
class Replay:
    """The earnings of a policy in the rows of a log where it chose as the log did; `replay` makes it."""

    policy: str
    """The policy replayed."""
    rows: int
    """The rows of the log that have a reward."""
    left_out: int
    """The rows without one, and those whose window of reward is open."""
    kept: int
    """The rows where both agreed: the rounds that the policy played."""
    mean: float
    """The mean reward of these."""
    low: float
    """The lower end of its confidence interval."""
    high: float
    """Its upper end."""
    confidence: float
    pulls: dict[Any, int]
    """How often the policy pulled each arm."""
    reward_range: tuple[float, float]
    """What rewards could be: as given, or as the log says, or 0 to 1."""
    floor: float | None
    """The floor by which rows were kept, as given or as the log says; None if the log is even."""
    rewards: F64 = field(repr=False, compare=False)
    """The rewards, round by round."""
    open_windows: int = 0
    """How many of the rows left out have an open window of reward."""
    warning: str = ""
    """Why none of it is to be trusted, if all rewards of the log are equal."""

    def _pairs(self) -> dict[str, str]:
        arm = max(self.pulls, key=self.pulls.__getitem__)
        return {
            "rows": rows_in_words(self.rows, self.left_out, self.open_windows),
            "rounds played": f"{self.kept:,}",
            "mean reward": f"{self.mean:.6g}",
            f"{100 * self.confidence:g}% interval, at any time": f"{self.low:.6g} to {self.high:.6g}",
            "most pulled arm": f"{arm}, {self.pulls[arm]:,} times",
            "taken as known": in_words(self.reward_range, self.floor),
        }

    def __str__(self) -> str:
        return as_text(self.policy, self._pairs(), [self.warning] if self.warning else [])

    def _repr_html_(self) -> str:
        return as_html(self.policy, self._pairs(), [self.warning] if self.warning else [])


def replay(
    log: Any,
    policy: Target,
    *,
    arms: Iterable[Any] | None = None,
    reward_range: tuple[float, float] | None = None,
    missing: float | None = None,
    confidence: float = 0.95,
    floor: float | None = None,
    seed: int = 0,
) -> Replay:
    """Run ``policy`` over a log that was collected evenly at random, as if it had been there.

    In every row the policy chooses; where it chooses the arm of the log, it gets the reward and learns, and all other
    rows are passed over. What it sees is what it would have seen live, for about rows/arms rounds, or floor · rows. The
    interval is for the mean, over the rounds played, of the expected rewards of its choices.

    A log whose propensities differ is refused, unless there is a ``floor``, given or that of its bandit, a propensity
    that no arm could fall below: a row with propensity μ is then kept with probability floor/μ only, which makes the
    rows kept even.

    Parameters
    ----------
    log, policy, arms, reward_range, missing, confidence, floor
        Those of `evaluate`. A policy that looks at contexts sees those of the rows where it decides; its running means
        and deviations of features are of the rounds that it played.
    seed
        The policy draws from it.

    Returns
    -------
    Replay
        The rewards of the rounds that the policy played, their mean, and its interval.

    Raises
    ------
    ValueError
        If the log was not collected evenly at random and there is no floor, or if the policy agreed with no row.

    References
    ----------
    Li, Chu, Langford and Wang, "Unbiased offline evaluation of contextual-bandit-based news article recommendation
    algorithms", WSDM 2011.

    Examples
    --------
    >>> import rightarm as ra
    >>> log = {"arm": ["a", "b", "b", "a"] * 200, "propensity": [0.5] * 800, "reward": [0.0, 1.0, 1.0, 0.0] * 200}
    >>> result = replay(log, ra.UCB(C=0.5))
    >>> result.pulls["b"] > 300, result.mean > 0.9
    (True, True)
    """
    rows = read_rows(log, arms, reward_range=reward_range, missing=missing, floor=floor, features=features_for(policy))
    low, high = rows.reward_range
    span = high - low
    target = chooser_of(policy, rows)
    random = np.random.default_rng(check_count("seed", seed, least=0))
    if floor is None and not _is_even(rows):
        floor = rows.floor  # an even log would only lose rows by it
    if floor is None:
        _check_even(rows)
    least = float(rows.propensities.min()) if floor is None else rows.check_floor(floor)
    kept = []
    for t, (arm, propensity, reward) in enumerate(zip(rows.arms, rows.propensities, rows.rewards, strict=True)):
        if floor is not None and random.random() * propensity >= least:
            continue
        available = rows.available(t)
        chosen, probability = target.choose(t, available, random)
        if chosen == arm:
            target.learn(t, chosen, float(reward), probability)
            kept.append(t)
    if not kept:
        raise ValueError(
            f"the policy agreed with none of the log's {rows.arms.size:,} rows; there is nothing to report"
        )
    rewards = rows.rewards[kept]
    ends = interval((rewards - low) / span, confidence)
    counts = np.bincount(rows.arms[kept], minlength=len(rows.names))
    return Replay(
        name_of(policy),
        rows=rows.arms.size,
        left_out=rows.left_out,
        kept=len(kept),
        mean=float(rewards.mean()),
        low=low + span * ends[0],
        high=low + span * ends[1],
        confidence=confidence,
        pulls={name: int(count) for name, count in zip(rows.names, counts, strict=True)},
        reward_range=rows.reward_range,
        floor=floor,
        rewards=rewards,
        open_windows=rows.open_windows,
        warning=warning_of(rows),
    )


def _is_even(rows: Rows) -> bool:
    """Say whether all propensities are the same."""
    most = float(rows.propensities.max())
    return most - float(rows.propensities.min()) <= ROUNDED * most


def _check_even(rows: Rows) -> None:
    """Refuse a log that was not collected evenly at random."""
    least, most = float(rows.propensities.min()), float(rows.propensities.max())
    if not _is_even(rows):
        raise ValueError(
            f"replay needs a log collected evenly at random, got propensities from {least:.6g} to {most:.6g}; "
            "give a floor that no propensity can fall below, or use evaluate"
        )
    sizes = {len(rows.names)} if rows.among is None else {len(row) for row in rows.among}
    for size in sizes:
        if abs(most * size - 1) > 0.4 / size:  # an arm more or less would be 1/size
            raise ValueError(
                f"a propensity of {most:.6g} in every row means about {1 / most:.0f} arms, "
                f"got {size}; say which there are with arms"
            )
