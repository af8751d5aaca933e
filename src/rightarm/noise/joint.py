"""Gaussian noise that is correlated as predictions are, one draw of all coefficients, and what follows for arms.

A linear model believes θ ~ N(θ̂, A⁻¹) with A = RᵀR. Of such a draw the prediction of arm i is row_i · θ̂ + v_i · ε with
v_i = R⁻ᵀ row_i and ε standard Gaussian: predictions have the covariances v_i · v_j. The private part of v_i meets no
other arm's, so that only its length matters, private_i; the shared part is joint_i. A score is

    location_i + scale_i · (private_i ξ_i + joint_i · ε) / |v_i|,   ξ_i and ε standard Gaussian.

The probability that it is the largest is an integral over as many dimensions as there are arms. It is exact

- of two arms, where only the difference of their scores matters, and
- where arms share nothing but what all of them share alike, which moves all scores alike: the rest is independent.

Otherwise it is the share of DRAWS that an arm wins. By Hoeffding's inequality none of K such shares is off by more than
√(log(2K/RISK) / (2 DRAWS)), except with probability RISK. The draws are made from the bits of the numbers themselves:
the same numbers have the same shares, on every machine. Arms that are HOPELESS deviations below the best one are left
out, which adds 4e-11 for each of them to the error.
"""

from __future__ import annotations

import math

import numpy as np

from rightarm.formula.compile import bits_of_double, fma, jit, uncounted
from rightarm.noise.gaussian import Gaussian, quantile, solve
from rightarm.noise.law import CorrelatedSolver, Law
from rightarm.noise.pieces import BAD_FIRST, BAD_SECOND, GOLDEN, scrambled
from rightarm.types import F64, I64

u32 = np.uint32
u64 = np.uint64

DRAWS = 2**14
BLOCK = 64  # draws that are made together, in vector code
RISK = 1e-3
SAME = 2.0**-36  # beside the largest scale: what rounding makes of a difference that is none
HOPELESS = 6.5  # deviations below the best mean from which an arm wins less often than 4e-11


@jit
def spread(private: F64, joint: F64, i: int, k: int) -> float:
    """Return the deviation of the difference of two arms' scores."""
    square = private[i] * private[i] + private[k] * private[k]
    for j in range(joint.shape[1]):
        square += (joint[i, j] - joint[k, j]) ** 2
    return math.sqrt(square)


@jit
def differences(scale: F64, joint: F64) -> F64:
    """Count shared parts from the first arm's; leave out columns that are zero then: they move all scores alike."""
    largest = 0.0
    columns = 0
    for i in range(scale.size):
        largest = max(largest, abs(scale[i]))
    found = np.empty(joint.shape)
    for j in range(joint.shape[1]):
        furthest = 0.0
        for i in range(scale.size):
            found[i, columns] = joint[i, j] - joint[0, j]
            furthest = max(furthest, abs(found[i, columns]))
        columns += furthest > SAME * largest
    return found[:, :columns].copy()


@jit
def rotate(joint: F64) -> F64:
    """Return shared parts of the same products in no more columns than there are arms (Gram and Schmidt)."""
    arms, columns = joint.shape
    if columns <= arms:
        return joint
    rest = joint.copy()
    found = np.zeros((arms, arms))
    for k in range(arms):
        length = math.sqrt((rest[k] * rest[k]).sum())
        if length > 0.0:
            for i in range(k, arms):
                found[i, k] = (rest[i] * rest[k]).sum() / length
            for i in range(arms - 1, k - 1, -1):  # the k-th last: the others look at it
                rest[i] -= found[i, k] / length * rest[k]
    return found


@jit
def find_hopeful(m: F64, private: F64, joint: F64, arms: I64) -> int:
    """Put the arms that are not hopelessly below the one with the best mean in ``arms``; return how many there are."""
    best = np.argmax(m)
    count = 0
    for i in range(m.size):
        if i == best or m[i] + HOPELESS * spread(private, joint, i, best) >= m[best]:
            arms[count] = i
            count += 1
    return count


@jit
def seed_of(m: F64, private: F64, joint: F64) -> u64:
    """Return a word of which all bits depend on all numbers."""
    seed = GOLDEN
    for i in range(m.size):
        seed = scrambled(seed ^ bits_of_double(m[i]))
        seed = scrambled(seed ^ bits_of_double(private[i]))
        for j in range(joint.shape[1]):
            seed = scrambled(seed ^ bits_of_double(joint[i, j]))
    return seed


@jit
def draw_gaussians(seed: u64, first: int, out: F64) -> int:
    """Draw Gaussian numbers of a stream of words, from the place ``first`` on; return the place after them."""
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
    """Add ``part`` where a row has the largest scores."""
    for n in range(BLOCK):
        out[n] += part[n] if score[n] == largest[n] else 0.0


@jit
def estimate(m: F64, private: F64, joint: F64, chance: F64) -> None:
    """Find how often each arm has the largest score, of DRAWS; those that tie share a draw."""
    scores = np.empty((m.size, BLOCK))
    scratch = np.empty((joint.shape[1] + 5, BLOCK))
    wins = np.zeros((m.size, BLOCK))
    play(m, private, joint, scores, scratch, wins)
    for i in range(m.size):
        chance[i] = wins[i].sum() / DRAWS


@jit
def play(m: F64, private: F64, joint: F64, scores: F64, scratch: F64, wins: F64) -> None:
    """Add the draws that each arm wins to its row of ``wins``. All loops are over rows, and rows are not counted."""
    seed = seed_of(m, private, joint)
    place = 0
    shared = joint.shape[1]
    score = uncounted(scores)
    won = uncounted(wins)
    drawn = uncounted(scratch)
    single = drawn[shared]
    one = drawn[shared + 1]
    equal = drawn[shared + 2]
    largest = drawn[shared + 3]
    part = drawn[shared + 4]
    for _ in range(DRAWS // BLOCK):
        for j in range(shared):
            place = draw_gaussians(seed, place, drawn[j])
        for n in range(BLOCK):
            one[n] = 1.0
            equal[n] = 0.0
            largest[n] = -np.inf
        for i in range(m.size):
            for n in range(BLOCK):
                score[i, n] = m[i]
            for j in range(shared):
                add(joint[i, j], drawn[j], score[i])
            if private[i] != 0.0:
                place = draw_gaussians(seed, place, single)
                add(private[i], single, score[i])
            raise_to(score[i], largest)
        for i in range(m.size):
            count_equal(score[i], largest, one, equal)
        for n in range(BLOCK):
            part[n] = 1.0 / equal[n]
        for i in range(m.size):
            count_equal(score[i], largest, part, won[i])


@jit
def solve_scores(m: F64, private: F64, joint: F64, chance: F64) -> tuple[int, float]:
    """Find the probability of every arm, from the vectors of scores; return the status and the largest error."""
    if m.size == 1:
        chance[0] = 1.0
        return 1, 0.0
    if m.size == 2:
        return solve(m, np.array([spread(private, joint, 0, 1), 0.0]), chance), 0.0
    if joint.shape[1] == 0:
        return solve(m, private, chance), 0.0
    estimate(m, private, rotate(joint), chance)
    return m.size, math.sqrt(math.log(2.0 * m.size / RISK) / (2.0 * DRAWS))


@jit
def solve_predictions(location: F64, scale: F64, private: F64, joint: F64, chance: F64) -> tuple[int, float]:
    """Do the same from the vectors of predictions, hopeless arms left out."""
    a = private.copy()
    b = joint.copy()
    for i in range(private.size):
        if not abs(scale[i]) < np.inf:
            return BAD_SECOND, 0.0
        if not abs(location[i]) < np.inf:
            return BAD_FIRST, 0.0
        square = private[i] * private[i]
        for j in range(joint.shape[1]):
            square += joint[i, j] * joint[i, j]
        factor = scale[i] / math.sqrt(square) if square > 0.0 else 0.0
        a[i] *= factor
        for j in range(joint.shape[1]):
            b[i, j] *= factor
    b = differences(scale, b)
    if private.size == 2 or b.shape[1] == 0:
        return solve_scores(location, a, b, chance)
    arms = np.empty(private.size, np.int64)
    some = arms[: find_hopeful(location, a, b, arms)]
    few = np.empty(some.size)
    found, error = solve_scores(location[some], a[some], b[some], few)
    chance[:] = 0.0
    chance[some] = few
    return found, error + (private.size - some.size) * 0.5 * math.erfc(HOPELESS * math.sqrt(0.5))


class Joint(Gaussian):
    """Gaussian noise of which the numbers of two arms are correlated as the predictions of these arms are.

    That is what one draw of all coefficients of a linear model does. Arms without contexts, or with no coefficient in
    common, have nothing in common, and their noise is independent. Otherwise the probabilities of three arms or
    more are estimated, and decisions say by how much they may be wrong: see `rightarm.noise.joint`.

    >>> from rightarm.noise import probability_of_largest
    >>> probability_of_largest(Joint(), location=[0.0, 1.0], scale=[1.0, 1.0]).round(4)
    array([0.2398, 0.7602])
    """

    is_correlated = True

    @property
    def drawn(self) -> Law:
        return Gaussian()

    def correlated_solver(self) -> CorrelatedSolver:
        return solve_predictions.compiled
