"""Gumbel noise with any locations and scales: the probabilities of all arms from one grid, compiled.

Let λ_j(x) = e^((m_j − x)/β_j) and Λ = Σ λ_j. Then P[all scores ≤ x] = e^(−Λ(x)), and

    p_i = ∫ λ_i(x)/β_i · e^(−Λ(x)) dx.

- *Equal scales* are merged first: the largest of such arms is a Gumbel variable again, with location
  β log Σ e^(m_j/β), and which of them it is has softmax probabilities, whatever the value.
- *Left point*: x_L with Λ(x_L) a little above DEPTH; what lies to its left has probability e^(−DEPTH). log Λ is convex,
  so that Newton's method comes from the left and never overshoots.
- *Grid*: x = x_L + y, equally spaced in log y, PHASES points an octave. There the trapezoidal rule converges
  geometrically, at a rate free of locations and scales: an arm that matters has its bend at a distance of at most
  β_j log DEPTH from x_L. Each factor 2 between the largest and the smallest scale costs one octave more.
- *No exponential per node*: with q = 1 − e^(−y/β), an octave up is q ← q(2 − q), and r ← r² for r = 1 − q from where
  q passes ½; to square from the start would double an error with every octave.

Loops go over arms, contiguous and without branches, so that they become vector code.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rightarm.compile import bits_of_double, fma, jit
from rightarm.elementary import exp, log

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
u64 = np.uint64

PHASES = 6
DEPTH = 60.0
NEGLIGIBLE = 1e-26  # of λ_j(x_L), a bound of the probability but for e^(−DEPTH); and of Λ at the right end
STEP = math.log(2) / PHASES
MOST_STEPS = 100  # of Newton's method; four are the rule
RATIOS = 2.0 ** (np.arange(PHASES) / PHASES)
SPREAD = u64(0x9E3779B97F4A7C15)  # 2⁶⁴ over the golden ratio: its multiples fall far apart


@jit
def grouped(scale: F64, group: I64) -> int:
    """Number the distinct scales in the order of their first arms; ``group`` gets each arm's number."""
    arms = scale.size
    bits = 1
    while 2**bits < 2 * arms:
        bits += 1
    mask, down = u64(2**bits - 1), u64(64 - bits)
    first = np.full(2**bits, -1, np.int64)  # a hash table of the first arm of each scale; sorting costs ten times that
    count = 0
    for j in range(arms):
        place = (bits_of_double(scale[j]) * SPREAD) >> down
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
def merged(location: F64, scale: F64, group: I64, m: F64, beta: F64, share: F64) -> None:
    """Location and scale of each group's largest score, and each arm's share in its group."""
    m[:] = -np.inf
    for j in range(scale.size):
        m[group[j]] = max(m[group[j]], location[j])
        beta[group[j]] = scale[j]
    total = np.zeros(m.size)
    for j in range(scale.size):
        share[j] = (location[j] - m[group[j]]) / scale[j]
    for j in range(scale.size):
        share[j] = exp(share[j])  # in a loop of its own, for vector code
    for j in range(scale.size):
        total[group[j]] += share[j]
    for j in range(scale.size):
        share[j] /= total[group[j]]
    for g in range(m.size):
        m[g] += beta[g] * log(total[g])


@jit
def left_of_all(m: F64, beta: F64, rate: F64) -> tuple[float, float]:
    """Λ and −Λ′ at a point where DEPTH ≤ Λ < 1.17·DEPTH; ``rate`` gets λ_j there, and m is moved to be about 0."""
    x, nearest = -np.inf, 0
    for j in range(m.size):
        if m[j] - beta[j] * math.log(DEPTH) > x:
            x, nearest = m[j] - beta[j] * math.log(DEPTH), j
    origin = m[nearest]  # differences to it are small numbers, with all digits that matter
    x = -beta[nearest] * math.log(DEPTH)
    for j in range(m.size):
        m[j] -= origin
    total = slope = 1.0
    for _ in range(MOST_STEPS):
        for j in range(m.size):
            rate[j] = exp(min((m[j] - x) / beta[j], 700.0))
        total, slope = 0.0, 0.0
        for j in range(m.size):
            total += rate[j]
            slope += rate[j] / beta[j]
        above = math.log(total / DEPTH)
        if above < 0.15:
            break
        x += above * total / slope
    return total, slope


@jit
def fall(t: float) -> float:
    """1 − e⁻ᵗ for t up to ½, small values with all their digits."""
    p = fma(t, -1 / 15, 1.0)
    p = fma(p, t * (-1 / 14), 1.0)
    p = fma(p, t * (-1 / 13), 1.0)
    p = fma(p, t * (-1 / 12), 1.0)
    p = fma(p, t * (-1 / 11), 1.0)
    p = fma(p, t * (-1 / 10), 1.0)
    p = fma(p, t * (-1 / 9), 1.0)
    p = fma(p, t * (-1 / 8), 1.0)
    p = fma(p, t * (-1 / 7), 1.0)
    p = fma(p, t * (-1 / 6), 1.0)
    p = fma(p, t * (-1 / 5), 1.0)
    p = fma(p, t * (-1 / 4), 1.0)
    p = fma(p, t * (-1 / 3), 1.0)
    p = fma(p, t * (-1 / 2), 1.0)
    return p * t


@jit
def product(a: F64, b: F64) -> float:
    """Σ a_j b_j, for a multiple of 8 numbers, in eight sums side by side: one alone would wait for itself."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for j in range(0, a.size, 8):
        s0 = fma(a[j], b[j], s0)
        s1 = fma(a[j + 1], b[j + 1], s1)
        s2 = fma(a[j + 2], b[j + 2], s2)
        s3 = fma(a[j + 3], b[j + 3], s3)
        s4 = fma(a[j + 4], b[j + 4], s4)
        s5 = fma(a[j + 5], b[j + 5], s5)
        s6 = fma(a[j + 6], b[j + 6], s6)
        s7 = fma(a[j + 7], b[j + 7], s7)
    return ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))


@jit
def shares(inverse: F64, rate: F64, slope: float, sums: F64) -> None:
    """∫ e^(−y/β_j) e^(−Λ) dy for the groups that matter, by the trapezoidal rule in log y; a multiple of 8 groups."""
    groups = inverse.size
    q, r = np.empty(groups), np.empty(groups)
    sums[:] = 0.0
    for f in range(PHASES):
        y, total = 4.0 / slope * RATIOS[f], 1.0
        for j in range(groups):
            t = y * inverse[j]
            left = exp(-t)
            q[j] = fall(t) if t < 0.5 else 1.0 - left
            r[j] = left
        while total > NEGLIGIBLE:
            total = product(rate, r)
            weight = STEP * y * exp(-total)
            for j in range(groups):
                sums[j] = fma(weight, r[j], sums[j])
                further = q[j] * (2.0 - q[j])
                r[j] = r[j] * r[j] if further > 0.5 else 1.0 - further
                q[j] = further
            y *= 2.0


@jit
def all_arms(location: F64, scale: F64, chance: F64) -> None:
    """The probability of every arm to have the largest location + scale·z, z Gumbel, scales positive."""
    group = np.empty(scale.size, np.int64)
    count = grouped(scale, group)
    m, beta, share = np.empty(count), np.empty(count), np.empty(scale.size)
    merged(location, scale, group, m, beta, share)
    of_group = np.ones(count)
    if count > 1:
        rate = np.empty(count)
        _, slope = left_of_all(m, beta, rate)
        alive = np.flatnonzero(rate > NEGLIGIBLE)
        padded = (alive.size + 7) // 8 * 8
        inverses, rates, found = np.ones(padded), np.zeros(padded), np.empty(padded)
        for i in range(alive.size):
            inverses[i], rates[i] = 1.0 / beta[alive[i]], rate[alive[i]]
        shares(inverses, rates, slope, found)
        of_group[:] = 0.0
        for i in range(alive.size):
            of_group[alive[i]] = rates[i] * inverses[i] * found[i]
    for j in range(scale.size):
        chance[j] = share[j] * of_group[group[j]]
