"""Cells and blocks: what an experiment consists of, and the pieces in which it is computed and kept."""

from __future__ import annotations

import functools
import hashlib
import json
import platform
from dataclasses import asdict, dataclass, field
from typing import Any

from rightarm.formula import without_addresses
from rightarm.problems.random import AnyProblem
from rightarm.scores.policy import Policy
from rightarm.simulation.engine import Start
from rightarm.simulation.identity import outcome_code
from rightarm.simulation.jobs import Job, padded
from rightarm.simulation.result import versions

WIDE, NARROW = 64, 32  # replications of a block


@dataclass(frozen=True)
class Cell:
    """One policy on one problem, so many times for so many rounds, regret recorded at some of them."""

    policy: Policy
    problem: AnyProblem
    horizon: int
    replications: int
    seed: int
    checkpoints: tuple[int, ...]
    """The rounds at which regret is recorded; the last is the horizon."""
    names: tuple[tuple[str, Any], ...] = field(default=(), compare=False)
    """What the experiment calls it: ("policy", "bge"), ("problem", "honest"), and every swept value, ("C", 0.5)."""
    known: Start | None = None
    """Statistics to start from, if not from nothing; the horizon and the checkpoints count their rounds as well."""

    @property
    def start(self) -> Start:
        """Where it starts."""
        return self.known or Start((0,) * self.problem.arms, (0.0,) * self.problem.arms)

    def specification(self) -> dict[str, Any]:
        """All that determines what it gives, our own code included, and for information who computed it.

        The versions of libraries are recorded and do not count as a difference. The kernels compute in IEEE arithmetic
        with a fixed order of operations and with logarithms and exponentials of our own, so they give the same bits
        whatever compiles them. Where a formula calls another function of NumPy, or a random problem draws its
        parameters by NumPy, another version may differ in a last digit: no reason to compute a sweep again. Machines
        of another architecture have other mathematical functions throughout, so the architecture does count.
        """
        return {
            "policy": self.policy.specification(),
            "problem": self.problem.specification(),
            "seed": self.seed,
            "checkpoints": list(self.checkpoints),
            "code": outcome_code(),
            "machine": platform.machine(),
            "versions": versions(),
            **({} if self.known is None else {"start": asdict(self.known)}),
        }

    @functools.cached_property
    def key(self) -> str:
        """A name for all that determines what it gives; neither the places of formulas nor versions are part of it.

        Nor is the number of replications: more of them add to the same.
        """
        counted = {name: value for name, value in self.specification().items() if name != "versions"}
        text = json.dumps(without_addresses(counted), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def blocks(self) -> list[Job]:
        """The pieces: how they are cut depends on the cell alone, so that any machine continues another's work."""
        size = WIDE if self.replications >= WIDE else NARROW
        return [
            Job(self.policy, self.problem, self.start, self.seed, first, count, self.checkpoints, padded(count))
            for first in range(0, self.replications, size)
            for count in [min(size, self.replications - first)]
        ]
