"""Gaussian noise that is correlated as predictions are, one draw of all coefficients, and what follows for arms.

A linear model believes θ ~ N(θ̂, A⁻¹). With v_i = R⁻ᵀ row_i and ε standard Gaussian, RᵀR = A, the prediction row_i · θ of
arm i is row_i · θ̂ + v_i · ε: predictions have the covariances v_i · v_j. Of v_i the private part meets no other arm's, so
that only its length matters, own_i; the shared part is joint_i. A score is

    location_i + scale_i · (own_i ξ_i + joint_i · ε) / |v_i|,   ξ_i and ε standard Gaussian.

The probability that it is the largest is an integral over as many dimensions as there are arms. It is known exactly

- of two arms, where only the difference of their scores matters, and
- where no arm shares anything that the others do not share as well: the scores are then independent.

Otherwise it is the share of DRAWS that an arm wins. By Hoeffding's inequality none of K such shares is off by more than
√(log(2K/RISK) / (2 DRAWS)), except with probability RISK. The draws are made from the bits of the numbers themselves:
the same numbers have the same shares, on every machine.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rightarm.formula.compile import bits_of_double, jit
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
HOPELESS = 6.5  # deviations below the best mean from which an arm wins less often than 4e-11


@jit
def spread(own: F64, joint: F64, i: int, k: int) -> float:
    """The deviation of the difference of two arms' scores."""
    square = own[i] * own[i] + own[k] * own[k]
    for j in range(joint.shape[1]):
        square += (joint[i, j] - joint[k, j]) ** 2
    return math.sqrt(square)


@jit
def independent(joint: F64) -> bool:
    """Whether all arms share the same: then it moves all scores alike."""
    for i in range(1, joint.shape[0]):
        for j in range(joint.shape[1]):
            if joint[i, j] != joint[0, j]:
                return False
    return True


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
def gaussians(seed: u64, first: int, out: F64) -> None:
    """Standard Gaussian numbers: those of a stream of words from the place ``first`` on."""
    for n in range(out.size):
        word = scrambled(u64(seed + u64(first + n) * GOLDEN))
        out[n] = np.float64(quantile(u32(word >> u64(32))))


@jit
def add_shares(scores: F64, equal: F64, largest: F64, wins: F64) -> None:
    """Count who wins each draw of a block; those that tie share it."""
    for n in range(BLOCK):
        largest[n], equal[n] = -np.inf, 0.0
    for i in range(wins.size):
        for n in range(BLOCK):
            largest[n] = max(largest[n], scores[i, n])
    for i in range(wins.size):
        for n in range(BLOCK):
            equal[n] += scores[i, n] == largest[n]
    for i in range(wins.size):
        for n in range(BLOCK):
            wins[i] += (1.0 if scores[i, n] == largest[n] else 0.0) / equal[n]


@jit
def shares(m: F64, own: F64, joint: F64, wins: F64) -> None:
    """How often each arm has the largest score, of DRAWS."""
    seed, place = seed_of(m, own, joint), 0
    scores, drawn = np.empty((m.size, BLOCK)), np.empty(BLOCK)
    equal, largest = np.empty(BLOCK), np.empty(BLOCK)
    for i in range(m.size):
        wins[i] = 0.0
    for _ in range(DRAWS // BLOCK):
        for i in range(m.size):
            for n in range(BLOCK):
                scores[i, n] = m[i]
            if own[i] > 0.0:
                gaussians(seed, place, drawn)
                place += BLOCK
                for n in range(BLOCK):
                    scores[i, n] += own[i] * drawn[n]
        for j in range(joint.shape[1]):
            gaussians(seed, place, drawn)
            place += BLOCK
            for i in range(m.size):
                for n in range(BLOCK):
                    scores[i, n] += joint[i, j] * drawn[n]
        add_shares(scores, equal, largest, wins)
    for i in range(m.size):
        wins[i] /= DRAWS


@jit
def of_some(m: F64, own: F64, joint: F64, chance: F64) -> tuple[int, float]:
    """The probability of every arm, and by how much it may be wrong; vectors are those of the scores."""
    if m.size == 2:
        return of_largest(m, np.array([spread(own, joint, 0, 1), 0.0]), chance), 0.0
    if independent(joint):
        return of_largest(m, own, chance), 0.0
    shares(m, own, joint, chance)
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
    if own.size == 2 or independent(b):
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
