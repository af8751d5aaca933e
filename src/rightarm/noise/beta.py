"""Beta distributions of scores, with any shapes: the probabilities of arms, compiled.

For all arms from one grid: on the scale x = log(θ/(1−θ)), with densities f_j and distribution functions F_j,

    p_i = ∫ f_i(x)/F_i(x) · Π_j F_j(x) dx

by the grid of `gaussian`, whose spacing is bounded here: on this scale a law's left tail is long and its bend short.
Distribution functions have no short formula that holds for all shapes, densities have, and their derivatives: F_j is
found at the left point, and what lies between two points of the grid is added to it.

An arm's row of numbers depends on its shapes and on the grid, and the grid changes rarely: a live bandit stores the
rows in a table, and a reward changes one of them (`CachedBeta`).

A row of LANES points is what a loop goes over, so that it becomes vector code: see `gumbel`.
"""

from __future__ import annotations

import math

import numpy as np

from rightarm.formula.compile import jit
from rightarm.formula.elementary import exp, expm1, log, log1p
from rightarm.noise.gaussian import LANES, LOG_2PI, STEP, bell_and_below
from rightarm.noise.law import Row, ScoreLaw
from rightarm.noise.pieces import BAD_FIRST, BAD_SECOND
from rightarm.types import F64

TAIL_STEP = 0.1  # of a trapezoidal rule
TAIL_FIRST = -3.8
COARSEST = 4.0  # of the grid, over STEP
DEPTH = 46.0  # of x_L at least
DEEPER = 70.0  # and at most
FURTHEST = 12.0  # scales; the depth of an arm goes to 75
NEAREST = 32.0  # log-odds
DEAD = -42.0  # height on the right of the mode from which F is 1
LEAST_SHAPE = 1e-3
LARGEST_SHAPE = 1e15
NOTHING = -100.0  # as a logarithm; not yet a subnormal number
LONGEST = 1e5  # grid, over COARSEST: shapes below 1e-3 ask for more, in vain
# c_k of Hermite's rule: (6 over k+1) / ((12 over k+1) (k+1)!)
C0 = 1 / 2
C1 = 5 / 44
C2 = 1 / 66
C3 = 1 / 792
C4 = 1 / 15840
C5 = 1 / 665280
# The rows of the table: four for the grid, then two for each arm, F and f/F at the points of the grid.
GRID = 0
POINTS = 1
STEPS = 2
WEIGHTS = 3
FIRST_ARM = 4
BLOCKS = 20
SIZE = BLOCKS * LANES  # points
WIDE = SIZE + 16
# The columns of the first row: x_L, points left and right of it, the first step, and how far the points reach.
LEFT = 0
TOO_DEEP = 1
NOT_DEEP = 2
FIRST_STEP = 3
LAST = 4
# The columns behind the points of an arm's first row.
A = SIZE
B = SIZE + 1
ROWS = SIZE + 2  # blocks of points that it has
ENDED = SIZE + 3  # whether it ends within them
DEPTHS = SIZE + 4  # parts of depths, five columns
UNKNOWN = -1.0  # in place of a number of blocks


@jit
def mode(a: float, b: float) -> float:
    """Return where the density of the log-odds is largest."""
    return math.log(a / b)


@jit
def width(a: float, b: float) -> float:
    """Return how far the law spreads about its mode."""
    return math.sqrt(1.0 / a + 1.0 / b)


@jit
def peak(a: float, b: float) -> float:
    """Return the logarithm of the density at the mode."""
    scale = 0.5 * (math.log(a / (a + b)) + math.log(b) - LOG_2PI)
    return scale - stirling(a) - stirling(b) + stirling(a + b)


@jit
def stirling(a: float) -> float:
    """Return log Γ(a) − (a − ½) log a + a − ½ log 2π, whose digits large numbers lose if it is done as it stands."""
    if a < 10.0:
        return math.lgamma(a) - (a - 0.5) * math.log(a) + a - 0.5 * LOG_2PI
    s = 1.0 / (a * a)
    return (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * (691 / 360360)))))) / a


# All arms.


@jit
def height(x: float, a: float, b: float, middle: float) -> float:
    """Return the logarithm of the density over the density at its mode, ``middle``."""
    share = min(a, b) / (a + b)  # the smaller share loses fewer digits
    w = x - middle if a <= b else middle - x
    inside = min(max(w, -700.0), 600.0)
    return (a + b) * (share * w - log1p(share * expm1(inside)) - max(w - inside, 0.0))


@jit
def skewness(a: float, b: float) -> float:
    """Return u such that F at the mode is about Φ(u); of shapes below 1 a bound, so that x_L is not too far right."""
    return min(max((b - a) / (3.0 * math.sqrt(a) * math.sqrt(b) * math.sqrt(a + b)), -1 / 3), 4.0)


@jit
def part_of_depth(x: float, a: float, b: float, middle: float, skew: float) -> float:
    """Return about −log F(x): that of a Gaussian law with a density as high, moved by what the law is skewed."""
    root = math.sqrt(max(-2.0 * height(x, a, b, middle), 0.0))
    u = (root if x > middle else -root) + skew
    _, below = bell_and_below(min(max(u, -FURTHEST), FURTHEST))
    return -log(below)


@jit
def depth(x: float, a: F64, b: F64, middle: F64, skew: F64, parts: F64) -> float:
    """Return about −log Π F_j(x)."""
    for j in range(a.size):
        parts[j] = part_of_depth(x, a[j], b[j], middle[j], skew[j])
    total = 0.0
    for j in range(a.size):  # apart from the other loop, which becomes vector code
        total += parts[j]
    return total


@jit
def fits(low: float, here: float, high: float, near: float, far: float) -> bool:
    """Return whether a grid has the depths that it must have about x_L, and after its first step and four."""
    return low > DEEPER and DEPTH <= here <= DEEPER and high < DEPTH and far < here - 3.0 <= near


@jit
def find_grid(a: F64, b: F64, grid: F64) -> None:
    """Put x_L, two points about it, and the first step in ``grid``.

    The depth at x_L is between DEPTH and DEEPER. Of all such numbers it is the one that halving a range about zero
    meets first: it changes rarely as arms learn. It is so as long as the two points between which it was found are too
    deep and not deep enough. The step is the largest power of four over which the depth falls by 3 at most.
    """
    middle = np.empty(a.size)
    skew = np.empty(a.size)
    parts = np.empty(a.size)
    for j in range(a.size):
        middle[j] = mode(a[j], b[j])
        skew[j] = skewness(a[j], b[j])
    reach = NEAREST
    while depth(-reach, a, b, middle, skew, parts) <= DEEPER or depth(reach, a, b, middle, skew, parts) >= DEPTH:
        reach *= 32.0
    low = -reach
    high = reach
    x = 0.0
    deep = depth(x, a, b, middle, skew, parts)
    while not DEPTH <= deep <= DEEPER and low < x < high:
        if deep > DEEPER:
            low = x
        else:
            high = x
        x = 0.5 * (low + high)
        deep = depth(x, a, b, middle, skew, parts)
    y = 4.0 ** math.floor(0.5 * math.log2(high - low))
    while depth(x + y, a, b, middle, skew, parts) < deep - 3.0:
        y *= 0.25
    while depth(x + 4.0 * y, a, b, middle, skew, parts) >= deep - 3.0:
        y *= 4.0
    grid[LEFT] = x
    grid[TOO_DEEP] = low
    grid[NOT_DEEP] = high
    grid[FIRST_STEP] = y


@jit
def store_depths(j: int, a: float, b: float, table: F64) -> None:
    """Store an arm's parts of the depths that `fits` asks for; its row of points is to be made."""
    skew = skewness(a, b)
    middle = mode(a, b)
    row = table[FIRST_ARM + 2 * j]
    grid = table[GRID]
    row[DEPTHS] = part_of_depth(grid[TOO_DEEP], a, b, middle, skew)
    row[DEPTHS + 1] = part_of_depth(grid[LEFT], a, b, middle, skew)
    row[DEPTHS + 2] = part_of_depth(grid[NOT_DEEP], a, b, middle, skew)
    row[DEPTHS + 3] = part_of_depth(grid[LEFT] + grid[FIRST_STEP], a, b, middle, skew)
    row[DEPTHS + 4] = part_of_depth(grid[LEFT] + 4.0 * grid[FIRST_STEP], a, b, middle, skew)
    row[A] = a
    row[B] = b
    row[ROWS] = UNKNOWN


@jit
def grid_fits(a: F64, b: F64, table: F64) -> bool:
    """Return whether the grid of the table is the one of these shapes."""
    if table[GRID, FIRST_STEP] == 0.0:
        return False
    sums = np.zeros(5)
    for j in range(a.size):
        row = table[FIRST_ARM + 2 * j]
        if row[A] != a[j] or row[B] != b[j]:
            store_depths(j, a[j], b[j], table)
        for k in range(5):
            sums[k] += row[DEPTHS + k]
    return fits(sums[0], sums[1], sums[2], sums[3], sums[4])


@jit
def has_ended(x: float, a: float, b: float, middle: float) -> bool:
    """Return whether a law has ended at x: its distribution function is 1."""
    return bool(x > middle and height(x, a, b, middle) <= DEAD)


@jit
def cdf(x: float, a: float, b: float, middle: float) -> float:
    """Return P[X ≤ x], on the right of the mode from what is above: the trapezoidal rule in s, y = W e^(s − e^(−s))."""
    side = 1.0 if x <= middle else -1.0
    slope = abs(a - (a + b) / (1.0 + math.exp(min(-x, 700.0))))
    W = 1.0 / (slope + 1.0 / width(a, b))
    here = height(x, a, b, middle)
    terms = np.empty(LANES)
    total = 0.0
    s = TAIL_FIRST
    while True:
        for n in range(LANES):
            rise = exp(-s - n * TAIL_STEP)
            y = W * exp(s + n * TAIL_STEP - rise)
            terms[n] = y * (1.0 + rise) * exp(max(height(x - side * y, a, b, middle) - here, NOTHING))
        total += terms.sum()
        s += LANES * TAIL_STEP
        if s > 1.0 and not terms[-1] >= 1e-18 * total:
            break
    beyond = TAIL_STEP * total * math.exp(here + peak(a, b))
    return beyond if side > 0.0 else 1.0 - beyond


@jit
def densities(x: F64, a: float, b: float, f: F64, derivatives: F64) -> None:
    """Find the density f at a row of points, and f⁽ᵏ⁾/f for k = 1 to 5; both begin with the point before the row.

    With σ = 1/(1 + e⁻ˣ), (log f)′ = a − (a+b) σ. Taken from the mode, at the side of the smaller shape, it has all
    its digits.
    """
    total = a + b
    side = 1.0 if a <= b else -1.0
    share = min(a, b) / total
    middle = mode(a, b)
    top = peak(a, b)
    for n in range(LANES):
        w = side * (x[n] - middle)
        inside = min(max(w, -700.0), 600.0)
        up = expm1(inside)
        below = 1.0 / (1.0 + share * up)
        high = total * (share * w - log1p(share * up) - max(w - inside, 0.0))
        f[1 + n] = exp(max(high + top, NOTHING))
        sigma = share * (1.0 + up) * below
        rest = (1.0 - share) * below
        v = sigma * rest
        d1 = -side * total * share * (1.0 - share) * up * below
        d2 = -total * v
        d3 = side * d2 * (rest - sigma)
        d4 = d2 * (1.0 - 6.0 * v)
        d5 = d3 * (1.0 - 12.0 * v)
        r2 = d1 * d1 + d2
        r3 = d1 * r2 + 2.0 * d2 * d1 + d3
        r4 = d1 * r3 + 3.0 * (d2 * r2 + d3 * d1) + d4
        derivatives[0, 1 + n] = d1
        derivatives[1, 1 + n] = r2
        derivatives[2, 1 + n] = r3
        derivatives[3, 1 + n] = r4
        derivatives[4, 1 + n] = d1 * r4 + 4.0 * (d2 * r3 + d4 * d1) + 6.0 * d3 * r2 + d5


@jit
def step_on(dx: F64, f: F64, d: F64, F: float, below: F64, ratio: F64) -> float:
    """Find F and f/F at a row of points, from F at the point before it; return F at the last of them.

    What lies between two points is Hermite's rule with five derivatives at either end: ΔF = Σ c_k hᵏ⁺¹ (f⁽ᵏ⁾ left +
    (−1)ᵏ f⁽ᵏ⁾ right), whose error is 2e-13 λ¹² where log f changes by λ.
    """
    for n in range(LANES):
        h = dx[n]
        left = C0 + h * (C1 * d[0, n] + h * (C2 * d[1, n] + h * (C3 * d[2, n] + h * (C4 * d[3, n] + h * C5 * d[4, n]))))
        m = n + 1
        g = -h
        right = C0 + g * (
            C1 * d[0, m] + g * (C2 * d[1, m] + g * (C3 * d[2, m] + g * (C4 * d[3, m] + g * C5 * d[4, m])))
        )
        below[n] = h * (f[n] * left + f[m] * right)
    for n in range(LANES):
        F += below[n]
        below[n] = F
    for n in range(LANES):
        ratio[n] = f[1 + n] / below[n]
    f[0] = f[LANES]
    for k in range(5):
        d[k, 0] = d[k, LANES]
    return F


@jit
def space_points(t: float, before: float, y: F64, dy: F64, weight: F64) -> None:
    """Fill a row of distances from x_L, C log(1 + eᵗ) with C = COARSEST, and of the distances to the points before."""
    for n in range(LANES):
        at = t + n * STEP
        small = exp(-abs(at))
        y[n] = COARSEST * (max(at, 0.0) + log1p(small))
        weight[n] = STEP * COARSEST * (1.0 if at > 0.0 else small) / (1.0 + small)
    for n in range(LANES):
        dy[n] = y[n] - before
        before = y[n]


@jit
def start_row(x: float, a: float, b: float, f: F64, derivatives: F64) -> float:
    """Find what a row of points needs of the point x before its first one; return F there."""
    densities(np.full(LANES, x), a, b, f, derivatives)
    f[0] = f[1]
    for k in range(5):
        derivatives[k, 0] = derivatives[k, 1]
    return cdf(x, a, b, mode(a, b))


@jit
def store_row(j: int, a: float, b: float, table: F64) -> None:
    """Store F and f/F of an arm at the points of the table, until its law has ended."""
    f = np.empty(1 + LANES)
    derivatives = np.empty((5, 1 + LANES))
    middle = mode(a, b)
    below = table[FIRST_ARM + 2 * j]
    ratio = table[FIRST_ARM + 2 * j + 1]
    points = table[POINTS]
    blocks = 0
    ended = has_ended(table[GRID, LEFT], a, b, middle)
    F = 1.0 if ended else start_row(table[GRID, LEFT], a, b, f, derivatives)
    while not ended and blocks < BLOCKS:
        row = slice(blocks * LANES, (blocks + 1) * LANES)
        densities(points[row], a, b, f, derivatives)
        F = step_on(table[STEPS, row], f, derivatives, F, below[row], ratio[row])
        blocks += 1
        ended = has_ended(points[blocks * LANES - 1], a, b, middle)
    below[ROWS] = blocks
    below[ENDED] = ended


@jit
def store_points(table: F64) -> None:
    """Store the points of a new grid."""
    left = table[GRID, LEFT]
    first = table[GRID, FIRST_STEP]
    t = math.log(math.expm1(first / COARSEST))
    before = 0.0
    y = np.empty(LANES)
    for block in range(BLOCKS):
        row = slice(block * LANES, (block + 1) * LANES)
        space_points(t + block * LANES * STEP, before, y, table[STEPS, row], table[WEIGHTS, row])
        before = y[LANES - 1]
        for n in range(LANES):
            table[POINTS, block * LANES + n] = left + y[n]
    table[GRID, LAST] = before


@jit
def add_block(block: int, table: F64, chance: F64) -> None:
    """Add what a block of points has of every arm's integral, from the rows of the table."""
    product = np.empty(LANES)
    start = block * LANES
    for n in range(LANES):
        product[n] = table[WEIGHTS, start + n]
    for j in range(chance.size):
        row = FIRST_ARM + 2 * j
        if table[row, ROWS] > block:
            for n in range(LANES):
                product[n] *= table[row, start + n]
    for j in range(chance.size):
        row = FIRST_ARM + 2 * j
        if table[row, ROWS] > block:
            part = 0.0
            for n in range(LANES):
                part += product[n] * table[row + 1, start + n]
            chance[j] += part


@jit
def add_beyond(a: F64, b: F64, table: F64, chance: F64) -> None:
    """Add what lies beyond the points of the table; NaN for arms that end so far out that nobody waits."""
    left = table[GRID, LEFT]
    before = table[GRID, LAST]
    t = math.log(math.expm1(table[GRID, FIRST_STEP] / COARSEST)) + SIZE * STEP
    arms = np.array([j for j in range(a.size) if table[FIRST_ARM + 2 * j, ENDED] == 0.0])
    F = np.empty(arms.size)
    f = np.empty((arms.size, 1 + LANES))
    derivatives = np.empty((arms.size, 5, 1 + LANES))
    for i in range(arms.size):
        start_row(left + before, a[arms[i]], b[arms[i]], f[i], derivatives[i])
        F[i] = table[FIRST_ARM + 2 * arms[i], SIZE - 1]
    ended = np.zeros(arms.size, np.bool_)
    y = np.empty(LANES)
    dy = np.empty(LANES)
    weight = np.empty(LANES)
    below = np.empty(LANES)
    ratio = np.empty((arms.size, LANES))
    while not ended.all() and t < LONGEST:
        space_points(t, before, y, dy, weight)
        x = left + y
        before = y[LANES - 1]
        for i in range(arms.size):
            if not ended[i]:
                densities(x, a[arms[i]], b[arms[i]], f[i], derivatives[i])
                F[i] = step_on(dy, f[i], derivatives[i], F[i], below, ratio[i])
                weight *= below
        for i in range(arms.size):
            if not ended[i]:
                chance[arms[i]] += (weight * ratio[i]).sum()
                ended[i] = has_ended(x[LANES - 1], a[arms[i]], b[arms[i]], mode(a[arms[i]], b[arms[i]]))
        t += LANES * STEP
    chance[arms[~ended]] = np.nan


@jit
def all_arms(a: F64, b: F64, chance: F64, table: F64) -> None:
    """Find the probability of every arm, of shapes a and b, to be the largest; make rows of other shapes anew."""
    if not grid_fits(a, b, table):
        find_grid(a, b, table[GRID])
        store_points(table)
        for j in range(a.size):
            store_depths(j, a[j], b[j], table)
    blocks = 0
    finished = True
    for j in range(a.size):
        row = table[FIRST_ARM + 2 * j]
        if row[ROWS] == UNKNOWN:
            store_row(j, a[j], b[j], table)
        blocks = max(blocks, int(row[ROWS]))
        finished = finished and row[ENDED] != 0.0
    chance[:] = 0.0
    for block in range(blocks):
        add_block(block, table, chance)
    if not finished:
        add_beyond(a, b, table, chance)
    total = chance.sum()
    if abs(total - 1.0) < 1e-6:  # what rounding has left over
        chance /= total


@jit
def solve_by_table(a: F64, b: F64, chance: F64, table: F64) -> int:
    """Find the probability of every arm; return a status, below 0 if shapes are wrong."""
    for j in range(a.size):
        if not LEAST_SHAPE <= a[j] <= LARGEST_SHAPE:
            return BAD_FIRST
        if not LEAST_SHAPE <= b[j] <= LARGEST_SHAPE:
            return BAD_SECOND
    all_arms(a, b, chance, table)
    return a.size


@jit
def solve(a: F64, b: F64, chance: F64) -> int:
    """Find the probability of every arm, with a new table."""
    return solve_by_table(a, b, chance, np.zeros((FIRST_ARM + 2 * a.size, WIDE)))


class CachedBeta:
    """A solver for one bandit: what was computed of arms that have not changed since is used again.

    Results are the same to the last bit as without: rows of numbers depend on nothing but an arm's shapes and the grid,
    which follows from the shapes of all arms.
    """

    def __init__(self) -> None:
        self.table: F64 = np.zeros((0, WIDE))

    def __call__(self, a: F64, b: F64, chance: F64) -> int:
        rows = FIRST_ARM + 2 * a.size
        if self.table.shape[0] != rows:
            self.table = np.zeros((rows, WIDE))
        status: int = solve_by_table(a, b, chance, self.table)
        return status


class Beta(ScoreLaw):
    """The beta distribution of a score, which has no location and scale but two shapes: density ∝ θ^(a−1) (1−θ)^(b−1).

    >>> from rightarm.noise import probability_of_largest
    >>> probability_of_largest(Beta(), [1.0, 2.0], [1.0, 1.0]).round(4)
    array([0.3333, 0.6667])
    """

    kernel = solve

    def cached_solver(self) -> CachedBeta:
        return CachedBeta()

    def requirement(self, row: Row) -> str:
        return f"the {row} shapes of beta laws must be positive, from {LEAST_SHAPE:g} to {LARGEST_SHAPE:g}"

    def __repr__(self) -> str:
        return "Beta()"
