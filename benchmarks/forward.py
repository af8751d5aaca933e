"""Hand-written LLVM against the plainest loop: `python -m benchmarks.forward`.

Both read the predictions of all arms from the factor of a ridge regression, and give the same numbers. CPU nanoseconds
on one core, the least of several measurements, and how many times as long the loop takes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from benchmarks.common import best_of, table
from rightarm.estimators import ridge_regression
from rightarm.estimators.forward_substitution import MOST, SPLIT, VECTOR
from rightarm.estimators.ridge_regression import SINGULAR, read_vectors
from rightarm.formula.compile import fma, jit
from rightarm.types import F64

SHAPES = ((8, 4, 0), (10, 11, 0), (10, 51, 0), (10, 0, 10), (100, 5, 10), (100, 21, 0), (1_000, 11, 0), (1_000, 0, 50))
TIMES = 15


@jit
def solve(left: float, inverse: float, target: float, tiny: float, k: int, squares: F64, product: F64) -> float:
    """Return the next entry of v; v · v and v · u take it in."""
    v = left * inverse
    squares[k] += math.inf if (inverse == 0.0) & (abs(left) > tiny) else v * v
    product[k] = fma(target, v, product[k])
    return v


@jit
def rounded(x: float) -> float:
    """Return a number to 40 bits."""
    large = SPLIT * x
    return large - (large - x)


@jit
def read_plainly(
    private: F64, shared: F64, factor: F64, common: F64, count: int, pulls: F64, mean: F64, rest: F64
) -> None:
    """Do what `read_vectors` does, all arms in the innermost loop; ``rest`` has room for all of them."""
    own = private.size
    joint = shared.shape[0]
    tiny = rest[own + joint]
    v = rest[own + joint + 1]
    largest = 0.0
    for j in range(own):
        largest = max(largest, abs(private[j]))
        for k in range(count):
            rest[j, k] = private[j]
    for k in range(count):
        tiny[k] = SINGULAR * largest
        pulls[k] = 0.0
        mean[k] = 0.0
    for j in range(joint):
        for k in range(count):
            rest[own + j, k] = shared[j, k]
            tiny[k] = max(tiny[k], SINGULAR * abs(shared[j, k]))
    place = 0
    for j in range(own):
        width = own - j + joint
        for k in range(count):
            v[k] = solve(rest[j, k], factor[place, k], factor[place + 1 + width, k], tiny[k], k, pulls, mean)
        for i in range(1, width):
            for k in range(count):
                rest[j + i, k] = fma(-factor[place + 1 + i, k], v[k], rest[j + i, k])
        place += width + 2
    for j in range(joint):
        for k in range(count):
            v[k] = solve(rest[own + j, k], common[j, 0], common[j, joint + 1], tiny[k], k, pulls, mean)
        for i in range(j + 1, joint):
            for k in range(count):
                rest[own + i, k] = fma(-common[j, 1 + i], v[k], rest[own + i, k])
    for k in range(count):
        is_known = pulls[k] < math.inf
        pulls[k] = rounded(min(1.0 / pulls[k], MOST)) if is_known else 0.0
        mean[k] = rounded(mean[k]) if is_known else 0.0


Arrays = tuple[F64, F64, F64, F64, int, F64, F64, F64]


@jit
def repeat_by_hand(
    times: int, private: F64, shared: F64, factor: F64, common: F64, count: int, pulls: F64, mean: F64, rest: F64
) -> None:
    for _ in range(times):
        read_vectors(private, shared, factor, common, count, pulls, mean, rest)


@jit
def repeat_plainly(
    times: int, private: F64, shared: F64, factor: F64, common: F64, count: int, pulls: F64, mean: F64, rest: F64
) -> None:
    for _ in range(times):
        read_plainly(private, shared, factor, common, count, pulls, mean, rest)


def model(arms: int, private: int, shared: int) -> tuple[F64, F64]:
    """Return the factor of a regression that has learned some rows, and what arms have in common."""
    random = np.random.default_rng(1)
    room = -(-arms // VECTOR) * VECTOR
    factor = np.zeros((ridge_regression.sizes(private, shared)[0], room))
    common = ridge_regression.new_common(shared, 1.0)
    for arm in range(arms):
        ridge_regression.begin(factor, arm, private, shared, 1.0)
    for _ in range(5 * arms):
        row = random.normal(size=private + shared)
        ridge_regression.learn(row, random.normal(), int(random.integers(arms)), private, factor, common)
    return factor, common


def nanoseconds(repeat: Callable[..., None], arrays: Arrays) -> float:
    """Return the time of one reading."""
    repeat(1, *arrays)
    size = 1 + 2_000_000 // arrays[2].size

    def measured() -> float:
        start = time.thread_time()
        repeat(size, *arrays)
        return 1e9 * (time.thread_time() - start) / size

    return best_of(TIMES, measured)


def line(arms: int, private: int, shared: int) -> list[object]:
    """Return the measurements of one shape."""
    factor, common = model(arms, private, shared)
    random = np.random.default_rng(2)
    given = (random.normal(size=private), random.normal(size=(shared, arms)), factor, common, arms)
    found = np.zeros((2, 2, arms))
    hand = nanoseconds(repeat_by_hand, (*given, *found[0], np.empty((private + shared + 2, VECTOR))))
    loop = nanoseconds(repeat_plainly, (*given, *found[1], np.empty((private + shared + 2, factor.shape[1]))))
    if not np.array_equal(found[0], found[1]):
        raise AssertionError(f"the numbers differ: {found.tolist()}")
    return [arms, private, shared, f"{hand:,.0f}", f"{loop:,.0f}", f"{loop / hand:.2f}"]


def main() -> None:
    """Measure and print."""
    titles = ["arms", "private columns", "shared columns", "by hand, ns", "plain loop, ns", "ratio"]
    print(table(titles, [line(*shape) for shape in SHAPES]))


if __name__ == "__main__":
    main()
