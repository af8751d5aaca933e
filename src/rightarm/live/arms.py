"""What is known of the arms of a live bandit."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rightarm.estimators.compiled import MEAN, MEMORY, PULLS, VARIANCE, live_estimator
from rightarm.estimators.estimator import NEGLIGIBLE
from rightarm.estimators.statistics import COUNT, LOST, OWN, SPREAD, SUM
from rightarm.formula import check_count, check_number
from rightarm.formula.compile import jit
from rightarm.propensity import score_law
from rightarm.scores.live import live_policy
from rightarm.scores.policy import Policy
from rightarm.scores.rules import FORGOTTEN, goes_first, mix
from rightarm.types import F64, I64

MOST = 2**53  # rewards; a float counts no further
NEVER = 0  # in place of a decision's number
LARGEST = 1e100  # of rewards: their squares are summed
SAME = 1e-6  # relative: discounting rounds counts and sums each time, not means


class Told(NamedTuple):
    """A reward that can still be forgotten, and what it added to the columns of its arm."""

    number: int
    arm: int
    reward: float
    added: tuple[float, ...]


class Law(NamedTuple):
    """The probabilities of some arms in one state, and their running sums."""

    members: I64
    chance: F64
    heights: F64
    settled: bool
    """Whether it lasts until something is learned; not so while an arm has no reward yet."""


class Arms:
    """What is known of all arms: what formulas see of each, and the statistics it is made of; arms go by their index.

    ``discount`` and ``window`` are short forms for an estimator that forgets. The round that formulas see is one more
    than the rewards that count, and what the policy remembers besides is forgotten as the rewards are: a column is the
    sum of what the rewards that count have added to it.
    """

    def __init__(self, policy: Policy, discount: float | None = None, window: int | None = None) -> None:
        if not isinstance(policy, Policy):
            hint = "; call it with its parameters first" if callable(policy) else ""
            raise TypeError(f"policy must be a policy such as UCB(C=0.5), got {policy!r}{hint}")
        self.policy, self.estimator = policy, policy.estimator.forgetting(discount, window)
        self.discount = None if discount is None else self.estimator.discount
        self.window = None if window is None else self.estimator.window
        policy.check_forgetting(self.estimator)
        self.live, self.estimates = live_policy(policy), live_estimator(self.estimator)
        self.chances = score_law(policy.stated_law[0]).keeping()
        self.fading = self.estimator.discount or 1.0  # the factor by which all count less after a reward
        self.keeps_rewards = self.estimator.longest > 0  # one by one, while they count
        self.remembers = bool(policy.columns)
        self.count = self.told = 0
        self.total = 0.0  # rewards that count, all arms together
        self.table: F64 = np.zeros((MEMORY + len(policy.columns), 0))  # what formulas see
        self.kept: F64 = np.zeros((0, 1, OWN + self.estimator.size))  # what it is made of: a row for each arm
        self.recent: deque[Told] = deque()
        self._scratch: tuple[F64, F64, F64] = (np.empty(0), np.empty(0), np.empty(0))

    def add(self) -> None:
        """One arm more, of which nothing is known."""
        rows, room = self.table.shape
        if self.count == room:
            more = max(8, room)
            self.table = np.hstack([self.table, np.zeros((rows, more))])
            self.kept = np.vstack([self.kept, np.zeros((more, *self.kept.shape[1:]))])
        self.count += 1

    # Learning.

    def check(self, reward: Any) -> float:
        """``reward``, if it can be learned."""
        value = check_reward(reward)
        self.estimator.check(value)
        return value

    def learn(self, arm: int, reward: float, propensity: float) -> None:
        """Take a reward of an arm, which was chosen with ``propensity``."""
        t = self.total + 1
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

    def rehearse(self, lessons: Sequence[tuple[int, float, float]]) -> None:
        """Raise if learning arms, rewards and propensities left a column that is not a number; nothing is learned."""
        if not self.remembers:
            return
        before = self.table.copy(), self.kept.copy(), self.told, self.total, self.recent.copy()
        try:
            for arm, reward, propensity in lessons:
                self.learn(arm, reward, propensity)
                wrong = dict(zip(self.policy.columns, self.table[MEMORY:, arm].tolist(), strict=True))
                if not all(map(math.isfinite, wrong.values())):
                    raise ValueError(
                        f"{self.policy!r} cannot learn the reward {reward}: its columns would become {wrong}"
                    )
        finally:
            self.table, self.kept, self.told, self.total, self.recent = before

    # Deciding.

    def law(self, members: I64, last: Sequence[int], now: int, floor: float = 0.0) -> Law:
        """The exact probability of each of some arms, ``floor`` at least, for the decision with the number ``now``.

        An arm that must be pulled before the policy's formulas can be used goes first, of several the one of which the
        ``last`` decision is the longest ago. If each of them was chosen within as many decisions as there are arms,
        its reward is awaited meanwhile, and the policy chooses among the others.
        """
        count = members.size
        if count != self._scratch[0].size:
            self._scratch = np.empty(count), np.empty(count), np.empty(count)
        first, second, explored = self._scratch
        if self.estimator.weighs:
            self._weigh()
        chance, heights = np.empty(count), np.empty(count)
        free = self.live.law(self.total + 1, self.table, members, self.live.numbers, first, second, explored)
        if free:
            found = self.chances(first, second, chance)
            if found <= 0:
                self._complain(found, first, second)
        else:
            self._choose_first(members, last, now, chance)
            explored[:] = 0.0
        if not mix(chance, explored, floor, heights):
            found = f"{chance.tolist()}, explored {explored.tolist()}"
            raise ValueError(f"{self.policy!r}: what it chooses or explores by are not probabilities: {found}")
        return Law(members, chance, heights, free)

    def _choose_first(self, members: I64, last: Sequence[int], now: int, chance: F64) -> None:
        """The probabilities while some arms have no reward."""
        pulls, before_now = self.table[PULLS, members], [last[i] for i in members.tolist()]
        oldest, unknown = goes_first(pulls, before_now), pulls < FORGOTTEN
        before = before_now[oldest]
        chance[:] = 0.0
        if unknown.all() or before == NEVER or now - before >= members.size:
            chance[oldest] = 1.0
        else:
            chance[~unknown] = self.law(members[~unknown], last, now).chance

    def _complain(self, found: int, first: F64, second: F64) -> None:
        try:
            score_law(self.policy.stated_law[0]).check(found, first, second)
        except ValueError as error:
            raise ValueError(f"{self.policy!r}: the scores have no law in this state: {error}") from None

    # What is known.

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

    def half_widths(self) -> F64:
        """Half of a 95% interval of each mean, by the normal law; infinite where nothing is known.

        An arm's variance is shrunk towards the pooled variance, with weight one reward: three equal rewards would have
        none.
        """
        counts, spread = self.statistic(COUNT), self.statistic(SPREAD)
        seen = counts > FORGOTTEN
        free = np.maximum(counts - 1, 0.0)
        common = spread.sum() / free.sum() if free.sum() > 0 else np.inf
        variance = (spread + common) / (free + 1)
        squares = np.divide(variance, counts, out=np.full(counts.size, np.inf), where=seen)
        return np.asarray(1.96 * np.sqrt(squares))

    # As plain data.

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data; rows of ``table`` are count, mean, sum, lost and spread, then the columns."""
        plain = [self.statistic(COUNT), self.row(MEAN), *(self.statistic(which) for which in (SUM, LOST, SPREAD))]
        state = {
            "told": self.told,
            "total": self.total,
            "table": np.array([*plain, *self.table[MEMORY:, : self.count]]).tolist(),
            "recent": [[*told[:3], *told.added] for told in self.recent],
        }
        if self.estimator.size:
            state["pulls"] = self.row(PULLS).tolist()
            state["kept"] = [self.estimator.to_json(row[0, OWN:]) for row in self.kept[: self.count]]
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take what `to_json` gave, of as many arms as there are, after a look at all of it."""
        told, total = check_count("told", state["told"], least=0), check_number("total", state["total"])
        if told > MOST:
            raise ValueError(f"told must be at most {MOST}, got {told}")
        table = self._table_from(state["table"], told, total)
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
        own, seen = self.kept[: self.count, 0], self.table[:, : self.count]
        own[:, [COUNT, SUM, LOST, SPREAD]], own[:, OWN:] = table[[0, 2, 3, 4]].T, kept
        seen[PULLS], seen[MEAN], seen[MEMORY:] = pulls, means, table[5:]
        seen[VARIANCE] = np.divide(spreads, counts, out=np.zeros(self.count), where=counts > 0)

    def _table_from(self, rows: Any, told: int, total: float) -> F64:
        wanted = 5 + len(self.policy.columns)
        if not isinstance(rows, list) or len(rows) != wanted:
            raise ValueError(f"table must have {wanted} rows, got {rows!r:.60}")
        table = np.array([check_row("table", row, self.count) for row in rows])
        counts, spreads = table[0], table[4]
        if (counts < 0).any() or (spreads < 0).any() or not abs(counts.sum() - total) <= 1e-6 * total:
            raise ValueError(f"pulls and spreads must not be negative, and the pulls must be {total} in all")
        if self.estimator.discount is None and ((counts % 1).any() or total > told):
            raise ValueError(f"pulls must be whole numbers, {told} in all or fewer, got {counts.tolist()}")
        largest = LARGEST * np.maximum(counts, 1)
        if (np.abs(table[1:4]) > largest).any() or (spreads > 4 * LARGEST * largest).any():
            raise ValueError(f"table must be sums of rewards of at most {LARGEST:g} in size, got {rows!r:.60}")
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
        """The estimator's own numbers of every arm; in files of 0.1.0 they are called robust."""
        rows = state.get("kept", state.get("robust", []))
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
        raise ValueError(f"reward must be at most {LARGEST:g} in size, got {number}")
    return number


def check_row(name: str, values: Any, arms: int) -> F64:
    """A finite number for each arm."""
    if not isinstance(values, list) or len(values) != arms:
        raise ValueError(f"{name} must have lists of {arms} numbers, got {values!r:.60}")
    return np.array([check_number(name, value) for value in values], dtype=float)


@jit
def draw(chance: F64, heights: F64, u: float) -> int:
    """The place at which the running sums pass u, which is below 1; never one of probability zero."""
    place = min(int(np.searchsorted(heights, u, side="right")), chance.size - 1)
    while chance[place] == 0.0:  # beyond the last sum, if rounding left that below 1
        place -= 1
    return place
