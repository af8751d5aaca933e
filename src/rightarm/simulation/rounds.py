"""The compiled rounds: many replications of one policy on one problem, side by side.

`play` is what Python calls; a round is choosing arms, drawing their rewards and learning from them. The formulas come
in through function pointers, so all of this compiles once for all policies and problems. A function is inlined where it
is called, so that the arrays of `Lanes` can be passed on as one tuple at no cost.
"""

from __future__ import annotations

import numpy as np

from rightarm.estimators.compiled_estimators import average, remember
from rightarm.formula.compile import jit, uncounted
from rightarm.policies.inputs import EARLY, LATE
from rightarm.simulation.kernels import (
    add_noise,
    any_tie,
    arms_to_go_first,
    break_ties,
    certain,
    corrupt,
    count_outside,
    count_pull,
    extreme_means,
    extreme_of,
    fade_columns,
    fill_noise,
    gap_variances,
    gather,
    gather_memory,
    largest_affine,
    largest_clocked,
    largest_score,
    next_looks,
    note_additions,
    note_pull,
    place,
    probabilities,
    put_first,
    record_regret,
    refresh,
    scatter_memory,
    take_explored,
    tied_scores,
    total_weight,
    watch,
)
from rightarm.simulation.lanes import CompiledFunction, Formulas, Lanes
from rightarm.streams import draw_words, fill_luck
from rightarm.types import F32, F64, I64

u64 = np.uint64
f64 = np.float64

EPOCH = 4  # bounds of scores hold for four rounds times the number of arms: longer, and they fit too loosely


@jit
def arms_of(run: Lanes) -> float:
    """Return the number of arms, as formulas take it."""
    return f64(run.statistics.mean.shape[0])


@jit
def reference_score(t: float, formulas: Formulas, run: Lanes) -> float:
    """Return a clocked policy's score of the reference arm in round t."""
    clock = run.clock
    numbers = run.setting.numbers
    formulas.affine(t, t, arms_of(run), clock.pulls, clock.mean, clock.memory, numbers, clock.location, clock.scale)
    return clock.location[0]


@jit
def start_clock(formulas: Formulas, run: Lanes) -> None:
    """Compute the reference scores between which the clock runs from 0 to 1."""
    run.clock.span[0] = reference_score(EARLY, formulas, run)
    run.clock.span[1] = reference_score(LATE, formulas, run)


@jit
def read_clock(t: float, formulas: Formulas, run: Lanes) -> None:
    """Read the clock in round t."""
    early = run.clock.span[0]
    late = run.clock.span[1]
    run.clock.now[0] = (reference_score(t, formulas, run) - early) / (late - early)


@jit
def evaluate(formula: CompiledFunction, t: float, run: Lanes, z: F32, out: F64) -> None:
    """Evaluate a formula for all arms of every lane."""
    pulls = run.estimates.pulls
    mean = run.statistics.mean
    memory = run.statistics.memory
    numbers = run.setting.numbers
    top = run.choice.top
    bottom = run.choice.bottom
    formula(t, arms_of(run), pulls, mean, z, run.choice.best, run.choice.worst, memory, top, bottom, numbers, out)


@jit
def evaluate_one(t: float, formulas: Formulas, run: Lanes) -> None:
    """Evaluate the score of one arm of each lane, the one that `Pull` has."""
    pull = run.pull
    choice = run.choice
    numbers = run.setting.numbers
    formulas.score(
        t,
        arms_of(run),
        pull.pulls,
        pull.mean,
        choice.still,
        choice.best,
        choice.worst,
        pull.memory,
        choice.top,
        choice.bottom,
        numbers,
        pull.score,
    )


@jit
def evaluate_learn(t: float, pulls: F64, mean: F64, formulas: Formulas, run: Lanes) -> None:
    """Evaluate the next values of the columns of one arm of each lane."""
    pull = run.pull
    numbers = run.setting.numbers
    formulas.learn(t, arms_of(run), pulls, mean, pull.reward, pull.probability, pull.memory, numbers, pull.learned)


@jit
def keep_anew(t: float, formulas: Formulas, run: Lanes) -> None:
    """Compute what is kept of pulls and mean between pulls for all arms: forgetting changes it at any time."""
    memory = run.statistics.memory
    for k in range(memory.shape[1]):
        for column in range(memory.shape[0]):
            for lane in range(memory.shape[2]):
                run.pull.memory[column, 0, lane] = memory[column, k, lane]
        evaluate_learn(t, run.estimates.pulls[k], run.statistics.mean[k], formulas, run)
        for column in range(run.estimates.columns, run.pull.learned.shape[0]):
            for lane in range(memory.shape[2]):
                memory[column, k, lane] = run.pull.learned[column, lane]


@jit
def optimistic_arms(t: float, formulas: Formulas, run: Lanes) -> None:
    """Find the largest scores by looking at those arms only whose bound is not below the score of another.

    A score never falls while its arm rests, so what it will be at a later round bounds it until then. The arm with the
    largest bound is looked at, its bound replaced by its score, until the largest is a score.
    """
    bounds = run.bounds
    pull = run.pull
    scores = run.choice.scores
    largest = run.choice.largest
    arm = run.choice.arm
    if t > bounds.until[0]:
        bounds.until[0] = t + EPOCH * arms_of(run)
        evaluate(formulas.score, bounds.until[0], run, run.choice.still, bounds.bound)
    for k in range(scores.shape[0]):
        for lane in range(scores.shape[1]):
            scores[k, lane] = bounds.bound[k, lane]
    largest_score(scores, largest, arm)
    while next_looks(t, arm, scores, largest, bounds.looked, bounds.candidate):
        gather(bounds.candidate, run.estimates.pulls, run.statistics.mean, pull.pulls, pull.mean)
        gather_memory(bounds.candidate, run.statistics.memory, pull.memory)
        evaluate_one(t, formulas, run)
        place(bounds.candidate, pull.score, scores)
        for lane in range(arm.size):
            bounds.looked[u64(bounds.candidate[lane]), lane] = t
        largest_score(scores, largest, arm)


@jit
def draw_ahead(rounds: int, formulas: Formulas, run: Lanes) -> None:
    """Draw what the policy and the problem need of noise for a block of rounds."""
    uses = run.uses
    noise = run.noise
    if uses.noisy:
        fill_noise(rounds, run.streams.policy, formulas.noise, uses.shared, noise.words, noise.z)
    elif uses.explores:
        draw_words(run.streams.policy, noise.words[:rounds].reshape(rounds, noise.words.shape[2]))
    if uses.uniform or uses.second or uses.normal:
        state = run.streams.problem
        words = noise.reward_words
        gaussian = formulas.gaussian
        fill_luck(rounds, state, gaussian, uses.uniform, uses.second, uses.normal, words, noise.uniform, noise.w)


@jit
def pull_fresh(arm: int, run: Lanes) -> None:
    """Choose the same arm, one never pulled, in every lane."""
    for lane in range(run.choice.arm.size):
        run.choice.arm[lane] = arm
        run.pull.probability[lane] = 1.0


@jit
def prepare_choice(now: float, formulas: Formulas, run: Lanes) -> bool:
    """Compute what formulas ask for besides pulls and means; return whether any lane has an arm that goes first."""
    statistics = run.statistics
    estimates = run.estimates
    choice = run.choice
    going_first = False
    if run.uses.forgets:
        if run.setting.fresh.size:
            going_first = arms_to_go_first(estimates.pulls, estimates.last, estimates.first)
        if run.pull.learned.shape[0] > estimates.columns:
            keep_anew(now, formulas, run)
    if run.uses.extremes:
        extreme_means(statistics.mean, choice.best, choice.worst)
    if run.uses.unsure:
        last = statistics.memory[statistics.memory.shape[0] - 1]
        gap_variances(estimates.pulls, statistics.mean, choice.best, choice.largest, last)
    for i in range(run.setting.tops.size):
        extreme_of(1.0, statistics.memory, run.setting.tops[i], choice.top)
    for i in range(run.setting.bottoms.size):
        extreme_of(-1.0, statistics.memory, run.setting.bottoms[i], choice.bottom)
    return going_first


@jit
def score_arms(t: int, now: float, z: F32, going_first: bool, formulas: Formulas, run: Lanes) -> None:
    """Find the arm of the largest score in every lane, marked where several have it."""
    uses = run.uses
    statistics = run.statistics
    choice = run.choice
    if uses.by_arm:
        if uses.clocked:
            read_clock(f64(t), formulas, run)
            largest_clocked(statistics.location, statistics.scale, run.clock.now[0], choice.largest, choice.arm)
        else:
            largest_affine(statistics.location, statistics.scale, z, choice.largest, choice.arm)
    elif uses.lazy:
        optimistic_arms(f64(t), formulas, run)
    else:
        if uses.weighted:
            evaluate(formulas.score, now, run, choice.still, statistics.location)
            add_noise(statistics.location, z, choice.scores)
        else:
            evaluate(formulas.score, now, run, z, choice.scores)
        if going_first:
            put_first(run.estimates.first, 1.0, choice.scores)
        largest_score(choice.scores, choice.largest, choice.arm)


@jit
def choose_arms(t: int, now: float, r: int, formulas: Formulas, run: Lanes) -> None:
    """Choose an arm in every lane: by the scores, by exploration, or because all its rewards are forgotten."""
    uses = run.uses
    choice = run.choice
    weights = run.weights
    location = run.statistics.location
    going_first = prepare_choice(now, formulas, run)
    z = run.noise.z[r]
    score_arms(t, now, z, going_first, formulas, run)
    if any_tie(choice.arm):
        if uses.by_arm:
            tied_scores(choice.arm, location, run.statistics.scale, z, uses.clocked, run.clock.now[0], choice.scores)
        watch(t, choice.largest, choice.failed)
        break_ties(choice.scores, choice.largest, choice.arm, run.streams.ties)
    if uses.explores:
        evaluate(formulas.explore, now, run, choice.still, weights.floors)
        if going_first:
            put_first(run.estimates.first, 0.0, weights.floors)
        words = run.noise.words[r, run.noise.words.shape[1] - 1]
        take_explored(t, words, weights.floors, weights.explored, choice.arm, choice.failed)
    if uses.weighted:
        total_weight(location, weights.peak, weights.weight)
        probabilities(choice.arm, location, weights, run.pull.probability)
        if going_first:
            certain(run.estimates.first, run.pull.probability)


@jit
def draw_rewards(t: float, r: int, formulas: Formulas, run: Lanes) -> None:
    """Count a pull of each lane's arm, and draw its reward."""
    arm = run.choice.arm
    pull = run.pull
    setting = run.setting
    count_pull(arm, run.statistics.pulls, pull.pulls)
    formulas.reward(t, arm, pull.pulls[0], run.noise.uniform[r], run.noise.w[r], setting.arm_numbers, pull.reward)
    corrupt(t, setting.corruptions, arm, pull.pulls[0], pull.reward)
    if setting.limits.size:
        count_outside(setting.limits, pull.reward, pull.outside)


@jit
def weigh_rewards(number: int, counting: int, formulas: Formulas, run: Lanes) -> None:
    """Have an estimator that looks at all rewards look at the last ``counting`` of them."""
    own = run.estimates
    mean = run.statistics.mean
    formulas.weigh(number, counting, own.discount, own.numbers, own.recent, mean, run.choice.arm, run.pull.mean[0])


@jit
def estimate_means(t: float, number: int, formulas: Formulas, run: Lanes) -> None:
    """Have the estimator learn each lane's reward, the ``number``-th."""
    statistics = run.statistics
    estimates = run.estimates
    pull = run.pull
    arm = run.choice.arm
    if run.uses.inline:
        average(arm, pull.pulls[0], pull.reward, statistics.total, statistics.lost, statistics.mean, pull.mean[0])
    else:
        formulas.estimate(
            arm,
            pull.reward,
            estimates.discount,
            estimates.numbers,
            estimates.kept,
            estimates.pulls,
            statistics.mean,
            estimates.variance,
            pull.pulls[0],
            pull.mean[0],
        )
    if run.uses.forgets:
        note_pull(t, arm, estimates.last)
        if estimates.discount < 1.0:
            fade_columns(estimates.discount, estimates.columns, statistics.memory)
        if estimates.recent.size:
            remember(number, arm, pull.reward, estimates.recent)
            if run.uses.weighs and run.uses.learns:
                weigh_rewards(number, min(number, estimates.recent.shape[0]), formulas, run)


@jit
def learn_columns(now: float, number: int, formulas: Formulas, run: Lanes) -> None:
    """Compute the next values of the pulled arms' columns."""
    arm = run.choice.arm
    memory = run.statistics.memory
    pull = run.pull
    estimates = run.estimates
    gather_memory(arm, memory, pull.memory)
    evaluate_learn(now, pull.pulls[0], pull.mean[0], formulas, run)
    if estimates.recent.size:
        note_additions(number, estimates.columns, pull.learned, pull.memory, estimates.recent)
    scatter_memory(arm, pull.learned, memory, pull.memory)


@jit
def forget_rewards(number: int, formulas: Formulas, run: Lanes) -> None:
    """Leave out the reward that has fallen out of the window, and count the rewards that are left."""
    statistics = run.statistics
    estimates = run.estimates
    counting = estimates.counting
    window = estimates.recent.shape[0] - 1
    counting[0] = counting[0] * estimates.discount + 1.0
    if estimates.recent.size:
        if estimates.discount == 1.0:
            formulas.forget(
                number,
                estimates.columns,
                estimates.numbers,
                estimates.kept,
                estimates.recent,
                statistics.memory,
                estimates.pulls,
                statistics.mean,
                estimates.variance,
            )
            counting[0] = min(counting[0], f64(window))
        if run.uses.weighs:
            weigh_rewards(number, min(number, window), formulas, run)


@jit
def renew_scores(t: int, formulas: Formulas, run: Lanes) -> None:
    """Compute what is kept of the pulled arms' scores until their next pulls."""
    statistics = run.statistics
    pull = run.pull
    arm = run.choice.arm
    if run.uses.by_arm:
        numbers = run.setting.numbers
        pulls = pull.pulls[0]
        mean = pull.mean[0]
        formulas.affine(EARLY, LATE, arms_of(run), pulls, mean, pull.memory, numbers, pull.location, pull.scale)
        watch(t, pull.location, run.choice.failed)
        watch(t, pull.scale, run.choice.failed)
        refresh(arm, pull.location, pull.scale, statistics.location, statistics.scale)
    elif run.uses.lazy:
        evaluate_one(run.bounds.until[0], formulas, run)
        place(arm, pull.score, run.bounds.bound)


@jit
def play_round(t: int, number: int, r: int, formulas: Formulas, run: Lanes) -> None:
    """Play round ``t``, the ``number``-th of the run, with row ``r`` of the noise that was drawn ahead."""
    now = run.estimates.counting[0] + 1.0 if run.uses.forgets else f64(t)  # the round that formulas see
    if number <= run.setting.fresh.size:  # the rule of `goes_first`, for arms never pulled: the same in every lane
        pull_fresh(run.setting.fresh[number - 1], run)
    else:
        choose_arms(t, now, r, formulas, run)
    draw_rewards(f64(t), r, formulas, run)
    estimate_means(f64(t), number, formulas, run)
    if run.uses.learns:
        learn_columns(now, number, formulas, run)
    if run.uses.forgets:
        forget_rewards(number, formulas, run)
    renew_scores(t, formulas, run)


@jit
def play(start: int, done: int, end: int, formulas: Formulas, run: Lanes, checkpoints: I64, regret: F64) -> None:
    """Play rounds ``done`` + 1 to ``end`` of a run that began after round ``start``, leaving all for the next call."""
    run = uncounted(run)  # or every field that is read would cost a reference count
    if run.uses.clocked:
        start_clock(formulas, run)
    mark = np.searchsorted(checkpoints, done + 1)
    t = done
    while t < end:
        rounds = min(end - t, run.noise.z.shape[0])
        draw_ahead(rounds, formulas, run)
        for r in range(rounds):
            t += 1
            play_round(t, t - start, r, formulas, run)
            if mark < checkpoints.size and t == checkpoints[mark]:
                record_regret(run.statistics.pulls, run.setting.before, run.setting.gaps, regret[mark])
                mark += 1
