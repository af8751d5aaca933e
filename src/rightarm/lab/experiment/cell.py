"""Cells and blocks: what an experiment consists of, and the pieces in which it is computed and kept."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from rightarm.formula.compile import source_hash
from rightarm.problems import Problem
from rightarm.problems.random import RandomProblem
from rightarm.scores.policy import Policy
from rightarm.simulation.engine import Start
from rightarm.simulation.jobs import Job, padded
from rightarm.simulation.result import versions

WIDE, NARROW = 64, 32  # replications of a block


@dataclass(frozen=True)
class Cell:
    """One policy on one problem, so many times for so many rounds, regret recorded at some of them."""

    policy: Policy
    problem: Problem | RandomProblem
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
        """All that determines what it gives, as plain data, our own code included; names do not."""
        return {
            "policy": self.policy.specification(),
            "problem": self.problem.specification(),
            "seed": self.seed,
            "checkpoints": list(self.checkpoints),
            "code": source_hash(),
            "versions": versions(),
            **({} if self.known is None else {"start": asdict(self.known)}),
        }

    @functools.cached_property
    def key(self) -> str:
        """A name for the specification. The number of replications is not part of it: more of them add to the same."""
        text = json.dumps(self.specification(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def blocks(self) -> list[Job]:
        """The pieces: how they are cut depends on the cell alone, so that any machine continues another's work."""
        size = WIDE if self.replications >= 2 * WIDE else NARROW
        return [
            Job(self.policy, self.problem, self.start, self.seed, first, count, self.checkpoints, padded(count))
            for first in range(0, self.replications, size)
            for count in [min(size, self.replications - first)]
        ]
