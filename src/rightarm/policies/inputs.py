"""The inputs that formulas may ask for, and the rules that live decisions and simulations share.

First come the inputs of formulas and the checks of a state, then the rules, compiled or not, then ranges of rewards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from rightarm.errors import WrongType, WrongValue
from rightarm.formula import check_number
from rightarm.formula.compile import Untyped, jit
from rightarm.formula.tracing import Traced
from rightarm.types import F64, I64

if TYPE_CHECKING:
    from rightarm.policies.policy import Policy

INPUTS = {
    "t": "the round, counted from 1",
    "pulls": "how often the arm was pulled",
    "mean": "the mean of the arm's rewards",
    "z": "fresh noise, one draw for every arm and round",
    "best": "the largest mean of all arms",
    "worst": "the smallest mean of all arms",
    "arms": "the number of arms",
    "variance": "the variance of the arm's rewards about their mean, Σ (x − mean)² / pulls",
    "best_variance": "the largest variance of all arms",
    "worst_variance": "the smallest variance of all arms",
    "gap_variance": "how uncertain the gap to the best mean is, in variances of one reward: 1/pulls + 1/pulls of the "
    "best arm, or what a context makes of it; 0 for the best arm itself",
}
VARIANCES = frozenset({"variance", "best_variance", "worst_variance"})
STATISTICS = VARIANCES | {"pulls", "mean", "best", "worst", "gap_variance"}  # which no arm has before its first pull

Memory = Mapping[str, ArrayLike] | None
Variances = ArrayLike | None


def one_each(place: str, value: ArrayLike, shape: tuple[int, ...]) -> F64:
    """Return ``value`` as one number for each arm, or raise an error that says which formula gave something else."""
    if isinstance(value, tuple | list) or np.ndim(value) > len(shape) or np.size(value) not in (1, *shape):
        raise TypeError(f"{place} must give one number for each arm, got {value!r:.200}")
    return np.broadcast_to(np.asarray(value, dtype=float), shape)


def gap_variances(pulls: F64, means: F64) -> F64:
    """Return how uncertain the gap of each arm to the best mean is, arms being independent.

    Of several arms with the best mean, the gap is that to the one of which the least is known.
    """
    is_best = means == np.max(means)
    uncertain = 1 / np.maximum(pulls, FORGOTTEN)
    return np.where(is_best, 0.0, uncertain + np.max(uncertain[is_best]))


class ArmsState(NamedTuple):
    """The statistics of some arms before a decision."""

    t: float | Traced
    pulls: F64
    means: F64
    memory: Mapping[str, F64]  # the policy's columns
    variances: F64 | None
    arms: int  # how many there are in all

    def inputs(self, z: ArrayLike | Traced) -> dict[str, Any]:
        """Return what a formula may ask for, by its name."""
        columns = dict(self.memory) if self.variances is None else {"variance": self.variances, **self.memory}
        named = {"t": self.t, "pulls": self.pulls, "mean": self.means, "z": z, "arms": float(self.arms)}
        return named | {"best": np.max(self.means), "worst": np.min(self.means)} | with_extremes(columns)


def with_extremes(columns: Mapping[str, F64]) -> dict[str, Any]:
    """Return columns with the largest and the smallest value of each, by the names that formulas use."""
    named: dict[str, Any] = {}
    for name, column in columns.items():
        named |= {name: column, f"best_{name}": np.max(column), f"worst_{name}": np.min(column)}
    return named


def check_variances(asker: object, asked: bool, variances: Variances, pulls: F64) -> F64 | None:
    """Return the arms' variances as an array, or raise an error if they are asked for and missing, or wrong."""
    if variances is None:
        if asked and pulls.any():
            raise ValueError(f"{asker!r} asks for variance: give variances= with a value for each arm")
        return np.zeros(pulls.size) if asked else None
    values = np.asarray(variances, dtype=float)
    if values.shape != pulls.shape or not np.isfinite(values[pulls > 0]).all() or (values < 0).any():
        raise ValueError(f"variances must be {pulls.size} numbers from 0 on, one per arm, got {values.tolist()}")
    return values


def check_statistics(pulls: ArrayLike, means: ArrayLike, whole: bool = True) -> tuple[F64, F64]:
    """Return pulls and means as arrays, or raise an error that says what is wrong with them.

    ``whole``: pulls are whole numbers, as they are unless an estimator forgets.
    """
    pulls = np.asarray(pulls, dtype=float)
    means = np.asarray(means, dtype=float)
    if pulls.ndim != 1 or pulls.shape != means.shape or not pulls.size:
        raise ValueError(f"pulls and means must be two rows of one length, got shapes {pulls.shape} and {means.shape}")
    if not np.isfinite(pulls).all() or (pulls < 0).any() or (whole and (pulls != np.floor(pulls)).any()):
        raise ValueError(f"pulls must be {'whole ' if whole else ''}numbers from 0 on, got {pulls.tolist()}")
    if not np.isfinite(means[pulls > 0]).all():
        raise ValueError(f"means must be finite where an arm was pulled, got {means.tolist()}")
    return pulls, means


def check_memory(columns: Sequence[str], memory: Memory, arms: int) -> dict[str, F64]:
    """Return the columns that a policy remembers as arrays, zeros by default, or raise an error."""
    given = dict.fromkeys(columns, np.zeros(arms)) if memory is None else memory
    if not isinstance(given, Mapping):
        raise TypeError(f"memory must be a mapping from columns to a value for each arm, got {given!r}")
    if set(given) != set(columns):
        raise ValueError(f"memory must have the columns {', '.join(columns) or '(none)'}, got {list(given)}")
    return {name: _check_column(name, given[name], arms) for name in columns}


def _check_column(name: str, values: ArrayLike, arms: int) -> F64:
    must = f"memory[{name!r}] must be {arms} finite numbers, one per arm"
    try:
        column = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"{must}, got {values!r}") from None
    if column.shape != (arms,) or not np.isfinite(column).all():
        raise ValueError(f"{must}, got {column.tolist()}")
    return column


# Rules: which arm goes first while some have no reward, how exploration is mixed into probabilities, and how location
# and scale are read off a score.

FORGOTTEN = 1e-100  # pulls, discounted, below which an arm counts as never pulled: formulas divide by them
FAR = 2.0**200  # z beside which every location vanishes, so that the scale is read off to its last digit
EARLY = 1.0  # the rounds between which a clock runs from 0 to 1
LATE = 2.0**40
CERTAIN = 1 + 1e-9  # what probabilities may amount to, rounding included


def goes_first(pulls: F64, last: F64) -> int:
    """Return the arm that goes first because none of its rewards counts, or −1 if there is no such arm.

    Of several it is the one of which the ``last`` choice is the longest ago, and of several such the first.
    """
    first = -1
    for k in range(len(pulls)):
        if pulls[k] < FORGOTTEN and (first < 0 or last[k] < last[first]):
            first = k
    return first


def location_and_scale(near: Untyped, far: Untyped, distance: float) -> tuple[Untyped, Untyped]:
    """Return location and scale of a score location + scale·x, from the scores at x = 0 and x = ``distance``."""
    return near, np.where(far == near, 0.0, (far - near) / distance)  # −∞ less −∞ is not a number


@jit
def explored_or_chosen(explored: float, all_explored: float, chance: float) -> float:
    """Return the probability of an arm: it is explored, or nothing is and it has the largest score."""
    return explored + max(1.0 - all_explored, 0.0) * chance


@jit
def draw(chance: F64, heights: F64, u: float) -> int:
    """Return the place at which the running sums pass u, which is below 1; never one of probability zero."""
    low = 0
    high = chance.size - 1
    while low < high:  # by halves: NumPy's search takes half a second to compile
        middle = (low + high) // 2
        if heights[middle] > u:
            high = middle
        else:
            low = middle + 1
    while chance[low] == 0.0:  # beyond the last sum, if rounding left that below 1
        low -= 1
    return low


@jit
def mix(chance: F64, explored: F64, floor: float, heights: F64) -> bool:
    """Put exploration and then ``floor`` beneath the chances, in place, with running sums; False if there is no way.

    There is none if they are not probabilities: not numbers, negative, or not 1 (of exploration: above 1) in all.
    """
    total = 0.0
    all_chances = 0.0
    for i in range(chance.size):
        if not explored[i] >= 0.0 or not chance[i] >= 0.0:
            return False
        total += explored[i]
        all_chances += chance[i]
    if total > CERTAIN or not abs(all_chances - 1.0) < 1e-6:
        return False
    height = 0.0
    for i in range(chance.size):
        own = explored_or_chosen(explored[i], total, chance[i])
        chance[i] = floor + (1.0 - chance.size * floor) * own
        height += chance[i]
        heights[i] = height
    for i in range(chance.size):
        chance[i] /= height  # which is 1 but for rounding
        heights[i] /= height
    return True


@jit
def share_untried(pulls: F64, members: I64, waiting: I64, chance: F64) -> float:
    """Put the probabilities of arms of which no reward counts in their places; return what is left for the others.

    If there are no others, all have the same. Those that wait for no reward go first: they share the draw evenly. When
    each of them waits for one, it has one decision in as many as there are arms, until its reward comes.
    """
    untried = 0
    free = 0
    for i in range(members.size):
        if pulls[members[i]] < FORGOTTEN:
            untried += 1
            free += waiting[members[i]] == 0
    if untried == members.size:
        chance[:] = 1.0 / members.size
        return 0.0
    for i in range(members.size):
        chance[i] = 0.0
        if pulls[members[i]] < FORGOTTEN:
            if free == 0:
                chance[i] = 1.0 / members.size
            elif waiting[members[i]] == 0:
                chance[i] = 1.0 / free
    return 0.0 if free else 1.0 - untried / members.size


# Ranges of rewards.

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
        """Return a reward, or an array of them, in the policy's range; between equal ranges it stays what it is."""
        return self.to_low + (reward - self.low) / (self.high - self.low) * (self.to_high - self.to_low)

    def back(self, value: Number) -> Number:
        """Return a value in the policy's range, a mean say, in the unit of the rewards."""
        return self.low + (value - self.to_low) / (self.to_high - self.to_low) * (self.high - self.low)


def check_reward_range(value: object, name: str = "reward_range") -> tuple[float, float]:
    """Return the ends of a range of rewards, the lower one first, or raise an error that names it.

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
    """Return how rewards are scaled for a policy; None if it is for any rewards, which then stay as they are.

    Without a ``reward_range``, rewards must be those that the policy is for: the scale changes nothing then, and
    ``low`` and ``high`` say what they may be.

    >>> import rightarm as ra
    >>> reward_scale(ra.KLUCB(), (0.0, 500.0))
    Scale(low=0.0, high=500.0, to_low=0.0, to_high=1.0)
    >>> reward_scale(ra.UCB(C=0.5), (0.0, 500.0)) is None
    True
    """
    if policy.reward_range is None:
        return None
    return Scale(*(policy.reward_range if reward_range is None else reward_range), *policy.reward_range)
