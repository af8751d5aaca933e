"""The compiled rounds: many replications of one policy on one problem, side by side.

Everything is an array of lanes (replications), or of arms × lanes, with lanes contiguous. A round is a few short
passes, each free of branches, so that LLVM turns each into vector code; one loop that did all at once would not. The
formulas come in through function pointers, so this file compiles once for all policies and problems.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rightarm.estimators.compiled import average, remember
from rightarm.formula.compile import fma, jit
from rightarm.formula.elementary import exp
from rightarm.scores.rules import FORGOTTEN, explored_or_chosen, goes_first
from rightarm.scores.score import EARLY, LATE
from rightarm.simulation.argmax import TIE, largest_affine, largest_clocked, largest_score
from rightarm.simulation.state import (
    Bounds,
    Choice,
    Clock,
    Estimates,
    Formulas,
    Noise,
    Pull,
    Setting,
    Statistics,
    Uses,
    Weights,
)
from rightarm.streams import HIGH, Streams, draw_words, fill_luck
from rightarm.types import F32, F64, I64, U32

i64, u32, u64, f64 = np.int64, np.uint32, np.uint64, np.float64

EPOCH = 4  # bounds of scores hold for four rounds times the number of arms: longer, and they fit too loosely


@jit
def fill_noise(rounds: int, state: U32, law: Any, shared: bool, words: U32, z: F32) -> None:
    """The policy's noise for a block of rounds: a row for each arm, and one for exploration if there is any.

    What arms share is the draw of the first.
    """
    arms, lanes = words.shape[1], words.shape[2]
    draw_words(state, words[:rounds].reshape(rounds * arms, lanes))
    law(words[:rounds].reshape(rounds * arms * lanes), z[:rounds].reshape(rounds * arms * lanes))
    if shared:
        for r in range(rounds):
            for k in range(1, arms):
                for lane in range(lanes):
                    z[r, k, lane] = z[r, 0, lane]


@jit
def extreme_means(mean: F64, best: F64, worst: F64) -> None:
    """The largest and the smallest mean of every lane."""
    for lane in range(best.size):  # a slice on the left would take a second to compile
        best[lane] = mean[0, lane]
        worst[lane] = mean[0, lane]
    for k in range(1, mean.shape[0]):
        for lane in range(best.size):
            m = mean[k, lane]
            best[lane] = m if m > best[lane] else best[lane]
            worst[lane] = m if m < worst[lane] else worst[lane]


@jit
def gap_variances(pulls: F64, mean: F64, best: F64, widest: F64, out: F64) -> None:
    """How uncertain each gap to the best mean is, by the rule of `rightarm.scores.inputs`; ``widest`` is scratch."""
    for lane in range(best.size):
        widest[lane] = 0.0
    for k in range(mean.shape[0]):
        for lane in range(best.size):
            out[k, lane] = 1.0 / max(pulls[k, lane], FORGOTTEN)
            if mean[k, lane] == best[lane]:
                widest[lane] = max(widest[lane], out[k, lane])
    for k in range(mean.shape[0]):
        for lane in range(best.size):
            out[k, lane] = 0.0 if mean[k, lane] == best[lane] else out[k, lane] + widest[lane]


@jit
def extreme_of(sign: float, memory: F64, column: int, out: F64) -> None:
    """The largest value of a column in every lane, or the smallest if ``sign`` is −1."""
    for lane in range(out.shape[1]):
        out[column, lane] = memory[column, 0, lane]
    for k in range(1, memory.shape[1]):
        for lane in range(out.shape[1]):
            value, before = memory[column, k, lane], out[column, lane]
            out[column, lane] = value if sign * value > sign * before else before


@jit
def break_ties(score: F64, largest: F64, arm: I64, ties: U32) -> None:
    """Choose fairly among equal scores; a lane draws from its stream of ties only when it has one."""
    for lane in range(arm.size):
        if arm[lane] >= TIE:
            first = arm[lane] - TIE  # the first arm with the largest score
            arm[lane] = first  # stays so where no score is a number; the run fails then
            equal = 0
            for k in range(first, score.shape[0]):
                equal += score[k, lane] == largest[lane]
            word = np.empty((1, 1), u32)
            draw_words(ties[:, lane : lane + 1], word)
            rank = i64((u64(word[0, 0]) * u64(equal)) >> u64(32))
            for k in range(first, score.shape[0]):
                if score[k, lane] == largest[lane]:
                    if rank == 0:
                        arm[lane] = k
                        break
                    rank -= 1


@jit
def watch(t: int, values: F64, failed: I64) -> None:
    """Keep the first round in which one of ``values`` was not a number."""
    numbers = True
    for lane in range(values.size):
        numbers &= values[lane] == values[lane]
    if not numbers and failed[0] == 0:
        failed[0] = t


@jit
def any_tie(arm: I64) -> bool:
    """Whether an arm of any lane is marked."""
    marks = i64(0)
    for lane in range(arm.size):
        marks |= arm[lane]
    return bool(marks >= TIE)


@jit
def tied_scores(arm: I64, location: F64, scale: F64, z: F32, clocked: bool, now: float, score: F64) -> None:
    """The scores that an affine arg max does not store, for the lanes that need them."""
    for lane in range(arm.size):
        if arm[lane] >= TIE:
            for k in range(arm[lane] - TIE, score.shape[0]):
                score[k, lane] = fma(scale[k, lane], now if clocked else f64(z[k, lane]), location[k, lane])


@jit
def reference_score(t: float, arms: float, affine: Any, numbers: F64, clock: Clock) -> float:
    """A clocked policy's score of the reference arm in round t."""
    affine(t, t, arms, clock.pulls, clock.mean, clock.memory, numbers, clock.location, clock.scale)
    return clock.location[0]


@jit
def add_noise(location: F64, z: F32, score: F64) -> None:
    """location + z."""
    for k in range(score.shape[0]):
        for lane in range(score.shape[1]):
            score[k, lane] = location[k, lane] + f64(z[k, lane])


@jit
def total_weight(location: F64, peak: F64, weight: F64) -> None:
    """The largest location of every lane, and the sum of exp(location − largest)."""
    for lane in range(peak.size):
        peak[lane] = location[0, lane]
        weight[lane] = 0.0
    for k in range(1, location.shape[0]):
        for lane in range(peak.size):
            peak[lane] = location[k, lane] if location[k, lane] > peak[lane] else peak[lane]
    for k in range(location.shape[0]):
        for lane in range(peak.size):
            weight[lane] += exp(location[k, lane] - peak[lane])


@jit
def take_explored(t: int, words: U32, floors: F64, explored: F64, arm: I64, failed: I64) -> None:
    """Explore where a uniform number falls below the sum of all floors; the floor that it falls in tells the arm."""
    for lane in range(arm.size):
        explored[lane] = 0.0
    sound = True
    for k in range(floors.shape[0]):
        for lane in range(arm.size):
            share = (f64(words[lane]) + 0.5) * HIGH
            low, high = explored[lane], explored[lane] + floors[k, lane]
            arm[lane] = k if (share >= low) & (share < high) else arm[lane]
            explored[lane] = high
            sound &= floors[k, lane] >= 0.0
    for lane in range(arm.size):
        sound &= explored[lane] <= 1.0 + 1e-9
    if not sound and failed[1] == 0:
        failed[1] = t


@jit
def probabilities(
    arm: I64, location: F64, peak: F64, weight: F64, floors: F64, explored: F64, probability: F64
) -> None:
    """The probability that each lane's decision had."""
    for lane in range(arm.size):
        k = u64(arm[lane])
        by_score = exp(location[k, lane] - peak[lane]) / weight[lane]
        probability[lane] = explored_or_chosen(floors[k, lane], explored[lane], by_score)


@jit
def gather(arm: I64, pulls: F64, mean: F64, memory: F64, pulls_of: F64, mean_of: F64, memory_of: F64) -> None:
    """What is known of one arm of each lane."""
    for lane in range(arm.size):
        k = u64(arm[lane])
        pulls_of[0, lane] = pulls[k, lane]
        mean_of[0, lane] = mean[k, lane]
    gather_memory(arm, memory, memory_of)


@jit
def gather_memory(arm: I64, memory: F64, memory_of: F64) -> None:
    """The columns of one arm of each lane."""
    for column in range(memory.shape[0]):
        for lane in range(arm.size):
            memory_of[column, 0, lane] = memory[column, u64(arm[lane]), lane]


@jit
def scatter_memory(arm: I64, learned: F64, memory: F64, memory_of: F64) -> None:
    """Put the columns of one arm of each lane in their place."""
    for column in range(learned.shape[0]):
        for lane in range(arm.size):
            memory[column, u64(arm[lane]), lane] = learned[column, lane]
            memory_of[column, 0, lane] = learned[column, lane]


@jit
def next_looks(t: float, arm: I64, scores: F64, largest: F64, looked: F64, before: I64) -> bool:
    """The arm to look at next in every lane, one with the largest value; says whether any was not looked at yet."""
    pending = False
    for lane in range(arm.size):
        k = arm[lane] & (TIE - 1)
        if arm[lane] >= TIE:  # of those that tie, one that was not looked at
            for other in range(k, scores.shape[0]):
                if scores[other, lane] == largest[lane] and looked[other, lane] != t:
                    k = other
                    break
        pending |= looked[k, lane] != t
        before[lane] = k
    return pending


@jit
def place(arm: I64, values: F64, out: F64) -> None:
    """One value for one arm of each lane."""
    for lane in range(arm.size):
        out[u64(arm[lane]), lane] = values[0, lane]


@jit
def count_pull(arm: I64, pulls: F64, pulled: F64) -> None:
    """Count a pull of each lane's arm; ``pulled`` gets the new count."""
    for lane in range(arm.size):
        k = u64(arm[lane])  # unsigned: an index that may be negative costs a test
        n = pulls[k, lane] + 1
        pulls[k, lane] = n
        pulled[0, lane] = n


@jit
def corrupt(t: float, corruptions: F64, arm: I64, pulls: F64, reward: F64) -> None:
    """Overwrite the rewards that an adversary has set."""
    for i in range(corruptions.shape[0]):
        target, rounds, first_pulls, value = corruptions[i]
        if t <= rounds or first_pulls > 0:
            for lane in range(arm.size):
                if arm[lane] == target and (t <= rounds or pulls[lane] <= first_pulls):
                    reward[lane] = value


@jit
def count_outside(limits: F64, reward: F64, outside: F64) -> None:
    """Count the rewards that the policy is not for."""
    low, high = limits[0], limits[1]
    for lane in range(reward.size):
        outside[lane] += f64((reward[lane] < low) | (reward[lane] > high))


@jit
def refresh(arm: I64, new_location: F64, new_scale: F64, location: F64, scale: F64) -> None:
    """Location and scale of the pulled arms' scores."""
    for lane in range(arm.size):
        k = u64(arm[lane])
        location[k, lane] = new_location[lane]
        scale[k, lane] = new_scale[lane]


@jit
def record_regret(pulls: F64, before: F64, gaps: F64, out: F64) -> None:
    """Σ_i Δ_i N_i of every lane, pulls from before the run left out."""
    for lane in range(out.size):
        out[lane] = 0.0
    for k in range(gaps.shape[0]):
        for lane in range(out.size):
            out[lane] += gaps[k, lane] * (pulls[k, lane] - before[k])


@jit
def arms_to_go_first(pulls: F64, last: F64, first: I64) -> bool:
    """The arm of each lane whose rewards are all forgotten; says whether any lane has one."""
    found = False
    for lane in range(first.size):
        first[lane] = goes_first(pulls[:, lane], last[:, lane])
        found |= first[lane] >= 0
    return found


@jit
def put_first(first: I64, value: float, values: F64) -> None:
    """Where an arm goes first, ``value`` for it and zeros for all others, which formulas could not give."""
    for lane in range(first.size):
        if first[lane] >= 0:
            for k in range(values.shape[0]):
                values[k, lane] = value if k == first[lane] else 0.0


@jit
def certain(first: I64, probability: F64) -> None:
    """An arm that goes first does so with probability 1."""
    for lane in range(first.size):
        if first[lane] >= 0:
            probability[lane] = 1.0


@jit
def note_pull(t: float, arm: I64, last: F64) -> None:
    """The round of each lane's pull."""
    for lane in range(arm.size):
        last[u64(arm[lane]), lane] = t


@jit
def fade_columns(discount: float, columns: int, memory: F64) -> None:
    """Let what the policy remembers count less, as the rewards do."""
    for column in range(columns):
        for k in range(memory.shape[1]):
            for lane in range(memory.shape[2]):
                memory[column, k, lane] *= discount


@jit
def note_additions(number: int, columns: int, learned: F64, before: F64, recent: F64) -> None:
    """What each lane's reward has added to the columns, to be taken away when the reward is forgotten."""
    entry = number % recent.shape[0]
    for column in range(columns):
        for lane in range(recent.shape[1]):
            recent[entry, lane, 2 + column] = learned[column, lane] - before[column, 0, lane]


@jit
def keep_anew(
    t: float, arms: float, learn: Any, numbers: F64, columns: int, pulls: F64, mean: F64, memory: F64, pull: Pull
) -> None:
    """What is kept of pulls and mean between pulls, anew for all arms: forgetting changes it at any time."""
    _, _, memory_of, learned, reward, probability, _, _, _, _ = pull
    for k in range(pulls.shape[0]):
        for column in range(memory.shape[0]):
            for lane in range(memory.shape[2]):
                memory_of[column, 0, lane] = memory[column, k, lane]
        learn(t, arms, pulls[k], mean[k], reward, probability, memory_of, numbers, learned)
        for column in range(columns, learned.shape[0]):
            for lane in range(memory.shape[2]):
                memory[column, k, lane] = learned[column, lane]


@jit
def optimistic_arms(
    t: float,
    arms: float,
    score: Any,
    numbers: F64,
    pulls: F64,
    known: Statistics,
    choice: Choice,
    bounds: Bounds,
    pull: Pull,
) -> None:
    """The arms with the largest scores, by looking at those only whose bound is not below the score of another.

    A score never falls while its arm rests, so what it will be at a later round bounds it until then. The arm with the
    largest bound is looked at, its bound replaced by its score, until the largest is a score.
    """
    mean, memory = known.mean, known.memory
    scores, largest, best, worst, top, bottom, arm, _, still = choice
    bound, _, looked, before = bounds
    pulls_of, mean_of, memory_of, score_of = pull.pulls, pull.mean, pull.memory, pull.score
    for k in range(scores.shape[0]):
        for lane in range(scores.shape[1]):
            scores[k, lane] = bound[k, lane]
    largest_score(scores, largest, arm)
    while next_looks(t, arm, scores, largest, looked, before):
        gather(before, pulls, mean, memory, pulls_of, mean_of, memory_of)
        score(t, arms, pulls_of, mean_of, still, best, worst, memory_of, top, bottom, numbers, score_of)
        place(before, score_of, scores)
        for lane in range(before.size):
            looked[u64(before[lane]), lane] = t
        largest_score(scores, largest, arm)


@jit
def play(
    start: int,
    done: int,
    end: int,
    formulas: Formulas,
    setting: Setting,
    uses: Uses,
    known: Statistics,
    estimates: Estimates,
    streams: Streams,
    noise: Noise,
    choice: Choice,
    weights: Weights,
    bounds: Bounds,
    pull: Pull,
    clock: Clock,
    checkpoints: I64,
    regret: F64,
) -> None:
    """Play rounds ``done`` + 1 to ``end`` of a run that began after round ``start``, leaving all for the next call."""
    # A field read inside the loop costs a reference count each time, so all are read here.
    law, gaussian, score, affine, explore, learn, reward, estimate, forget, weigh = formulas
    own_numbers, discount, columns, kept, recent, seen, variance, last, first, counting = estimates
    numbers, arm_numbers, corruptions, gaps, before, fresh, tops, bottoms, limits = setting
    noisy, by_arm, clocked, lazy, weighted = uses.noisy, uses.by_arm, uses.clocked, uses.lazy, uses.weighted
    explores, learns, extremes, inline = uses.explores, uses.learns, uses.extremes, uses.inline
    forgets, weighs, uniform, second, normal = uses.forgets, uses.weighs, uses.uniform, uses.second, uses.normal
    unsure = uses.unsure
    pulls, total, lost, mean, location, scale, memory = known
    words, z, reward_words, luck, w = noise
    scores, largest, best, worst, top, bottom, arm, failed, still = choice
    floors, explored, peak, weight = weights
    bound, until, _, _ = bounds
    pulled, new_mean, pulled_memory, learned, paid, probability, new_location, new_scale, new_bound, outside = pull
    pulled_row, mean_row = pulled[0], new_mean[0]
    arms, now, early, late = f64(mean.shape[0]), 0.0, 0.0, 1.0
    if clocked:
        early = reference_score(EARLY, arms, affine, numbers, clock)
        late = reference_score(LATE, arms, affine, numbers, clock)
    mark = np.searchsorted(checkpoints, done + 1)
    t = done
    while t < end:
        rounds = min(end - t, z.shape[0])
        if noisy:
            fill_noise(rounds, streams.policy, law, uses.shared, words, z)
        elif explores:
            draw_words(streams.policy, words[:rounds].reshape(rounds, words.shape[2]))
        if uniform or second or normal:
            fill_luck(rounds, streams.problem, gaussian, uniform, second, normal, reward_words, luck, w)
        for r in range(rounds):
            t += 1
            told, going_first = t - start, False
            seen_t = counting[0] + 1.0 if forgets else f64(t)  # the round that formulas see
            if told <= fresh.size:  # the rule of `goes_first`, for arms never pulled: the same in every lane
                for lane in range(arm.size):
                    arm[lane] = fresh[told - 1]
                    probability[lane] = 1.0
            else:
                if forgets:
                    if fresh.size:
                        going_first = arms_to_go_first(seen, last, first)
                    if learned.shape[0] > columns:
                        keep_anew(seen_t, arms, learn, numbers, columns, seen, mean, memory, pull)
                if extremes:
                    extreme_means(mean, best, worst)
                if unsure:
                    gap_variances(seen, mean, best, largest, memory[memory.shape[0] - 1])
                for i in range(tops.size):
                    extreme_of(1.0, memory, tops[i], top)
                for i in range(bottoms.size):
                    extreme_of(-1.0, memory, bottoms[i], bottom)
                if by_arm:
                    if clocked:
                        now = (reference_score(f64(t), arms, affine, numbers, clock) - early) / (late - early)
                        largest_clocked(location, scale, now, largest, arm)
                    else:
                        largest_affine(location, scale, z[r], largest, arm)
                elif lazy:
                    if f64(t) > until[0]:
                        until[0] = f64(t) + EPOCH * arms
                        score(until[0], arms, seen, mean, still, best, worst, memory, top, bottom, numbers, bound)
                    optimistic_arms(f64(t), arms, score, numbers, seen, known, choice, bounds, pull)
                else:
                    if weighted:
                        score(seen_t, arms, seen, mean, still, best, worst, memory, top, bottom, numbers, location)
                        add_noise(location, z[r], scores)
                    else:
                        score(seen_t, arms, seen, mean, z[r], best, worst, memory, top, bottom, numbers, scores)
                    if going_first:
                        put_first(first, 1.0, scores)
                    largest_score(scores, largest, arm)
                if any_tie(arm):
                    if by_arm:
                        tied_scores(arm, location, scale, z[r], clocked, now, scores)
                    watch(t, largest, failed)
                    break_ties(scores, largest, arm, streams.ties)
                if explores:
                    explore(seen_t, arms, seen, mean, still, best, worst, memory, top, bottom, numbers, floors)
                    if going_first:
                        put_first(first, 0.0, floors)
                    take_explored(t, words[r, words.shape[1] - 1], floors, explored, arm, failed)
                if weighted:
                    total_weight(location, peak, weight)
                    probabilities(arm, location, peak, weight, floors, explored, probability)
                    if going_first:
                        certain(first, probability)
            count_pull(arm, pulls, pulled)
            reward(f64(t), arm, pulled_row, luck[r], w[r], arm_numbers, paid)
            corrupt(f64(t), corruptions, arm, pulled_row, paid)
            if limits.size:
                count_outside(limits, paid, outside)
            if inline:
                average(arm, pulled_row, paid, total, lost, mean, mean_row)
            else:
                estimate(arm, paid, discount, own_numbers, kept, seen, mean, variance, pulled_row, mean_row)
            if forgets:
                note_pull(f64(t), arm, last)
                if discount < 1.0:
                    fade_columns(discount, columns, memory)
                if recent.size:
                    remember(told, arm, paid, recent)
                    if weighs and learns:
                        weigh(told, min(told, recent.shape[0]), discount, own_numbers, recent, mean, arm, mean_row)
            if learns:
                gather_memory(arm, memory, pulled_memory)
                learn(seen_t, arms, pulled_row, mean_row, paid, probability, pulled_memory, numbers, learned)
                if recent.size:
                    note_additions(told, columns, learned, pulled_memory, recent)
                scatter_memory(arm, learned, memory, pulled_memory)
            if forgets:
                counting[0] = counting[0] * discount + 1.0
                if recent.size:
                    if discount == 1.0:
                        forget(told, columns, own_numbers, kept, recent, memory, seen, mean, variance)
                        counting[0] = min(counting[0], f64(recent.shape[0] - 1))
                    if weighs:
                        weigh(told, min(told, recent.shape[0] - 1), discount, own_numbers, recent, mean, arm, mean_row)
            if by_arm:
                affine(EARLY, LATE, arms, pulled_row, mean_row, pulled_memory, numbers, new_location, new_scale)
                watch(t, new_location, failed)
                watch(t, new_scale, failed)
                refresh(arm, new_location, new_scale, location, scale)
            elif lazy:
                score(
                    until[0], arms, pulled, new_mean, still, best, worst, pulled_memory, top, bottom, numbers, new_bound
                )
                place(arm, new_bound, bound)
            if mark < checkpoints.size and t == checkpoints[mark]:
                record_regret(pulls, before, gaps, regret[mark])
                mark += 1
