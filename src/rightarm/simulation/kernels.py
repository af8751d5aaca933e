"""The compiled rounds: many replications of one policy on one problem, side by side.

Everything is an array of lanes (replications), or of arms × lanes, with lanes contiguous. A round is a few short
passes, each free of branches, so that LLVM turns each into vector code; one loop that did all at once would not. The
formulas come in through function pointers, so this file compiles once for all policies and problems.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rightarm.compile import fma, jit
from rightarm.policies.policy import EARLY, LATE
from rightarm.simulation.argmax import TIE, largest_affine, largest_clocked, largest_score
from rightarm.simulation.types import F32, F64, I64, U32

i64, u32, u64, f64 = np.int64, np.uint32, np.uint64, np.float64

HIGH, LOW, HALF = 2.0**-32, 2.0**-64, 2.0**-53
KEPT = u32(0xFFFFF000)  # of a second word: 52 bits in all, and with HALF strictly between 0 and 1


class Statistics(NamedTuple):
    """What is known of the arms (arms × lanes). Sums, not running means: equal histories must tie exactly."""

    pulls: F64
    total: F64
    mean: F64
    location: F64  # of a score that is location + scale·z or location + scale·clock(t)
    scale: F64


class Streams(NamedTuple):
    """The random states, four words per lane: what the policy draws, what the problem draws, how ties are broken."""

    policy: U32
    problem: U32
    ties: U32


class Setting(NamedTuple):
    """What is played: numbers of the formulas, and what they ask for."""

    numbers: F64  # the policy's parameters
    arm_numbers: F64  # the problem's: parameters × arms, or × arms·lanes where every lane has its own
    corruptions: F64  # rows of arm, rounds, pulls, reward
    gaps: F64  # arms × lanes
    before: F64  # the pulls from before the run
    fresh: I64  # the arms never pulled, to be pulled first
    noisy: bool  # the policy draws noise
    by_arm: bool  # its score is location + scale·something, kept between an arm's pulls,
    clocked: bool  # and the something is a clock, not noise
    extremes: bool  # it asks for the best or the worst mean
    uniform: bool  # the problem draws u
    second: bool  # the problem draws v
    gaussian: bool  # the problem draws w


class Noise(NamedTuple):
    """Scratch memory: what is drawn ahead for a block of rounds, the first axis of all of these."""

    words: U32  # × arms × lanes
    z: F32  # × arms × lanes
    reward_words: U32  # × words of a reward × lanes
    uniform: F64  # × u and v × lanes: one array, because to pass another costs some ns in every round
    w: F32  # × lanes


class Choice(NamedTuple):
    """Scratch memory: from scores (arms × lanes) to an arm for each lane."""

    scores: F64
    largest: F64
    best: F64
    worst: F64
    arm: I64
    failed: I64  # 1: the first round in which a score was not a number


class Pull(NamedTuple):
    """Scratch memory: the pulled arm of each lane."""

    pulls: F64
    mean: F64
    reward: F64
    location: F64
    scale: F64


class Clock(NamedTuple):
    """A clocked policy's score of one reference arm, from which the clock is read."""

    pulls: F64
    mean: F64
    location: F64
    scale: F64


@jit
def draw_words(state: U32, out: U32) -> None:
    """The next words of every lane: xoshiro128++ (Blackman and Vigna 2021), a lane's state being a column."""
    for i in range(out.shape[0]):
        for lane in range(out.shape[1]):
            a, b, c, d = state[0, lane], state[1, lane], state[2, lane], state[3, lane]
            word = u32(a + d)
            out[i, lane] = u32(u32((word << u32(7)) | (word >> u32(25))) + a)
            shifted = u32(b << u32(9))
            c, d = u32(c ^ a), u32(d ^ b)
            state[1, lane], state[0, lane] = u32(b ^ c), u32(a ^ d)
            state[2, lane] = u32(c ^ shifted)
            state[3, lane] = u32((d << u32(11)) | (d >> u32(21)))


@jit
def fill_noise(rounds: int, state: U32, law: Any, words: U32, z: F32) -> None:
    """The policy's noise for a block of rounds."""
    arms, lanes = words.shape[1], words.shape[2]
    draw_words(state, words[:rounds].reshape(rounds * arms, lanes))
    law(words[:rounds].reshape(rounds * arms * lanes), z[:rounds].reshape(rounds * arms * lanes))


@jit
def uniform_numbers(high: U32, low: U32, out: F64) -> None:
    """Numbers strictly between 0 and 1, each of two words."""
    for lane in range(out.size):
        out[lane] = f64(high[lane]) * HIGH + (f64(u32(low[lane] & KEPT)) * LOW + HALF)


@jit
def fill_luck(
    rounds: int,
    state: U32,
    gaussian: Any,
    uses_u: bool,
    uses_v: bool,
    uses_w: bool,
    words: U32,
    uniform: F64,
    w: F32,
) -> None:
    """The problem's noise for a block of rounds: u and v of two words, w of one; in this order, round by round."""
    per_round, lanes = words.shape[1], words.shape[2]
    draw_words(state, words[:rounds].reshape(rounds * per_round, lanes))
    for r in range(rounds):
        if uses_u:
            uniform_numbers(words[r, 0], words[r, 1], uniform[r, 0])
        if uses_v:
            first = 2 if uses_u else 0
            uniform_numbers(words[r, first], words[r, first + 1], uniform[r, 1])
        if uses_w:
            gaussian(words[r, per_round - 1], w[r])


@jit
def extreme_means(mean: F64, best: F64, worst: F64) -> None:
    """The largest and the smallest mean of every lane."""
    best[:] = mean[0]
    worst[:] = mean[0]
    for k in range(1, mean.shape[0]):
        for lane in range(best.size):
            m = mean[k, lane]
            best[lane] = m if m > best[lane] else best[lane]
            worst[lane] = m if m < worst[lane] else worst[lane]


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
    affine(t, t, arms, clock.pulls, clock.mean, numbers, clock.location, clock.scale)
    return clock.location[0]


@jit
def count_pull(arm: I64, pulls: F64, pulled: F64) -> None:
    """Count a pull of each lane's arm; ``pulled`` gets the new count."""
    for lane in range(arm.size):
        k = u64(arm[lane])  # unsigned: an index that may be negative costs a test
        n = pulls[k, lane] + 1
        pulls[k, lane] = n
        pulled[lane] = n


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
def average(arm: I64, pulled: F64, reward: F64, total: F64, mean: F64, new_mean: F64) -> None:
    """Add each lane's reward to its arm's sum; ``new_mean`` gets the arm's mean."""
    for lane in range(arm.size):
        k = u64(arm[lane])
        sum_now = total[k, lane] + reward[lane]
        total[k, lane] = sum_now
        mean_now = sum_now / pulled[lane]
        mean[k, lane] = mean_now
        new_mean[lane] = mean_now


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
    out[:] = 0.0
    for k in range(gaps.shape[0]):
        for lane in range(out.size):
            out[lane] += gaps[k, lane] * (pulls[k, lane] - before[k])


@jit
def play(
    start: int,
    done: int,
    end: int,
    law: Any,
    gaussian: Any,
    score: Any,
    affine: Any,
    reward: Any,
    setting: Setting,
    known: Statistics,
    streams: Streams,
    noise: Noise,
    choice: Choice,
    pull: Pull,
    clock: Clock,
    checkpoints: I64,
    regret: F64,
) -> None:
    """Play rounds ``done`` + 1 to ``end`` of a run that began after round ``start``, leaving all for the next call."""
    # A field read inside the loop costs a reference count each time, so all are read here.
    numbers, arm_numbers, corruptions, gaps, before, fresh, noisy, by_arm, clocked, extremes, one, two, normal = setting
    pulls, total, mean, location, scale = known
    words, z, reward_words, uniform, w = noise
    scores, largest, best, worst, arm, failed = choice
    pulled, new_mean, paid, new_location, new_scale = pull
    arms, now, early, late = f64(mean.shape[0]), 0.0, 0.0, 1.0
    if clocked:
        early = reference_score(EARLY, arms, affine, numbers, clock)
        late = reference_score(LATE, arms, affine, numbers, clock)
    mark = np.searchsorted(checkpoints, done + 1)
    t = done
    while t < end:
        rounds = min(end - t, z.shape[0])
        if noisy:
            fill_noise(rounds, streams.policy, law, words, z)
        if one or two or normal:
            fill_luck(rounds, streams.problem, gaussian, one, two, normal, reward_words, uniform, w)
        for r in range(rounds):
            t += 1
            if t - start <= fresh.size:
                arm[:] = fresh[t - start - 1]
            elif by_arm:
                if clocked:
                    now = (reference_score(f64(t), arms, affine, numbers, clock) - early) / (late - early)
                    largest_clocked(location, scale, now, largest, arm)
                else:
                    largest_affine(location, scale, z[r], largest, arm)
                if any_tie(arm):
                    tied_scores(arm, location, scale, z[r], clocked, now, scores)
                    break_ties(scores, largest, arm, streams.ties)
            else:
                if extremes:
                    extreme_means(mean, best, worst)
                score(f64(t), arms, pulls, mean, z[r], best, worst, numbers, scores)
                largest_score(scores, largest, arm)
                if any_tie(arm):
                    watch(t, largest, failed)
                    break_ties(scores, largest, arm, streams.ties)
            count_pull(arm, pulls, pulled)
            reward(f64(t), arm, pulled, uniform[r], w[r], arm_numbers, paid)
            corrupt(f64(t), corruptions, arm, pulled, paid)
            average(arm, pulled, paid, total, mean, new_mean)
            if by_arm:
                affine(EARLY, LATE, arms, pulled, new_mean, numbers, new_location, new_scale)
                watch(t, new_location, failed)
                watch(t, new_scale, failed)
                refresh(arm, new_location, new_scale, location, scale)
            if mark < checkpoints.size and t == checkpoints[mark]:
                record_regret(pulls, before, gaps, regret[mark])
                mark += 1
