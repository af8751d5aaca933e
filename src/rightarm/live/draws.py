"""The random numbers by which a live bandit draws its arms."""

from __future__ import annotations

from typing import Any

import numpy as np

OWN_STREAM = (2017,)  # users may draw their rewards from default_rng(seed): decisions must not use the same numbers


class Draws:
    """Uniform numbers below 1 of which the n-th belongs to the n-th decision, whatever was broken off meanwhile.

    `next` gives a number that counts as used only when ``used`` says so; `rewind` goes back to the first unused one.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self._generator = np.random.default_rng(0)
        self._generator.bit_generator.state = self._start = state
        self.next = self._generator.random
        self.used = 0  # since the start

    @classmethod
    def seeded(cls, seed: int | None) -> Draws:
        """Numbers that depend on a seed, or on chance without one."""
        sequence = np.random.SeedSequence(seed, spawn_key=OWN_STREAM)
        return cls(dict(np.random.default_rng(sequence).bit_generator.state))

    def rewind(self) -> None:
        """Let the first number that was not used be the next one."""
        bits: Any = self._generator.bit_generator
        bits.state = self._start
        bits.advance(self.used)

    def state(self) -> dict[str, Any]:
        """The state from which the unused numbers follow, as plain data."""
        return dict(self._generator.bit_generator.state)
