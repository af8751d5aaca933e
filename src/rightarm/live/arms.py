"""What is known of the arms of a live bandit."""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from rightarm.errors import WrongType, WrongValue
from rightarm.estimators.compiled import GAP_VARIANCE, MEAN, MEMORY, PULLS, VARIANCE, live_estimator
from rightarm.estimators.estimator import NEGLIGIBLE
from rightarm.estimators.statistics import COUNT, LOST, LOST_DIGITS, OWN, SPREAD, SUM, correct_reward, count_reward
from rightarm.formula import check_count, check_number
from rightarm.propensity import score_law
from rightarm.scores.inputs import gap_variances
from rightarm.scores.live import live_policy
from rightarm.scores.policy import Policy
from rightarm.scores.rewards import LARGEST
from rightarm.scores.rules import FORGOTTEN, draw, mix, share_untried
from rightarm.types import F64, I64

__all__ = ["Arms", "Law", "check_reward", "draw"]

MOST = 2**53  # rewards; a float counts no further
COUNTING, EVER = 0, 1  # sums of rewards that count, and of all that ever came
SAME = 1e-6  # relative: discounting rounds counts and sums each time, not means


class Told(NamedTuple):
    """A reward that can still be forgotten, and what it added to the columns of its arm."""

    number: int
    arm: int
    reward: float
    added: tuple[float, ...]


class Lesson(NamedTuple):
    """A reward to be learned: of an arm that was chosen with a propensity, in a context if the policy looks at any."""

    arm: int
    reward: float
    propensity: float
    context: Any = None


class Law(NamedTuple):
    """The probabilities of some arms in one state, and their running sums."""

    members: I64
    chance: F64
    heights: F64
    settled: bool
    """Whether it lasts until something is learned; not so while an arm has no reward yet."""
    error: float = 0.0
    """By how much the policy's own probabilities may differ, where they are estimated."""


class Arms:
    """What is known of all arms: what formulas see of each, and the statistics it is made of; arms go by their index.

    ``discount`` and ``window`` are short forms for an estimator that forgets. The round that formulas see is one more
    than the rewards that count, and what the policy remembers besides is forgotten as the rewards are: a column is the
    sum of what the rewards that count have added to it.
    """

    def __init__(self, policy: Policy, discount: float | None = None, window: int | None = None) -> None:
        if not isinstance(policy, Policy):
            hint = "; call it with its parameters first" if callable(policy) else ""
            raise WrongType("policy", f"must be a policy such as UCB(C=0.5), got {policy!r}{hint}")
        self.policy, self.estimator = policy, policy.estimator.forgetting(discount, window)
        self.discount = None if discount is None else self.estimator.discount
        self.window = None if window is None else self.estimator.window
        policy.check_forgetting(self.estimator)
        self.live = live_policy(policy)
        if not self.estimator.asks_context:  # such an estimator has a class of its own, `ContextArms`
            self.estimates = live_estimator(self.estimator)
        self.chances = score_law(policy.stated_law[0]).keeping()
        self.fading = self.estimator.discount or 1.0  # the factor by which all count less after a reward
        self.keeps_rewards = self.estimator.longest > 0  # one by one, while they count
        self.remembers, self.unsure = bool(policy.columns), policy.asks_gap_variance
        self.count = self.told = 0
        self.total = 0.0  # rewards that count, all arms together
        self.table: F64 = np.zeros((MEMORY + len(policy.columns), 0))  # what formulas see
        self.kept: F64 = np.zeros((0, 1, OWN + self.estimator.size))  # what it is made of: a row for each arm
        self.recent: deque[Told] = deque()
        # Of all rewards ever learned, where that is not what is kept above: a row of plain statistics for each arm.
        self.ever: F64 | None = np.zeros((0, 1, OWN)) if self.estimator.forgets else None
        # How large sums of squares were that corrections found, and after how many rewards: by what it is (COUNTING or
        # EVER) and arm. Digits of smaller ones are lost until all is learned again.
        self.largest: dict[tuple[int, int], tuple[float, int]] = {}
        self._mix = mix.compiled
        self._weighs = self.estimator.weighs
        if self.estimator.forgets:
            count_reward(np.zeros((1, 1, OWN)), 0, 0, 0.0)  # which compiles it
        self._scratch: tuple[F64, F64, F64] = (np.empty(0), np.empty(0), np.empty(0))

    def add(self) -> None:
        """One arm more, of which nothing is known."""
        rows, room = self.table.shape
        if self.count == room:
            more = max(8, room)
            self.table = np.hstack([self.table, np.zeros((rows, more))])
            self.kept = np.vstack([self.kept, np.zeros((more, *self.kept.shape[1:]))])
            if self.ever is not None:
                self.ever = np.vstack([self.ever, np.zeros((more, 1, OWN))])
        self.count += 1

    def check_prior(self) -> None:
        """Raise, with the reason, if an arm cannot start with rewards that were never told."""
        if self.remembers or self.estimator.size or self.estimator.weighs or self.estimator.window is not None:
            raise WrongValue("prior", f"needs a policy that keeps sums of rewards, got {self.policy!r}")

    def start(self, arm: int, mean: float, pulls: float, variance: float) -> None:
        """Let a new arm start as if it had had so many rewards of this mean and variance."""
        self.check_prior()
        if self.ever is None:
            self.ever = self.kept[:, :, :OWN].copy()
        row = self.kept[arm, 0]
        row[COUNT], row[SUM], row[LOST], row[SPREAD] = pulls, pulls * mean, 0.0, pulls * variance
        self.table[PULLS, arm], self.table[MEAN, arm], self.table[VARIANCE, arm] = pulls, mean, variance
        self.total += pulls

    # Learning.

    def learn(self, arm: int, reward: float, propensity: float, context: Any = None) -> None:
        """Take a reward of an arm, which was chosen with ``propensity``, in a context if the policy looks at any."""
        t = self.total + 1
        if self.ever is not None:
            count_reward(self.ever, arm, 0, reward)
        self.estimates.learn(self.table, self.kept, arm, reward, self.fading, self.estimates.numbers)
        self.told += 1
        self.total = self.total * self.fading + 1
        if self.keeps_rewards:
            self._keep(arm, reward, propensity, t)
        elif self.remembers:
            self._remember(arm, reward, propensity, t)

    def _remember(self, arm: int, reward: float, propensity: float, t: float) -> None:
        self.live.lesson(t, self.table, arm, reward, propensity, float(self.count), self.live.numbers)

    def _keep(self, arm: int, reward: float, propensity: float, t: float) -> None:
        """Keep a reward while it counts, with what it adds to the columns, and leave out what counts no more."""
        self.recent.append(Told(self.told, arm, reward, ()))
        if self.remembers:
            if self.estimator.weighs:
                self._weigh()
            before = self.table[MEMORY:, arm].copy()
            self._remember(arm, reward, propensity, t)
            self.recent[-1] = Told(self.told, arm, reward, tuple((self.table[MEMORY:, arm] - before).tolist()))
        while self._weight(self.recent[0]) < NEGLIGIBLE:
            self.recent.popleft()
        window = self.estimator.window
        if window is not None and len(self.recent) > window:
            oldest = self.recent.popleft()
            added = np.array(oldest.added)
            numbers = self.estimates.numbers
            again = self.estimates.forget(self.table, self.kept, oldest.arm, oldest.reward, added, numbers)
            self.total -= 1
            if again or self.told % window == 0:
                self._sum_again()

    def _weight(self, old: Told) -> float:
        return float(self.fading ** (self.told - old.number))

    def _sum_again(self) -> None:
        """Sum all rewards that count anew: once in a window, against rounding, and when a very large one has left."""
        self.table[:], self.kept[:] = 0.0, 0.0
        for _, arm, reward, added in self.recent:
            self.estimates.learn(self.table, self.kept, arm, reward, 1.0, self.estimates.numbers)
            self.table[MEMORY:, arm] += added

    def _weigh(self) -> None:
        """The means of an estimator that looks at all rewards that count."""
        numbers = np.array([told[:3] for told in self.recent]).reshape(-1, 3)
        weights = self.fading ** (self.told - numbers[:, 0])
        arms, rewards = numbers[:, 1].astype(np.int64), numbers[:, 2].copy()
        self.estimates.weigh(arms, rewards, weights, self.estimates.numbers, self.table[MEAN][:, None])

    def rehearse(self, arm: int, reward: float, propensity: float, context: Any) -> None:
        """Learn a reward, and raise if that left a column that is not a number: to be called on a `twin`."""
        self.learn(arm, reward, propensity, context)
        columns = dict(zip(self.policy.columns, self.table[MEMORY:, arm].tolist(), strict=True))
        if not all(map(math.isfinite, columns.values())):
            what = f"must be one that {self.policy!r} can learn: its columns would become {columns}, got {reward}"
            raise WrongValue("reward", what)

    def twin(self) -> Self:
        """A copy to try things on."""
        twin = copy.copy(self)
        twin.table, twin.kept, twin.recent = self.table.copy(), self.kept.copy(), self.recent.copy()
        twin.ever, twin.largest = None if self.ever is None else self.ever.copy(), self.largest.copy()
        return twin

    def rescale(self, factor: float, shift: float) -> None:
        """Make of all rewards factor · reward + shift."""
        if self.remembers or self.estimator.size:
            raise ValueError(f"what {self.policy!r} has learned cannot be scaled to another range of rewards")
        for kept in (self.kept,) if self.ever is None else (self.kept, self.ever):
            kept[:, :, SUM] = factor * kept[:, :, SUM] + shift * kept[:, :, COUNT]
            kept[:, :, LOST] *= factor
            kept[:, :, SPREAD] *= factor**2
        counts, sums = self.kept[:, 0, COUNT], self.kept[:, 0, SUM] + self.kept[:, 0, LOST]
        self.table[MEAN] = np.divide(sums, counts, out=np.zeros(counts.size), where=counts > 0)
        self.table[VARIANCE] *= factor**2
        self.recent = deque(told._replace(reward=factor * told.reward + shift) for told in self.recent)
        self.largest = {key: (factor**2 * squares, told) for key, (squares, told) in self.largest.items()}

    def within(self, low: float, high: float) -> bool:
        """Whether the means of all arms are between two numbers: of all rewards, and of what counts, with priors."""
        counts, means, _ = self.lifetime()
        counting = self.statistic(COUNT), self.means(), SAME  # discounting rounds the sums each time
        for n, mean, slack in ((counts, means, 1e-9), counting):
            edge = slack * (high - low)
            if ((n > 0) & ~((mean >= low - edge) & (mean <= high + edge))).any():
                return False
        return True

    # Taking back.

    def check_correction(self) -> None:
        """Raise, with the reason, if a reward that was learned cannot be replaced by another."""
        if self.remembers:
            columns = ", ".join(self.policy.columns)
            what = f"must stay as it was: {self.policy!r} cannot correct a reward: {columns} cannot be taken back"
            raise WrongValue("reward", what, code="not_correctable")

    def correct(self, number: int, before: float, after: Lesson) -> bool:
        """Replace the ``number``-th reward that was learned, as if ``after`` had come in the place of ``before``.

        False if that takes more digits than the sums have left, or if they are no sums: see `learn_again`.
        """
        if self.estimator.size:
            return False
        arm, age, sound = after.arm, self.told - number, True
        if self.ever is not None:
            found = correct_reward(self.ever, arm, 0, before, after.reward, 1.0, self._largest(EVER, arm))
            sound = self._found(EVER, arm, found)
        if self.keeps_rewards:
            place = len(self.recent) - 1 - age
            if place < 0:
                return sound  # it counts no more
            self.recent[place] = self.recent[place]._replace(reward=after.reward)
        if self.estimator.window is not None:
            self._sum_again()
        elif self.kept.item(arm, 0, COUNT) >= FORGOTTEN:
            weight, largest = self.fading**age, self._largest(COUNTING, arm)
            if self.fading < 1.0:  # each reward rounds all sums anew, in proportion to Σ x²
                row, mean = self.kept[arm, 0], self.means()[arm]
                largest = max(largest, (row[SPREAD] + row[COUNT] * mean * mean).item())
            rewards, numbers = (before, after.reward), self.estimates.numbers
            found = self.estimates.correct(self.table, self.kept, arm, *rewards, weight, largest, numbers)
            sound = self._found(COUNTING, arm, found) and sound
        return sound

    def _largest(self, what: int, arm: int) -> float:
        """The largest sum of squares that corrections have found, as far as it counts."""
        squares, told = self.largest.get((what, arm), (0.0, self.told))
        return squares if what == EVER else float(squares * self.fading ** (self.told - told))

    def _found(self, what: int, arm: int, squares: float) -> bool:
        """Keep how large a sum of squares was that a correction found; False if digits were lost."""
        if squares == LOST_DIGITS:
            return False
        self.largest[what, arm] = squares, self.told
        return True

    def is_made_of(self, arm: int, rewards: int) -> bool:
        """Whether so many rewards, of an arm or of all if it `mixes`, are all from which what is known was made."""
        if not self.mixes:
            return rewards == self.kept.item(arm, 0, COUNT)
        fading = self.fading
        total = (1 - fading**rewards) / (1 - fading) if fading < 1.0 else rewards  # without a prior
        known = self.estimator.window is not None or math.isclose(total, self.total, rel_tol=1e-9)
        return rewards == self.told and known

    def learn_again(self, arm: int, lessons: Iterable[Lesson]) -> None:
        """Make what is known of an arm, or of all if it `mixes`, anew from all their rewards in their order."""
        fresh = type(self)(self.policy, self.discount, self.window)
        for _ in range(self.count):
            fresh.add()
        for one in lessons:
            fresh.learn(*one)
        self.take_over(fresh, slice(None) if self.mixes else arm)
        self.largest = {key: found for key, found in self.largest.items() if not self.mixes and key[1] != arm}

    @property
    def mixes(self) -> bool:
        """Whether a reward changes what is known of other arms than its own."""
        return self.estimator.forgets

    def take_over(self, other: Self, arms: Any) -> None:
        """Know what another one has learned of some arms."""
        self.table[:, arms], self.kept[arms] = other.table[:, arms], other.kept[arms]
        if self.ever is not None:
            self.ever[arms] = (other.kept[:, :, :OWN] if other.ever is None else other.ever)[arms]
        if self.keeps_rewards:
            self.recent = other.recent

    # Contexts.

    def notice(self, seen: Any) -> None:
        """A decision was made in this context; nothing to a policy that looks at none."""

    def check_context(self, context: Any) -> None:
        """Raise if what is kept of a decision's context is not what is learned from."""

    # Deciding.

    def look(self, members: I64, seen: Any) -> None:
        """Have the table show what formulas see of the arms now."""
        if self._weighs:
            self._weigh()
        if self.unsure:
            pulls, means = self.table[PULLS, members], self.table[MEAN, members]
            self.table[GAP_VARIANCE, members] = gap_variances(pulls, means)

    def law(self, members: I64, waiting: I64, floor: float = 0.0, seen: Any = None) -> Law:
        """The exact probability of each of some arms, ``floor`` at least.

        ``waiting`` is the number of decisions of every arm that wait for a reward: see `share_untried`. ``seen`` is the
        context, if the policy looks at any.
        """
        count = members.size
        if count != self._scratch[0].size:
            self._scratch = np.empty(count), np.empty(count), np.empty(count)
        first, second, explored = self._scratch
        self.look(members, seen)
        chance, heights, error = np.empty(count), np.empty(count), 0.0
        free = self.live.law(self.total + 1, self.table, members, self.live.numbers, first, second, explored)
        if free:
            found, error = self.find(members, seen, first, second, chance)
            if found <= 0:
                self._complain(found, first, second)
        else:
            rest = share_untried(self.table[PULLS], members, waiting, chance)
            if rest:
                known = self.table[PULLS, members] >= FORGOTTEN
                law = self.law(members[known], waiting, seen=seen)
                chance[known], error = rest * law.chance, law.error
            explored = np.zeros(count)
        if not self._mix(chance, explored, floor, heights):
            these = f"{chance.tolist()}, explored {explored.tolist()}"
            raise ValueError(f"{self.policy!r}: what it chooses or explores by are not probabilities: {these}")
        return Law(members, chance, heights, free, error)

    def find(self, members: I64, seen: Any, first: F64, second: F64, chance: F64) -> tuple[int, float]:
        """Find the chances of some arms from the law of their scores; what is wrong, and how far off they may be."""
        return self.chances(first, second, chance), 0.0

    def scores(self, members: I64) -> tuple[F64, F64] | None:
        """The location and the scale of some arms' scores, by what the table shows after `law`; None without such."""
        if self.policy.stated_law[1] is not self.policy:
            return None
        first, second, explored = (np.empty(members.size) for _ in range(3))
        free = self.live.law(self.total + 1, self.table, members, self.live.numbers, first, second, explored)
        return (first, second) if free else None

    def _complain(self, found: int, first: F64, second: F64) -> None:
        try:
            score_law(self.policy.stated_law[0]).check(found, first, second)
        except ValueError as error:
            raise ValueError(f"{self.policy!r}: the scores have no law in this state: {error}") from None

    # What is known.

    def shown(self) -> tuple[F64, F64]:
        """The pulls and the estimate of every arm, for tables."""
        return self.row(PULLS), self.row(MEAN)

    def row(self, which: int) -> F64:
        """A row of the table."""
        return self.table[which, : self.count]

    def statistic(self, which: int) -> F64:
        """One of the plain statistics of every arm."""
        return self.kept[: self.count, 0, which]

    def means(self) -> F64:
        """The plain means; zero where nothing is known."""
        counts, sums = self.statistic(COUNT), self.statistic(SUM) + self.statistic(LOST)
        return np.divide(sums, counts, out=np.zeros(self.count), where=counts > 0)

    def lifetime(self) -> tuple[F64, F64, F64]:
        """Of all rewards that were ever learned, of each arm: their number, mean, and Σ (x − mean)²."""
        kept = (self.kept if self.ever is None else self.ever)[: self.count, 0]
        counts, sums = kept[:, COUNT].copy(), kept[:, SUM] + kept[:, LOST]
        return counts, np.divide(sums, counts, out=np.zeros(self.count), where=counts > 0), kept[:, SPREAD].copy()

    # As plain data.

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data; rows of ``table`` are count, mean, sum, lost and spread, then the columns."""
        if self.estimator.weighs:
            self._weigh()  # else the means are those of the last decision, if that was made here
        plain = [self.statistic(COUNT), self.row(MEAN), *(self.statistic(which) for which in (SUM, LOST, SPREAD))]
        state = {
            "told": self.told,
            "total": self.total,
            "table": np.array([*plain, *self.table[MEMORY:, : self.count]]).tolist(),
            "recent": [[*told[:3], *told.added] for told in self.recent],
        }
        if self.ever is not None:
            state["ever"] = self.ever[: self.count, 0].tolist()
        if self.largest:
            state["largest"] = self.largest_as_json()
        if self.estimator.size:
            state["pulls"] = self.row(PULLS).tolist()
            state["kept"] = [self.estimator.to_json(row[0, OWN:]) for row in self.kept[: self.count]]
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take what `to_json` gave, of as many arms as there are, after a look at all of it."""
        told, total = check_count("told", state["told"], least=0), check_number("total", state["total"])
        if told > MOST:
            raise ValueError(f"told must be at most {MOST}, got {told}")
        ever = self._ever_from(state.get("ever"), told)
        primed = ever is not None and not self.estimator.forgets  # pulls that are not rewards
        table = self._table_from(state["table"], total, None if primed else told)
        counts, means, spreads = table[0], table[1], table[4]
        kept, pulls = (
            self._kept_from(state, counts),
            check_row("pulls", state.get("pulls", counts.tolist()), self.count),
        )
        if (pulls < 0).any():
            raise ValueError(f"pulls must not be negative, got {pulls.tolist()}")
        recent = [self._told_from(one, told) for one in state["recent"]]
        by_arm = np.bincount([one.arm for one in recent], minlength=self.count)
        window = self.estimator.window
        fits = (by_arm == counts).all() if window else self.keeps_rewards or not recent
        if not fits or len(recent) > (window or math.inf):
            raise ValueError(f"recent must be the rewards that count, got {by_arm.tolist()} by arm")
        self.told, self.total, self.recent = told, total, deque(recent)
        self.restore_largest(state.get("largest", []))
        if ever is not None:
            self.ever = np.zeros((self.kept.shape[0], 1, OWN))
            self.ever[: self.count, 0] = ever
        own, seen = self.kept[: self.count, 0], self.table[:, : self.count]
        own[:, [COUNT, SUM, LOST, SPREAD]], own[:, OWN:] = table[[0, 2, 3, 4]].T, kept
        seen[PULLS], seen[MEAN], seen[MEMORY:] = pulls, means, table[5:]
        seen[VARIANCE] = np.divide(spreads, counts, out=np.zeros(self.count), where=counts > 0)

    def largest_as_json(self) -> list[list[float]]:
        """What corrections have found, as rows of plain numbers."""
        return [[*key, *found] for key, found in self.largest.items()]

    def restore_largest(self, rows: Any) -> None:
        """Take what `largest_as_json` gave."""
        for what, arm, squares, told in rows:
            if what not in (COUNTING, EVER) or check_count("arm", arm, least=0) >= self.count:
                raise ValueError(f"largest must be of known arms, got {rows!r:.60}")
            if not check_number("largest", squares) >= 0 or check_count("largest", told, least=0) > self.told:
                raise ValueError(f"largest must be squares of at most {self.told} rewards, got {rows!r:.60}")
            self.largest[what, arm] = float(squares), told

    def _ever_from(self, rows: Any, told: int) -> F64 | None:
        """Return the plain statistics of all rewards; bandits that neither forget nor have priors have none."""
        if rows is None and not self.estimator.forgets:
            return None
        ever = np.zeros((self.count, OWN)) if rows is None else np.array([check_row("ever", row, OWN) for row in rows])
        if ever.shape != (self.count, OWN) or (ever[:, [COUNT, SPREAD]] < 0).any() or ever[:, COUNT].sum() > told:
            raise ValueError(f"ever must be statistics of {told} rewards of {self.count} arms, got {rows!r:.60}")
        if (ever[:, COUNT] % 1).any() or ever[ever[:, COUNT] == 0].any():
            raise ValueError(f"ever must have whole numbers of rewards, and nothing without any, got {ever.tolist()}")
        check_sizes("ever", ever[:, COUNT], ever[:, [SUM, LOST]].T, ever[:, SPREAD])
        return ever

    def _table_from(self, rows: Any, total: float, told: int | None) -> F64:
        wanted = 5 + len(self.policy.columns)
        if not isinstance(rows, list) or len(rows) != wanted:
            raise ValueError(f"table must have {wanted} rows, got {rows!r:.60}")
        table = np.array([check_row("table", row, self.count) for row in rows])
        counts, spreads = table[0], table[4]
        if (counts < 0).any() or (spreads < 0).any() or not abs(counts.sum() - total) <= 1e-6 * total:
            raise ValueError(f"pulls and spreads must not be negative, and the pulls must be {total} in all")
        if self.estimator.discount is None and told is not None and ((counts % 1).any() or total > told):
            raise ValueError(f"pulls must be whole numbers, {told} in all or fewer, got {counts.tolist()}")
        check_sizes("table", counts, table[1:4], spreads)
        self._check_means(table)
        return table

    def _check_means(self, table: F64) -> None:
        """Raise if a plain mean is not its sum over its count; an estimator of its own has other means."""
        counts, means, sums = table[0], table[1], table[2] + table[3]
        seen = counts >= FORGOTTEN
        if self.estimator.learn is None and not self.estimator.weighs:
            wrong = seen & ~(np.abs(means * counts - sums) <= SAME * np.abs(sums))
            if wrong.any():
                k = int(np.argmax(wrong))
                raise ValueError(f"mean must be the sum over the count, {sums[k]} / {counts[k]}, got {means[k]}")

    def _kept_from(self, state: Mapping[str, Any], counts: F64) -> F64:
        """Return the estimator's own numbers of every arm."""
        rows = state.get("kept", [])
        if not isinstance(rows, list) or len(rows) != (self.count if self.estimator.size else 0):
            raise ValueError(f"kept must be what {self.estimator} keeps of each of {self.count} arms, got {rows!r:.60}")
        own = [self.estimator.from_json(row, count) for row, count in zip(rows, counts.tolist(), strict=False)]
        return np.array(own).reshape(self.count, -1)

    def _told_from(self, row: Any, told: int) -> Told:
        number, arm, reward, *added = row
        if check_count("arm", arm, least=0) >= self.count or check_count("number", number) > told:
            raise ValueError(f"recent must be rewards of known arms up to number {told}, got {row!r:.60}")
        numbers = tuple(check_number("recent", value) for value in added)
        if len(numbers) != len(self.policy.columns):
            raise ValueError(f"recent must have what each column gained, got {row!r:.60}")
        return Told(int(number), int(arm), check_reward(reward), numbers)


def check_reward(reward: Any) -> float:
    """``reward`` as a number of which the square is finite by far; true and false are 1 and 0."""
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


def check_row(name: str, values: Any, arms: int) -> F64:
    """A finite number for each arm."""
    if not isinstance(values, list) or len(values) != arms:
        raise ValueError(f"{name} must have lists of {arms} numbers, got {values!r:.60}")
    return np.array([check_number(name, value) for value in values], dtype=float)
