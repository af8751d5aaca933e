"""Rounds with contexts: one policy on one problem, one replication after another, as a compiled loop over rounds.

A round draws a context, looks at what the policy knows of every arm in it, pulls the arm of the largest score, and
learns from its reward. All formulas come in through function pointers, with the arms of one replication where
`rightarm.simulation.kernels` has replications side by side: each of these would learn of another arm, which leaves
nothing to be gained from vectors of them.

What the problem draws comes from the replication's stream of the problem, so many words in every round, and the order
of a data set's rows from its stream of parameters: all policies meet the same contexts and the same luck.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rightarm.contexts.moments import see
from rightarm.estimators.arrowhead import fade, read_vectors, take_counted, variances
from rightarm.estimators.linear import make_rows
from rightarm.formula.compile import jit, uncounted
from rightarm.scores.rules import CERTAIN, goes_first
from rightarm.streams import HALF, HIGH, KEPT, LOW, Streams, draw_row
from rightarm.types import F32, F64, I64, U32

i64, u32, u64, f64 = np.int64, np.uint32, np.uint64, np.float64


SCORE_FAILED, EXPLORE_FAILED, REWARD_FAILED = 0, 1, 2


class Formulas(NamedTuple):
    """The compiled formulas, as function pointers, and their numbers."""

    law: Any
    gaussian: Any
    score: Any
    explore: Any
    keep: Any
    estimate: Any
    context: Any
    means: Any
    reward: Any
    numbers: F64  # of the policy,
    own_numbers: F64  # of its estimator,
    context_numbers: F64  # of the law of x,
    arm_numbers: F64  # and of the problem


class Uses(NamedTuple):
    """What the formulas make use of."""

    noisy: bool
    shared: bool  # all arms share a draw
    explores: bool
    contextual: bool  # the policy's estimator looks at contexts
    must_pull: bool
    extremes: bool
    kept: int  # columns that are computed of pulls and mean; the variance follows them if it is asked for
    varies: bool
    data: bool  # contexts are the rows of a data set
    discount: float
    ridge: float
    own_ridge: float
    low: float  # the rewards that the policy is for
    high: float


class Places(NamedTuple):
    """Where a round's words stand for each kind of noise, or −1: of the context, and of the reward."""

    u: int
    v: int
    w: int
    normals: int
    uniforms: int
    reward_u: int
    reward_v: int
    reward_w: int


class Luck(NamedTuple):
    """Scratch memory: noise for a block of rounds."""

    words: U32  # rounds × words of the problem
    gaussian: F32  # the same as Gaussians
    policy_words: U32  # rounds × words of the policy
    z: F32  # the same, by the law of the policy's noise
    normals: F64
    uniforms: F64


class World(NamedTuple):
    """The problem's side of a round."""

    data: F64
    labels: F64
    order: I64  # of the rows
    place: I64  # 1: in that order
    x: F64
    means: F64  # of the arms, in the context


class Model(NamedTuple):
    """A linear model: what `rightarm.estimators.arrowhead` works on; empty for other estimators."""

    measured: I64
    indicator: I64
    moments: F64
    private: I64
    shared: I64
    own: F64
    joint: F64
    factor: F64
    common: F64
    row: F64
    rest: F64
    z: F64


class Seen(NamedTuple):
    """What formulas see of the arms; those of one row and those of one column are the same memory."""

    pulls: F64  # 1 × arms
    mean: F64
    pulls_of_arms: F64  # arms
    mean_of_arms: F64
    pulls_column: F64  # arms × 1
    mean_column: F64
    variances: F64
    variance_column: F64
    kept: F64  # arms × 1 × numbers of an arm
    memory: F64  # columns × 1 × arms
    learned: F64  # columns × arms
    best: F64  # arms times the same number, as are the next
    worst: F64
    top: F64  # columns × arms
    bottom: F64
    counting: F64  # 1: the rewards that count
    last: F64  # the round of each arm's last pull
    counts: I64  # how often each was pulled


class Choice(NamedTuple):
    """Scratch memory: from scores to an arm and its reward."""

    scores: F64  # 1 × arms
    floors: F64
    z: F32  # zeros for a policy without noise
    still: F32  # no noise
    zeros: F64
    arm: I64  # 1
    reward: F64  # 1
    new_pulls: F64
    new_mean: F64
    failed: I64  # 3: the first rounds in which something was not a number
    outside: I64  # 1: rewards that the policy is not for
    regret: F64  # 1


@jit
def uniform_at(words: U32, r: int, place: int) -> float:
    """A number strictly between 0 and 1, of two words; 0.5 if there are none."""
    if place < 0:
        return 0.5
    return f64(words[r, place]) * HIGH + (f64(u32(words[r, place + 1] & KEPT)) * LOW + HALF)


@jit
def gaussian_at(gaussian: F32, r: int, place: int) -> float:
    """A Gaussian number, of one word; 0 if there is none."""
    return f64(gaussian[r, place]) if place >= 0 else 0.0


@jit
def next_row(order: I64, place: I64, state: U32) -> int:
    """The next row of a data set; when all were there, they are shuffled (Fisher and Yates)."""
    if place[0] == order.size:
        word = np.empty(1, u32)
        for i in range(order.size - 1, 0, -1):
            draw_row(state, word)
            j = i64((u64(word[0]) * u64(i + 1)) >> u64(32))
            order[i], order[j] = order[j], order[i]
        place[0] = 0
    place[0] += 1
    row: int = order[place[0] - 1]
    return row


@jit
def draw_context(t: float, r: int, formulas: Formulas, places: Places, luck: Luck, world: World) -> None:
    """The context of a round, from its noise."""
    words, gaussian, normals, uniforms = luck.words, luck.gaussian, luck.normals, luck.uniforms
    if places.normals >= 0:
        for j in range(normals.size):
            normals[j] = f64(gaussian[r, places.normals + j])
    if places.uniforms >= 0:
        for j in range(uniforms.size):
            uniforms[j] = uniform_at(words, r, places.uniforms + 2 * j)
    u, v, w = uniform_at(words, r, places.u), uniform_at(words, r, places.v), gaussian_at(gaussian, r, places.w)
    formulas.context(t, u, v, w, normals, uniforms, formulas.context_numbers, world.x)


@jit
def look(x: F64, model: Model, low: float, high: float, seen: Seen) -> None:
    """What a linear model makes of all arms in a context; the running moments take it in."""
    see(x, model.measured, model.indicator, model.moments, model.z)
    make_rows(model.z, model.private, model.shared, 0, 0, model.own, model.joint)
    pulls, mean = seen.pulls_of_arms, seen.mean_of_arms
    read_vectors(model.own, model.joint, model.factor, model.common, mean.size, pulls, mean, model.rest)
    for k in range(mean.size):  # predictions may leave the range of rewards, for which the formula is
        mean[k] = min(max(mean[k], low), high)


@jit
def learn_row(arm: int, reward: float, uses: Uses, model: Model, seen: Seen) -> None:
    """A linear model learns the row of an arm in the present context."""
    row, own, joint, factor, common = model.row, model.own, model.joint, model.factor, model.common
    arms = seen.counts.size
    if uses.discount < 1.0:
        fade(factor, common, arms, own.size, uses.discount, uses.ridge, uses.own_ridge)
    for j in range(own.size):
        row[j] = own[j]
    for j in range(joint.shape[0]):
        row[own.size + j] = joint[j, arm]
    row[own.size + joint.shape[0]] = reward
    take_counted(row, arm, own.size, factor, common)
    if uses.varies:
        variances(factor, joint.shape[0], arms, seen.variances)


@jit
def complete(t: float, arms: float, formulas: Formulas, uses: Uses, seen: Seen, zeros: F64) -> None:
    """What else formulas may ask for: what is kept of pulls and mean, the variance, and the extremes of all."""
    memory, learned, best, worst = seen.memory, seen.learned, seen.best, seen.worst
    for k in range(memory.shape[2] if uses.varies else 0):
        memory[uses.kept, 0, k] = seen.variances[k]
    if uses.kept:
        formulas.keep(t, arms, seen.pulls_of_arms, seen.mean_of_arms, zeros, zeros, memory, formulas.numbers, learned)
        for column in range(uses.kept):
            for k in range(memory.shape[2]):
                memory[column, 0, k] = learned[column, k]
    if uses.extremes:
        spread_extremes(seen.mean_of_arms, best, worst)
        for column in range(memory.shape[0]):
            spread_extremes(memory[column, 0], seen.top[column], seen.bottom[column])


@jit
def spread_extremes(values: F64, largest: F64, smallest: F64) -> None:
    """The largest and the smallest of some numbers, once for each of them."""
    high, low = values[0], values[0]
    for k in range(values.size):
        high, low = max(high, values[k]), min(low, values[k])
    for k in range(values.size):
        largest[k], smallest[k] = high, low


@jit
def choose(scores: F64, ties: U32) -> int:
    """The arm of the largest score, ties broken fairly; −1 if a score is not a number."""
    best, arm, equal, numbers = scores[0, 0], 0, 1, scores[0, 0] == scores[0, 0]
    for k in range(1, scores.shape[1]):  # without branches, which nothing could predict
        s = scores[0, k]
        above = s > best
        equal = 1 if above else equal + (s == best)
        arm = k if above else arm
        best = s if above else best
        numbers &= s == s
    if not numbers:
        return -1
    if equal == 1:
        return arm
    word = np.empty(1, u32)
    draw_row(ties, word)
    rank = i64((u64(word[0]) * u64(equal)) >> u64(32))
    while rank > 0:
        arm += 1
        rank -= scores[0, arm] == best
    return arm


@jit
def explored_arm(floors: F64, word: int, arm: int) -> int:
    """The arm that is explored, if any is, else ``arm``; −1 if the floors are not probabilities."""
    share, height, found = (f64(word) + 0.5) * HIGH, 0.0, arm
    for k in range(floors.shape[1]):
        if not floors[0, k] >= 0.0:
            return -1
        if height <= share < height + floors[0, k]:
            found = k
        height += floors[0, k]
    return found if height <= CERTAIN else -1


@jit
def note(t: int, failed: I64, which: int) -> None:
    """Keep the first round in which something was not as it must be."""
    if failed[which] == 0:
        failed[which] = t


@jit
def pulled_arm(
    t: int, r: int, formulas: Formulas, uses: Uses, seen: Seen, luck: Luck, choice: Choice, ties: U32
) -> int:
    """The policy's choice, from what it sees of the arms."""
    scores, floors, failed, numbers = choice.scores, choice.floors, choice.failed, formulas.numbers
    pulls, mean, best, worst, memory, top, bottom = (
        seen.pulls,
        seen.mean,
        seen.best,
        seen.worst,
        seen.memory,
        seen.top,
        seen.bottom,
    )
    if uses.must_pull:
        first: int = goes_first(seen.pulls_of_arms, seen.last)
        if first >= 0:
            return first
    arms, now = f64(scores.shape[1]), seen.counting[0] + 1.0  # the round that formulas see
    complete(now, arms, formulas, uses, seen, choice.zeros)
    for k in range(scores.shape[1] if uses.noisy else 0):
        choice.z[0, k] = luck.z[r, 0 if uses.shared else k]
    formulas.score(now, arms, pulls, mean, choice.z, best, worst, memory, top, bottom, numbers, scores)
    arm: int = choose(scores, ties)
    if arm < 0:
        note(t, failed, SCORE_FAILED)
        return 0
    if uses.explores:
        formulas.explore(now, arms, pulls, mean, choice.still, best, worst, memory, top, bottom, numbers, floors)
        arm = explored_arm(floors, luck.policy_words[r, luck.policy_words.shape[1] - 1], arm)
        if arm < 0:
            note(t, failed, EXPLORE_FAILED)
            return 0
    return arm


@jit
def learn(t: int, arm: int, formulas: Formulas, uses: Uses, model: Model, seen: Seen, choice: Choice) -> None:
    """What the policy learns from the reward of an arm."""
    seen.counts[arm] += 1
    seen.last[arm] = f64(t)
    seen.counting[0] = seen.counting[0] * uses.discount + 1.0
    if uses.contextual:
        learn_row(arm, choice.reward[0], uses, model, seen)
    else:
        choice.arm[0] = arm
        formulas.estimate(
            choice.arm,
            choice.reward,
            uses.discount,
            formulas.own_numbers,
            seen.kept,
            seen.pulls_column,
            seen.mean_column,
            seen.variance_column,
            choice.new_pulls,
            choice.new_mean,
        )


@jit
def play(
    done: int,
    end: int,
    formulas: Formulas,
    uses: Uses,
    places: Places,
    streams: Streams,
    shuffles: U32,
    luck: Luck,
    world: World,
    model: Model,
    seen: Seen,
    choice: Choice,
    checkpoints: I64,
    regret: F64,
) -> None:
    """Play rounds ``done`` + 1 to ``end`` of one replication, leaving all for the next call."""
    formulas, luck, world, model = uncounted(formulas), uncounted(luck), uncounted(world), uncounted(model)
    seen, choice, streams = uncounted(seen), uncounted(choice), uncounted(streams)
    words, gaussian, own_words, z = luck.words, luck.gaussian, luck.policy_words, luck.z
    x, means, failed, reward = world.x, world.means, choice.failed, choice.reward
    label, t = 0.0, done
    mark = np.searchsorted(checkpoints, done + 1)
    while t < end:
        rounds = min(end - t, words.shape[0])
        if own_words.size:
            draw_row(streams.policy, own_words[:rounds].reshape(-1))
            if uses.noisy:
                formulas.law(own_words[:rounds].reshape(-1), z[:rounds].reshape(-1))
        if words.size:
            draw_row(streams.problem, words[:rounds].reshape(-1))
            formulas.gaussian(words[:rounds].reshape(-1), gaussian[:rounds].reshape(-1))
        for r in range(rounds):
            t += 1
            if uses.data:
                row = next_row(world.order, world.place, shuffles)
                label = world.labels[row]
                for j in range(x.size):
                    x[j] = world.data[row, j]
            else:
                draw_context(f64(t), r, formulas, places, luck, world)
            formulas.means(f64(t), x, label, formulas.arm_numbers, means)
            if uses.contextual:
                look(x, model, uses.low, uses.high, seen)
            arm = pulled_arm(t, r, formulas, uses, seen, luck, choice, streams.ties)
            u, v = uniform_at(words, r, places.reward_u), uniform_at(words, r, places.reward_v)
            w, mean = gaussian_at(gaussian, r, places.reward_w), means[arm]
            paid = formulas.reward(f64(t), x, label, mean, arm, u, v, w, formulas.arm_numbers)
            if not np.isfinite(paid):
                note(t, failed, REWARD_FAILED)
            choice.outside[0] += (paid < uses.low) | (paid > uses.high)
            reward[0] = paid
            learn(t, arm, formulas, uses, model, seen, choice)
            best = means[0]
            for k in range(1, means.size):
                best = means[k] if means[k] > best else best
            choice.regret[0] += best - mean
            if mark < checkpoints.size and t == checkpoints[mark]:
                regret[mark] = choice.regret[0]
                mark += 1
