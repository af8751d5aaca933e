"""Ridge regression of many arms at once, compiled: the triangular factor of an arrowhead, changed by Givens rotations.

Let A = ridge + Σ row rowᵀ over what was learned and b = Σ row · reward. Kept are R, upper triangular with RᵀR = A, and
u = R⁻ᵀ b. With an arm's private columns first, R has a block for each arm and one that all share:

    R = ⎛ R_1          S_1 ⎞    row of arm i = (private | shared), which touches R_i, S_i and R_0 only
        ⎜      ...     ... ⎟    v = R⁻ᵀ row, one forward substitution
        ⎜          R_K S_K ⎟    row · θ̂ = v · u,  rowᵀ A⁻¹ row = v · v
        ⎝              R_0 ⎠    what rotations leave of the reward is its residual

Never a difference of large numbers: after a million badly scaled rows the factor is as good as one made anew, where
the formula of Sherman and Morrison has lost everything.

``factor`` has a column for each arm (arms innermost, so that looking at all arms is vector code). Its rows are, for
each private column j: 1/R_jj, R_jj, the rest of R's row, S's row, u_j; and at the end Σ residual² and the rewards that
count. ``common`` has such a row for each shared column, at its place j: 1/R_jj, then R's row with zeros before the
diagonal, u_j. With shared columns residuals are summed for all arms together, at the first: their noise is taken to
be one.

Golub and Van Loan: Matrix Computations, sections 5.1 and 6.5; Li, Chu, Langford, Schapire: A Contextual-Bandit Approach
to Personalized News Article Recommendation, WWW 2010 (disjoint and hybrid models).
"""

from __future__ import annotations

import math

import numpy as np

from rightarm.estimators.forward_substitution import MOST as MOST
from rightarm.estimators.forward_substitution import VECTOR as VECTOR
from rightarm.estimators.forward_substitution import forward
from rightarm.estimators.reward_statistics import LARGER, LOST_DIGITS
from rightarm.formula.compile import fma, jit
from rightarm.types import F64, I64

SINGULAR = 1e-12  # share of a row's largest number that may be rounding, where a column has no ridge and no data yet
RESIDUALS = -2  # the row of ``factor`` with Σ residual²
COUNTING = -1  # the row of ``factor`` with the number of rewards that count
VANISHED = 1e-140  # entry of the diagonal, without a ridge, of data that were discounted to nothing


def sizes(private: int, shared: int) -> tuple[int, int]:
    """Return the number of rows of ``factor``, and of columns of ``common``."""
    rows = sum(private - j + shared + 2 for j in range(private)) + 2
    return rows, shared + 2


def new_common(shared: int, ridge: float) -> F64:
    """Return the factor of so many shared columns, of which nothing was learned."""
    common = np.zeros((shared, shared + 2))
    for j in range(shared):
        common[j, 1 + j] = math.sqrt(ridge)
        common[j, 0] = 1 / common[j, 1 + j] if ridge else 0.0
    return common


@jit
def begin(factor: F64, arm: int, private: int, shared: int, ridge: float) -> None:
    """Begin with an arm: of its private columns nothing was learned."""
    place = 0
    for i in range(factor.shape[0]):
        factor[i, arm] = 0.0
    root = math.sqrt(ridge)
    for j in range(private):
        factor[place, arm] = 1.0 / root if ridge > 0.0 else 0.0
        factor[place + 1, arm] = root
        place += private - j + shared + 2


@jit
def read(private: F64, shared: F64, factor: F64, common: F64, count: int, pulls: F64, mean: F64) -> None:
    """Make what formulas see of the first ``count`` arms: row · θ̂, and 1 / (rowᵀ A⁻¹ row).

    ``private`` are the private columns, the same for all arms; ``shared`` has a row for each shared column and a
    column for each arm. Where nothing is known of a direction and there is no ridge, the pulls are 0.
    """
    room = (count + VECTOR - 1) // VECTOR * VECTOR
    rest = np.empty((private.size + shared.shape[0] + 2, VECTOR))
    if factor.shape[1] < room:
        read_vectors(private, shared, widened(factor, room), common, count, pulls, mean, rest)
    else:
        read_vectors(private, shared, factor, common, count, pulls, mean, rest)


@jit
def widened(factor: F64, room: int) -> F64:
    """Return the factor with room for more arms."""
    wide = np.zeros((factor.shape[0], room))
    for i in range(factor.shape[0]):
        for k in range(factor.shape[1]):
            wide[i, k] = factor[i, k]
    return wide


@jit
def read_vectors(
    private: F64, shared: F64, factor: F64, common: F64, count: int, pulls: F64, mean: F64, rest: F64
) -> None:
    """Do what `read` does, where the factor has room for a whole number of vectors of arms.

    ``rest`` is scratch memory: what is left of a vector's rows, a row for each column, then two rows of results. In the
    first of these stands before what is nothing in the row of each arm.
    """
    own = private.size
    joint = shared.shape[0]
    largest = 0.0
    for j in range(own):
        largest = max(largest, abs(private[j]))
    for first in range(0, count, VECTOR):
        n = min(VECTOR, count - first)
        nothing = np.uint64(own + joint)
        for k in range(VECTOR):
            rest[nothing, k] = SINGULAR * largest
        for j in range(own):
            for k in range(VECTOR):
                rest[j, k] = private[j]
        for s in range(joint):
            row = np.uint64(own + s)  # unsigned: an index that may be negative costs a test
            for k in range(n):
                entry = shared[s, np.uint64(first + k)]
                rest[row, k] = entry
                rest[nothing, k] = max(rest[nothing, k], SINGULAR * abs(entry))
            for k in range(n, VECTOR):
                rest[row, k] = 0.0
        forward(rest, factor, common, first, own, joint)
        for k in range(n):
            pulls[np.uint64(first + k)] = rest[nothing, k]
            mean[np.uint64(first + k)] = rest[nothing + np.uint64(1), k]


@jit
def vectors(private: F64, shared: F64, factor: F64, common: F64, members: I64, own: F64, joint: F64) -> None:
    """Make v = R⁻ᵀ row of some arms; their products are covariances of predictions: v_i · v_j = row_iᵀ A⁻¹ row_j.

    The private parts of two arms have nothing in common: ``own`` gets the length of an arm's. ``joint`` gets the shared
    part, a row for each of ``members``. ``private`` and ``shared`` are as in `read`.
    """
    P = private.size
    S = shared.shape[0]
    v = np.empty(P + S)
    for n in range(members.size):
        for j in range(P):
            v[j] = private[j]
        for s in range(S):
            v[P + s] = shared[s, members[n]]
        half_solved(v, members[n], P, factor, common)
        square = 0.0
        for j in range(P):
            square += v[j] * v[j]
        own[n] = math.sqrt(square)
        for s in range(S):
            joint[n, s] = v[P + s]


@jit
def half_solved(row: F64, arm: int, private: int, factor: F64, common: F64) -> None:
    """Put R⁻ᵀ row of an arm in the place of the row."""
    shared = common.shape[0]
    place = 0
    for j in range(private):
        row[j] *= factor[place, arm]
        width = private - j + shared
        for i in range(1, width):
            row[j + i] = fma(-factor[place + 1 + i, arm], row[j], row[j + i])
        place += width + 2
    for j in range(private, private + shared):
        row[j] *= common[j - private, 0]
        for i in range(j + 1, private + shared):
            row[i] = fma(-common[j - private, 1 + i - private], row[j], row[i])


@jit
def predicted(row: F64, arm: int, private: int, factor: F64, common: F64) -> tuple[float, float]:
    """Return row · θ̂ and rowᵀ A⁻¹ row of an arm."""
    shared = common.shape[0]
    place = 0
    mean = 0.0
    variance = 0.0
    v = row.copy()
    half_solved(v, arm, private, factor, common)
    for j in range(v.size):
        variance += v[j] * v[j]
    for j in range(private):
        place += private - j + shared + 2
        mean += v[j] * factor[place - 1, arm]
    for j in range(shared):
        mean += v[private + j] * common[j, shared + 1]
    return mean, variance


@jit
def gap_variances(mean: F64, own: F64, joint: F64) -> F64:
    """Return how uncertain the gap of each arm to the best mean is, |v_i − v_best|², of what `vectors` made.

    Of several arms with the best mean, the gap is that to the one of which the least is known.
    """
    best = mean.max()
    found = np.zeros(mean.size)
    for b in range(mean.size):
        if mean[b] == best:
            for i in range(mean.size):
                square = own[i] * own[i] + own[b] * own[b]
                for j in range(joint.shape[1]):
                    square += (joint[i, j] - joint[b, j]) ** 2
                found[i] = max(found[i], square if mean[i] < best else 0.0)
    return found


@jit
def take(row: F64, arm: int, private: int, factor: F64, common: F64) -> float:
    """Learn a row of an arm, whose last entry is the reward, and use it up; return the residual's square."""
    shared = common.shape[0]
    place = 0
    tiny = 0.0
    for j in range(row.size - 1):
        tiny = max(tiny, SINGULAR * abs(row[j]))
    for j in range(private):
        width = private - j + shared
        if row[j] != 0.0:
            diagonal = factor[place + 1, arm]
            norm = math.sqrt(diagonal * diagonal + row[j] * row[j])
            if diagonal > 0.0 or norm > tiny:  # without a ridge, what is left of collinear columns is rounding
                c = diagonal / norm
                s = row[j] / norm
                factor[place, arm] = 1.0 / norm
                factor[place + 1, arm] = norm
                for i in range(1, width + 1):
                    before = factor[place + 1 + i, arm]
                    new = row[j + i]
                    factor[place + 1 + i, arm] = c * before + s * new
                    row[j + i] = c * new - s * before
        place += width + 2
    for j in range(shared):
        new = row[private + j]
        if new != 0.0:
            norm = math.sqrt(common[j, 1 + j] * common[j, 1 + j] + new * new)
            if common[j, 1 + j] > 0.0 or norm > tiny:
                c = common[j, 1 + j] / norm
                s = new / norm
                common[j, 0] = 1.0 / norm
                common[j, 1 + j] = norm
                for i in range(j + 1, shared + 1):
                    before = common[j, 1 + i]
                    new = row[private + i]
                    common[j, 1 + i] = c * before + s * new
                    row[private + i] = c * new - s * before
    left = row[private + shared]
    return left * left


@jit
def learn(row: F64, reward: float, arm: int, private: int, factor: F64, common: F64) -> None:
    """Learn the reward of a row of an arm."""
    work = np.empty(row.size + 1)
    for j in range(row.size):
        work[j] = row[j]
    work[row.size] = reward
    take_counted(work, arm, private, factor, common)


@jit
def take_counted(row: F64, arm: int, private: int, factor: F64, common: F64) -> None:
    """Learn as `take` does, and count the residual and the reward."""
    factor[RESIDUALS, 0 if common.shape[0] else arm] += take(row, arm, private, factor, common)
    factor[COUNTING, arm] += 1.0


@jit
def fade(factor: F64, common: F64, count: int, private: int, discount: float, ridge: float, own_ridge: float) -> None:
    """Let all that was learned count less; the ridge stays what it is: A ← discount · A + (1 − discount) · ridge."""
    root = math.sqrt(discount)
    shared = common.shape[0]
    scale(factor, common, count, private, root)
    row = np.zeros(private + shared + 1)
    for arm in range(count):
        factor[RESIDUALS, arm] *= discount
        factor[COUNTING, arm] *= discount
    for arm in range(count if own_ridge > 0.0 else 0):
        for j in range(private):
            for i in range(row.size):
                row[i] = 0.0
            row[j] = math.sqrt((1.0 - discount) * own_ridge)
            factor[RESIDUALS, 0 if shared else arm] += take(row, arm, private, factor, common)
    for j in range(shared if ridge > 0.0 else 0):
        for i in range(row.size):
            row[i] = 0.0
        row[private + j] = math.sqrt((1.0 - discount) * ridge)
        factor[RESIDUALS, 0] += take(row, 0, private, factor, common)


@jit
def scale(factor: F64, common: F64, count: int, private: int, root: float) -> None:
    """Multiply R and u by ``root``; a row of R that would vanish, as there is no ridge, is forgotten."""
    shared = common.shape[0]
    place = 0
    for j in range(private):
        width = private - j + shared
        for arm in range(count):
            factor[place, arm] /= root
        for i in range(1, width + 2):
            for arm in range(count):
                factor[place + i, arm] *= root
        for arm in range(count):
            if factor[place + 1, arm] < VANISHED:
                for i in range(width + 2):
                    factor[place + i, arm] = 0.0
        place += width + 2
    for j in range(shared):
        common[j, 0] /= root
        for i in range(1, shared + 2):
            common[j, i] *= root
        if common[j, 1 + j] < VANISHED:
            for i in range(shared + 2):
                common[j, i] = 0.0


@jit
def correct(
    row: F64,
    before: float,
    after: float,
    weight: float,
    arm: int,
    private: int,
    factor: F64,
    common: F64,
    largest: float,
) -> float:
    """Replace the reward of a row that was learned and counts by ``weight``.

    A stays what it is and b gains change · row, so u gains change · v; Σ residual² is Σ reward² − u · u.

    ``largest`` is the largest Σ reward² that earlier corrections found. Returns it with this one, or LOST_DIGITS if the
    residuals are so much smaller that all rows have to be learned again.
    """
    shared = common.shape[0]
    place = 0
    grown = 0.0
    change = weight * (after - before)
    pool = 0 if shared else arm
    largest = max(largest, squares(arm, private, factor, common))
    v = row.copy()
    half_solved(v, arm, private, factor, common)
    doubt = rounded_by(row, v, arm, private, factor, common)
    for j in range(private):
        place += private - j + shared + 2
        u = factor[place - 1, arm]
        gained = change * v[j]
        factor[place - 1, arm] = u + gained
        grown += gained * (2.0 * u + gained)
    for j in range(shared):
        u = common[j, shared + 1]
        gained = change * v[private + j]
        common[j, shared + 1] = u + gained
        grown += gained * (2.0 * u + gained)
    left = max(factor[RESIDUALS, pool] + weight * (after - before) * (after + before) - grown, 0.0)
    factor[RESIDUALS, pool] = left
    largest = max(largest, squares(arm, private, factor, common))
    counting = 0.0
    for k in range(factor.shape[1]):
        counting += factor[COUNTING, k] if shared or k == arm else 0.0
    return largest if largest * (math.sqrt(counting) + doubt) <= LARGER * left else LOST_DIGITS


@jit
def squares(arm: int, private: int, factor: F64, common: F64) -> float:
    """Return Σ reward² of an arm, or of all where they share columns: what rotations left of it, and u · u."""
    shared = common.shape[0]
    first = 0 if shared else arm
    after = factor.shape[1] if shared else arm + 1
    total = 0.0
    for k in range(first, after):
        place = 0
        total += factor[RESIDUALS, k]
        for j in range(private):
            place += private - j + shared + 2
            total += factor[place - 1, k] * factor[place - 1, k]
    for j in range(shared):
        total += common[j, shared + 1] * common[j, shared + 1]
    return total


@jit
def rounded_by(row: F64, v: F64, arm: int, private: int, factor: F64, common: F64) -> float:
    """Return a bound on how far rounding moves v = R⁻ᵀ row, in roundings of its length, for columns of any scale."""
    shared = common.shape[0]
    place = 0
    moved = np.abs(row)
    for j in range(private):
        moved[j] *= factor[place, arm]
        width = private - j + shared
        for i in range(1, width):
            moved[j + i] += abs(factor[place + 1 + i, arm]) * (moved[j] + abs(v[j]))
        place += width + 2
    for j in range(private, private + shared):
        moved[j] *= common[j - private, 0]
        for i in range(j + 1, private + shared):
            moved[i] += abs(common[j - private, 1 + i - private]) * (moved[j] + abs(v[j]))
    size = 0.0
    length = 0.0
    for j in range(v.size):
        size += moved[j] * moved[j]
        length += v[j] * v[j]
    return math.sqrt(size / length) if length > 0.0 else 0.0


@jit
def variances(factor: F64, shared: int, count: int, out: F64) -> None:
    """Write the mean squared residual of every arm; with shared columns, of all arms together."""
    total = 0.0
    for arm in range(count):
        total += factor[COUNTING, arm]
    for arm in range(count):
        rewards = total if shared else factor[COUNTING, arm]
        out[arm] = factor[RESIDUALS, 0 if shared else arm] / rewards if rewards > 0.0 else 0.0


def dense(factor: F64, common: F64, private: int, arm: int) -> tuple[F64, F64]:
    """Return R and u of one arm's columns, private ones first, as an ordinary matrix and vector."""
    shared = common.shape[0]
    place = 0
    size = private + shared
    R = np.zeros((size, size))
    u = np.zeros(size)
    for j in range(private):
        width = private - j + shared
        R[j, j:] = factor[place + 1 : place + 1 + width, arm]
        u[j] = factor[place + 1 + width, arm]
        place += width + 2
    R[private:, private:] = common[:, 1 : shared + 1]
    u[private:] = common[:, shared + 1]
    return R, u


def solution(R: F64, u: F64) -> F64:
    """Return θ̂ = R⁻¹ u; 0 for a column about which nothing is known besides the others, where there is no ridge."""
    theta = np.zeros(u.size)
    sizes = np.linalg.norm(R, axis=0)
    for j in reversed(range(u.size)):
        if abs(R[j, j]) > SINGULAR * sizes[j]:
            theta[j] = (u[j] - R[j, j + 1 :] @ theta[j + 1 :]) / R[j, j]
    return theta
