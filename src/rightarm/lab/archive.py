"""Outcomes kept on disk, so that work that was killed goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from rightarm.files import write_whole
from rightarm.simulation.identity import outcome_code
from rightarm.simulation.jobs import Job, Outcome, play_jobs
from rightarm.simulation.result import versions


class Archive:
    """A folder with one small file for each outcome, named by all that determines it, our own code included."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, job: Job) -> Path:
        """Where the outcome of ``job`` is, or will be."""
        text = json.dumps(_specification(job), sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"

    def get(self, job: Job) -> Outcome | None:
        """The outcome of ``job``, if it was finished before."""
        path = self.path(job)
        if not path.exists():
            return None
        try:
            content = json.loads(path.read_text())
        except ValueError:  # cut short by a machine that went down: as good as not there
            return None
        return Outcome(np.array(content["regret"]), np.array(content["pulls"]))

    def put(self, job: Job, outcome: Outcome) -> None:
        """Keep an outcome; the file appears whole or not at all."""
        path = self.path(job)
        content = {"job": _specification(job), "regret": outcome.regret.tolist(), "pulls": outcome.pulls.tolist()}
        write_whole(path, json.dumps(content).encode())

    def play(
        self, jobs: Sequence[Job], workers: int, on_rounds: Callable[[int], None]
    ) -> Iterator[tuple[Job, Outcome]]:
        """The outcome of every job: those on disk first, the others as they are played."""
        kept = {job: self.get(job) for job in jobs}
        yield from ((job, outcome) for job, outcome in kept.items() if outcome is not None)
        for job, outcome in play_jobs([job for job in jobs if kept[job] is None], workers, on_rounds):
            self.put(job, outcome)
            yield job, outcome


def _specification(job: Job) -> dict[str, Any]:
    """All that determines the outcome; the number of lanes does not."""
    return {
        "policy": job.policy.specification(),
        "problem": job.problem.specification(),
        "start": asdict(job.start),
        "seed": job.seed,
        "first": job.first,
        "replications": job.replications,
        "checkpoints": job.checkpoints,
        "code": outcome_code(),
        "versions": versions(),
    }
