"""The arg max over arms, a block of lanes at a time, written for LLVM's vectors by hand.

LLVM vectorises inner loops only. Here the inner loop is over arms and the vector over lanes, so that the largest score
and its arm stay in registers; the same as two nested loops in Numba keeps them in memory and takes more than twice as
long. One generator makes the loop for three kinds of score; no more of the engine is written like this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rightarm.formula.compile import MachineOperation, jit
from rightarm.types import F32, F64, I64

WIDTH = 32  # lanes of a block: four registers of AVX-512, eight of AVX2
TIE = 1 << 40  # marks an arm's index when another arm has the same score

Emit = Callable[[Any, Any, Any], Any]  # (builder, loader of a row's block, the argument z) → the scores of the block


def _operation(score: Emit, watched: bool = False) -> MachineOperation:
    """The operation (location, scale, z, first lane, largest, arm) that leaves the last two filled for a block.

    If ``watched``, a lane with a score that is not a number has NaN as its largest, and its arm is marked.
    """

    def build() -> Any:
        from llvmlite import ir
        from numba import types
        from numba.core import cgutils as untyped
        from numba.extending import intrinsic

        cgutils: Any = untyped
        doubles, indices = ir.VectorType(ir.DoubleType(), WIDTH), ir.VectorType(ir.IntType(64), WIDTH)
        marks, nans = ir.Constant(indices, [TIE] * WIDTH), ir.Constant(doubles, [float("nan")] * WIDTH)
        none = ir.Constant(ir.VectorType(ir.IntType(1), WIDTH), [0] * WIDTH)

        @intrinsic
        def largest(typing_context: Any, location: Any, scale: Any, z: Any, lane: Any, largest: Any, arm: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
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
                    before, arm_before = builder.load(best), builder.load(index)
                    equal, above = (builder.fcmp_ordered(test, s, before) for test in ("==", ">"))
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


def splat(builder: Any, value: Any) -> Any:
    """A vector of WIDTH times ``value``."""
    from llvmlite import ir

    i32 = ir.IntType(32)
    empty = ir.Constant(ir.VectorType(value.type, WIDTH), ir.Undefined)
    one = builder.insert_element(empty, value, ir.Constant(i32, 0))
    return builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(i32, WIDTH), [0] * WIDTH))


def _block(builder: Any, data: Any, offset: Any, element: Any) -> Any:
    """The address of WIDTH numbers from ``offset`` on."""
    from llvmlite import ir

    return builder.bitcast(builder.gep(data, [offset]), ir.VectorType(element, WIDTH).as_pointer())


def load_block(builder: Any, data: Any, offset: Any) -> Any:
    """WIDTH numbers from ``offset`` on, as float64."""
    from llvmlite import ir

    element = data.type.pointee
    loaded = builder.load(_block(builder, data, offset, element))
    loaded.align = 8 if isinstance(element, ir.DoubleType) else 4
    wide = ir.VectorType(ir.DoubleType(), WIDTH)
    return loaded if isinstance(element, ir.DoubleType) else builder.fpext(loaded, wide)


def store_block(builder: Any, value: Any, data: Any, offset: Any) -> None:
    """Put WIDTH numbers from ``offset`` on."""
    stored = builder.store(value, _block(builder, data, offset, value.type.element))
    stored.align = 8


def _fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a·b + c with one rounding, as `compile.fma` has it for single numbers."""
    from llvmlite import ir

    name, module = f"llvm.fma.v{WIDTH}f64", builder.module
    known = module.globals.get(name)
    fma = known if known is not None else ir.Function(module, ir.FunctionType(a.type, [a.type] * 3), name)
    return builder.call(fma, [a, b, c])


_plain = _operation(lambda builder, load, z: load(0), watched=True)
_noisy = _operation(lambda builder, load, z: _fma(builder, load(1), load(2), load(0)))
_clocked = _operation(lambda builder, load, z: _fma(builder, load(1), splat(builder, z), load(0)))


@jit
def largest_score(score: F64, largest: F64, arm: I64) -> None:
    """The arm of the largest score in every lane, marked where another has it too or one is not a number."""
    for lane in range(0, arm.size, WIDTH):
        _plain(score, score, 0.0, lane, largest, arm)


@jit
def largest_affine(location: F64, scale: F64, z: F32, largest: F64, arm: I64) -> None:
    """The arm of the largest location + scale·z in every lane, marked if another has it too; no score is stored."""
    for lane in range(0, arm.size, WIDTH):
        _noisy(location, scale, z, lane, largest, arm)


@jit
def largest_clocked(location: F64, scale: F64, clock: float, largest: F64, arm: I64) -> None:
    """The arm of the largest location + scale·clock in every lane, the clock being one number for all of them."""
    for lane in range(0, arm.size, WIDTH):
        _clocked(location, scale, clock, lane, largest, arm)
