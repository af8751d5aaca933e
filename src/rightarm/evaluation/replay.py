"""`replay`: a policy run over a log that was collected evenly at random, on the rows where both choose alike."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

import numpy as np

from rightarm.evaluation.targets import (
    PolicyEstimate,
    Target,
    chooser_of,
    facts,
    features_for,
    name_of,
    warning_of,
)
from rightarm.formula import check_count
from rightarm.inference.sequences import interval
from rightarm.logs.log import LogLike
from rightarm.logs.rows import Rows, read_rows
from rightarm.types import F64

ROUNDED = 1e-3  # relative error that propensities in the files of others may have


@dataclass(frozen=True, kw_only=True)
class Replay(PolicyEstimate):
    """The earnings of a policy in the rows of a log where it chose as the log did; `replay` makes it.

    Attributes
    ----------
    policy
        The policy replayed.
    rounds
        The rounds that the policy played: the rows where both agreed.
    mean
        The mean reward of these.
    pulls
        How often the policy pulled each arm.
    rewards
        The rewards, round by round.
    floor
        The floor by which rows were thinned out, as given or as the log says; None if the log is even.
    rows, left_out, open_windows, low, high, confidence, reward_range, warnings
        Those of every estimate: the rows used and not used, the interval, what was assumed, and what is wrong.
    """

    rounds: int
    mean: float
    pulls: dict[Hashable, int]
    rewards: F64 = field(repr=False, compare=False)

    def _pairs(self) -> dict[str, str]:
        arm = max(self.pulls, key=self.pulls.__getitem__)
        return {
            "rows": self.rows_in_words(),
            "rounds played": f"{self.rounds:,}",
            "mean reward": f"{self.mean:.6g}",
            f"{100 * self.confidence:g}% interval, at any time": f"{self.low:.6g} to {self.high:.6g}",
            "most pulled arm": f"{arm}, {self.pulls[arm]:,} times",
            "assumed": self.assumptions(),
        }


def replay(
    log: LogLike,
    policy: Target,
    *,
    arms: Iterable[Hashable] | None = None,
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
    played = list[int]()
    for t, (arm, propensity, reward) in enumerate(zip(rows.arms, rows.propensities, rows.rewards, strict=True)):
        if floor is not None and random.random() * propensity >= least:
            continue
        available = rows.available(t)
        chosen, probability = target.choose(t, available, random)
        if chosen == arm:
            target.learn(t, chosen, float(reward), probability)
            played.append(t)
    if not played:
        raise ValueError(
            f"the policy agreed with none of the log's {rows.arms.size:,} rows; there is nothing to report"
        )
    rewards = rows.rewards[played]
    ends = interval((rewards - low) / span, confidence)
    counts = np.bincount(rows.arms[played], minlength=len(rows.names))
    return Replay(
        **facts(rows, floor, confidence),
        policy=name_of(policy),
        low=low + span * ends[0],
        high=low + span * ends[1],
        rounds=len(played),
        mean=float(rewards.mean()),
        pulls={name: int(count) for name, count in zip(rows.names, counts, strict=True)},
        rewards=rewards,
        warnings=tuple(filter(None, [warning_of(rows)])),
    )


def _is_even(rows: Rows) -> bool:
    """Say whether all propensities are the same."""
    most = float(rows.propensities.max())
    return most - float(rows.propensities.min()) <= ROUNDED * most


def _check_even(rows: Rows) -> None:
    """Refuse a log that was not collected evenly at random."""
    least = float(rows.propensities.min())
    most = float(rows.propensities.max())
    if not _is_even(rows):
        raise ValueError(
            f"replay needs a log collected evenly at random, got propensities from {least:.6g} to {most:.6g}; "
            "give a floor that no propensity can fall below, or use evaluate"
        )
    sizes = {len(rows.names)} if rows.allowed is None else {len(row) for row in rows.allowed}
    for size in sizes:
        if abs(most * size - 1) > 0.4 / size:  # an arm more or less would be 1/size
            raise ValueError(
                f"a propensity of {most:.6g} in every row means about {1 / most:.0f} arms, "
                f"got {size}; say which there are with arms"
            )
