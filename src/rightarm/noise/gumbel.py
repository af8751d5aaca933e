"""The Gumbel law: its draws, and the probabilities of arms with Gumbel noise of any locations and scales, compiled.

For all arms from one grid: let λ_j(x) = e^((m_j − x)/β_j) and Λ = Σ λ_j. Then P[all scores ≤ x] = e^(−Λ(x)), and

    p_i = ∫ λ_i(x)/β_i · e^(−Λ(x)) dx.

- *Equal scales* are merged first: the largest of such arms is a Gumbel variable again, with location
  β log Σ e^(m_j/β), and which of them it is has softmax probabilities, whatever the value.
- *Left point*: x_L with Λ(x_L) a little above DEPTH; what lies to its left has probability e^(−DEPTH). log Λ is convex,
  so that Newton's method comes from the left and never overshoots.
- *Grid*: x = x_L + y, equally spaced in log y, PHASES points for each factor 3. There the trapezoidal rule converges
  geometrically, at a rate free of locations and scales: an arm that matters has its bend at a distance of at most
  β_j log DEPTH from x_L. Points are taken by the block, a factor 3¹⁰ each; one does until scales are far apart.
- *Few exponentials*: for r = e^(−y/β), a factor 3 up is r ← r³. That triples an error too, so that of LEVELS powers
  the first is an exponential again.
- *Errors*: of a probability p about 1e-14, and 1e-10 p for all p above 1e-13.

A row of LANES points is what a loop goes over: a length that the compiler knows, no branches and few arrays, so that it
becomes vector code. In a sum over arms it would not, for the order of additions is ours.
"""

from __future__ import annotations

import math

import numpy as np

from rightarm.formula.compile import bits_of_double, fma, jit
from rightarm.formula.elementary import exp, log
from rightarm.noise.exponential import quantile as exponential
from rightarm.noise.law import Law
from rightarm.noise.pieces import GOLDEN, solve_contenders
from rightarm.noise.pieces import log as log32
from rightarm.types import F64, I64

f32 = np.float32
u32 = np.uint32
u64 = np.uint64

DEPTH = 56.0
LOG_DEPTH = math.log(DEPTH)
REACH = 60.0  # e^(−REACH) is nothing: as λ_j(x_L), a bound of the probability but for e^(−DEPTH), and at the right end
MOST_STEPS = 100  # of Newton's method; four are the rule
PHASES = 8
LEVELS = 5
STEP = math.log(3) / PHASES
LANES = 2 * PHASES  # vector code needs 16 of them: PHASES points, and as many 3^LEVELS times as far
STARTS = 3.0 ** np.concatenate([np.arange(PHASES) / PHASES, np.arange(PHASES) / PHASES + LEVELS])
POINTS = np.concatenate([3.0**level * STARTS for level in range(LEVELS)])
BLOCK = 3.0 ** (2 * LEVELS)
TINY = 1e-90  # nothing, and so is its cube, but not yet a subnormal number: with those, vector code is slow
LOG_TINY = math.log(TINY)


@jit
def quantile(word: u32) -> f32:
    """Return −log(−log u) at u = share(word), −log u being the exponential law at 1 − u."""
    return -log32(exponential(u32(~word)))


# All arms.


@jit
def group_scales(scale: F64, group: I64) -> int:
    """Number the distinct scales in the order of their first arms; ``group`` gets each arm's number."""
    arms = scale.size
    bits = 1
    while 2**bits < 2 * arms:
        bits += 1
    mask = u64(2**bits - 1)
    down = u64(64 - bits)
    first = np.full(2**bits, -1, np.int64)  # a hash table of the first arm of each scale; sorting costs ten times that
    count = 0
    for j in range(arms):
        place = (bits_of_double(scale[j]) * GOLDEN) >> down
        while first[place] >= 0 and scale[first[place]] != scale[j]:
            place = (place + u64(1)) & mask
        if first[place] < 0:
            first[place] = j
            group[j] = count
            count += 1
        else:
            group[j] = group[first[place]]
    return count


@jit
def merge_groups(location: F64, scale: F64, group: I64, m: F64, beta: F64, share: F64) -> None:
    """Find location and scale of each group's largest score, and each arm's share in its group."""
    for g in range(m.size):
        m[g] = -np.inf
    for j in range(scale.size):
        m[group[j]] = max(m[group[j]], location[j])
        beta[group[j]] = scale[j]
    total = np.zeros(m.size)
    for j in range(scale.size):
        share[j] = (location[j] - m[group[j]]) / scale[j]
    for j in range(scale.size):
        share[j] = exp(share[j])  # apart from the other loops, for vector code
    for j in range(scale.size):
        total[group[j]] += share[j]
    for j in range(scale.size):
        share[j] /= total[group[j]]
    for g in range(m.size):
        m[g] += beta[g] * log(total[g])


@jit
def find_left_point(m: F64, beta: F64, inverse: F64, rate: F64, reach: F64) -> float:
    """Return −Λ′ at a point x_L where DEPTH ≤ Λ < 1.17·DEPTH.

    ``inverse`` gets 1/β_j, ``rate`` λ_j(x_L), and ``reach`` the distance from x_L where λ_j is e^(−REACH).
    """
    x = -np.inf
    nearest = 0
    for j in range(m.size):
        if m[j] - beta[j] * LOG_DEPTH > x:
            x = m[j] - beta[j] * LOG_DEPTH
            nearest = j
    origin = m[nearest]  # differences to it are small numbers, with all digits that matter
    x = -beta[nearest] * LOG_DEPTH
    for j in range(m.size):
        m[j] -= origin
        inverse[j] = 1.0 / beta[j]
    slope = 1.0
    for _ in range(MOST_STEPS):
        for j in range(m.size):
            rate[j] = exp(min((m[j] - x) * inverse[j], 700.0))
        total = 0.0
        slope = 0.0
        for j in range(m.size):
            total += rate[j]
            slope += rate[j] * inverse[j]
        above = math.log(total / DEPTH)
        if above < 0.15:
            break
        x += above * total / slope
    for j in range(m.size):
        reach[j] = (m[j] - x) + REACH * beta[j]
    return slope


@jit
def find_alive(reach: F64, y: float, alive: I64) -> int:
    """Return how many groups reach beyond y; ``alive`` gets their numbers."""
    count = 0
    for j in range(reach.size):
        if reach[j] > y:
            alive[count] = j
            count += 1
    return count


@jit
def start_rows(y: float, inverse: F64, alive: I64, rows: F64) -> None:
    """Fill a row of e^(−y·STARTS/β_j) for every group alive, one after the other."""
    for i in range(alive.size):
        for n in range(LANES):
            rows[LANES * i + n] = -y * inverse[alive[i]] * STARTS[n]
    for i in range(LANES * alive.size):
        rows[i] = exp(max(rows[i], LOG_TINY))


@jit
def add_group(rate: float, row: F64, total: F64) -> None:
    """Add a group's λ to the total at all points of a block."""
    for n in range(LANES):
        r = row[n]
        for level in range(LEVELS):
            total[LANES * level + n] = fma(rate, r, total[LANES * level + n])
            r = fma(r * r, r, TINY)


@jit
def weighted_sum(row: F64, weight: F64) -> float:
    """Return the sum of weight·e^(−y/β) over all points of a block; the row is used up."""
    for n in range(LANES):
        r = row[n]
        part = 0.0
        for level in range(LEVELS):
            part = fma(weight[LANES * level + n], r, part)
            r = fma(r * r, r, TINY)
        row[n] = part
    found = 0.0
    for n in range(LANES):
        found += row[n]
    return found


@jit
def integrate(inverse: F64, rate: F64, reach: F64, y: float, sums: F64) -> None:
    """Find ∫ e^(−y/β_j) e^(−Λ) dy for every group, by the trapezoidal rule in log y, from y on."""
    rows = np.empty(LANES * rate.size)
    weight = np.empty(LANES * LEVELS)
    alive = np.empty(rate.size, np.int64)
    for j in range(sums.size):
        sums[j] = 0.0
    count = find_alive(reach, y, alive)
    while count and y > 0.0:  # y is 0 if 1/β is infinite, and then there is no answer
        start_rows(y, inverse, alive[:count], rows)
        for n in range(weight.size):
            weight[n] = 0.0
        for i in range(count):
            add_group(rate[alive[i]], rows[LANES * i : LANES * (i + 1)], weight)
        for n in range(weight.size):
            weight[n] = STEP * y * POINTS[n] * exp(-weight[n])
        for i in range(count):
            sums[alive[i]] += weighted_sum(rows[LANES * i : LANES * (i + 1)], weight)
        y *= BLOCK
        count = find_alive(reach, y, alive)


@jit
def all_arms(location: F64, scale: F64, chance: F64) -> None:
    """Find the probability of every arm to have the largest location + scale·z, z Gumbel, scales positive."""
    group = np.empty(scale.size, np.int64)
    count = group_scales(scale, group)
    m = np.empty(count)
    beta = np.empty(count)
    of_group = np.ones(count)
    merge_groups(location, scale, group, m, beta, chance)
    if count > 1:
        inverse = np.empty(count)
        rate = np.empty(count)
        reach = np.empty(count)
        slope = find_left_point(m, beta, inverse, rate, reach)
        integrate(inverse, rate, reach, 4.0 / slope, of_group)
        for g in range(count):
            of_group[g] *= rate[g] * inverse[g]
    for j in range(scale.size):
        chance[j] *= of_group[group[j]]


@jit
def solve(location: F64, scale: F64, chance: F64) -> int:
    """Find the probability of every arm, whatever locations and scales are."""
    return solve_contenders(location, scale, chance, all_arms)


@jit
def log_tails(x: float) -> tuple[float, float]:
    """Return log P[Z ≤ x] and log P[Z > x]; where e⁻ˣ is next to nothing, the second is −x."""
    rate = math.exp(min(-x, 700.0))
    return -rate, (math.log(-math.expm1(-rate)) if x < 40.0 else -x)


class Gumbel(Law):
    """The Gumbel law with location 0 and scale 1: P[Z ≤ x] = exp(−e⁻ˣ).

    Its mean is γ = 0.577. The paper calls the law with location +γ standard; a policy that wants it adds γ.

    >>> round(Gumbel().cdf(0.0), 4)
    0.3679
    """

    word_quantile = quantile
    kernel = solve
    generator = staticmethod(lambda random, size: random.gumbel(size=size))
    log_tails = log_tails

    def cdf(self, x: float) -> float:
        return math.exp(-math.exp(-x))
