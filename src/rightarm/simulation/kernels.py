"""The arg max over arms, a block of lanes at a time, written for LLVM's vectors by hand.

LLVM vectorises inner loops only. Here the inner loop is over arms and the vector over lanes, so that the largest score
and its arm stay in registers. Plain Numba, which keeps them in memory, takes 2.4 times as long with 2 or 10 arms, and
1.3 times with 100 (`python -m benchmarks.argmax`). One generator makes the loop for three kinds of score; no more of
the engine is written like this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rightarm.formula.compile import MachineOperation, fma, jit
from rightarm.formula.elementary import exp
from rightarm.policies.inputs import FORGOTTEN, explored_or_chosen, goes_first
from rightarm.simulation.lanes import CompiledFunction, Weights
from rightarm.streams import HIGH, draw_words
from rightarm.types import F32, F64, I64, U32

WIDTH = 32  # lanes of a block: four registers of AVX-512, eight of AVX2
TIE = 1 << 40  # marks an arm's index when another arm has the same score

Builder = Any  # llvmlite's, which writes instructions
Value = Any  # a register, or an address
Load = Callable[[int], Value]  # the block of the argument that has this number
Emit = Callable[[Builder, Load, Value], Value]  # (builder, loader, the argument z) → the scores of a block


def _operation(score: Emit, watched: bool = False) -> MachineOperation:
    """Return the operation (location, scale, z, first lane, largest, arm) that fills the last two for a block.

    If ``watched``, a lane with a score that is not a number has NaN as its largest, and its arm is marked.
    """

    def build() -> Value:
        from llvmlite import ir
        from numba import types
        from numba.core import cgutils as untyped
        from numba.extending import intrinsic

        cgutils: Value = untyped
        doubles = ir.VectorType(ir.DoubleType(), WIDTH)
        indices = ir.VectorType(ir.IntType(64), WIDTH)
        marks = ir.Constant(indices, [TIE] * WIDTH)
        nans = ir.Constant(doubles, [float("nan")] * WIDTH)
        none = ir.Constant(ir.VectorType(ir.IntType(1), WIDTH), [0] * WIDTH)

        @intrinsic
        def largest(
            typing_context: Value, location: Value, scale: Value, z: Value, lane: Value, largest: Value, arm: Value
        ) -> Value:
            def generate(context: Value, builder: Builder, signature: Value, arguments: Value) -> Value:
                arrays = [
                    context.make_array(kind)(context, builder, value) if isinstance(kind, types.Array) else value
                    for kind, value in zip(signature.args, arguments, strict=True)
                ]
                arms, lanes = cgutils.unpack_tuple(builder, arrays[0].shape, 2)
                first = arguments[3]
                best = cgutils.alloca_once_value(builder, ir.Constant(doubles, [float("-inf")] * WIDTH))
                index = cgutils.alloca_once_value(builder, marks)  # scores that are all −∞ tie
                broken = cgutils.alloca_once_value(builder, none)
                with cgutils.for_range(builder, arms) as loop:
                    offset = builder.add(builder.mul(loop.index, lanes), first)
                    s = score(builder, lambda i: load_block(builder, arrays[i].data, offset), arrays[2])
                    before = builder.load(best)
                    arm_before = builder.load(index)
                    equal = builder.fcmp_ordered("==", s, before)
                    above = builder.fcmp_ordered(">", s, before)
                    tied = builder.select(equal, builder.or_(arm_before, marks), arm_before)
                    builder.store(builder.select(above, splat(builder, loop.index), tied), index)
                    builder.store(builder.select(above, s, before), best)
                    if watched:
                        builder.store(builder.or_(builder.load(broken), builder.fcmp_unordered("uno", s, s)), broken)
                failed = builder.load(broken)
                store_block(builder, builder.select(failed, nans, builder.load(best)), arrays[4].data, first)
                store_block(builder, builder.select(failed, marks, builder.load(index)), arrays[5].data, first)
                return context.get_dummy_value()

            return types.void(location, scale, z, types.intp, largest, arm), generate

        return largest

    return MachineOperation(build)


def splat(builder: Builder, value: Value) -> Value:
    """Return a vector of WIDTH times ``value``."""
    from llvmlite import ir

    i32 = ir.IntType(32)
    empty = ir.Constant(ir.VectorType(value.type, WIDTH), ir.Undefined)
    one = builder.insert_element(empty, value, ir.Constant(i32, 0))
    return builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(i32, WIDTH), [0] * WIDTH))


def _block(builder: Builder, data: Value, offset: Value, element: Value) -> Value:
    """Return the address of WIDTH numbers from ``offset`` on."""
    from llvmlite import ir

    return builder.bitcast(builder.gep(data, [offset]), ir.VectorType(element, WIDTH).as_pointer())


def load_block(builder: Builder, data: Value, offset: Value) -> Value:
    """Return WIDTH numbers from ``offset`` on, as float64."""
    from llvmlite import ir

    element = data.type.pointee
    loaded = builder.load(_block(builder, data, offset, element))
    loaded.align = 8 if isinstance(element, ir.DoubleType) else 4
    wide = ir.VectorType(ir.DoubleType(), WIDTH)
    return loaded if isinstance(element, ir.DoubleType) else builder.fpext(loaded, wide)


def store_block(builder: Builder, value: Value, data: Value, offset: Value) -> None:
    """Put WIDTH numbers from ``offset`` on."""
    stored = builder.store(value, _block(builder, data, offset, value.type.element))
    stored.align = 8


def _fma(builder: Builder, a: Value, b: Value, c: Value) -> Value:
    """Return a·b + c with one rounding, as `compile.fma` has it for single numbers."""
    from llvmlite import ir

    name = f"llvm.fma.v{WIDTH}f64"
    module = builder.module
    if name not in module.globals:
        ir.Function(module, ir.FunctionType(a.type, [a.type] * 3), name)
    return builder.call(module.globals[name], [a, b, c])


_plain = _operation(lambda builder, load, z: load(0), watched=True)
_noisy = _operation(lambda builder, load, z: _fma(builder, load(1), load(2), load(0)))
_clocked = _operation(lambda builder, load, z: _fma(builder, load(1), splat(builder, z), load(0)))


@jit
def largest_score(score: F64, largest: F64, arm: I64) -> None:
    """Find the arm of the largest score in every lane, marked where another has it too or one is not a number."""
    for lane in range(0, arm.size, WIDTH):
        _plain(score, score, 0.0, lane, largest, arm)


@jit
def largest_affine(location: F64, scale: F64, z: F32, largest: F64, arm: I64) -> None:
    """Find the arm of the largest location + scale·z in every lane, marked if another has it too."""
    for lane in range(0, arm.size, WIDTH):
        _noisy(location, scale, z, lane, largest, arm)


@jit
def largest_clocked(location: F64, scale: F64, clock: float, largest: F64, arm: I64) -> None:
    """Find the arm of the largest location + scale·clock in every lane; all lanes have the same clock."""
    for lane in range(0, arm.size, WIDTH):
        _clocked(location, scale, clock, lane, largest, arm)


# Everything is an array of lanes (replications), or of arms × lanes, with lanes contiguous. A pass is free of branches,
# so that LLVM turns it into vector code; one loop that did all at once would not become that.

i64 = np.int64
u32 = np.uint32
u64 = np.uint64
f64 = np.float64


@jit
def fill_noise(rounds: int, state: U32, noise: CompiledFunction, shared: bool, words: U32, z: F32) -> None:
    """Draw the policy's noise for a block of rounds: a row for each arm, and one for exploration if there is any.

    What arms share is the draw of the first.
    """
    arms = words.shape[1]
    lanes = words.shape[2]
    draw_words(state, words[:rounds].reshape(rounds * arms, lanes))
    noise(words[:rounds].reshape(rounds * arms * lanes), z[:rounds].reshape(rounds * arms * lanes))
    if shared:
        for r in range(rounds):
            for k in range(1, arms):
                for lane in range(lanes):
                    z[r, k, lane] = z[r, 0, lane]


@jit
def extreme_means(mean: F64, best: F64, worst: F64) -> None:
    """Find the largest and the smallest mean of every lane."""
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
    """Compute the variance of each gap to the best mean as `rightarm.policies.inputs` does; ``widest`` is scratch."""
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
    """Find the largest value of a column in every lane, or the smallest if ``sign`` is −1."""
    for lane in range(out.shape[1]):
        out[column, lane] = memory[column, 0, lane]
    for k in range(1, memory.shape[1]):
        for lane in range(out.shape[1]):
            value = memory[column, k, lane]
            before = out[column, lane]
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
    """Record the first round in which one of ``values`` was not a number."""
    numbers = True
    for lane in range(values.size):
        numbers &= values[lane] == values[lane]
    if not numbers and failed[0] == 0:
        failed[0] = t


@jit
def any_tie(arm: I64) -> bool:
    """Return whether an arm of any lane is marked."""
    marks = i64(0)
    for lane in range(arm.size):
        marks |= arm[lane]
    return bool(marks >= TIE)


@jit
def tied_scores(arm: I64, location: F64, scale: F64, z: F32, clocked: bool, now: float, score: F64) -> None:
    """Compute the scores that an affine arg max does not store, for the lanes that need them."""
    for lane in range(arm.size):
        if arm[lane] >= TIE:
            for k in range(arm[lane] - TIE, score.shape[0]):
                score[k, lane] = fma(scale[k, lane], now if clocked else f64(z[k, lane]), location[k, lane])


@jit
def add_noise(location: F64, z: F32, score: F64) -> None:
    """Compute location + z."""
    for k in range(score.shape[0]):
        for lane in range(score.shape[1]):
            score[k, lane] = location[k, lane] + f64(z[k, lane])


@jit
def total_weight(location: F64, peak: F64, weight: F64) -> None:
    """Compute the largest location of every lane, and the sum of exp(location − largest)."""
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
            low = explored[lane]
            high = low + floors[k, lane]
            arm[lane] = k if (share >= low) & (share < high) else arm[lane]
            explored[lane] = high
            sound &= floors[k, lane] >= 0.0
    for lane in range(arm.size):
        sound &= explored[lane] <= 1.0 + 1e-9
    if not sound and failed[1] == 0:
        failed[1] = t


@jit
def probabilities(arm: I64, location: F64, weights: Weights, probability: F64) -> None:
    """Compute the probability that each lane's decision had."""
    for lane in range(arm.size):
        k = u64(arm[lane])
        by_score = exp(location[k, lane] - weights.peak[lane]) / weights.weight[lane]
        probability[lane] = explored_or_chosen(weights.floors[k, lane], weights.explored[lane], by_score)


@jit
def gather(arm: I64, pulls: F64, mean: F64, pulls_of: F64, mean_of: F64) -> None:
    """Copy the statistics of one arm of each lane."""
    for lane in range(arm.size):
        k = u64(arm[lane])
        pulls_of[0, lane] = pulls[k, lane]
        mean_of[0, lane] = mean[k, lane]


@jit
def gather_memory(arm: I64, memory: F64, memory_of: F64) -> None:
    """Copy the columns of one arm of each lane."""
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
def next_looks(t: float, arm: I64, scores: F64, largest: F64, looked: F64, candidate: I64) -> bool:
    """Find the arm to look at next in every lane, one with the largest value; return whether there is any."""
    pending = False
    for lane in range(arm.size):
        k = arm[lane] & (TIE - 1)
        if arm[lane] >= TIE:  # of those that tie, one that was not looked at
            for other in range(k, scores.shape[0]):
                if scores[other, lane] == largest[lane] and looked[other, lane] != t:
                    k = other
                    break
        pending |= looked[k, lane] != t
        candidate[lane] = k
    return pending


@jit
def place(arm: I64, values: F64, out: F64) -> None:
    """Put one value for one arm of each lane in its place."""
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
    low = limits[0]
    high = limits[1]
    for lane in range(reward.size):
        outside[lane] += f64((reward[lane] < low) | (reward[lane] > high))


@jit
def refresh(arm: I64, new_location: F64, new_scale: F64, location: F64, scale: F64) -> None:
    """Put location and scale of the pulled arms' scores in their places."""
    for lane in range(arm.size):
        k = u64(arm[lane])
        location[k, lane] = new_location[lane]
        scale[k, lane] = new_scale[lane]


@jit
def record_regret(pulls: F64, before: F64, gaps: F64, out: F64) -> None:
    """Compute Σ_i Δ_i N_i of every lane, pulls from before the run left out."""
    for lane in range(out.size):
        out[lane] = 0.0
    for k in range(gaps.shape[0]):
        for lane in range(out.size):
            out[lane] += gaps[k, lane] * (pulls[k, lane] - before[k])


@jit
def arms_to_go_first(pulls: F64, last: F64, first: I64) -> bool:
    """Find the arm of each lane whose rewards are all forgotten; return whether any lane has one."""
    found = False
    for lane in range(first.size):
        first[lane] = goes_first(pulls[:, lane], last[:, lane])
        found |= first[lane] >= 0
    return found


@jit
def put_first(first: I64, value: float, values: F64) -> None:
    """Put ``value`` for an arm that goes first and zeros for all others, which formulas could not give."""
    for lane in range(first.size):
        if first[lane] >= 0:
            for k in range(values.shape[0]):
                values[k, lane] = value if k == first[lane] else 0.0


@jit
def certain(first: I64, probability: F64) -> None:
    """Set the probability of an arm that goes first, which is 1."""
    for lane in range(first.size):
        if first[lane] >= 0:
            probability[lane] = 1.0


@jit
def note_pull(t: float, arm: I64, last: F64) -> None:
    """Record the round of each lane's pull."""
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
    """Record what each lane's reward has added to the columns, to be taken away when it is forgotten."""
    entry = number % recent.shape[0]
    for column in range(columns):
        for lane in range(recent.shape[1]):
            recent[entry, lane, 2 + column] = learned[column, lane] - before[column, 0, lane]
