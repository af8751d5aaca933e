"""One draw of noise for all arms of a decision, and the probabilities of arms that share it, compiled.

The score of arm i is a line in the one number z that all arms share, location_i + scale_i·z. The largest score is the
upper envelope of these lines: a chain of them, in the order of their slopes, each the largest between two points
a_i < b_i. So

    p_i = P[a_i < Z ≤ b_i],

and zero for lines that are nowhere the largest. The chain is found by sorting the slopes and dropping every line that
the next one overtakes before it has become the largest (Andrew's monotone chain). A probability is the difference of
two tails of the law, taken as logarithms on the side where they are small: it has its digits however far out its
interval lies, but for those that any difference of two close numbers loses where the interval is narrow.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from rightarm.formula.compile import function, jit
from rightarm.noise.law import Law, Row, Solver
from rightarm.noise.pieces import BAD_FIRST, BAD_SECOND
from rightarm.types import F64, I64


@jit
def check_lines(location: F64, scale: F64) -> int:
    """Return the status of lines: 1, or below 0 if a number is wrong."""
    for j in range(scale.size):
        if not abs(scale[j]) < np.inf:
            return BAD_SECOND
        if location[j] != location[j]:
            return BAD_FIRST
    return 1


@jit
def find_crossing(m: float, s: float, next_m: float, next_s: float) -> float:
    """Return where a line that is no less steep overtakes another; ∞ if never. Halves do not overflow."""
    if next_s == s:
        return np.inf if next_m <= m else -np.inf
    return (0.5 * m - 0.5 * next_m) / (0.5 * next_s - 0.5 * s)


@jit
def find_envelope(m: F64, s: F64, chain: I64, starts: F64, same: I64) -> int:
    """Find the lines of the upper envelope from left to right, and where each begins; return how many there are.

    ``same`` names for every line one that is equal to it: itself, or one of the envelope.
    """
    count = 0
    for k in np.argsort(s):
        top = k
        begin = -np.inf
        same[k] = k
        if m[k] == -np.inf:
            continue
        while count > 0:
            top = chain[count - 1]
            begin = find_crossing(m[top], s[top], m[k], s[k])
            if begin > starts[count - 1]:
                break
            count -= 1
            begin = -np.inf
        if begin < np.inf:
            chain[count] = k
            starts[count] = begin
            count += 1
        elif s[k] == s[top] and m[k] == m[top]:
            same[k] = top
    return count


@jit
def log_between(below: float, above: float, next_below: float, next_above: float) -> float:
    """Return the logarithm of the probability between two points, given those of what lies below and above each."""
    more = next_below if next_below < above else above
    less = below if next_below < above else next_above
    return more + math.log(-math.expm1(less - more)) if less < more else -np.inf


@jit
def check_and_find_envelope(location: F64, scale: F64, chain: I64, starts: F64, same: I64) -> int:
    """Find the envelope of any lines, as `find_envelope` does; the status is below 0 if numbers are wrong.

    Arms at +∞ tie; one at −∞ never wins, unless all are there.
    """
    status = check_lines(location, scale)
    if status < 0:
        return status
    highest = location.max()
    if not math.isinf(highest):
        return find_envelope(location, scale, chain, starts, same)
    chain[0] = np.argmax(location)
    starts[0] = -np.inf
    for j in range(location.size):
        same[j] = chain[0] if location[j] == highest else j
    return 1


@jit
def share_lines(count: int, chain: I64, same: I64, below: F64, above: F64, logs: F64) -> None:
    """Find the logarithms of all probabilities, from the tails of the law where each line of the envelope begins."""
    below[0] = -np.inf
    above[0] = 0.0
    below[count] = 0.0
    above[count] = -np.inf
    sharing = np.zeros(same.size)
    for j in range(same.size):
        logs[j] = -np.inf
        sharing[same[j]] += 1.0
    for i in range(count):
        logs[chain[i]] = log_between(below[i], above[i], below[i + 1], above[i + 1]) - math.log(sharing[chain[i]])
    for j in range(same.size):
        logs[j] = logs[same[j]]


SOLVER = "int64(float64[::1], float64[::1], float64[::1])"


def solve_by_tails(log_tails: Callable[[float], tuple[float, float]]) -> Solver:
    """Return the function that finds the probability of every arm to have the largest location + scale·z."""

    def solve(location: F64, scale: F64, out: F64) -> int:
        size = location.size
        chain = np.empty(size, np.int64)
        same = np.empty(size, np.int64)
        starts = np.empty(size)
        count = check_and_find_envelope(location, scale, chain, starts, same)
        if count < 0:
            return count
        below = np.empty(count + 1)
        above = np.empty(count + 1)
        for i in range(1, count):
            below[i], above[i] = log_tails(starts[i])
        share_lines(count, chain, same, below, above, out)
        for j in range(size):
            out[j] = math.exp(out[j])
        return count

    return solve


@functools.cache
def compiled_solver(law: Law) -> Solver:
    """Compile the solver of one law."""
    made: Solver = function(f"the noise {law}", solve_by_tails(law.tails()), SOLVER)
    return made


class Shared(Law):
    """One draw of a law for all arms: their scores rise and fall together, each by its scale.

    A scale may have either sign. Probabilities are exact: those of intervals of the one draw.

    >>> from rightarm.noise import Gaussian, probability_of_largest
    >>> probability_of_largest(Shared(Gaussian()), location=[0.0, -1.0, -0.25], scale=[0.0, 1.0, 0.0]).round(4)
    array([0.8413, 0.1587, 0.    ])
    """

    law: Law

    @property
    def drawn(self) -> Law:
        return self.law

    def cdf(self, x: float) -> float:
        return self.law.cdf(x)

    def sample(self, random: np.random.Generator, size: int) -> F64:
        return np.full(size, self.law.sample(random, 1))

    def solver(self) -> Solver:
        return compiled_solver(self.law)

    def requirement(self, row: Row) -> str:
        return "location must be a number" if row == "first" else "scale must be finite"
