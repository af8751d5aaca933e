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
from typing import Any

import numpy as np

from rightarm.formula.compile import function, jit
from rightarm.noise.contenders import BAD_FIRST, BAD_SECOND
from rightarm.noise.law import Law
from rightarm.types import F64, I64


@jit
def numbers(location: F64, scale: F64) -> int:
    """What is wrong with these lines; 1 if nothing is."""
    for j in range(scale.size):
        if not abs(scale[j]) < np.inf:
            return BAD_SECOND
        if location[j] != location[j]:
            return BAD_FIRST
    return 1


@jit
def overtaken(m: float, s: float, next_m: float, next_s: float) -> float:
    """Where a line that is no less steep overtakes another; ∞ if never. Halves do not overflow in a difference."""
    if next_s == s:
        return np.inf if next_m <= m else -np.inf
    return (0.5 * m - 0.5 * next_m) / (0.5 * next_s - 0.5 * s)


@jit
def envelope(m: F64, s: F64, chain: I64, starts: F64, same: I64) -> int:
    """The lines of the upper envelope from left to right, and where each begins; how many there are.

    ``same`` names for every line one that is equal to it: itself, or one of the envelope.
    """
    count = 0
    for k in np.argsort(s):
        top, begin, same[k] = k, -np.inf, k
        if m[k] == -np.inf:
            continue
        while count > 0:
            top = chain[count - 1]
            begin = overtaken(m[top], s[top], m[k], s[k])
            if begin > starts[count - 1]:
                break
            count, begin = count - 1, -np.inf
        if begin < np.inf:
            chain[count], starts[count] = k, begin
            count += 1
        elif s[k] == s[top] and m[k] == m[top]:
            same[k] = top
    return count


@jit
def log_between(below: float, above: float, next_below: float, next_above: float) -> float:
    """The logarithm of the probability between two points, of those of what lies below and above each."""
    more, less = (next_below, below) if next_below < above else (above, next_above)
    return more + math.log(-math.expm1(less - more)) if less < more else -np.inf


@jit
def lines(location: F64, scale: F64, chain: I64, starts: F64, same: I64) -> int:
    """The envelope of any lines, as `envelope` has it; below 0 if numbers are wrong.

    Arms at +∞ tie; one at −∞ never wins, unless all are there.
    """
    found, highest = numbers(location, scale), location.max()
    if found < 0 or not math.isinf(highest):
        return found if found < 0 else envelope(location, scale, chain, starts, same)
    chain[0], starts[0] = np.argmax(location), -np.inf
    for j in range(location.size):
        same[j] = chain[0] if location[j] == highest else j
    return 1


@jit
def share_lines(count: int, chain: I64, same: I64, below: F64, above: F64, logs: F64) -> None:
    """The logarithms of all probabilities, from the tails of the law where each line of the envelope begins."""
    below[0], above[0], below[count], above[count] = -np.inf, 0.0, 0.0, -np.inf
    sharing = np.zeros(same.size)
    for j in range(same.size):
        logs[j] = -np.inf
        sharing[same[j]] += 1.0
    for i in range(count):
        logs[chain[i]] = log_between(below[i], above[i], below[i + 1], above[i + 1]) - math.log(sharing[chain[i]])
    for j in range(same.size):
        logs[j] = logs[same[j]]


LARGEST = "int64(float64[::1], float64[::1], float64[::1])"


def of_largest(location: F64, scale: F64, out: F64) -> int:
    """The template: the probability of every arm to have the largest location + scale·z."""
    size = location.size
    chain, same, starts = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
    count = lines(location, scale, chain, starts, same)
    if count < 0:
        return count
    below, above = np.empty(count + 1), np.empty(count + 1)
    for i in range(1, count):
        below[i], above[i] = log_tails(starts[i])
    share_lines(count, chain, same, below, above, out)
    for j in range(size):
        out[j] = math.exp(out[j])
    return count


def log_tails(x: float) -> tuple[float, float]:
    """Stands in the template for a law's logarithms of P[Z ≤ x] and P[Z > x]."""
    raise NotImplementedError


@functools.cache
def compiled(law: Law) -> Any:
    """Compile the template for one law."""
    return function(f"the noise {law}", of_largest, LARGEST, log_tails=law.tails())


class Shared(Law):
    """One draw of a law for all arms: their scores rise and fall together, each by its own scale.

    A scale may have either sign. Probabilities are exact: those of intervals of the one draw.

    >>> from rightarm.noise import Gaussian
    >>> from rightarm.propensity import of_largest
    >>> of_largest(Shared(Gaussian()), location=[0.0, -1.0, -0.25], scale=[0.0, 1.0, 0.0]).round(4)
    array([0.8413, 0.1587, 0.    ])
    """

    law: Law

    @property
    def drawn(self) -> Law:
        return self.law

    def cdf(self, x: float) -> float:
        chance: float = self.law.cdf(x)
        return chance

    def sample(self, random: np.random.Generator, size: int) -> F64:
        return np.full(size, self.law.sample(random, 1))

    def chances(self) -> Any:
        return compiled(self.law)

    def complaint(self, row: str) -> str:
        return "location must be a number" if row == "first" else "scale must be finite"
