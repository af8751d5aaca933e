"""Statistics of a live bandit's arms, and the probabilities that a policy gives to the arms by them."""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec
import numpy as np

from rightarm.errors import WrongType, WrongValue
from rightarm.estimators.compiled_estimators import GAP_VARIANCE, MEAN, MEMORY, PULLS, VARIANCE, live_estimator
from rightarm.estimators.estimator import NEGLIGIBLE
from rightarm.estimators.reward_statistics import (
    COUNT,
    LOST,
    LOST_DIGITS,
    OWN,
    SPREAD,
    SUM,
    correct_reward,
    count_reward,
)
from rightarm.formula import check_count, check_number
from rightarm.noise.law import score_law
from rightarm.policies.inputs import FORGOTTEN, LARGEST, draw, gap_variances, mix, share_untried
from rightarm.policies.live_scores import live_policy
from rightarm.policies.policy import Policy
from rightarm.types import F64, I64

if TYPE_CHECKING:
    from rightarm.bandit.context_arms import EncodedContext, StoredContext

__all__ = ["Arms", "Chances", "check_reward", "draw"]

MOST = 2**53  # rewards; a float counts no further
COUNTING = 0  # sums of the rewards that count
EVER = 1  # sums of all rewards that ever came
SAME = 1e-6  # relative: discounting rounds counts and sums each time, not means
PLAIN = [COUNT, SUM, LOST, SPREAD]


class RecentReward(NamedTuple):
    """A reward that can still be forgotten, and what it added to the columns of its arm."""

    number: int
    arm: int
    reward: float
    added: tuple[float, ...]


class ArmReward(NamedTuple):
    """A reward to learn: of an arm that was chosen with a propensity, in a context if the policy looks at any."""

    arm: int
    reward: float
    propensity: float
    context: StoredContext | None = None


class Chances(msgspec.Struct, frozen=True, gc=False):
    """The probabilities of some arms in one state, and their running sums."""

    members: I64
    chance: F64
    heights: F64
    is_lasting: bool
    """True if they last until something is learned; not so while an arm has no reward yet."""
    error: float = 0.0
    """By how much the policy's own probabilities may differ, where they are estimated."""


class Arms:
    """The statistics of all arms, by number: what the policy's formulas see of each, and the sums behind it.

    Where the estimator forgets, the round that formulas see is one more than the rewards that count, and what the
    policy remembers besides is forgotten as the rewards are: a column is the sum of what the rewards that count have
    added to it.
    """

    def __init__(self, policy: Policy) -> None:
        if not isinstance(policy, Policy):
            hint = "; call it with its parameters first" if callable(policy) else ""
            raise WrongType("policy", f"must be a policy such as UCB(C=0.5), got {policy!r}{hint}")
        self.policy = policy
        self.estimator = policy.estimator
        self.live = live_policy(policy)
        self._scores = self.live.law
        self._numbers = self.live.numbers
        if not self.estimator.asks_context:  # such an estimator has a class of its own, `ContextArms`
            self.estimates = live_estimator(self.estimator)
            self._learn_mean = self.estimates.learn
            self._mean_numbers = self.estimates.numbers
        self.fading = self.estimator.discount or 1.0  # the factor by which all count less after a reward
        self.keeps_rewards = self.estimator.longest > 0  # one by one, while they count
        self.has_columns = bool(policy.columns)
        self.asks_gap_variance = policy.asks_gap_variance
        self.count = 0
        self.learned = 0  # rewards, of all arms together
        self.total = 0.0  # rewards that count, of all arms together
        self.table: F64 = np.zeros((MEMORY + len(policy.columns), 0))  # what formulas see
        self.sums: F64 = np.zeros((0, 1, OWN + self.estimator.size))  # what it is made of: a row for each arm
        self.recent: deque[RecentReward] = deque()
        # The sums of all rewards ever learned, where these are not the sums above.
        self.all_sums: F64 | None = np.zeros((0, 1, OWN)) if self.estimator.forgets else None
        # How large sums of squares were that corrections found, and after how many rewards: by what it is (COUNTING or
        # EVER) and arm. Digits of smaller ones are lost until all is learned again.
        self.largest: dict[tuple[int, int], tuple[float, int]] = {}
        self._chance_of_largest = score_law(policy.stated_law[0]).cached_solver()
        self._mix = mix.compiled
        self._prepares = self.estimator.weighs or self.asks_gap_variance
        if self.estimator.forgets:
            count_reward(np.zeros((1, 1, OWN)), 0, 0, 0.0)  # which compiles it
        self._scratch: tuple[F64, F64, F64] = (np.empty(0), np.empty(0), np.empty(0))

    def add(self) -> None:
        """Add an arm without rewards."""
        rows, room = self.table.shape
        if self.count == room:
            more = max(8, room)
            self.table = np.hstack([self.table, np.zeros((rows, more))])
            self.sums = np.vstack([self.sums, np.zeros((more, *self.sums.shape[1:]))])
            if self.all_sums is not None:
                self.all_sums = np.vstack([self.all_sums, np.zeros((more, 1, OWN))])
        self.count += 1

    def check_prior(self) -> None:
        """Raise, with the reason, if an arm cannot start with rewards that never came."""
        if self.has_columns or self.estimator.size or self.estimator.weighs or self.estimator.window is not None:
            raise WrongValue("prior", f"needs a policy that keeps sums of rewards, got {self.policy!r}")

    def start(self, arm: int, mean: float, pulls: float, variance: float) -> None:
        """Let a new arm start as if it had had so many rewards of this mean and variance."""
        self.check_prior()
        if self.all_sums is None:
            self.all_sums = self.sums[:, :, :OWN].copy()
        self.sums[arm, 0, PLAIN] = pulls, pulls * mean, 0.0, pulls * variance
        self.table[[PULLS, MEAN, VARIANCE], arm] = pulls, mean, variance
        self.total += pulls

    # Learning.

    def learn(self, arm: int, reward: float, propensity: float, context: StoredContext | None = None) -> None:
        """Learn a reward of an arm that was chosen with ``propensity``, in a context if the policy looks at any."""
        t = self.total + 1
        if self.all_sums is not None:
            count_reward(self.all_sums, arm, 0, reward)
        self._learn_mean(self.table, self.sums, arm, reward, self.fading, self._mean_numbers)
        self.learned += 1
        self.total = self.total * self.fading + 1
        if self.keeps_rewards:
            self._keep_reward(arm, reward, propensity, t)
        elif self.has_columns:
            self._learn_columns(arm, reward, propensity, t)

    def _learn_columns(self, arm: int, reward: float, propensity: float, t: float) -> None:
        self.live.lesson(t, self.table, arm, reward, propensity, float(self.count), self.live.numbers)

    def _keep_reward(self, arm: int, reward: float, propensity: float, t: float) -> None:
        """Keep a reward while it counts, with what it adds to the columns, and leave out what counts no more."""
        self.recent.append(RecentReward(self.learned, arm, reward, ()))
        if self.has_columns:
            if self.estimator.weighs:
                self._weigh()
            before = self.table[MEMORY:, arm].copy()
            self._learn_columns(arm, reward, propensity, t)
            gained = (self.table[MEMORY:, arm] - before).tolist()
            self.recent[-1] = RecentReward(self.learned, arm, reward, tuple(gained))
        while self._weight(self.recent[0]) < NEGLIGIBLE:
            self.recent.popleft()
        window = self.estimator.window
        if window is not None and len(self.recent) > window:
            oldest = self.recent.popleft()
            added = np.array(oldest.added)
            numbers = self.estimates.numbers
            again = self.estimates.forget(self.table, self.sums, oldest.arm, oldest.reward, added, numbers)
            self.total -= 1
            if again or self.learned % window == 0:
                self._sum_again()

    def _weight(self, old: RecentReward) -> float:
        return float(self.fading ** (self.learned - old.number))

    def _sum_again(self) -> None:
        """Sum all rewards that count anew: once in a window, against rounding, and when a very large one has left."""
        self.table[:] = 0.0
        self.sums[:] = 0.0
        for _, arm, reward, added in self.recent:
            self.estimates.learn(self.table, self.sums, arm, reward, 1.0, self.estimates.numbers)
            self.table[MEMORY:, arm] += added

    def _weigh(self) -> None:
        """Compute the means of an estimator that looks at all rewards that count."""
        numbers = np.array([old[:3] for old in self.recent]).reshape(-1, 3)
        weights = self.fading ** (self.learned - numbers[:, 0])
        arms = numbers[:, 1].astype(np.int64)
        rewards = numbers[:, 2].copy()
        self.estimates.weigh(arms, rewards, weights, self.estimates.numbers, self.table[MEAN][:, None])

    def rehearse(self, one: ArmReward) -> None:
        """Learn a reward, and raise if that left a column that is not a number: to be called on a `copy`."""
        self.learn(*one)
        columns = dict(zip(self.policy.columns, self.table[MEMORY:, one.arm].tolist(), strict=True))
        if not all(map(math.isfinite, columns.values())):
            what = f"must be one that {self.policy!r} can learn: its columns would become {columns}, got {one.reward}"
            raise WrongValue("reward", what)

    def copy(self) -> Self:
        """Return a copy that changes by itself."""
        twin = copy.copy(self)
        twin.table = self.table.copy()
        twin.sums = self.sums.copy()
        twin.recent = self.recent.copy()
        twin.all_sums = None if self.all_sums is None else self.all_sums.copy()
        twin.largest = self.largest.copy()
        return twin

    def rescale(self, factor: float, shift: float) -> None:
        """Make of all rewards factor · reward + shift."""
        if self.has_columns or self.estimator.size:
            raise ValueError(f"what {self.policy!r} has learned cannot be scaled to another range of rewards")
        for sums in (self.sums,) if self.all_sums is None else (self.sums, self.all_sums):
            sums[:, :, SUM] = factor * sums[:, :, SUM] + shift * sums[:, :, COUNT]
            sums[:, :, LOST] *= factor
            sums[:, :, SPREAD] *= factor**2
        counts = self.sums[:, 0, COUNT]
        totals = self.sums[:, 0, SUM] + self.sums[:, 0, LOST]
        self.table[MEAN] = np.divide(totals, counts, out=np.zeros(counts.size), where=counts > 0)
        self.table[VARIANCE] *= factor**2
        self.recent = deque(old._replace(reward=factor * old.reward + shift) for old in self.recent)
        self.largest = {key: (factor**2 * squares, learned) for key, (squares, learned) in self.largest.items()}

    def are_within(self, low: float, high: float) -> bool:
        """Say whether the means of all arms are in a range: of all rewards, and of those that count, with priors."""
        counts, means, _ = self.lifetime()
        counting = self.statistic(COUNT), self.means(), SAME  # discounting rounds the sums each time
        for n, mean, slack in ((counts, means, 1e-9), counting):
            edge = slack * (high - low)
            if ((n > 0) & ~((mean >= low - edge) & (mean <= high + edge))).any():
                return False
        return True

    # Corrections.

    def check_correction(self) -> None:
        """Raise, with the reason, if a reward that was learned cannot be replaced by another."""
        if self.has_columns:
            columns = ", ".join(self.policy.columns)
            what = f"must stay as it was: {self.policy!r} cannot correct a reward: {columns} cannot be taken back"
            raise WrongValue("reward", what, code="not_correctable")

    def correct(self, number: int, before: float, after: ArmReward) -> bool:
        """Replace the ``number``-th reward that was learned, as if ``after`` had come in the place of ``before``.

        False if that takes more digits than the sums have left, or if they are no sums: see `learn_again`.
        """
        if self.estimator.size:
            return False
        arm = after.arm
        age = self.learned - number
        is_sound = True
        if self.all_sums is not None:
            found = correct_reward(self.all_sums, arm, 0, before, after.reward, 1.0, self._largest(EVER, arm))
            is_sound = self._found(EVER, arm, found)
        if self.keeps_rewards:
            place = len(self.recent) - 1 - age
            if place < 0:
                return is_sound  # it counts no more
            self.recent[place] = self.recent[place]._replace(reward=after.reward)
        if self.estimator.window is not None:
            self._sum_again()
        elif self.sums.item(arm, 0, COUNT) >= FORGOTTEN:
            weight = self.fading**age
            largest = self._largest(COUNTING, arm)
            if self.fading < 1.0:  # each reward rounds all sums anew, in proportion to Σ x²
                row = self.sums[arm, 0]
                mean = self.means()[arm]
                largest = max(largest, (row[SPREAD] + row[COUNT] * mean * mean).item())
            rewards = (before, after.reward)
            numbers = self.estimates.numbers
            found = self.estimates.correct(self.table, self.sums, arm, *rewards, weight, largest, numbers)
            is_sound = self._found(COUNTING, arm, found) and is_sound
        return is_sound

    def _largest(self, what: int, arm: int) -> float:
        """Return the largest sum of squares that corrections have found, as far as it counts."""
        squares, learned = self.largest.get((what, arm), (0.0, self.learned))
        return squares if what == EVER else float(squares * self.fading ** (self.learned - learned))

    def _found(self, what: int, arm: int, squares: float) -> bool:
        """Note how large a sum of squares was that a correction found; False if digits were lost."""
        if squares == LOST_DIGITS:
            return False
        self.largest[what, arm] = squares, self.learned
        return True

    def is_made_of(self, arm: int, rewards: int) -> bool:
        """Say whether the statistics, of an arm or of all if it `mixes`, were made of so many rewards and no prior."""
        if not self.mixes:
            return rewards == self.sums.item(arm, 0, COUNT)
        fading = self.fading
        total = (1 - fading**rewards) / (1 - fading) if fading < 1.0 else rewards
        has_no_prior = self.estimator.window is not None or math.isclose(total, self.total, rel_tol=1e-9)
        return rewards == self.learned and has_no_prior

    def learn_again(self, arm: int, rewards: Iterable[ArmReward]) -> None:
        """Make the statistics of an arm, or of all if it `mixes`, anew from all their rewards in their order."""
        fresh = type(self)(self.policy)
        for _ in range(self.count):
            fresh.add()
        for one in rewards:
            fresh.learn(*one)
        self.take_over(fresh, slice(None) if self.mixes else slice(arm, arm + 1))
        self.largest = {key: found for key, found in self.largest.items() if not self.mixes and key[1] != arm}

    @property
    def mixes(self) -> bool:
        """Say whether a reward changes the statistics of other arms than its own."""
        return self.estimator.forgets

    def take_over(self, other: Self, arms: slice) -> None:
        """Take the statistics that another one has of some arms."""
        self.table[:, arms] = other.table[:, arms]
        self.sums[arms] = other.sums[arms]
        if self.all_sums is not None:
            self.all_sums[arms] = (other.sums[:, :, :OWN] if other.all_sums is None else other.all_sums)[arms]
        if self.keeps_rewards:
            self.recent = other.recent

    # Contexts.

    def decided(self, context: EncodedContext) -> None:
        """Count a context in which a decision was made; nothing to do for a policy that looks at none."""

    def check_context(self, context: StoredContext | None) -> None:
        """Raise if what is stored of a decision's context is not what is learned from."""

    # Deciding.

    def prepare(self, members: I64, context: EncodedContext | None) -> None:
        """Have the table show what formulas see of the arms now."""
        if self.estimator.weighs:
            self._weigh()
        if self.asks_gap_variance:
            pulls = self.table[PULLS, members]
            means = self.table[MEAN, members]
            self.table[GAP_VARIANCE, members] = gap_variances(pulls, means)

    def probabilities(
        self, members: I64, pending: Sequence[int], floor: float = 0.0, context: EncodedContext | None = None
    ) -> Chances:
        """Return the exact probability of each of some arms, ``floor`` at least.

        ``pending`` is the number of decisions of every arm that wait for a reward: see `share_untried`.
        """
        count = members.size
        if count != self._scratch[0].size:
            self._scratch = np.empty(count), np.empty(count), np.empty(count)
        first, second, explored = self._scratch
        if self._prepares:
            self.prepare(members, context)
        chance = np.empty(count)
        heights = np.empty(count)
        error = 0.0
        has_scores = self._scores(self.total + 1, self.table, members, self._numbers, first, second, explored)
        if has_scores:
            if context is None:
                found = self._chance_of_largest(first, second, chance)
            else:
                found, error = self.find(members, context, first, second, chance)
            if found <= 0:
                self._complain(found, first, second)
        else:
            rest = share_untried(self.table[PULLS], members, np.asarray(pending), chance)
            if rest:
                tried = self.table[PULLS, members] >= FORGOTTEN
                others = self.probabilities(members[tried], pending, context=context)
                chance[tried] = rest * others.chance
                error = others.error
            explored = np.zeros(count)
        if not self._mix(chance, explored, floor, heights):
            these = f"{chance.tolist()}, explored {explored.tolist()}"
            raise ValueError(f"{self.policy!r}: what it chooses or explores by are not probabilities: {these}")
        return Chances(members, chance, heights, has_scores, error)

    def find(self, members: I64, context: EncodedContext, first: F64, second: F64, chance: F64) -> tuple[int, float]:
        """Find the chances of some arms in a context; return what is wrong, and how far off they may be."""
        return self._chance_of_largest(first, second, chance), 0.0

    def scores(self, members: I64) -> tuple[F64, F64] | None:
        """Return the location and the scale of some arms' scores after `probabilities`; None without such."""
        if self.policy.stated_law[1] is not self.policy:
            return None
        first, second, explored = np.empty((3, members.size))
        found = self.live.law(self.total + 1, self.table, members, self.live.numbers, first, second, explored)
        return (first, second) if found else None

    def _complain(self, found: int, first: F64, second: F64) -> None:
        try:
            score_law(self.policy.stated_law[0]).check(found, first, second)
        except ValueError as error:
            raise ValueError(f"{self.policy!r}: the scores have no law in this state: {error}") from None

    # Statistics to look at.

    def shown(self) -> tuple[F64, F64]:
        """Return the pulls and the estimate of every arm, for tables."""
        return self.row(PULLS), self.row(MEAN)

    def row(self, which: int) -> F64:
        """Return a row of the table."""
        return self.table[which, : self.count]

    def statistic(self, which: int) -> F64:
        """Return one of the plain statistics of every arm."""
        return self.sums[: self.count, 0, which]

    def means(self) -> F64:
        """Return the plain means; zero of arms without rewards."""
        return _means(self.sums[: self.count, 0])

    def lifetime(self) -> tuple[F64, F64, F64]:
        """Return number, mean and Σ (x − mean)² of all rewards that were ever learned, of each arm."""
        sums = (self.sums if self.all_sums is None else self.all_sums)[: self.count, 0]
        return sums[:, COUNT].copy(), _means(sums), sums[:, SPREAD].copy()

    # As plain data.

    def to_json(self) -> dict[str, Any]:
        """Return all of it as plain data; rows of ``table`` are count, mean, sum, lost and spread, then the columns."""
        if self.estimator.weighs:
            self._weigh()  # else the means are those of the last decision, if that was made here
        plain = [self.statistic(COUNT), self.row(MEAN), *(self.statistic(which) for which in (SUM, LOST, SPREAD))]
        state = {
            "told": self.learned,
            "total": self.total,
            "table": np.array([*plain, *self.table[MEMORY:, : self.count]]).tolist(),
            "recent": [[*old[:3], *old.added] for old in self.recent],
        }
        if self.all_sums is not None:
            state["ever"] = self.all_sums[: self.count, 0].tolist()
        if self.largest:
            state["largest"] = self.largest_as_json()
        if self.estimator.size:
            state["pulls"] = self.row(PULLS).tolist()
            state["kept"] = [self.estimator.to_json(row[0, OWN:]) for row in self.sums[: self.count]]
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take what `to_json` gave, of as many arms as there are, after a look at all of it."""
        learned = check_count("told", state["told"], least=0)
        total = check_number("total", state["total"])
        if learned > MOST:
            raise ValueError(f"told must be at most {MOST}, got {learned}")
        all_sums = self._all_sums_from(state.get("ever"), learned)
        has_prior = all_sums is not None and not self.estimator.forgets  # pulls that are not rewards
        table = self._table_from(state["table"], total, None if has_prior else learned)
        counts = table[0]
        estimator_sums = self._estimator_sums_from(state, counts)
        pulls = check_row("pulls", state.get("pulls", counts.tolist()), self.count)
        if (pulls < 0).any():
            raise ValueError(f"pulls must not be negative, got {pulls.tolist()}")
        self.recent = self._recent_from(state["recent"], learned, counts)
        self.learned = learned
        self.total = total
        self.restore_largest(state.get("largest", []))
        if all_sums is not None:
            self.all_sums = np.zeros((self.sums.shape[0], 1, OWN))
            self.all_sums[: self.count, 0] = all_sums
        sums = self.sums[: self.count, 0]
        sums[:, PLAIN] = table[[0, 2, 3, 4]].T
        sums[:, OWN:] = estimator_sums
        shown = self.table[:, : self.count]
        shown[PULLS] = pulls
        shown[MEAN] = table[1]
        shown[MEMORY:] = table[5:]
        shown[VARIANCE] = np.divide(table[4], counts, out=np.zeros(self.count), where=counts > 0)

    def largest_as_json(self) -> list[list[float]]:
        """Return what corrections have found, as rows of plain numbers."""
        return [[*key, *found] for key, found in self.largest.items()]

    def restore_largest(self, rows: Iterable[Sequence[Any]]) -> None:
        """Take what `largest_as_json` gave."""
        for what, arm, squares, learned in rows:
            if what not in (COUNTING, EVER) or check_count("arm", arm, least=0) >= self.count:
                raise ValueError(f"largest must be of known arms, got {rows!r:.60}")
            if not check_number("largest", squares) >= 0 or check_count("largest", learned, least=0) > self.learned:
                raise ValueError(f"largest must be squares of at most {self.learned} rewards, got {rows!r:.60}")
            self.largest[what, arm] = float(squares), learned

    def _all_sums_from(self, rows: list[object] | None, learned: int) -> F64 | None:
        """Return the plain statistics of all rewards; bandits that neither forget nor have priors have none."""
        if rows is None and not self.estimator.forgets:
            return None
        found = np.zeros((self.count, OWN)) if rows is None else np.array([check_row("ever", row, OWN) for row in rows])
        if found.shape != (self.count, OWN) or (found[:, [COUNT, SPREAD]] < 0).any() or found[:, COUNT].sum() > learned:
            raise ValueError(f"ever must be statistics of {learned} rewards of {self.count} arms, got {rows!r:.60}")
        if (found[:, COUNT] % 1).any() or found[found[:, COUNT] == 0].any():
            raise ValueError(f"ever must have whole numbers of rewards, and nothing without any, got {found.tolist()}")
        check_sizes("ever", found[:, COUNT], found[:, [SUM, LOST]].T, found[:, SPREAD])
        return found

    def _table_from(self, rows: object, total: float, learned: int | None) -> F64:
        wanted = 5 + len(self.policy.columns)
        if not isinstance(rows, list) or len(rows) != wanted:
            raise ValueError(f"table must have {wanted} rows, got {rows!r:.60}")
        table = np.array([check_row("table", row, self.count) for row in rows])
        counts = table[0]
        spreads = table[4]
        if (counts < 0).any() or (spreads < 0).any() or not abs(counts.sum() - total) <= 1e-6 * total:
            raise ValueError(f"pulls and spreads must not be negative, and the pulls must be {total} in all")
        if self.estimator.discount is None and learned is not None and ((counts % 1).any() or total > learned):
            raise ValueError(f"pulls must be whole numbers, {learned} in all or fewer, got {counts.tolist()}")
        check_sizes("table", counts, table[1:4], spreads)
        self._check_means(table)
        return table

    def _check_means(self, table: F64) -> None:
        """Raise if a plain mean is not its sum over its count; an estimator of its own has other means."""
        counts = table[0]
        means = table[1]
        sums = table[2] + table[3]
        if self.estimator.learn is None and not self.estimator.weighs:
            wrong = (counts >= FORGOTTEN) & ~(np.abs(means * counts - sums) <= SAME * np.abs(sums))
            if wrong.any():
                k = int(np.argmax(wrong))
                raise ValueError(f"mean must be the sum over the count, {sums[k]} / {counts[k]}, got {means[k]}")

    def _estimator_sums_from(self, state: Mapping[str, Any], counts: F64) -> F64:
        """Return the estimator's own numbers of every arm."""
        rows = state.get("kept", [])
        if not isinstance(rows, list) or len(rows) != (self.count if self.estimator.size else 0):
            raise ValueError(f"kept must be what {self.estimator} keeps of each of {self.count} arms, got {rows!r:.60}")
        own = [self.estimator.from_json(row, count) for row, count in zip(rows, counts.tolist(), strict=False)]
        return np.array(own).reshape(self.count, -1)

    def _recent_from(self, rows: Iterable[Sequence[Any]], learned: int, counts: F64) -> deque[RecentReward]:
        recent = deque(self._recent_reward_from(row, learned) for row in rows)
        by_arm = np.bincount([one.arm for one in recent], minlength=self.count)
        window = self.estimator.window
        fits = (by_arm == counts).all() if window else self.keeps_rewards or not recent
        if not fits or len(recent) > (window or math.inf):
            raise ValueError(f"recent must be the rewards that count, got {by_arm.tolist()} by arm")
        return recent

    def _recent_reward_from(self, row: Sequence[Any], learned: int) -> RecentReward:
        number, arm, reward, *added = row
        if check_count("arm", arm, least=0) >= self.count or check_count("number", number) > learned:
            raise ValueError(f"recent must be rewards of known arms up to number {learned}, got {row!r:.60}")
        numbers = tuple(check_number("recent", value) for value in added)
        if len(numbers) != len(self.policy.columns):
            raise ValueError(f"recent must have what each column gained, got {row!r:.60}")
        return RecentReward(int(number), int(arm), check_reward(reward), numbers)


def _means(sums: F64) -> F64:
    """Return the means of rows of plain statistics; zero without rewards."""
    counts = sums[:, COUNT]
    return np.divide(sums[:, SUM] + sums[:, LOST], counts, out=np.zeros(counts.size), where=counts > 0)


def check_reward(reward: object) -> float:
    """Return ``reward`` as a number whose square is finite by far; true and false are 1 and 0."""
    if type(reward) is float and -LARGEST <= reward <= LARGEST:  # by far the most, and the questions below cost time
        return reward
    if isinstance(reward, bool | np.bool_):
        return float(reward)
    number = check_number("reward", reward)
    if abs(number) > LARGEST:
        raise WrongValue("reward", f"must be at most {LARGEST:g} in size, got {number}", code="out_of_range")
    return number


def check_sizes(name: str, counts: F64, sums: F64, spreads: F64) -> None:
    """Raise if statistics cannot be those of rewards that can be learned."""
    largest = LARGEST * np.maximum(counts, 1)
    if (np.abs(sums) > largest).any() or (spreads > 4 * LARGEST * largest).any():
        raise ValueError(f"{name} must be sums of rewards of at most {LARGEST:g} in size, got {sums.tolist()!r:.60}")


def check_row(name: str, values: object, arms: int) -> F64:
    """Return a finite number for each arm."""
    if not isinstance(values, list) or len(values) != arms:
        raise ValueError(f"{name} must have lists of {arms} numbers, got {values!r:.60}")
    return np.array([check_number(name, value) for value in values], dtype=float)
