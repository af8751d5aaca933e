"""One sweep by threads and by Dask workers: `python -m benchmarks.sweeps [SECONDS]`, its length on one thread."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import rightarm as ra
from benchmarks.common import table
from benchmarks.peers import bernoulli_means
from rightarm.experiments.cell import Cell
from rightarm.experiments.executors import Chunk, Crew, Timed, crew
from rightarm.experiments.runner import Pace, run_cells, seconds_of
from rightarm.simulation.jobs import Job, Outcome

CREWS = (("threads", 1), ("threads", 2), ("dask", 1), ("dask", 2), ("dask", 4))
HORIZON = 20_000
WARM_UP = 200  # rounds of a first run, in which every worker loads what is compiled


@dataclass
class Forgotten:
    """Results that are counted and not kept: this is about playing."""

    blocks: int = 0
    seconds: float = 0.0
    chunks: int = 0

    def missing(self, cells: Iterable[Cell]) -> list[tuple[Cell, Job]]:
        return [(cell, job) for cell in cells for job in cell.blocks()]

    def put(self, found: Sequence[tuple[Cell, Job, Outcome]]) -> None:
        self.blocks += len(found)
        self.chunks += 1


def sweep(replications: int, horizon: int = HORIZON) -> list[Cell]:
    """Two policies with thirty parameters each, on two problems."""
    problems = [ra.problems.Bernoulli(bernoulli_means(arms)) for arms in (2, 10)]
    values = [0.1 * (i + 1) for i in range(30)]
    policies = [make(C=value) for make in (ra.BoltzmannGumbel, ra.UCB) for value in values]
    rounds = (horizon // 10, horizon)
    return [Cell(policy, problem, horizon, replications, 1, rounds) for problem in problems for policy in policies]


def measured(kind: str, workers: int, cells: list[Cell]) -> tuple[float, float, Forgotten]:
    """Seconds on the clock, seconds of CPU time of client and workers, and what was counted; workers are warm."""
    kept = Forgotten()
    with crew(workers, "local" if kind == "dask" else None) as players:
        run_cells(sweep(64, WARM_UP), Forgotten(), players)
        start = time.perf_counter()
        used = _cpu(players)
        run_cells(cells, kept, _listening(players, kept))
        return time.perf_counter() - start, _cpu(players) - used, kept


def _cpu(players: Crew) -> float:
    """CPU seconds of this process and of Dask's workers."""
    client = getattr(players.make_executor(), "_client", None)
    return time.process_time() + (0.0 if client is None else sum(client.run(time.process_time).values()))


def _listening(players: Crew, kept: Forgotten) -> Crew:
    """The crew, with the seconds of play counted."""

    class Listening(Crew):
        def run(self, chunks, on_done, on_tick):  # type: ignore[no-untyped-def]
            def heard(chunk: Chunk, played: list[Timed]) -> None:
                kept.seconds += sum(timed.seconds for timed in played)
                on_done(chunk, played)

            super().run(chunks, heard, on_tick)

    return Listening(**vars(players))


def main() -> None:
    """Measure every crew on a sweep of about so long, and print a table."""
    wanted = float(sys.argv[1]) if len(sys.argv) > 1 else 240.0
    once = sum(seconds_of(Forgotten().missing(sweep(64)), Pace()).values())
    cells = sweep(64 * max(1, round(wanted / once)))
    rounds = sum(job.rounds for cell in cells for job in cell.blocks())
    found = {(kind, workers): measured(kind, workers, cells) for kind, workers in CREWS}
    rows = []
    for (kind, workers), (wall, cpu, kept) in found.items():
        as_many = found["threads", min(workers, 2)]
        overhead = 1e3 * max(0.0, workers * wall - kept.seconds) / kept.chunks
        numbers = [f"{wall:.1f}", f"{cpu:.1f}", f"{rounds / wall / 1e6:,.0f}", kept.chunks, f"{overhead:.1f}"]
        rows.append([f"{workers} {kind}", *numbers, f"{as_many[0] / wall:.0%}", f"{as_many[1] / cpu:.0%}"])
    titles = ["workers", "wall, s", "CPU, s", "M rounds/s", "chunks", "waiting per chunk, ms"]
    print(f"{len(cells)} cells, {rounds:,} rounds; workers are started and warm; 4 are compared with 2 threads\n")
    print(table([*titles, "speed of as many threads", "the same by CPU"], rows))


if __name__ == "__main__":
    main()
