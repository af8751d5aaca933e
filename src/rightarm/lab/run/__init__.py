"""Runs: what an experiment lacks, played by threads or by Dask in chunks, each kept as it comes."""

from rightarm.lab.run.experiments import run, run_into
from rightarm.lab.run.runner import Progress, RunError, duration, name_of, run_cells, seconds_of

__all__ = ["Progress", "RunError", "duration", "name_of", "run", "run_cells", "run_into", "seconds_of"]
