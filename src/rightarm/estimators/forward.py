"""Forward substitution with the factor of an arrowhead for eight arms at once, written for LLVM's vectors by hand.

The loops are so short that the tests with which LLVM begins a vectorised loop would take longer than the loop itself;
here a column of v = R⁻ᵀ row stays in a register for eight arms. The layout is that of `rightarm.estimators.arrowhead`.
"""

from __future__ import annotations

from typing import Any

from rightarm.formula.compile import MachineOperation

VECTOR = 8  # arms side by side in the widest registers
MOST = 2.0**60  # pulls of a row that is nothing but zeros, about which everything is known
SPLIT = 2.0**13 + 1.0  # leaves 40 of the 53 bits of a number: equal histories must tie however they were rounded


class Vectors:
    """Vectors of doubles, a number for each of eight arms, in code that is being built."""

    def __init__(self, builder: Any) -> None:
        from llvmlite import ir

        self.ir, self.builder = ir, builder
        self.kind, self.whole = ir.VectorType(ir.DoubleType(), VECTOR), ir.IntType(64)

    def constant(self, value: float) -> Any:
        """The same number for all."""
        return self.ir.Constant(self.kind, [value] * VECTOR)

    def same(self, value: Any) -> Any:
        """The same computed number for all."""
        first = self.builder.insert_element(self.constant(0.0), value, self.ir.Constant(self.ir.IntType(32), 0))
        return self.builder.shuffle_vector(
            first, self.constant(0.0), self.ir.Constant(self.ir.VectorType(self.ir.IntType(32), VECTOR), [0] * VECTOR)
        )

    def _address(self, data: Any, place: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(data, [place]), self.kind.as_pointer())

    def load(self, data: Any, place: Any) -> Any:
        """Eight numbers from a place on."""
        loaded = self.builder.load(self._address(data, place))
        loaded.align = 8
        return loaded

    def store(self, value: Any, data: Any, place: Any) -> None:
        """Put eight numbers from a place on."""
        self.builder.store(value, self._address(data, place)).align = 8

    def call(self, name: str, *arguments: Any) -> Any:
        """An operation of LLVM on such vectors."""
        full, module = f"llvm.{name}.v{VECTOR}f64", self.builder.module
        known = module.globals.get(full)
        kind = self.ir.FunctionType(self.kind, [self.kind] * len(arguments))
        return self.builder.call(known if known is not None else self.ir.Function(module, kind, full), arguments)

    def number(self, value: int) -> Any:
        """A whole number."""
        return self.ir.Constant(self.whole, value)


def _build() -> Any:
    from numba import types
    from numba.core import cgutils as untyped
    from numba.extending import intrinsic

    cgutils: Any = untyped

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rest, factor, common = (
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args[:3], arguments[:3], strict=True)
        )
        first, own, joint = arguments[3:]
        vectors = Vectors(builder)
        load, number, add, mul = vectors.load, vectors.number, builder.add, builder.mul
        room = cgutils.unpack_tuple(builder, factor.shape, 2)[1]
        width = cgutils.unpack_tuple(builder, common.shape, 2)[1]
        zero, one = vectors.constant(0.0), number(1)
        infinite = vectors.constant(float("inf"))
        squares = cgutils.alloca_once_value(builder, zero)
        product = cgutils.alloca_once_value(builder, zero)
        place = cgutils.alloca_once_value(builder, number(0))

        def rounded(x: Any) -> Any:
            large = builder.fmul(vectors.constant(SPLIT), x)
            return builder.fsub(large, builder.fsub(large, x))

        def of_row(row: Any) -> Any:
            return mul(row, number(VECTOR))

        def solved(left: Any, inverse: Any) -> Any:
            """The next column of v; its square is added to v · v."""
            v = builder.fmul(left, inverse)
            nothing = builder.fcmp_ordered("==", inverse, zero)
            unknown = builder.and_(nothing, builder.fcmp_ordered(">", vectors.call("fabs", left), tiny))
            square = builder.select(unknown, infinite, builder.fmul(v, v))
            builder.store(builder.fadd(builder.load(squares), square), squares)
            return v

        def less(row: Any, entry: Any, v: Any) -> Any:
            """Take entry · v from a row that is left."""
            there = of_row(row)
            left = vectors.call("fma", builder.fneg(entry), v, load(rest.data, there))
            vectors.store(left, rest.data, there)
            return left

        def predict(entry: Any, v: Any) -> None:
            builder.store(vectors.call("fma", entry, v, builder.load(product)), product)

        def of_factor(row: Any) -> Any:
            return load(factor.data, add(mul(row, room), first))

        def of_common(row: Any, column: Any) -> Any:
            return vectors.same(builder.load(builder.gep(common.data, [add(mul(row, width), column)])))

        tiny = load(rest.data, of_row(add(own, joint)))  # before results take its place

        # The next row that is needed stays in a register. Behind the last one stands a row of results, not yet there.
        following = cgutils.alloca_once_value(builder, load(rest.data, number(0)))
        with cgutils.for_range(builder, own) as outer:
            start, j = builder.load(place), outer.index
            v = solved(builder.load(following), of_factor(start))
            size = add(builder.sub(own, j), joint)
            builder.store(less(add(j, one), of_factor(add(start, number(2))), v), following)
            with cgutils.for_range(builder, size, intp=size.type, start=number(2)) as inner:
                less(add(j, inner.index), of_factor(add(add(start, one), inner.index)), v)
            predict(of_factor(add(add(start, one), size)), v)
            builder.store(add(add(start, size), number(2)), place)
        with cgutils.for_range(builder, joint) as outer:
            j = outer.index
            v = solved(load(rest.data, of_row(add(own, j))), of_common(j, number(0)))
            predict(of_common(j, add(joint, one)), v)
            with cgutils.for_range(builder, builder.sub(builder.sub(joint, j), one)) as inner:
                after = add(add(j, one), inner.index)
                less(add(own, after), of_common(j, add(after, one)), v)
        known = builder.fcmp_ordered("<", builder.load(squares), infinite)
        inverse = builder.fdiv(vectors.constant(1.0), builder.load(squares))
        pulls = vectors.call("minnum", inverse, vectors.constant(MOST))
        result = add(own, joint)
        vectors.store(builder.select(known, rounded(pulls), zero), rest.data, of_row(result))
        mean = builder.select(known, rounded(builder.load(product)), zero)
        vectors.store(mean, rest.data, of_row(add(result, one)))
        return context.get_dummy_value()

    @intrinsic
    def forward(
        typing_context: Any,
        rest: Any,
        factor: Any,
        common: Any,
        first: Any,
        own: Any,
        joint: Any,
    ) -> Any:
        whole = types.intp
        return types.void(rest, factor, common, whole, whole, whole), generate

    return forward


forward = MachineOperation(_build)
"""Compiled: ``forward(rest, factor, common, first, own, joint)`` for the eight arms from ``first`` on.

``rest`` has their rows, a row for each column and eight numbers in it, and is used up; the pulls 1/(v · v) and the
means v · u, both to 40 bits, go to the two rows behind. In the first of these stands before how large a number may be
that is nothing but rounding: more of it in a direction of which nothing is known makes both 0.
"""
