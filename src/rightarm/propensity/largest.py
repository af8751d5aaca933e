"""The probabilities of all arms, one compiled function for each law, whatever locations and scales are.

A score of scale zero is its location: of such arms only those with the largest location can win, in equal shares where
no arm with noise is there, and among arms with noise as if their scale were very small. An arm at −∞ never wins, unless
all are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rightarm.formula.compile import Kernel, jit
from rightarm.noise import Exponential, Gaussian, Gumbel, Law, Uniform
from rightarm.propensity.beta import all_arms as beta_arms
from rightarm.propensity.gaussian import all_arms as gaussian_arms
from rightarm.propensity.graded import all_arms as graded_arms
from rightarm.propensity.graded import origin
from rightarm.propensity.gumbel import all_arms as gumbel_arms
from rightarm.propensity.laws import BETA, EXPONENTIAL, GAUSSIAN, GUMBEL
from rightarm.propensity.uniform import below, ends

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

SMALL, NOTHING = 2.0**-400, 2.0**-80  # squares of numbers beyond SMALL may overflow
LEAST_SHAPE, LARGEST_SHAPE = 1e-3, 1e15  # of beta laws
BAD_LOCATION, BAD_SCALE = -1, -2  # in place of a number of arms


class Beta:
    """The beta law of a score, which has no location and scale but two shapes: density ∝ θ^(a−1) (1−θ)^(b−1).

    >>> from rightarm.propensity import of_largest
    >>> of_largest(Beta(), [1.0, 2.0], [1.0, 1.0]).round(4)
    array([0.3333, 0.6667])
    """

    def __repr__(self) -> str:
        return "Beta()"


@jit
def contenders(location: F64, scale: F64, arms: I64) -> int:
    """Name the arms that can have the largest score; how many there are, or what is wrong."""
    best, highest = -np.inf, -np.inf
    for j in range(scale.size):
        if not 0.0 <= scale[j] < np.inf:
            return BAD_SCALE
        if not location[j] < np.inf:
            return BAD_LOCATION
        if scale[j] == 0.0:
            best = max(best, location[j])
        highest = max(highest, location[j])
    count = 0
    for j in range(scale.size):
        if location[j] == -np.inf < highest:
            continue
        if scale[j] > 0.0 or location[j] == best:
            arms[count] = j
            count += 1
    return count


@jit
def usual(location: F64, scale: F64) -> bool:
    """Bring numbers to a usual size: the largest score is the same after a shift and a common factor.

    Locations are counted from the largest, or large ones would swallow small scales. A scale that is nothing beside the
    largest one, zero for instance, is as good as one a little larger. False if all scales are zero.
    """
    largest, top = scale.max(), location.max()
    common = largest if not SMALL < largest < 1.0 / SMALL and largest > 0.0 else 1.0
    for j in range(scale.size):
        location[j] = max((location[j] * 0.5 - top * 0.5) / common * 2.0, -1.0 / SMALL)
        scale[j] = max(scale[j] / common, largest / common * NOTHING)
    return largest > 0.0


@jit
def shared(location: F64, scale: F64, chance: F64, all_arms: Callable[[F64, F64, F64], None]) -> int:
    """Leave arms that cannot win out, and have ``all_arms`` find the probabilities of the others."""
    arms = np.empty(scale.size, np.int64)
    count = contenders(location, scale, arms)
    if count < 0:
        return count
    some = arms[:count]
    first, second, found = location[some], scale[some], np.empty(count)
    found[:] = 1.0 / count
    if first[0] > -np.inf and usual(first, second):
        all_arms(first, second, found)
    chance[:] = 0.0
    for i in range(count):
        chance[arms[i]] = found[i]
    return count


@jit
def nobody(location: F64, scale: F64, chance: F64) -> None:
    """Stands for the arms with noise where there are none."""


@jit
def exponential_arms(location: F64, scale: F64, chance: F64) -> None:
    """The arms of exponential scores."""
    graded_arms(EXPONENTIAL, location - origin(EXPONENTIAL, location, scale), scale, chance)


@jit
def uniform_arms(location: F64, scale: F64, chance: F64) -> None:
    """The arms of uniform scores."""
    lower, upper = ends(location, scale)
    below(lower, upper, upper.max(), chance)


@jit
def of_fixed(location: F64, scale: F64, chance: F64) -> int:
    """Scores without noise."""
    return shared(location, np.zeros(scale.size), chance, nobody)


@jit
def of_gumbel(location: F64, scale: F64, chance: F64) -> int:
    """Gumbel scores."""
    return shared(location, scale, chance, gumbel_arms)


@jit
def of_gaussian(location: F64, scale: F64, chance: F64) -> int:
    """Gaussian scores; the law is symmetric, so that −z is as good as z."""
    return shared(location, np.abs(scale), chance, gaussian_arms)


@jit
def of_exponential(location: F64, scale: F64, chance: F64) -> int:
    """Exponential scores."""
    return shared(location, scale, chance, exponential_arms)


@jit
def of_uniform(location: F64, scale: F64, chance: F64) -> int:
    """Uniform scores; the law is symmetric."""
    return shared(location, np.abs(scale), chance, uniform_arms)


@jit
def of_beta(first: F64, second: F64, chance: F64) -> int:
    """Beta scores, by their two shapes."""
    for j in range(first.size):
        if not LEAST_SHAPE <= first[j] <= LARGEST_SHAPE:
            return BAD_LOCATION
        if not LEAST_SHAPE <= second[j] <= LARGEST_SHAPE:
            return BAD_SCALE
    beta_arms(first, second, chance)
    return first.size


KERNELS: dict[type, Kernel] = {
    type(None): of_fixed,
    Gumbel: of_gumbel,
    Gaussian: of_gaussian,
    Exponential: of_exponential,
    Uniform: of_uniform,
    Beta: of_beta,
}
CODES: dict[type, int] = {Gumbel: GUMBEL, Gaussian: GAUSSIAN, Exponential: EXPONENTIAL, Beta: BETA}
KNOWN = "Gumbel(), Gaussian(), Exponential(), Uniform(), Beta() or None"


def kernel_of(law: Law | Beta | None) -> Kernel:
    """The compiled function for a law: of two numbers for each arm it makes probabilities, in its third argument.

    `check` says what is wrong if it returns less than 1.
    """
    if type(law) not in KERNELS:
        raise TypeError(f"law must be {KNOWN}, whose probabilities are known, got {law!r}")
    return KERNELS[type(law)]


def check(law: Law | Beta | None, count: int, first: F64, second: F64) -> None:
    """Raise if a kernel found its numbers wrong."""
    if count > 0:
        return
    name = {BAD_LOCATION: "first", BAD_SCALE: "second"}[count]
    wrong = {BAD_LOCATION: first, BAD_SCALE: second}[count].tolist()
    if isinstance(law, Beta):
        bounds = f"from {LEAST_SHAPE:g} to {LARGEST_SHAPE:g}"
        raise ValueError(f"the {name} shapes of beta laws must be positive, {bounds}, got {wrong}")
    must = "location must be a number below infinity" if name == "first" else "scale must be finite and not negative"
    raise ValueError(f"{must}, got {wrong}")
