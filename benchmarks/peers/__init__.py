"""Peers that rightarm is timed against.

For the engine, the same three policies on the same problem, written in other ways: `avx2.c` is the hand-vectorised
floor, `scalar` the plain compiled loop, `numpy_loop` the plain NumPy one and `smpybandits` a published library. For
live bandits, two published libraries, in `live_libraries`. This file holds what they share; it imports the standard
library only.
"""

import random
import time
from collections.abc import Callable
from typing import Any

EULER_GAMMA = 0.5772156649015329  # the location of the paper's "standard" Gumbel noise
PARAMETERS = {"bge": 0.5, "belog": 0.25, "ucb": 0.5}  # C, c = C^2 and C


def bernoulli_means(arms: int) -> list[float]:
    """Return the paper's problem: arm 0 is better by 0.01."""
    return [0.51] + [0.5] * (arms - 1)


def measure(play: Callable[[int], float], horizon: int, replications: int) -> tuple[float, float]:
    """Play replications 0, 1, ...; return CPU nanoseconds per round and the mean of `play`'s regrets."""
    start = time.process_time()
    regrets = [play(replication) for replication in range(replications)]
    seconds = time.process_time() - start
    return 1e9 * seconds / (horizon * replications), sum(regrets) / replications


def ask_and_tell(
    ask: Callable[[], Any],
    tell: Callable[[Any, float], Any],
    rounds: int,
    arm_of: Callable[[Any], int] = lambda decision: decision,
) -> float:
    """Return CPU microseconds of one decision and its reward, on arms of which the first is the best."""
    luck = random.Random(1)
    for _ in range(100):
        tell(ask(), 0.5)
    start = time.process_time()
    for _ in range(rounds):
        decision = ask()
        tell(decision, 1.0 if luck.random() < (0.4 if arm_of(decision) else 0.6) else 0.0)
    return 1e6 * (time.process_time() - start) / rounds
