"""The random numbers by which a live bandit draws its arms."""

from __future__ import annotations

import secrets

import numpy as np

OWN_STREAM = (2017,)  # users may draw their rewards from default_rng(seed): decisions must not use the same numbers
BLOCK = 64  # numbers that are made at once
STEPS = BLOCK // 4  # of the generator's counter: each gives four numbers
KEY_BITS = 128
CHANCE_BITS = 31  # of the first id, so many are by chance
ZERO_BITS = 21  # and so many are zeros; ids stay below 2^53, which JSON keeps exactly


class Draws:
    """Uniform numbers below 1, the n-th of which depends on a secret key and n alone.

    They are the numbers of NumPy's Philox generator with that key, in their order. So there is no state to save, to
    take back or to give away, and whoever has the key can draw every decision again.

    >>> draws = Draws(key=17)
    >>> same = np.random.Generator(np.random.Philox(key=17)).random(200)
    >>> all(draws.number(n) == same[n] for n in (0, 199, 63, 64))
    True
    """

    def __init__(self, key: int) -> None:
        self.key = key
        self._block: tuple[int, list[float]] = (-1, [])

    def number(self, n: int) -> float:
        """Return the n-th number, from 0 on."""
        block = n // BLOCK
        number, numbers = self._block
        if number != block:
            generator = np.random.Generator(np.random.Philox(key=self.key, counter=block * STEPS))
            numbers = generator.random(BLOCK).tolist()
            self._block = block, numbers
        return numbers[n % BLOCK]


def new_key(seed: int | None = None) -> int:
    """Return the key that belongs to a seed, or one by chance without a seed."""
    if seed is None:
        return secrets.randbits(KEY_BITS)
    low, high = np.random.SeedSequence(seed, spawn_key=OWN_STREAM).generate_state(2, np.uint64).tolist()
    return int(low) | int(high) << 64


def new_first_id(seed: int | None = None) -> int:
    """Return the id of a bandit's first decision: 1 with a seed, else one that no other bandit has used."""
    if seed is not None:
        return 1
    return 1 + (secrets.randbits(CHANCE_BITS) << ZERO_BITS)
