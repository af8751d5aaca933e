"""What is known of the arms of a live bandit."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rightarm.estimators.catoni import CatoniEstimator
from rightarm.estimators.sums import psi, two_sum
from rightarm.formula import check_count, check_number
from rightarm.formula.compile import jit
from rightarm.formula.tracing import Shifted, keeps_form
from rightarm.propensity import score_law
from rightarm.scores.live import FORGOTTEN, LOST, MEAN, MEMORY, PULLS, SPREAD, SUM, live_policy
from rightarm.scores.policy import Policy

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
MOST = 2**53  # rewards; a float counts no further
NEVER = 0  # in place of a decision's number
NEGLIGIBLE = 1e-12  # weight of a discounted reward from which on it is not kept any more
LARGEST = 1e100  # of rewards: their squares are summed


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
    """Pulls, means and spreads of all arms, and what the policy remembers besides; arms are known by their index.

    With ``discount`` every reward multiplies what was known before it: pulls, spreads and columns. With ``window`` only
    the last so many rewards count. The round that formulas see is one more than the pulls that count (Garivier and
    Moulines, On upper-confidence bound policies for switching bandit problems, 2011).
    """

    def __init__(self, policy: Policy, discount: float | None = None, window: int | None = None) -> None:
        if not isinstance(policy, Policy):
            hint = "; call it with its parameters first" if callable(policy) else ""
            raise TypeError(f"policy must be a policy such as UCB(C=0.5), got {policy!r}{hint}")
        if discount is not None and window is not None:
            raise ValueError(f"discount and window exclude each other, got {discount} and {window}")
        self.policy, self.discount = policy, None if discount is None else check_number("discount", discount)
        if self.discount is not None and not 0 < self.discount < 1:
            raise ValueError(f"discount must be between 0 and 1, got {discount}")
        self.window = None if window is None else check_count("window", window)
        if discount or window:
            _check_sums(policy, "discount" if window is None else "window")
        self.live, self.catoni = live_policy(policy), policy.estimator == "catoni"
        self.forgets = discount is not None or window is not None
        self.keeps_rewards = window is not None or (self.forgets and self.catoni)  # one by one, while they count
        self.remembers = bool(policy.columns)
        self.count = self.told = 0
        self.total = 0.0  # pulls that count, all arms together
        self.table: F64 = np.zeros((MEMORY + len(policy.columns), 0))
        self.robust: list[CatoniEstimator] = []
        self.recent: deque[Told] = deque()
        self._scratch: tuple[F64, F64, F64] = (np.empty(0), np.empty(0), np.empty(0))

    def add(self) -> None:
        """One arm more, of which nothing is known."""
        rows, room = self.table.shape
        if self.count == room:
            self.table = np.hstack([self.table, np.zeros((rows, max(8, room)))])
        self.count += 1
        if self.catoni and not self.forgets:
            self.robust.append(CatoniEstimator(self.policy.values["C"]))

    # Learning.

    def check(self, reward: Any) -> float:
        """``reward``, if it can be learned."""
        value = check_reward(reward)
        if self.catoni and not math.isfinite(value / self.policy.values["C"]):
            raise ValueError(f"reward must be a finite multiple of C = {self.policy.values['C']}, got {value}")
        return value

    def learn(self, arm: int, reward: float, propensity: float) -> None:
        """Take a reward of an arm, which was chosen with ``propensity``."""
        t = self.total + 1
        count_reward(self.table, arm, reward, self.discount or 1.0)
        self.told += 1
        self.total = self.total * (self.discount or 1.0) + 1
        if self.robust:
            self.robust[arm].push(reward)
            self.table[MEAN, arm] = self.robust[arm].value
        before = self.table[MEMORY:, arm].tolist() if self.keeps_rewards else []
        if self.remembers:
            self.live.lesson(t, self.table, arm, reward, propensity, float(self.count), self.live.numbers)
        if self.keeps_rewards:
            added = (self.table[MEMORY:, arm] - before).tolist()
            self.recent.append(Told(self.told, arm, reward, tuple(added)))
            self._forget()

    def _forget(self) -> None:
        """Leave out what counts no more; once in a window all is summed anew, so that no rounding adds up."""
        while self.discount is not None and self._weight(self.recent[0]) < NEGLIGIBLE:
            self.recent.popleft()
        if self.window is not None and len(self.recent) > self.window:
            oldest = self.recent.popleft()
            leave_out(self.table, oldest.arm, oldest.reward, np.array(oldest.added))
            self.total -= 1
            if self.told % self.window == 0:
                self._sum_again()

    def _weight(self, old: Told) -> float:
        return 1.0 if self.discount is None else self.discount ** (self.told - old.number)

    def _sum_again(self) -> None:
        self.table[:] = 0.0
        for _, arm, reward, added in self.recent:
            count_reward(self.table, arm, reward, 1.0)
            self.table[MEMORY:, arm] += added

    def _estimate_again(self) -> None:
        """Catoni's estimates of rewards that cease to count, by the sum as it is printed; a pass over all of them."""
        C, numbers = self.policy.values["C"], np.array([told[:3] for told in self.recent]).reshape(-1, 3)
        arms, rewards = numbers[:, 1].astype(int), numbers[:, 2]
        weights = (self.discount or 1.0) ** (self.told - numbers[:, 0])
        scale = np.sqrt(np.bincount(arms, weights, self.table.shape[1]))
        terms = weights * psi(rewards / (C * scale[arms]))
        sums = np.bincount(arms, terms, self.table.shape[1])
        self.table[MEAN] = C * np.divide(sums, scale, out=np.zeros(scale.size), where=scale > 0)

    def rehearse(self, lessons: Sequence[tuple[int, float, float]]) -> None:
        """Raise if learning arms, rewards and propensities left a column that is not a number; nothing is learned."""
        if not self.remembers or self.robust:
            return
        kept = self.table.copy(), self.told, self.total, self.recent.copy()
        try:
            for arm, reward, propensity in lessons:
                self.learn(arm, reward, propensity)
                wrong = dict(zip(self.policy.columns, self.table[MEMORY:, arm].tolist(), strict=True))
                if not all(map(math.isfinite, wrong.values())):
                    raise ValueError(f"{self.policy!r} cannot learn the reward {reward}: of it come {wrong}")
        finally:
            self.table, self.told, self.total, self.recent = kept

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
        if self.catoni and self.forgets:
            self._estimate_again()
        chance, heights = np.empty(count), np.empty(count)
        free = self.live.law(self.total + 1, self.table, members, self.live.numbers, first, second, explored)
        if free:
            found = self.live.chances(first, second, chance)
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
        unknown = self.table[PULLS, members] < FORGOTTEN
        oldest = min(np.flatnonzero(unknown).tolist(), key=lambda i: last[int(members[i])])
        before = last[int(members[oldest])]
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

    def means(self) -> F64:
        """The plain means; zero where nothing is known."""
        pulls = self.row(PULLS)
        return np.divide(self.row(SUM) + self.row(LOST), pulls, out=np.zeros(self.count), where=pulls > 0)

    def half_widths(self) -> F64:
        """Half of a 95% interval of each mean, by the normal law; infinite where nothing is known.

        An arm's variance leans on that of all arms by the weight of one reward: three equal rewards would have none.
        """
        pulls, spread = self.row(PULLS), self.row(SPREAD)
        seen = pulls > FORGOTTEN
        free = np.maximum(pulls - 1, 0.0)
        common = spread.sum() / free.sum() if free.sum() > 0 else np.inf
        variance = (spread + common) / (free + 1)
        squares = np.divide(variance, pulls, out=np.full(pulls.size, np.inf), where=seen)
        return np.asarray(1.96 * np.sqrt(squares))

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "told": self.told,
            "total": self.total,
            "table": self.table[:, : self.count].tolist(),
            "robust": [one.to_json() for one in self.robust],
            "recent": [[*told[:3], *told.added] for told in self.recent],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take what `to_json` gave, of as many arms as there are, after a look at all of it."""
        told, total = check_count("told", state["told"], least=0), check_number("total", state["total"])
        if told > MOST:
            raise ValueError(f"told must be at most {MOST}, got {told}")
        rows = state["table"]
        if not isinstance(rows, list) or len(rows) != self.table.shape[0]:
            raise ValueError(f"table must have {self.table.shape[0]} rows, got {rows!r:.60}")
        table = np.array([check_row("table", row, self.count) for row in rows])
        if (table[[PULLS, SPREAD]] < 0).any() or not abs(table[PULLS].sum() - total) <= 1e-6 * total:
            raise ValueError(f"pulls and spreads must not be negative, and the pulls must be {total} in all")
        robust = [CatoniEstimator.from_json(one) for one in state["robust"]]
        if [(one.count, one.C) for one in robust] != [
            (n, one.C) for n, one in zip(table[PULLS], self.robust, strict=False)
        ]:
            raise ValueError(f"robust must have an estimator for each of {len(self.robust)} arms, of as many rewards")
        if self.discount is None and ((table[PULLS] % 1).any() or total > told):
            raise ValueError(f"pulls must be whole numbers, {told} in all or fewer, got {table[PULLS].tolist()}")
        largest = LARGEST * np.maximum(table[PULLS], 1)
        if (np.abs(table[MEAN:SPREAD]) > largest).any() or (table[SPREAD] > 4 * LARGEST * largest).any():
            raise ValueError(f"table must be sums of rewards of at most {LARGEST:g} in size, got {rows!r:.60}")
        recent = [self._told_from(one, told) for one in state["recent"]]
        counts = np.bincount([one.arm for one in recent], minlength=self.count)
        fits = (counts == table[PULLS]).all() if self.window else self.keeps_rewards or not recent
        if not fits or len(recent) > (self.window or math.inf):
            raise ValueError(f"recent must be the rewards that count, got {counts.tolist()} by arm")
        self.told, self.total, self.robust, self.recent = told, total, robust, deque(recent)
        self.table[:, : self.count] = table

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


def _check_sums(policy: Policy, name: str) -> None:
    """Raise if a column is not a sum of what each reward adds to it: of a sum alone a part can be taken away."""
    known = {"t": 9.0, "pulls": 3.0, "mean": 0.5, "arms": 2.0, "reward": 0.5, "probability": 0.5}
    for column, lesson in policy.learn.items():
        inputs = known | dict.fromkeys(policy.columns, 0.5) | {column: Shifted()}
        if not keeps_form(lambda lesson=lesson, inputs=inputs: lesson.evaluate(inputs), Shifted):  # type: ignore[misc]
            raise ValueError(f"{name} is for statistics that are sums, which the {column!r} of {policy!r} is not")


@jit
def plain_mean(table: F64, arm: int) -> float:
    """The mean of an arm's rewards."""
    mean: float = (table[SUM, arm] + table[LOST, arm]) / table[PULLS, arm]
    return mean


@jit
def add_to_sum(table: F64, arm: int, value: float) -> None:
    """Add to the sum of rewards; compensated, for rewards such as 10¹² ± 1."""
    table[SUM, arm], lost = two_sum(table[SUM, arm], value)
    table[LOST, arm] += lost


@jit
def count_reward(table: F64, arm: int, reward: float, discount: float) -> None:
    """Count a reward. The mean is made of a sum, so that equal rewards in another order make the same mean: a tie."""
    if discount < 1.0:
        for row in (PULLS, SUM, LOST, SPREAD):
            table[row] *= discount
        table[MEMORY:] *= discount
    before = plain_mean(table, arm) if table[PULLS, arm] > 0.0 else reward
    table[PULLS, arm] += 1.0
    add_to_sum(table, arm, reward)
    table[MEAN, arm] = plain_mean(table, arm)
    table[SPREAD, arm] += max((reward - before) * (reward - table[MEAN, arm]), 0.0)  # means of equal rewards round


@jit
def leave_out(table: F64, arm: int, reward: float, added: F64) -> None:
    """The same backwards."""
    before = plain_mean(table, arm)
    table[PULLS, arm] -= 1.0
    for column in range(added.size):
        table[MEMORY + column, arm] -= added[column]
    if table[PULLS, arm] == 0.0:
        table[:, arm] = 0.0
        return
    add_to_sum(table, arm, -reward)
    table[MEAN, arm] = plain_mean(table, arm)
    table[SPREAD, arm] = max(table[SPREAD, arm] - (reward - before) * (reward - table[MEAN, arm]), 0.0)


@jit
def mix(chance: F64, explored: F64, floor: float, heights: F64) -> bool:
    """Put exploration and then the floor beneath the probabilities, and sum them up; false if they are none."""
    total, all_chances = 0.0, 0.0
    for i in range(chance.size):
        if not explored[i] >= 0.0 or not chance[i] >= 0.0:
            return False
        total += explored[i]
        all_chances += chance[i]
    if total > 1.0 + 1e-9 or not abs(all_chances - 1.0) < 1e-6:
        return False
    height = 0.0
    for i in range(chance.size):
        own = explored[i] + max(1.0 - total, 0.0) * chance[i]
        chance[i] = floor + (1.0 - chance.size * floor) * own
        height += chance[i]
        heights[i] = height
    for i in range(chance.size):
        chance[i] /= height  # which is 1 but for rounding
        heights[i] /= height
    return True


@jit
def draw(chance: F64, heights: F64, u: float) -> int:
    """The place at which the running sums pass u, which is below 1; never one of probability zero."""
    place = min(int(np.searchsorted(heights, u, side="right")), chance.size - 1)
    while chance[place] == 0.0:  # beyond the last sum, if rounding left that below 1
        place -= 1
    return place
