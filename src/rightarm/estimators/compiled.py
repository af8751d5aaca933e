"""Estimators compiled: what a reward changes, for many replications side by side and for one live bandit.

In simulation every array is arms × lanes (a lane is a replication), and an estimator stands behind function pointers of
fixed signatures, so that the loop over rounds is compiled once. The plain mean alone, `average`, is part of that loop,
because it is what most simulations are about; its sums are vectors over lanes, not rows of numbers.
"""

from __future__ import annotations

import functools
import types
from typing import Any, NamedTuple

import numpy as np

from rightarm.estimators.estimator import Estimator
from rightarm.estimators.statistics import (
    COUNT,
    OWN,
    SUM,
    correct_reward,
    count_reward,
    fade,
    leave_out,
    mean_of,
    plain_mean,
    two_sum,
)
from rightarm.estimators.statistics import variance as variance_of
from rightarm.formula import define
from rightarm.formula.compile import function, jit, pointer, uncounted
from rightarm.types import F64, I64

# Rows of a live bandit's table: what formulas see of each arm, pulls, mean and variance; then the policy's columns.
PULLS, MEAN, VARIANCE, GAP_VARIANCE, MEMORY = 0, 1, 2, 3, 4

LEARN = (
    "void(int64[::1], float64[::1], float64, float64[::1], float64[:,:,::1], float64[:,::1], float64[:,::1],"
    " float64[:,::1], float64[::1], float64[::1])"
)
FORGET = (
    "void(int64, int64, float64[::1], float64[:,:,::1], float64[:,:,::1], float64[:,:,::1], float64[:,::1],"
    " float64[:,::1], float64[:,::1])"
)
WEIGH = "void(int64, int64, float64, float64[::1], float64[:,:,::1], float64[:,::1], int64[::1], float64[::1])"
LIVE_LEARN = "void(float64[:,::1], float64[:,:,::1], int64, float64, float64, float64[::1])"
LIVE_FORGET = "boolean(float64[:,::1], float64[:,:,::1], int64, float64, float64[::1], float64[::1])"
LIVE_CORRECT = "float64(float64[:,::1], float64[:,:,::1], int64, float64, float64, float64, float64, float64[::1])"
LIVE_WEIGH = "void(int64[::1], float64[::1], float64[::1], float64[::1], float64[:,::1])"


on_its_own = False  # stands in `learn_lanes` for whether the estimator reads its own numbers only, no plain statistics


@jit
def average(arm: I64, pulled: F64, reward: F64, total: F64, lost: F64, mean: F64, new_mean: F64) -> None:
    """The plain mean: add each lane's reward to its arm's compensated sum; ``new_mean`` gets the arm's mean."""
    for lane in range(arm.size):
        k = np.uint64(arm[lane])
        sum_now, lost_now = two_sum(total[k, lane], reward[lane])
        lost_now = lost[k, lane] + lost_now
        total[k, lane] = sum_now
        lost[k, lane] = lost_now
        mean_now = mean_of(sum_now, lost_now, pulled[lane])
        mean[k, lane] = mean_now
        new_mean[lane] = mean_now


# In simulation. An entry of ``recent``, reward number n at n modulo its length, is an arm, a reward, and what it added
# to each column of the policy.


def learn_lanes(
    arm: Any,
    reward: Any,
    discount: float,
    numbers: Any,
    kept: Any,
    pulls: Any,
    mean: Any,
    variance: Any,
    new_pulls: Any,
    new_mean: Any,
) -> None:
    """Take each lane's reward of an arm; ``variance`` is empty if nobody asks for it."""
    rows = uncounted(kept)  # counting references to an arm's row would take as long as learning
    if discount < 1.0:
        for lane in range(arm.size):
            for k in range(kept.shape[0]):
                fade(kept, k, lane, discount)
                pulls[k, lane] = kept[k, lane, COUNT]
                if variance.size:
                    variance[k, lane] = variance_of(kept, k, lane)
    for lane in range(arm.size):
        own = np.uint64(arm[lane])
        if on_its_own and not variance.size:
            kept[own, lane, SUM] += reward[lane]  # shows whether all were finite numbers
        else:
            count_reward(kept, own, lane, reward[lane])
        learn(rows, own, lane, reward[lane], numbers)
    for lane in range(arm.size):
        own = np.uint64(arm[lane])
        m, n = read(rows, own, lane, numbers)
        mean[own, lane] = m
        pulls[own, lane] = n
        new_mean[lane] = m
        new_pulls[lane] = n
        if variance.size:
            variance[own, lane] = variance_of(kept, own, lane)


def forget_lanes(
    told: int,
    columns: int,
    numbers: Any,
    kept: Any,
    recent: Any,
    memory: Any,
    pulls: Any,
    mean: Any,
    variance: Any,
) -> None:
    """Leave out each lane's reward that has fallen out of the window; ``told`` is the number of rewards so far."""
    window = recent.shape[0] - 1
    if told <= window:
        return
    again, entry = told % window == 0, (told - window) % recent.shape[0]
    for lane in range(kept.shape[1]):
        changed, after = np.int64(0), kept.shape[0]  # the arms of which something changes
        arm = np.int64(recent[entry, lane, 0])
        if again or leave_out(kept, arm, lane, recent[entry, lane, 1]):
            sum_again(told, window, columns, lane, kept, recent, memory)
        else:
            changed, after = arm, arm + 1
            for column in range(columns):
                rest = memory[column, changed, lane] - recent[entry, lane, 2 + column]
                memory[column, changed, lane] = rest if kept[changed, lane, COUNT] > 0.0 else 0.0
        for k in range(changed, after):
            m, n = 0.0, 0.0
            if kept[k, lane, COUNT] > 0.0:
                m, n = read(kept, k, lane, numbers)
            mean[k, lane] = m
            pulls[k, lane] = n
            if variance.size:
                variance[k, lane] = variance_of(kept, k, lane)


@jit
def sum_again(told: int, window: int, columns: int, lane: int, kept: F64, recent: F64, memory: F64) -> None:
    """Sum all rewards that count anew: once in a window, against rounding, and when a very large one has left."""
    for k in range(kept.shape[0]):
        for i in range(OWN):
            kept[k, lane, i] = 0.0
        for column in range(columns):
            memory[column, k, lane] = 0.0
    for number in range(told - window + 1, told + 1):
        entry = number % recent.shape[0]
        own = np.int64(recent[entry, lane, 0])
        count_reward(kept, own, lane, recent[entry, lane, 1])
        for column in range(columns):
            memory[column, own, lane] += recent[entry, lane, 2 + column]


@jit
def remember(number: int, arm: I64, reward: F64, recent: F64) -> None:
    """Keep each lane's reward, the ``number``-th, while it counts."""
    entry = number % recent.shape[0]
    for lane in range(arm.size):
        recent[entry, lane, 0] = arm[lane]
        recent[entry, lane, 1] = reward[lane]


def weigh_lanes(
    told: int, counting: int, discount: float, numbers: Any, recent: Any, mean: Any, arm: Any, new_mean: Any
) -> None:
    """The mean of every arm from the last ``counting`` of ``told`` rewards, as the estimator's own formula has it."""
    arms, rewards, weights = np.empty(counting, np.int64), np.empty(counting), np.empty(counting)
    for i in range(counting):
        weights[i] = discount ** np.float64(counting - 1 - i)
    for lane in range(mean.shape[1]):
        for i in range(counting):
            entry = (told - counting + 1 + i) % recent.shape[0]
            arms[i], rewards[i] = np.int64(recent[entry, lane, 0]), recent[entry, lane, 1]
        weigh(arms, rewards, weights, numbers, mean, lane)
        new_mean[lane] = mean[arm[lane], lane]


# Live, where a table has a row for each thing that formulas see.


def learn_live(table: Any, kept: Any, arm: int, reward: float, discount: float, numbers: Any) -> None:
    """Take a reward of an arm."""
    if discount < 1.0:
        for k in range(kept.shape[0]):
            fade(kept, k, 0, discount)
            table[PULLS, k], table[VARIANCE, k] = kept[k, 0, COUNT], variance_of(kept, k, 0)
        for row in range(MEMORY, table.shape[0]):  # written out: an operation on a slice takes seconds to compile
            for k in range(table.shape[1]):
                table[row, k] *= discount
    count_reward(kept, arm, 0, reward)
    learn(kept, arm, 0, reward, numbers)
    table[MEAN, arm], table[PULLS, arm] = read(kept, arm, 0, numbers)
    table[VARIANCE, arm] = variance_of(kept, arm, 0)


def forget_live(table: Any, kept: Any, arm: int, reward: float, added: Any, numbers: Any) -> bool:
    """Leave out a reward of an arm, and what it added to the columns; true if all must be summed again."""
    again = leave_out(kept, arm, 0, reward)
    if kept[arm, 0, COUNT] == 0.0:
        for row in range(table.shape[0]):
            table[row, arm] = 0.0
        return False
    for column in range(added.size):
        table[MEMORY + column, arm] -= added[column]
    table[MEAN, arm], table[PULLS, arm] = read(kept, arm, 0, numbers)
    table[VARIANCE, arm] = variance_of(kept, arm, 0)
    return bool(again)


def correct_live(
    table: Any, kept: Any, arm: int, before: float, after: float, weight: float, largest: float, numbers: Any
) -> float:
    """Replace a reward of an arm, if the estimator keeps nothing but plain statistics; see `correct_reward`."""
    found = correct_reward(kept, arm, 0, before, after, weight, largest)
    table[MEAN, arm], table[PULLS, arm] = read(kept, arm, 0, numbers)
    table[VARIANCE, arm] = variance_of(kept, arm, 0)
    return float(found)


def weigh_live(arms: Any, rewards: Any, weights: Any, numbers: Any, mean: Any) -> None:
    """The mean of every arm from the rewards that count."""
    weigh(arms, rewards, weights, numbers, mean, 0)


def learn(kept: Any, k: Any, lane: int, reward: float, numbers: Any) -> None:
    """Stands in the templates for taking a reward into the estimator's own numbers."""
    raise NotImplementedError


def read(kept: Any, k: Any, lane: int, numbers: Any) -> tuple[float, float]:
    """Stands in the templates for the mean and the pulls that formulas see."""
    raise NotImplementedError


def weigh(arms: Any, rewards: Any, weights: Any, numbers: Any, mean: Any, lane: int) -> None:
    """Sort rewards by their arms, and have the estimator's `estimate` make the mean of each that has some."""
    ends = np.zeros(mean.shape[0] + 1, np.int64)
    for i in range(arms.size):
        ends[arms[i] + 1] += 1
    for k in range(mean.shape[0]):
        ends[k + 1] += ends[k]
    places, sorted_rewards, sorted_weights = ends[:-1].copy(), np.empty(arms.size), np.empty(arms.size)
    for i in range(arms.size):
        place = places[arms[i]]
        places[arms[i]] += 1
        sorted_rewards[place], sorted_weights[place] = rewards[i], weights[i]
    for k in range(mean.shape[0]):
        own = slice(ends[k], ends[k + 1])
        mean[k, lane] = estimate(sorted_rewards[own], sorted_weights[own], numbers) if ends[k + 1] > ends[k] else 0.0


def estimate(rewards: Any, weights: Any, numbers: Any) -> float:
    """Stands in `weigh` for the estimator's function of the rewards that count."""
    raise NotImplementedError


class Simulated(NamedTuple):
    """An estimator's compiled functions for the simulator."""

    learn: Any
    forget: Any
    weigh: Any


class Live(NamedTuple):
    """An estimator's compiled functions for a live bandit, and the numbers that they take; None is never called."""

    learn: Any
    forget: Any
    correct: Any
    weigh: Any
    numbers: F64


@functools.lru_cache(maxsize=256)
def simulated_estimator(estimator: Estimator) -> Simulated:
    """The compiled functions, the same for all values of the parameters."""
    subject, names, weighing = _parts(estimator)
    return Simulated(
        pointer(subject, learn_lanes, LEARN, on_its_own=estimator.size > 0, **names),
        pointer(subject, forget_lanes, FORGET, read=names["read"]) if estimator.forgets else _blank(FORGET),
        pointer(subject, weigh_lanes, WEIGH, weigh=weighing) if estimator.weighs else _blank(WEIGH),
    )


def no_estimator() -> Simulated:
    """What stands in the place of compiled functions where plain means are enough."""
    return Simulated(_blank(LEARN), _blank(FORGET), _blank(WEIGH))


def learn_nothing(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, i: Any, j: Any) -> None:
    """A blank for `learn_lanes`."""


def forget_nothing(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, i: Any) -> None:
    """A blank for `forget_lanes`."""


def weigh_nothing(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any) -> None:
    """A blank for `weigh_lanes`."""


@functools.cache
def _blank(signature: str) -> Any:
    blanks: dict[str, Any] = {LEARN: learn_nothing, FORGET: forget_nothing, WEIGH: weigh_nothing}
    return pointer("a blank", blanks[signature], signature)


@functools.lru_cache(maxsize=256)
def live_estimator(estimator: Estimator) -> Live:
    """The compiled functions, the same for all values of the parameters."""
    subject, names, weighing = _parts(estimator)
    return Live(
        function(subject, learn_live, LIVE_LEARN, **names),
        function(subject, forget_live, LIVE_FORGET, read=names["read"]) if estimator.forgets else None,
        function(subject, correct_live, LIVE_CORRECT, read=names["read"]),
        function(subject, weigh_live, LIVE_WEIGH, weigh=weighing) if estimator.weighs else None,
        estimator.numbers,
    )


def _parts(estimator: Estimator) -> tuple[str, dict[str, Any], Any]:
    """What stands in the templates for an estimator's functions; without any, the plain mean."""
    given = "".join(f", numbers[{i}]" for i in range(len(estimator.parameters)))
    code = {name: getattr(type(estimator), name) for name in ("learn", "read", "estimate")}
    own = f"kept[k, lane, {OWN}:]"
    taking, reading, weighing = "None", f"(plain_mean(kept, k, lane), kept[k, lane, {COUNT}])", "0.0"
    if estimator.size:
        taking, reading = f"own_learn({own}, reward{given})", f"own_read({own}{given})"
    if estimator.weighs:
        weighing = f"own_estimate(rewards, weights{given})"
    functions = {"plain_mean": plain_mean} | {f"own_{name}": each for name, each in code.items() if each is not None}
    learning = define("learn", "kept, k, lane, reward, numbers", taking, functions)
    names = {"learn": learning, "read": define("read", "kept, k, lane, numbers", reading, functions)}
    estimating = define("estimate", "rewards, weights, numbers", weighing, functions)
    return f"the estimator {estimator}", names, _with(weigh, estimate=estimating)


def _with(template: Any, **names: Any) -> Any:
    """A copy of a template with some of its globals replaced."""
    return types.FunctionType(template.__code__, template.__globals__ | names, template.__name__)
