"""Rounds with contexts: one policy on one problem, one replication after another, as a compiled loop over rounds.

A round draws a context, looks at what the policy knows of every arm in it, pulls the arm of the largest score, and
learns from its reward. All formulas come in through function pointers, with the arms of one replication where
`rightarm.simulation.kernels` has replications side by side: each of these would learn of another arm, which leaves
nothing to be gained from vectors of them.

What the problem draws comes from the replication's stream of the problem, so many words in every round, and the order
of a data set's rows from its stream of parameters: all policies meet the same contexts and the same luck.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rightarm.estimators.context_rows import make_rows, standardise_and_count
from rightarm.estimators.ridge_regression import fade, read_vectors, take_counted, variances
from rightarm.formula.compile import jit, uncounted
from rightarm.policies.inputs import CERTAIN, goes_first
from rightarm.simulation.lanes import CompiledFunction
from rightarm.streams import HALF, HIGH, KEPT, LOW, Streams, draw_row
from rightarm.types import F32, F64, I64, U32

i64 = np.int64
u32 = np.uint32
u64 = np.uint64
f64 = np.float64

# Places of what has failed.
SCORE_FAILED = 0
EXPLORE_FAILED = 1
REWARD_FAILED = 2


class ContextFormulas(NamedTuple):
    """The compiled formulas, as function pointers, and their numbers."""

    noise: CompiledFunction
    gaussian: CompiledFunction
    score: CompiledFunction
    explore: CompiledFunction
    keep: CompiledFunction
    estimate: CompiledFunction
    context: CompiledFunction
    means: CompiledFunction
    reward: CompiledFunction
    numbers: F64  # of the policy,
    own_numbers: F64  # of its estimator,
    context_numbers: F64  # of the law of x,
    arm_numbers: F64  # and of the problem


class ContextUses(NamedTuple):
    """Flags for the features that the formulas use."""

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
    """The positions of a round's random words for each kind of noise, or −1: for the context, and for the reward."""

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
    """A linear model: what `rightarm.estimators.ridge_regression` works on; empty for other estimators."""

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
    """The statistics of the arms that formulas see; views by row and by column share their memory."""

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


class ContextChoice(NamedTuple):
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


class Replication(NamedTuple):
    """All arrays that the compiled rounds of one replication work on."""

    uses: ContextUses
    places: Places
    streams: Streams
    shuffles: U32  # the stream by which a data set's rows are put in order
    luck: Luck
    world: World
    model: Model
    seen: Seen
    choice: ContextChoice


@jit
def uniform_at(words: U32, r: int, place: int) -> float:
    """Return a number strictly between 0 and 1, of two words; 0.5 if there are none."""
    if place < 0:
        return 0.5
    return f64(words[r, place]) * HIGH + (f64(u32(words[r, place + 1] & KEPT)) * LOW + HALF)


@jit
def gaussian_at(gaussian: F32, r: int, place: int) -> float:
    """Return a Gaussian number, of one word; 0 if there is none."""
    return f64(gaussian[r, place]) if place >= 0 else 0.0


@jit
def next_row(order: I64, place: I64, state: U32) -> int:
    """Return the next row of a data set; when all were there, they are shuffled (Fisher and Yates)."""
    if place[0] == order.size:
        word = np.empty(1, u32)
        for i in range(order.size - 1, 0, -1):
            draw_row(state, word)
            j = i64((u64(word[0]) * u64(i + 1)) >> u64(32))
            row = order[i]
            order[i] = order[j]
            order[j] = row
        place[0] = 0
    place[0] += 1
    return order[place[0] - 1]


@jit
def draw_context(t: float, r: int, formulas: ContextFormulas, places: Places, luck: Luck, world: World) -> None:
    """Compute the context of a round from its noise."""
    words = luck.words
    gaussian = luck.gaussian
    normals = luck.normals
    uniforms = luck.uniforms
    if places.normals >= 0:
        for j in range(normals.size):
            normals[j] = f64(gaussian[r, places.normals + j])
    if places.uniforms >= 0:
        for j in range(uniforms.size):
            uniforms[j] = uniform_at(words, r, places.uniforms + 2 * j)
    u = uniform_at(words, r, places.u)
    v = uniform_at(words, r, places.v)
    w = gaussian_at(gaussian, r, places.w)
    formulas.context(t, u, v, w, normals, uniforms, formulas.context_numbers, world.x)


@jit
def look(x: F64, model: Model, low: float, high: float, seen: Seen) -> None:
    """Have a linear model predict all arms in a context, which the running moments take in."""
    standardise_and_count(x, model.measured, model.indicator, model.moments, model.z)
    make_rows(model.z, model.private, model.shared, 0, 0, model.own, model.joint)
    pulls = seen.pulls_of_arms
    mean = seen.mean_of_arms
    read_vectors(model.own, model.joint, model.factor, model.common, mean.size, pulls, mean, model.rest)
    for k in range(mean.size):  # predictions may leave the range of rewards, for which the formula is
        mean[k] = min(max(mean[k], low), high)


@jit
def learn_row(arm: int, reward: float, uses: ContextUses, model: Model, seen: Seen) -> None:
    """Have a linear model learn the reward of an arm in the present context."""
    row = model.row
    own = model.own
    joint = model.joint
    factor = model.factor
    common = model.common
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
def complete(t: float, arms: float, formulas: ContextFormulas, uses: ContextUses, seen: Seen, zeros: F64) -> None:
    """Compute what else formulas may ask for: what is kept of pulls and mean, the variance, and extremes."""
    memory = seen.memory
    learned = seen.learned
    for k in range(memory.shape[2] if uses.varies else 0):
        memory[uses.kept, 0, k] = seen.variances[k]
    if uses.kept:
        formulas.keep(t, arms, seen.pulls_of_arms, seen.mean_of_arms, zeros, zeros, memory, formulas.numbers, learned)
        for column in range(uses.kept):
            for k in range(memory.shape[2]):
                memory[column, 0, k] = learned[column, k]
    if uses.extremes:
        spread_extremes(seen.mean_of_arms, seen.best, seen.worst)
        for column in range(memory.shape[0]):
            spread_extremes(memory[column, 0], seen.top[column], seen.bottom[column])


@jit
def spread_extremes(values: F64, largest: F64, smallest: F64) -> None:
    """Find the largest and the smallest of some numbers, once for each of them."""
    high = values[0]
    low = values[0]
    for k in range(values.size):
        high = max(high, values[k])
        low = min(low, values[k])
    for k in range(values.size):
        largest[k] = high
        smallest[k] = low


@jit
def choose(scores: F64, ties: U32) -> int:
    """Return the arm of the largest score, ties broken fairly; −1 if a score is not a number."""
    best = scores[0, 0]
    arm = 0
    equal = 1
    numbers = best == best
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
    """Return the arm that is explored, if any is, else ``arm``; −1 if the floors are not probabilities."""
    share = (f64(word) + 0.5) * HIGH
    height = 0.0
    found = arm
    for k in range(floors.shape[1]):
        if not floors[0, k] >= 0.0:
            return -1
        if height <= share < height + floors[0, k]:
            found = k
        height += floors[0, k]
    return found if height <= CERTAIN else -1


@jit
def note(t: int, failed: I64, which: int) -> None:
    """Record the first round in which something was not as it must be."""
    if failed[which] == 0:
        failed[which] = t


@jit
def evaluate(formula: CompiledFunction, now: float, z: F32, numbers: F64, seen: Seen, out: F64) -> None:
    """Evaluate a formula for all arms."""
    memory = seen.memory
    arms = f64(seen.counts.size)
    formula(now, arms, seen.pulls, seen.mean, z, seen.best, seen.worst, memory, seen.top, seen.bottom, numbers, out)


@jit
def pulled_arm(t: int, r: int, formulas: ContextFormulas, run: Replication) -> int:
    """Return the arm that the policy chooses from what it sees of the arms."""
    uses = run.uses
    seen = run.seen
    luck = run.luck
    choice = run.choice
    if uses.must_pull:
        first: int = goes_first(seen.pulls_of_arms, seen.last)
        if first >= 0:
            return first
    now = seen.counting[0] + 1.0  # the round that formulas see
    complete(now, f64(seen.counts.size), formulas, uses, seen, choice.zeros)
    for k in range(seen.counts.size if uses.noisy else 0):
        choice.z[0, k] = luck.z[r, 0 if uses.shared else k]
    evaluate(formulas.score, now, choice.z, formulas.numbers, seen, choice.scores)
    arm: int = choose(choice.scores, run.streams.ties)
    if arm < 0:
        note(t, choice.failed, SCORE_FAILED)
        return 0
    if uses.explores:
        evaluate(formulas.explore, now, choice.still, formulas.numbers, seen, choice.floors)
        arm = explored_arm(choice.floors, luck.policy_words[r, luck.policy_words.shape[1] - 1], arm)
        if arm < 0:
            note(t, choice.failed, EXPLORE_FAILED)
            return 0
    return arm


@jit
def learn(t: int, arm: int, formulas: ContextFormulas, run: Replication) -> None:
    """Have the policy learn the reward of an arm."""
    seen = run.seen
    choice = run.choice
    seen.counts[arm] += 1
    seen.last[arm] = f64(t)
    seen.counting[0] = seen.counting[0] * run.uses.discount + 1.0
    if run.uses.contextual:
        learn_row(arm, choice.reward[0], run.uses, run.model, seen)
    else:
        choice.arm[0] = arm
        formulas.estimate(
            choice.arm,
            choice.reward,
            run.uses.discount,
            formulas.own_numbers,
            seen.kept,
            seen.pulls_column,
            seen.mean_column,
            seen.variance_column,
            choice.new_pulls,
            choice.new_mean,
        )


@jit
def draw_ahead(rounds: int, formulas: ContextFormulas, run: Replication) -> None:
    """Draw what the policy and the problem need of noise for a block of rounds."""
    luck = run.luck
    if luck.policy_words.size:
        draw_row(run.streams.policy, luck.policy_words[:rounds].reshape(-1))
        if run.uses.noisy:
            formulas.noise(luck.policy_words[:rounds].reshape(-1), luck.z[:rounds].reshape(-1))
    if luck.words.size:
        draw_row(run.streams.problem, luck.words[:rounds].reshape(-1))
        formulas.gaussian(luck.words[:rounds].reshape(-1), luck.gaussian[:rounds].reshape(-1))


@jit
def copy_row(world: World, shuffles: U32) -> float:
    """Have the next row of a data set as the context, and return its label."""
    row = next_row(world.order, world.place, shuffles)
    for j in range(world.x.size):
        world.x[j] = world.data[row, j]
    return world.labels[row]


@jit
def draw_reward(t: int, r: int, arm: int, label: float, formulas: ContextFormulas, run: Replication) -> float:
    """Return the reward of an arm in the present context."""
    u = uniform_at(run.luck.words, r, run.places.reward_u)
    v = uniform_at(run.luck.words, r, run.places.reward_v)
    w = gaussian_at(run.luck.gaussian, r, run.places.reward_w)
    return formulas.reward(f64(t), run.world.x, label, run.world.means[arm], arm, u, v, w, formulas.arm_numbers)


@jit
def largest_of(values: F64) -> float:
    """Return the largest number."""
    best = values[0]
    for k in range(1, values.size):
        best = values[k] if values[k] > best else best
    return best


@jit
def play_round(t: int, r: int, formulas: ContextFormulas, run: Replication) -> None:
    """Play round ``t`` with row ``r`` of the noise that was drawn ahead."""
    uses = run.uses
    world = run.world
    choice = run.choice
    label = 0.0
    if uses.data:
        label = copy_row(world, run.shuffles)
    else:
        draw_context(f64(t), r, formulas, run.places, run.luck, world)
    formulas.means(f64(t), world.x, label, formulas.arm_numbers, world.means)
    if uses.contextual:
        look(world.x, run.model, uses.low, uses.high, run.seen)
    arm = pulled_arm(t, r, formulas, run)
    reward = draw_reward(t, r, arm, label, formulas, run)
    if not np.isfinite(reward):
        note(t, choice.failed, REWARD_FAILED)
    choice.outside[0] += (reward < uses.low) | (reward > uses.high)
    choice.reward[0] = reward
    learn(t, arm, formulas, run)
    choice.regret[0] += largest_of(world.means) - world.means[arm]


@jit
def play(done: int, end: int, formulas: ContextFormulas, run: Replication, checkpoints: I64, regret: F64) -> None:
    """Play rounds ``done`` + 1 to ``end`` of one replication, leaving all for the next call."""
    formulas = uncounted(formulas)
    run = uncounted(run)
    mark = np.searchsorted(checkpoints, done + 1)
    t = done
    while t < end:
        rounds = min(end - t, run.luck.words.shape[0])
        draw_ahead(rounds, formulas, run)
        for r in range(rounds):
            t += 1
            play_round(t, r, formulas, run)
            if mark < checkpoints.size and t == checkpoints[mark]:
                regret[mark] = run.choice.regret[0]
                mark += 1
