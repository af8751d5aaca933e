"""Estimators compiled: what a reward changes, for many replications side by side and for one live bandit.

In simulation every array is arms × lanes (a lane is a replication), and an estimator stands behind function pointers of
fixed signatures, so that the loop over rounds is compiled once. The plain mean alone, `average`, is part of that loop,
because it is what most simulations are about; its sums are vectors over lanes, not rows of numbers.

The templates call `learn`, `read` and `estimate`, which here are blanks: `_parts` puts an estimator's functions there.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rightarm.estimators.estimator import Estimator
from rightarm.estimators.reward_statistics import (
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
from rightarm.estimators.reward_statistics import variance as variance_of
from rightarm.formula import define
from rightarm.formula.compile import function, jit, pointer, uncounted
from rightarm.types import F64, I64

# Rows of a live bandit's table: what formulas see of each arm.
PULLS = 0
MEAN = 1
VARIANCE = 2
GAP_VARIANCE = 3
MEMORY = 4  # from here on: the policy's columns

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
    """Add each lane's reward to its arm's compensated sum; ``mean`` and ``new_mean`` get the arm's mean."""
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
    arm: I64,
    reward: F64,
    discount: float,
    numbers: F64,
    kept: F64,
    pulls: F64,
    mean: F64,
    variance: F64,
    new_pulls: F64,
    new_mean: F64,
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
    count: int, columns: int, numbers: F64, kept: F64, recent: F64, memory: F64, pulls: F64, mean: F64, variance: F64
) -> None:
    """Leave out each lane's reward that has fallen out of the window; ``count`` is the number of rewards so far."""
    window = recent.shape[0] - 1
    if count <= window:
        return
    again = count % window == 0
    entry = (count - window) % recent.shape[0]
    for lane in range(kept.shape[1]):
        changed = np.int64(0)  # from this arm on something changes ...
        after = kept.shape[0]  # ... and before that one
        arm = np.int64(recent[entry, lane, 0])
        if again or leave_out(kept, arm, lane, recent[entry, lane, 1]):
            sum_again(count, window, columns, lane, kept, recent, memory)
        else:
            changed = arm
            after = arm + 1
            for column in range(columns):
                rest = memory[column, changed, lane] - recent[entry, lane, 2 + column]
                memory[column, changed, lane] = rest if kept[changed, lane, COUNT] > 0.0 else 0.0
        for k in range(changed, after):
            m = 0.0
            n = 0.0
            if kept[k, lane, COUNT] > 0.0:
                m, n = read(kept, k, lane, numbers)
            mean[k, lane] = m
            pulls[k, lane] = n
            if variance.size:
                variance[k, lane] = variance_of(kept, k, lane)


@jit
def sum_again(count: int, window: int, columns: int, lane: int, kept: F64, recent: F64, memory: F64) -> None:
    """Sum all rewards that count anew: once in a window, against rounding, and when a very large one has left."""
    for k in range(kept.shape[0]):
        for i in range(OWN):
            kept[k, lane, i] = 0.0
        for column in range(columns):
            memory[column, k, lane] = 0.0
    for number in range(count - window + 1, count + 1):
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
    count: int, counting: int, discount: float, numbers: F64, recent: F64, mean: F64, arm: I64, new_mean: F64
) -> None:
    """Make the mean of every arm from the last ``counting`` of ``count`` rewards, by the estimator's own formula."""
    arms = np.empty(counting, np.int64)
    rewards = np.empty(counting)
    weights = np.empty(counting)
    for i in range(counting):
        weights[i] = discount ** np.float64(counting - 1 - i)
    for lane in range(mean.shape[1]):
        for i in range(counting):
            entry = (count - counting + 1 + i) % recent.shape[0]
            arms[i] = np.int64(recent[entry, lane, 0])
            rewards[i] = recent[entry, lane, 1]
        weigh(arms, rewards, weights, numbers, mean, lane)
        new_mean[lane] = mean[arm[lane], lane]


# Live, where a table has a row for each number that formulas see.


def learn_live(table: F64, kept: F64, arm: int, reward: float, discount: float, numbers: F64) -> None:
    """Take a reward of an arm."""
    if discount < 1.0:
        for k in range(kept.shape[0]):
            fade(kept, k, 0, discount)
            table[PULLS, k] = kept[k, 0, COUNT]
            table[VARIANCE, k] = variance_of(kept, k, 0)
        for row in range(MEMORY, table.shape[0]):  # written out: an operation on a slice takes seconds to compile
            for k in range(table.shape[1]):
                table[row, k] *= discount
    count_reward(kept, arm, 0, reward)
    learn(kept, arm, 0, reward, numbers)
    table[MEAN, arm], table[PULLS, arm] = read(kept, arm, 0, numbers)
    table[VARIANCE, arm] = variance_of(kept, arm, 0)


def forget_live(table: F64, kept: F64, arm: int, reward: float, added: F64, numbers: F64) -> bool:
    """Leave out a reward of an arm, and what it added to the columns; return whether all must be summed again."""
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
    table: F64, kept: F64, arm: int, before: float, after: float, weight: float, largest: float, numbers: F64
) -> float:
    """Replace a reward of an arm, if the estimator keeps nothing but plain statistics; see `correct_reward`."""
    found = correct_reward(kept, arm, 0, before, after, weight, largest)
    table[MEAN, arm], table[PULLS, arm] = read(kept, arm, 0, numbers)
    table[VARIANCE, arm] = variance_of(kept, arm, 0)
    return float(found)


def weigh_live(arms: I64, rewards: F64, weights: F64, numbers: F64, mean: F64) -> None:
    """Make the mean of every arm from the rewards that count."""
    weigh(arms, rewards, weights, numbers, mean, 0)


def learn(kept: F64, k: int | np.uint64, lane: int, reward: float, numbers: F64) -> None:
    """Stand in the templates for taking a reward into the estimator's own numbers."""
    raise NotImplementedError


def read(kept: F64, k: int | np.uint64, lane: int, numbers: F64) -> tuple[float, float]:
    """Stand in the templates for the mean and the pulls that formulas see."""
    raise NotImplementedError


def weigh(arms: I64, rewards: F64, weights: F64, numbers: F64, mean: F64, lane: int) -> None:
    """Sort rewards by their arms, and have the estimator's `estimate` make the mean of each that has some."""
    ends = np.zeros(mean.shape[0] + 1, np.int64)
    for i in range(arms.size):
        ends[arms[i] + 1] += 1
    for k in range(mean.shape[0]):
        ends[k + 1] += ends[k]
    places = ends[:-1].copy()
    sorted_rewards = np.empty(arms.size)
    sorted_weights = np.empty(arms.size)
    for i in range(arms.size):
        place = places[arms[i]]
        places[arms[i]] += 1
        sorted_rewards[place] = rewards[i]
        sorted_weights[place] = weights[i]
    for k in range(mean.shape[0]):
        own = slice(ends[k], ends[k + 1])
        mean[k, lane] = estimate(sorted_rewards[own], sorted_weights[own], numbers) if ends[k + 1] > ends[k] else 0.0


def estimate(rewards: F64, weights: F64, numbers: F64) -> float:
    """Stand in `weigh` for the estimator's function of the rewards that count."""
    raise NotImplementedError


class SimulatedEstimator(NamedTuple):
    """An estimator's compiled functions for the simulator."""

    learn: Any
    forget: Any
    weigh: Any


class LiveEstimator(NamedTuple):
    """An estimator's compiled functions for a live bandit, and the numbers that they take; None is never called."""

    learn: Any
    forget: Any
    correct: Any
    weigh: Any
    numbers: F64


@functools.lru_cache(maxsize=256)
def simulated_estimator(estimator: Estimator) -> SimulatedEstimator:
    """Return the compiled functions, the same for all values of the parameters."""
    subject, names, weighing = _parts(estimator)
    return SimulatedEstimator(
        pointer(subject, learn_lanes, LEARN, on_its_own=estimator.size > 0, **names),
        pointer(subject, forget_lanes, FORGET, read=names["read"]) if estimator.forgets else _blank(FORGET),
        pointer(subject, weigh_lanes, WEIGH, weigh=weighing) if estimator.weighs else _blank(WEIGH),
    )


def no_estimator() -> SimulatedEstimator:
    """Return what stands in the place of compiled functions where plain means are enough."""
    return SimulatedEstimator(_blank(LEARN), _blank(FORGET), _blank(WEIGH))


def learn_nothing(
    a: object, b: object, c: object, d: object, e: object, f: object, g: object, h: object, i: object, j: object
) -> None:
    """Do nothing in the place of `learn_lanes`."""


def forget_nothing(
    a: object, b: object, c: object, d: object, e: object, f: object, g: object, h: object, i: object
) -> None:
    """Do nothing in the place of `forget_lanes`."""


def weigh_nothing(a: object, b: object, c: object, d: object, e: object, f: object, g: object, h: object) -> None:
    """Do nothing in the place of `weigh_lanes`."""


@functools.cache
def _blank(signature: str) -> Any:
    """Return the compiled function of a signature that does nothing."""
    blanks: dict[str, Callable[..., None]] = {LEARN: learn_nothing, FORGET: forget_nothing, WEIGH: weigh_nothing}
    return pointer("a blank", blanks[signature], signature)


@functools.lru_cache(maxsize=256)
def live_estimator(estimator: Estimator) -> LiveEstimator:
    """Return the compiled functions, the same for all values of the parameters."""
    subject, names, weighing = _parts(estimator)
    return LiveEstimator(
        function(subject, learn_live, LIVE_LEARN, **names),
        function(subject, forget_live, LIVE_FORGET, read=names["read"]) if estimator.forgets else None,
        function(subject, correct_live, LIVE_CORRECT, read=names["read"]),
        function(subject, weigh_live, LIVE_WEIGH, weigh=weighing) if estimator.weighs else None,
        estimator.numbers,
    )


def _parts(estimator: Estimator) -> tuple[str, dict[str, Any], types.FunctionType]:
    """Return what errors call it, its functions `learn` and `read` for the templates, and its `weigh`.

    An estimator without functions is the plain mean.
    """
    values = f"kept[k, lane, {OWN}:]"
    parameters = "".join(f", numbers[{i}]" for i in range(len(estimator.parameters)))
    learning = "None"
    reading = f"(plain_mean(kept, k, lane), kept[k, lane, {COUNT}])"
    weighing = "0.0"
    if estimator.size:
        learning = f"own_learn({values}, reward{parameters})"
        reading = f"own_read({values}{parameters})"
    if estimator.weighs:
        weighing = f"own_estimate(rewards, weights{parameters})"
    kind = type(estimator)
    given = {"own_learn": kind.learn, "own_read": kind.read, "own_estimate": kind.estimate, "plain_mean": plain_mean}
    functions = {name: each for name, each in given.items() if each is not None}
    names = {
        "learn": define("learn", "kept, k, lane, reward, numbers", learning, functions),
        "read": define("read", "kept, k, lane, numbers", reading, functions),
    }
    own_estimate = define("estimate", "rewards, weights, numbers", weighing, functions)
    own_weigh = types.FunctionType(weigh.__code__, weigh.__globals__ | {"estimate": own_estimate}, weigh.__name__)
    return f"the estimator {estimator}", names, own_weigh
