"""What exact probabilities cost: `python -m benchmarks.propensity`.

CPU microseconds on one core, the least of several measurements, for the probabilities of all arms.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rightarm as ra
from benchmarks.common import best_of, table
from rightarm.noise import Beta, Exponential, Gaussian, Gumbel, Law, Uniform, probability_of_largest

F64 = NDArray[np.float64]
State = Callable[[int], tuple[F64, F64]]
ARMS, TIMES = (10, 100, 1_000), 5
TARGETS = {10: 10, 100: 20, 1_000: 150}  # microseconds for Gumbel noise


def late(arms: int) -> tuple[F64, F64]:
    """Pulls and means late in a run: pulls fall with the square of the gap, and most arms hardly matter any more."""
    random = np.random.default_rng(1)
    means = random.random(arms)
    return np.asarray(np.round(10_000 / (0.05 + means.max() - means) ** 2) + np.arange(arms), dtype=float), means


def early(arms: int) -> tuple[F64, F64]:
    """Pulls and means where every arm may still win, and all pulls are different: the most work there can be."""
    random = np.random.default_rng(1)
    return 100 + 7 * random.permutation(arms).astype(np.float64), 0.1 * random.random(arms)


def microseconds(call: Callable[[], Any]) -> float:
    """CPU microseconds per call."""
    call()
    begun = time.perf_counter()
    call()
    calls = max(1, int(0.02 / (time.perf_counter() - begun)))

    def measure() -> float:
        start = time.process_time()
        for _ in range(calls):
            call()
        return 1e6 * (time.process_time() - start) / calls

    return best_of(TIMES, measure)


def law_row(law: Law | Beta, state: State) -> list[str]:
    """Of one law: the probabilities of all arms."""
    cells = []
    for arms in ARMS:
        pulls, means = state(arms)
        shapes, scale = (1 + pulls * means, 1 + pulls * (1 - means)), 0.5 / np.sqrt(pulls)
        numbers = shapes if isinstance(law, Beta) else (means, scale)
        cells.append(f"{microseconds(functools.partial(probability_of_largest, law, *numbers)):,.1f}")
    return [f"{law}, {state.__name__}", *cells]


def policy_row() -> list[str]:
    """CPU microseconds of `policy.probabilities`: the formula and its checks included."""
    call = ra.BoltzmannGumbel(C=0.5).probabilities
    cells = [microseconds(functools.partial(call, 10**9, *late(arms))) for arms in ARMS]
    return ["BoltzmannGumbel.probabilities, late", *(f"{cell:,.1f}" for cell in cells)]


def main() -> None:
    """Measure everything and print it."""
    print("Probabilities of all arms, µs\n")
    titles = ["law", *(f"K = {arms:,}" for arms in ARMS)]
    laws = (Gumbel(), Gaussian(), Exponential(), Uniform(), Beta())
    rows = [law_row(law, state) for law in laws for state in (late, early)]
    print(table(titles, [*rows, policy_row(), ["target for Gumbel noise", *(f"≤ {TARGETS[arms]}" for arms in ARMS)]]))


if __name__ == "__main__":
    main()
