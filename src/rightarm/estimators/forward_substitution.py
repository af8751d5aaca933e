"""Forward substitution with the factor of a ridge regression for eight arms at once, in LLVM's vectors by hand.

The layout is that of `rightarm.estimators.ridge_regression`. Most regressions are small: the tests with which LLVM
begins a vectorised loop would take longer than the loop itself. Here a column of v = R⁻ᵀ row stays in a register.

``python -m benchmarks.forward`` compares it with the plainest loop in Numba, which gives the same numbers: that takes
1.4 to 1.7 times as long for ten arms, as most simulations have, and 0.6 to 0.9 times for a hundred and more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rightarm.formula.compile import MachineOperation

if TYPE_CHECKING:
    from llvmlite import ir

VECTOR = 8  # arms side by side in the widest registers
MOST = 2.0**60  # pulls of a row that is nothing but zeros, about which everything is known
SPLIT = 2.0**13 + 1.0  # leaves 40 of the 53 bits of a number: equal histories must tie however they were rounded


class Vectors:
    """Vectors of doubles, a number for each of eight arms, in code that is being built."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        from llvmlite import ir

        self.ir = ir
        self.builder = builder
        self.kind = ir.VectorType(ir.DoubleType(), VECTOR)
        self.places = ir.VectorType(ir.IntType(32), VECTOR)

    def constant(self, value: float) -> ir.Value:
        """Return the same number for all."""
        return self.ir.Constant(self.kind, [value] * VECTOR)

    def repeat(self, value: ir.Value) -> ir.Value:
        """Return the same computed number for all."""
        zero = self.constant(0.0)
        first = self.builder.insert_element(zero, value, self.ir.Constant(self.ir.IntType(32), 0))
        return self.builder.shuffle_vector(first, zero, self.ir.Constant(self.places, [0] * VECTOR))

    def load(self, data: ir.Value, place: ir.Value) -> ir.Value:
        """Return eight numbers from a place on."""
        loaded = self.builder.load(self._address(data, place))
        loaded.align = 8
        return loaded

    def store(self, value: ir.Value, data: ir.Value, place: ir.Value) -> None:
        """Write eight numbers from a place on."""
        self.builder.store(value, self._address(data, place)).align = 8

    def _address(self, data: ir.Value, place: ir.Value) -> ir.Value:
        return self.builder.bitcast(self.builder.gep(data, [place]), self.kind.as_pointer())

    def call(self, name: str, *arguments: ir.Value) -> ir.Value:
        """Return the result of an operation of LLVM on such vectors."""
        full = f"llvm.{name}.v{VECTOR}f64"
        module = self.builder.module
        operation = module.globals.get(full)
        if operation is None:
            kind = self.ir.FunctionType(self.kind, [self.kind] * len(arguments))
            operation = self.ir.Function(module, kind, full)
        return self.builder.call(operation, arguments)

    def rounded(self, x: ir.Value) -> ir.Value:
        """Return numbers to 40 bits."""
        large = self.builder.fmul(self.constant(SPLIT), x)
        return self.builder.fsub(large, self.builder.fsub(large, x))

    def number(self, value: int) -> ir.Value:
        """Return a whole number."""
        return self.ir.Constant(self.ir.IntType(64), value)


class Substitution:
    """The code of one forward substitution while it is built; arrays are Numba's."""

    def __init__(self, builder: ir.IRBuilder, arrays: list[Any], sizes: list[ir.Value]) -> None:
        from numba.core import cgutils

        self.tools: Any = cgutils
        self.builder = builder
        self.vectors = Vectors(builder)
        self.rest, self.factor, self.common = arrays
        self.first, self.own, self.joint = sizes
        self.room = cgutils.unpack_tuple(builder, self.factor.shape, 2)[1]  # type: ignore[no-untyped-call]
        self.width = cgutils.unpack_tuple(builder, self.common.shape, 2)[1]  # type: ignore[no-untyped-call]
        self.zero = self.vectors.constant(0.0)
        self.infinite = self.vectors.constant(float("inf"))
        self.squares = self.tools.alloca_once_value(builder, self.zero)  # v · v
        self.product = self.tools.alloca_once_value(builder, self.zero)  # v · u
        result = builder.add(self.own, self.joint)
        self.tiny = self._load_rest(result)  # before results take its place

    def build(self) -> None:
        """Write the whole code."""
        self._private_columns()
        self._shared_columns()
        self._results()

    def _private_columns(self) -> None:
        """Solve for the private columns, from the rows of ``factor``."""
        builder = self.builder
        number = self.vectors.number
        place = self.tools.alloca_once_value(builder, number(0))
        # The next row that is needed stays in a register. Behind the last one stands a row of results, not yet there.
        following = self.tools.alloca_once_value(builder, self._load_rest(number(0)))
        with self.tools.for_range(builder, self.own) as outer:
            start = builder.load(place)
            after = builder.add(start, number(1))
            v = self._solve(builder.load(following), self._load_factor(start))
            size = builder.add(builder.sub(self.own, outer.index), self.joint)
            next_row = builder.add(outer.index, number(1))
            builder.store(self._subtract(next_row, self._load_factor(builder.add(start, number(2))), v), following)
            with self.tools.for_range(builder, size, intp=size.type, start=number(2)) as inner:
                entry = self._load_factor(builder.add(after, inner.index))
                self._subtract(builder.add(outer.index, inner.index), entry, v)
            self._predict(self._load_factor(builder.add(after, size)), v)
            builder.store(builder.add(builder.add(start, size), number(2)), place)

    def _shared_columns(self) -> None:
        """Solve for the shared columns, from the rows of ``common``."""
        builder = self.builder
        one = self.vectors.number(1)
        with self.tools.for_range(builder, self.joint) as outer:
            j = outer.index
            v = self._solve(self._load_rest(builder.add(self.own, j)), self._load_common(j, self.vectors.number(0)))
            self._predict(self._load_common(j, builder.add(self.joint, one)), v)
            with self.tools.for_range(builder, builder.sub(builder.sub(self.joint, j), one)) as inner:
                after = builder.add(builder.add(j, one), inner.index)
                entry = self._load_common(j, builder.add(after, one))
                self._subtract(builder.add(self.own, after), entry, v)

    def _results(self) -> None:
        """Write the pulls and the means to the two rows behind."""
        builder = self.builder
        squares = builder.load(self.squares)
        is_finite = builder.fcmp_ordered("<", squares, self.infinite)
        inverse = builder.fdiv(self.vectors.constant(1.0), squares)
        pulls = self.vectors.rounded(self.vectors.call("minnum", inverse, self.vectors.constant(MOST)))
        mean = self.vectors.rounded(builder.load(self.product))
        row = builder.add(self.own, self.joint)
        self._store_rest(builder.select(is_finite, pulls, self.zero), row)
        self._store_rest(builder.select(is_finite, mean, self.zero), builder.add(row, self.vectors.number(1)))

    def _solve(self, left: ir.Value, inverse: ir.Value) -> ir.Value:
        """Return the next column of v; its square is added to v · v, infinite if its direction is unknown."""
        builder = self.builder
        v = builder.fmul(left, inverse)
        is_empty = builder.fcmp_ordered("==", inverse, self.zero)
        is_large = builder.fcmp_ordered(">", self.vectors.call("fabs", left), self.tiny)
        square = builder.select(builder.and_(is_empty, is_large), self.infinite, builder.fmul(v, v))
        builder.store(builder.fadd(builder.load(self.squares), square), self.squares)
        return v

    def _subtract(self, row: ir.Value, entry: ir.Value, v: ir.Value) -> ir.Value:
        """Take entry · v from a row that is left, and return the row."""
        left = self.vectors.call("fma", self.builder.fneg(entry), v, self._load_rest(row))
        self._store_rest(left, row)
        return left

    def _predict(self, entry: ir.Value, v: ir.Value) -> None:
        """Add entry · v to v · u."""
        total = self.vectors.call("fma", entry, v, self.builder.load(self.product))
        self.builder.store(total, self.product)

    def _load_rest(self, row: ir.Value) -> ir.Value:
        return self.vectors.load(self.rest.data, self.builder.mul(row, self.vectors.number(VECTOR)))

    def _store_rest(self, value: ir.Value, row: ir.Value) -> None:
        self.vectors.store(value, self.rest.data, self.builder.mul(row, self.vectors.number(VECTOR)))

    def _load_factor(self, row: ir.Value) -> ir.Value:
        place = self.builder.add(self.builder.mul(row, self.room), self.first)
        return self.vectors.load(self.factor.data, place)

    def _load_common(self, row: ir.Value, column: ir.Value) -> ir.Value:
        place = self.builder.add(self.builder.mul(row, self.width), column)
        return self.vectors.repeat(self.builder.load(self.builder.gep(self.common.data, [place])))


def _generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: list[ir.Value]) -> ir.Value:
    """Write the code for Numba."""
    kinds = zip(signature.args[:3], arguments[:3], strict=True)
    arrays = [context.make_array(kind)(context, builder, value) for kind, value in kinds]
    Substitution(builder, arrays, arguments[3:]).build()
    return context.get_dummy_value()


def _build() -> Any:
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def forward(context: Any, rest: Any, factor: Any, common: Any, first: Any, own: Any, joint: Any) -> Any:
        whole = types.intp
        return types.void(rest, factor, common, whole, whole, whole), _generate

    return forward


forward = MachineOperation(_build)
"""Compiled: ``forward(rest, factor, common, first, own, joint)`` for the eight arms from ``first`` on.

``rest`` has their rows, a row for each column and eight numbers in it, and is used up; the pulls 1/(v · v) and the
means v · u, both to 40 bits, go to the two rows behind. In the first of these stands before how large a number may be
that is nothing but rounding: more of it in a direction of which nothing is known makes both 0.
"""
