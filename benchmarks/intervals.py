"""How wide intervals are that hold at any time: `python -m benchmarks.intervals`.

Those from count, mean and spread, beside betting on the rewards one by one, and beside the textbook's ± 1.96 standard
errors, which hold at one moment only. Medians over some samples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.common import table
from rightarm import inference
from rightarm.inference.sequences import interval

SAMPLES = 15
COUNTS = (100, 1_000, 10_000, 100_000)
REWARDS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "clicks, 2%": lambda random, n: (random.random(n) < 0.02) * 1.0,
    "clicks, 50%": lambda random, n: (random.random(n) < 0.5) * 1.0,
    "beta(6, 4)": lambda random, n: random.beta(6, 4, n),
    "normal(0.6, 0.2), cut": lambda random, n: np.clip(random.normal(0.6, 0.2, n), 0, 1),
    "normal(0.6, 0.02)": lambda random, n: np.clip(random.normal(0.6, 0.02, n), 0, 1),
    "revenue to 500, 5% buy": lambda random, n: (
        np.minimum((random.random(n) < 0.05) * np.exp(random.normal(3.5, 0.8, n)), 500) / 500
    ),
}


def ratios(draw: Callable[[np.random.Generator, int], Any], count: int) -> tuple[float, float]:
    """The width over that of betting, and over the textbook's."""
    found = []
    for seed in range(SAMPLES):
        values = draw(np.random.default_rng([seed, count]), count)
        low, high = interval(values)
        ours = inference.means([count], [values.mean()], [count * values.var()], (0, 1))
        width, naive = float(ours.highs[0] - ours.lows[0]), 2 * 1.96 * float(values.std()) / count**0.5
        found.append((width / (high - low), width / naive if naive else np.inf))
    betting, textbook = np.median(found, axis=0)
    return float(betting), float(textbook)


def main() -> None:
    """Print the table."""
    rows = [
        [name, *(f"{betting:.2f}, {textbook:.2f}" for betting, textbook in (ratios(draw, n) for n in COUNTS))]
        for name, draw in REWARDS.items()
    ]
    print(table(["rewards", *(f"{n:,}" for n in COUNTS)], rows))


if __name__ == "__main__":
    main()
