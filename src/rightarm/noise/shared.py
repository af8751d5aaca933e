"""One draw of noise for all arms of a decision, and the probabilities of arms that share it, compiled.

The score of arm i is a line in the one number z that all arms share, location_i + scale_i·z. The largest score is the
upper envelope of these lines: a chain of them, in the order of their slopes, each the largest between two points
a_i < b_i. So

    p_i = P[a_i < Z ≤ b_i],

and zero for lines that are nowhere the largest. The chain is found by sorting the slopes and dropping every line that
the next one overtakes before it has become the largest (Andrew's monotone chain). A probability is the difference of
two tails of the law, taken as logarithms on the side where they are small: it has nearly all its digits however far out
its interval lies.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from rightarm.formula.compile import jit
from rightarm.noise.contenders import BAD_FIRST, BAD_SECOND
from rightarm.noise.law import LEAST_KNOWN, Law
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
def of_lines(log_tails: Any, m: F64, s: F64, logs: F64) -> None:
    """The logarithms of all probabilities; locations are finite."""
    chain, same, starts = np.empty(m.size, np.int64), np.empty(m.size, np.int64), np.empty(m.size + 1)
    count = envelope(m, s, chain, starts, same)
    below, above = np.empty(count + 1), np.empty(count + 1)
    log_tails(starts[1:count], below[1:count], above[1:count])
    below[0], above[0], below[count], above[count] = -np.inf, 0.0, 0.0, -np.inf
    sharing = np.zeros(m.size)
    for j in range(m.size):
        logs[j] = -np.inf
        sharing[same[j]] += 1.0
    for i in range(count):
        logs[chain[i]] = log_between(below[i], above[i], below[i + 1], above[i + 1]) - math.log(sharing[chain[i]])
    for j in range(m.size):
        logs[j] = logs[same[j]]


@jit
def logs_of_largest(log_tails: Any, location: F64, scale: F64, logs: F64) -> int:
    """The logarithm of every arm's probability to have the largest location + scale·z; below 0 if numbers are wrong.

    Arms at +∞ tie; one at −∞ never wins, unless all are there.
    """
    found, highest, count = numbers(location, scale), location.max(), 0
    if found < 0:
        return found
    arms = np.empty(location.size, np.int64)
    for j in range(location.size):
        logs[j] = -np.inf
        if location[j] == highest or -np.inf < location[j] < np.inf > highest:
            arms[count] = j
            count += 1
    some = arms[:count]
    if math.isinf(highest):
        logs[some] = -math.log(count)
        return count
    own = np.empty(count)
    of_lines(log_tails, location[some], scale[some], own)
    logs[some] = own
    return count


@jit
def of_largest(log_tails: Any, location: F64, scale: F64, chance: F64) -> int:
    """The probability of every arm."""
    found = logs_of_largest(log_tails, location, scale, chance)
    for j in range(chance.size):
        chance[j] = math.exp(chance[j])
    return found


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
        return functools.partial(of_largest.compiled, self.law.tails())

    def log_of_one(self, first: F64, second: F64, arm: int) -> float:
        logs = np.empty(first.size)
        self.check(logs_of_largest(self.law.tails(), first, second, logs), first, second)
        if -math.inf < logs[arm] < math.log(LEAST_KNOWN) and not self.law.knows_tails:
            raise ValueError(
                f"{self!r}: the logarithm of the probability of arm {arm} is about {logs[arm]:.4g}, and below that of "
                f"{LEAST_KNOWN:g} it is known for the laws of the library only"
            )
        return float(logs[arm])

    def complaint(self, row: str) -> str:
        return "location must be a number" if row == "first" else "scale must be finite"
