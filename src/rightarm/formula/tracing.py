"""Finding the form of a score by following a formula's operations: a proof, not a guess from examples.

The formula is called with a stand-in for one of its inputs. Every NumPy operation on the stand-in says what form its
result has, and one that does not keep the form raises; `if`, `math.log`, `np.where` and `np.minimum` all do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

Inputs: TypeAlias = tuple[Any, ...]  # of an operation: numbers, arrays and stand-ins

LINEAR = {np.add, np.subtract, np.multiply, np.true_divide, np.negative, np.positive}
POWERS = {np.sqrt, np.square, np.cbrt, np.power, np.float_power}


class NotOfThisForm(TypeError):
    """An operation that does not keep the form."""


class Traced(NDArrayOperatorsMixin, ABC):
    """A stand-in for a value; the subclasses say what an operation makes of it."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: object) -> Traced:
        if method != "__call__" or options:
            raise NotOfThisForm(f"{ufunc.__name__}.{method}")
        return self.apply(ufunc, inputs)

    def __array_function__(self, function: Callable[..., object], *rest: object) -> Traced:
        raise NotOfThisForm(function.__name__)

    def __bool__(self) -> bool:
        raise NotOfThisForm("a branch")

    @abstractmethod
    def apply(self, ufunc: np.ufunc, inputs: Inputs) -> Traced:
        """Return the form of ``ufunc(*inputs)``, at least one of which is traced."""


class LineForm(Traced):
    """location + scale·z, location and scale free of z."""

    def apply(self, ufunc: np.ufunc, inputs: Inputs) -> Traced:
        lines = [isinstance(x, LineForm) for x in inputs]
        product_of_lines = ufunc is np.multiply and all(lines)
        line_below = ufunc is np.true_divide and lines[1]
        if ufunc not in LINEAR or product_of_lines or line_below:
            raise NotOfThisForm(ufunc.__name__)
        return self


class Shifted(Traced):
    """location + z, the location free of z."""

    def apply(self, ufunc: np.ufunc, inputs: Inputs) -> Traced:
        traced = [isinstance(x, Traced) for x in inputs]
        added = ufunc is np.add and sum(traced) == 1
        reduced = ufunc is np.subtract and traced == [True, False]
        if not added and not reduced and ufunc is not np.positive:
            raise NotOfThisForm(ufunc.__name__)
        return self


class Time(Traced):
    """A function of the round alone."""

    def apply(self, ufunc: np.ufunc, inputs: Inputs) -> Traced:
        if all(isinstance(x, Time) or (not isinstance(x, Traced) and np.ndim(x) == 0) for x in inputs):
            return self
        return Product().apply(ufunc, inputs)


class Product(Traced):
    """A function of the round times a number of the arm."""

    def apply(self, ufunc: np.ufunc, inputs: Inputs) -> Traced:
        if any(isinstance(x, Sum) for x in inputs):
            return Sum().apply(ufunc, inputs)
        if ufunc in (np.multiply, np.true_divide, np.negative, np.positive):
            return Product()
        if ufunc in POWERS and all(not isinstance(x, Traced) and np.ndim(x) == 0 for x in inputs[1:]):
            return Product()
        return Sum().apply(ufunc, inputs)


class Sum(Traced):
    """A number of the arm plus a function of the round times a number of the arm: location + scale·clock(t)."""

    def apply(self, ufunc: np.ufunc, inputs: Inputs) -> Traced:
        moving = sum(isinstance(x, Traced) for x in inputs)
        line_below = ufunc is np.true_divide and isinstance(inputs[1], Traced)
        if ufunc not in LINEAR or moving != 1 or line_below:
            raise NotOfThisForm(ufunc.__name__)
        return self


def keeps_form(formula: Callable[[], object], form: type = object) -> bool:
    """Return whether a formula called with stand-ins comes to its end, and with a value of ``form``.

    Without ``form``, what it gives may not depend on the stand-ins at all.
    """
    try:
        with np.errstate(all="ignore"):
            return isinstance(formula(), form)
    except (TypeError, IndexError):  # IndexError: a stand-in as the index of a table
        return False
