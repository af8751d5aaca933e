"""Which rewards a policy is for, and how others are brought into that range: the one rule, live and in evaluation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rightarm.errors import WrongType, WrongValue
from rightarm.formula import check_number
from rightarm.types import F64

if TYPE_CHECKING:
    from rightarm.scores.policy import Policy

LARGEST = 1e100  # of rewards: their squares are summed

Number = TypeVar("Number", float, F64)


class Scale(NamedTuple):
    """The line that takes rewards between ``low`` and ``high`` to ``to_low`` and ``to_high``.

    >>> scale = Scale(-1.0, 1.0, 0.0, 1.0)
    >>> scale.apply(0.5), scale.back(0.75)
    (0.75, 0.5)
    """

    low: float
    high: float
    to_low: float
    to_high: float

    def apply(self, reward: Number) -> Number:
        """A reward, or an array of them, as the policy sees it; between equal ranges it stays what it is."""
        return self.to_low + (reward - self.low) / (self.high - self.low) * (self.to_high - self.to_low)

    def back(self, value: Number) -> Number:
        """What the policy sees, a mean say, in the unit of the rewards."""
        return self.low + (value - self.to_low) / (self.to_high - self.to_low) * (self.high - self.low)


def check_reward_range(value: Any, name: str = "reward_range") -> tuple[float, float]:
    """The ends of a range of rewards, the lower one first, or an error that names it.

    >>> check_reward_range((0, 500))
    (0.0, 500.0)
    """
    ends = list(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes) else []
    if len(ends) != 2:
        raise WrongType(name, f"must be two numbers, the lower one first, got {value!r}")
    low, high = (check_number(name, end) for end in ends)
    if not low < high:
        raise WrongValue(name, f"must be two numbers, the lower one first, got {value!r}")
    if max(abs(low), abs(high)) > LARGEST:
        raise WrongValue(name, f"must be at most {LARGEST:g} in size, got {value!r}", code="out_of_range")
    return low, high


def reward_scale(policy: Policy, reward_range: tuple[float, float] | None) -> Scale | None:
    """How rewards are scaled for ``policy``; None if it is for any rewards, which then stay as they are.

    Without a range of one's own, rewards must be those that the policy is for: the scale changes nothing then, and
    ``low`` and ``high`` say what they may be.

    >>> import rightarm as ra
    >>> reward_scale(ra.KLUCB(), (0.0, 500.0))
    Scale(low=0.0, high=500.0, to_low=0.0, to_high=1.0)
    >>> reward_scale(ra.UCB(C=0.5), (0.0, 500.0)) is None
    True
    """
    if policy.rewards is None:
        return None
    return Scale(*(policy.rewards if reward_range is None else reward_range), *policy.rewards)
