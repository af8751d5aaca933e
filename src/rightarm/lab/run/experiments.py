"""`run`: an experiment file from beginning to end."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from rightarm.lab.experiment import Experiment, read_experiment
from rightarm.lab.results import Loaded, Results, load
from rightarm.lab.run.executors import check_dask, crew
from rightarm.lab.run.runner import Progress, Rounds, run_cells


def run(
    experiment: str | os.PathLike[str] | Experiment,
    output: str | os.PathLike[str] | None = None,
    *,
    workers: int | None = None,
    dask: str | None = None,
    progress: bool = False,
    quick: bool = False,
) -> Loaded:
    """Run an experiment file and return its results; what the folder ``output`` has already is not computed again.

    - ``output``: ``results/<name of the file>`` unless given, and with ``quick`` ``results/<name>-quick``.
    - ``workers``: threads, or local Dask workers; one per core unless given.
    - ``dask``: ``"local"`` for worker processes on this machine, or the address of a scheduler.
    - ``progress``: show a bar. ``quick``: the smaller version that the file has under ``[quick]``.

    Results are the same bit for bit whoever computes them. Ctrl-C ends the run cleanly, and the next one goes on.

    >>> import tempfile
    >>> import rightarm as ra
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "gaps.toml"
    ...     _ = path.write_text('horizon = 100\\nproblems.a = "Bernoulli([0.6, 0.5])"\\npolicies.ucb = "UCB(C=0.5)"')
    ...     ra.run(path, output=Path(folder) / "gaps").frame["policy", "finished"].rows()
    [('ucb', 64)]
    """
    read = experiment if isinstance(experiment, Experiment) else read_experiment(experiment, quick)
    folder = folder_for(read, quick) if output is None else Path(output)
    run_into(folder, read, workers=workers, dask=dask, progress=progress)
    return load(folder)


def folder_for(experiment: Experiment, quick: bool = False) -> Path:
    """The folder of an experiment's results, unless another is asked for."""
    name = "experiment" if experiment.path is None else experiment.path.stem
    return Path("results") / (f"{name}-quick" if quick else name)


def run_into(
    folder: Path,
    experiment: Experiment,
    *,
    workers: int | None = None,
    dask: str | None = None,
    progress: bool = False,
) -> int:
    """Compute what ``folder`` lacks of an experiment, and say how many blocks that were."""
    check_dask(dask, workers)
    rounds = Rounds()
    with (
        crew(workers, dask, rounds.add) as players,
        Results.open(folder, write=True) as results,
        _shown(progress, experiment.title or folder.name) as show,
    ):
        results.begin(experiment.cells, experiment.text, experiment.title)
        return run_cells(experiment.cells, results, players, show, rounds if dask is None else None)


@contextlib.contextmanager
def _shown(progress: bool, title: str) -> Iterator[Callable[[Progress], None]]:
    if not progress:
        yield lambda now: None
        return
    from rightarm.simulation.progress import watched

    with watched(title) as show:
        yield lambda now: show(now.share, now)
