"""Gaussian noise that is correlated as predictions are, one draw of all coefficients, and what follows for arms.

A linear model believes θ ~ N(θ̂, A⁻¹) with A = RᵀR. Of such a draw the prediction of arm i is row_i · θ̂ + v_i · ε with
v_i = R⁻ᵀ row_i and ε standard Gaussian: predictions have the covariances v_i · v_j. The private part of v_i meets no
other arm's, so that only its length matters, own_i; the shared part is joint_i. A score is

    location_i + scale_i · (own_i ξ_i + joint_i · ε) / |v_i|,   ξ_i and ε standard Gaussian.

The probability that it is the largest is an integral over as many dimensions as there are arms. It is known exactly

- of two arms, where only the difference of their scores matters, and
- where arms share nothing but what all of them share alike, which moves all scores alike: the rest is independent.

Otherwise it is the share of DRAWS that an arm wins. By Hoeffding's inequality none of K such shares is off by more than
√(log(2K/RISK) / (2 DRAWS)), except with probability RISK. The draws are made from the bits of the numbers themselves:
the same numbers have the same shares, on every machine. Arms that are HOPELESS deviations below the best one are left
out, which adds 4e-11 for each of them to the error.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rightarm.formula.compile import bits_of_double, fma, jit, uncounted
from rightarm.noise.contenders import BAD_FIRST, BAD_SECOND
from rightarm.noise.gaussian import Gaussian, of_largest, quantile
from rightarm.noise.law import Law
from rightarm.noise.words import GOLDEN, scrambled
from rightarm.types import F64, I64

u32 = np.uint32
u64 = np.uint64

DRAWS = 2**14
BLOCK = 64  # draws that are made together, in vector code
RISK = 1e-3
SAME = 2.0**-36  # beside the largest scale: what rounding makes of a difference that is none
HOPELESS = 6.5  # deviations below the best mean from which an arm wins less often than 4e-11


@jit
def spread(own: F64, joint: F64, i: int, k: int) -> float:
    """The deviation of the difference of two arms' scores."""
    square = own[i] * own[i] + own[k] * own[k]
    for j in range(joint.shape[1]):
        square += (joint[i, j] - joint[k, j]) ** 2
    return math.sqrt(square)


@jit
def differing(scale: F64, joint: F64) -> F64:
    """Shared parts counted from the first arm's, without columns that are zero then: they move all scores alike."""
    largest, kept = 0.0, 0
    for i in range(scale.size):
        largest = max(largest, abs(scale[i]))
    found = np.empty(joint.shape)
    for j in range(joint.shape[1]):
        furthest = 0.0
        for i in range(scale.size):
            found[i, kept] = joint[i, j] - joint[0, j]
            furthest = max(furthest, abs(found[i, kept]))
        kept += furthest > SAME * largest
    return found[:, :kept].copy()


@jit
def turned(joint: F64) -> F64:
    """Shared parts in no more columns than there are arms, all their products being the same (Gram and Schmidt)."""
    arms, columns = joint.shape
    if columns <= arms:
        return joint
    rest, found = joint.copy(), np.zeros((arms, arms))
    for k in range(arms):
        length = math.sqrt((rest[k] * rest[k]).sum())
        if length > 0.0:
            for i in range(k, arms):
                found[i, k] = (rest[i] * rest[k]).sum() / length
            for i in range(arms - 1, k - 1, -1):  # the k-th last: the others look at it
                rest[i] -= found[i, k] / length * rest[k]
    return found


@jit
def hopeful(m: F64, own: F64, joint: F64, arms: I64) -> int:
    """Name the arms that are not hopelessly below the one with the best mean; how many there are."""
    best, count = np.argmax(m), 0
    for i in range(m.size):
        if i == best or m[i] + HOPELESS * spread(own, joint, i, best) >= m[best]:
            arms[count] = i
            count += 1
    return count


@jit
def seed_of(m: F64, own: F64, joint: F64) -> u64:
    """A word of which all bits depend on all numbers."""
    seed = GOLDEN
    for i in range(m.size):
        seed = scrambled(seed ^ bits_of_double(m[i]))
        seed = scrambled(seed ^ bits_of_double(own[i]))
        for j in range(joint.shape[1]):
            seed = scrambled(seed ^ bits_of_double(joint[i, j]))
    return seed


@jit
def gaussians(seed: u64, first: int, out: F64) -> int:
    """Standard Gaussian numbers of a stream of words, from the place ``first`` on; returns the place after them."""
    for n in range(out.size):
        word = scrambled(u64(seed + u64(first + n) * GOLDEN))
        out[n] = np.float64(quantile(u32(word >> u64(32))))
    return first + out.size


@jit
def add(factor: float, drawn: F64, score: F64) -> None:
    """Add a multiple of the numbers that were drawn to a row of scores."""
    for n in range(BLOCK):
        score[n] = fma(factor, drawn[n], score[n])


@jit
def raise_to(score: F64, largest: F64) -> None:
    """Have the largest scores so far include a row."""
    for n in range(BLOCK):
        largest[n] = score[n] if score[n] > largest[n] else largest[n]


@jit
def count_equal(score: F64, largest: F64, part: F64, out: F64) -> None:
    """Where a row has the largest scores, add what that counts."""
    for n in range(BLOCK):
        out[n] += part[n] if score[n] == largest[n] else 0.0


@jit
def shares(m: F64, own: F64, joint: F64, chance: F64) -> None:
    """How often each arm has the largest score, of DRAWS; those that tie share a draw."""
    wins = np.zeros((m.size, BLOCK))
    play(m, own, joint, np.empty((m.size, BLOCK)), np.empty((joint.shape[1] + 5, BLOCK)), wins)
    for i in range(m.size):
        chance[i] = wins[i].sum() / DRAWS


@jit
def play(m: F64, own: F64, joint: F64, scores: F64, scratch: F64, wins: F64) -> None:
    """Add the draws that each arm wins to its row of ``wins``. All loops are over rows, and rows are not counted."""
    seed, place, shared = seed_of(m, own, joint), 0, joint.shape[1]
    score, won, drawn = uncounted(scores), uncounted(wins), uncounted(scratch)
    private, one, equal = drawn[shared], drawn[shared + 1], drawn[shared + 2]
    largest, part = drawn[shared + 3], drawn[shared + 4]
    for _ in range(DRAWS // BLOCK):
        for j in range(shared):
            place = gaussians(seed, place, drawn[j])
        for n in range(BLOCK):
            one[n], equal[n], largest[n] = 1.0, 0.0, -np.inf
        for i in range(m.size):
            for n in range(BLOCK):
                score[i, n] = m[i]
            for j in range(shared):
                add(joint[i, j], drawn[j], score[i])
            if own[i] != 0.0:
                place = gaussians(seed, place, private)
                add(own[i], private, score[i])
            raise_to(score[i], largest)
        for i in range(m.size):
            count_equal(score[i], largest, one, equal)
        for n in range(BLOCK):
            part[n] = 1.0 / equal[n]
        for i in range(m.size):
            count_equal(score[i], largest, part, won[i])


@jit
def of_some(m: F64, own: F64, joint: F64, chance: F64) -> tuple[int, float]:
    """The probability of every arm, and by how much it may be wrong; vectors are those of the scores."""
    if m.size == 1:
        chance[0] = 1.0
        return 1, 0.0
    if m.size == 2:
        return of_largest(m, np.array([spread(own, joint, 0, 1), 0.0]), chance), 0.0
    if joint.shape[1] == 0:
        return of_largest(m, own, chance), 0.0
    shares(m, own, turned(joint), chance)
    return m.size, math.sqrt(math.log(2.0 * m.size / RISK) / (2.0 * DRAWS))


@jit
def of_vectors(location: F64, scale: F64, own: F64, joint: F64, chance: F64) -> tuple[int, float]:
    """The same from the vectors of predictions, hopeless arms left out; below 0 if numbers are wrong."""
    a, b, arms = own.copy(), joint.copy(), np.empty(own.size, np.int64)
    for i in range(own.size):
        if not abs(scale[i]) < np.inf:
            return BAD_SECOND, 0.0
        if not abs(location[i]) < np.inf:
            return BAD_FIRST, 0.0
        square = own[i] * own[i]
        for j in range(joint.shape[1]):
            square += joint[i, j] * joint[i, j]
        factor = scale[i] / math.sqrt(square) if square > 0.0 else 0.0
        a[i] *= factor
        for j in range(joint.shape[1]):
            b[i, j] *= factor
    b = differing(scale, b)
    if own.size == 2 or b.shape[1] == 0:
        return of_some(location, a, b, chance)
    some = arms[: hopeful(location, a, b, arms)]
    few = np.empty(some.size)
    found, error = of_some(location[some], a[some], b[some], few)
    chance[:] = 0.0
    chance[some] = few
    return found, error + (own.size - some.size) * 0.5 * math.erfc(HOPELESS * math.sqrt(0.5))


class Joint(Gaussian):
    """Gaussian noise of which the numbers of two arms are correlated as the predictions of these arms are.

    That is what one draw of all coefficients of a linear model does. Arms without contexts, or with coefficients of
    their own only, have nothing in common, and their noise is independent. Otherwise the probabilities of three arms or
    more are estimated, and decisions say by how much they may be wrong: see `rightarm.noise.joint`.

    >>> from rightarm.propensity import of_largest
    >>> of_largest(Joint(), location=[0.0, 1.0], scale=[1.0, 1.0]).round(4)
    array([0.2398, 0.7602])
    """

    correlates = True

    @property
    def drawn(self) -> Law:
        return Gaussian()

    def together(self) -> Any:
        return of_vectors.dispatcher or of_vectors.compiled
