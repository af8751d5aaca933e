"""Cells: what an experiment consists of, and the blocks in which a cell is computed and stored."""

from __future__ import annotations

import functools
import hashlib
import json
import platform
from dataclasses import asdict, dataclass, field
from typing import Any

from rightarm.formula import without_addresses
from rightarm.policies.policy import Policy
from rightarm.problems.random import AnyProblem
from rightarm.simulation.engine import Start
from rightarm.simulation.jobs import Job, outcome_code, padded
from rightarm.simulation.result import versions

WIDE = 64  # replications of a block
NARROW = 32  # replications of a block where there are few in all


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
    """Its names in the experiment: ("policy", "bge"), ("problem", "honest"), and every swept value, ("C", 0.5)."""
    given_start: Start | None = None
    """Statistics to start from, if not from nothing; the horizon and the checkpoints count their rounds as well."""

    @property
    def start(self) -> Start:
        """The statistics that it starts from."""
        return self.given_start or Start((0,) * self.problem.arms, (0.0,) * self.problem.arms)

    def specification(self) -> dict[str, Any]:
        """Return all that determines its outcome, our code included, and for information who computed it.

        The versions of libraries are recorded and do not count as a difference. The kernels compute in IEEE arithmetic
        with a fixed order of operations and with logarithms and exponentials of our own, so they give the same bits
        whatever compiles them. Where a formula calls another function of NumPy, or a random problem draws its
        parameters by NumPy, another version may differ in a last digit: no reason to compute a sweep again. Machines
        of another architecture have other mathematical functions throughout, so the architecture does count.
        """
        specification: dict[str, Any] = {
            "policy": self.policy.specification(),
            "problem": self.problem.specification(),
            "seed": self.seed,
            "checkpoints": list(self.checkpoints),
            "code": outcome_code(),
            "machine": platform.machine(),
            "versions": versions(),
        }
        if self.given_start is not None:
            specification["start"] = asdict(self.given_start)
        return specification

    @functools.cached_property
    def key(self) -> str:
        """Name all that determines its outcome; neither the places of formulas nor versions are part of it.

        Nor is the number of replications: more of them add to the same.
        """
        counted = {name: value for name, value in self.specification().items() if name != "versions"}
        text = json.dumps(without_addresses(counted), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def blocks(self) -> list[Job]:
        """Return its pieces; their sizes depend on the cell alone, so that any machine continues another's work."""
        size = WIDE if self.replications >= WIDE else NARROW
        blocks = []
        for first in range(0, self.replications, size):
            count = min(size, self.replications - first)
            blocks.append(
                Job(
                    policy=self.policy,
                    problem=self.problem,
                    start=self.start,
                    seed=self.seed,
                    first=first,
                    replications=count,
                    checkpoints=self.checkpoints,
                    lanes=padded(count),
                )
            )
        return blocks

    @property
    def title(self) -> str:
        """The name of the cell in the experiment, or else its policy and problem."""
        return ", ".join(f"{name} {value}" for name, value in self.names) or f"{self.policy} on {self.problem}"
