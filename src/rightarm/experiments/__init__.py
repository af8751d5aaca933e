"""Experiments: a TOML file, the cells it asks for, the run that plays them, and the folder of their results."""

from rightarm.experiments.cell import Cell
from rightarm.experiments.document import ExperimentError
from rightarm.experiments.file import Experiment, read_experiment, read_text
from rightarm.experiments.result_folder import CellDescription, Measurements, ResultFolder
from rightarm.experiments.result_reading import CellResult, Results, load
from rightarm.experiments.runner import Progress, RunError, run, run_cells, run_into

__all__ = [
    "Cell",
    "CellDescription",
    "CellResult",
    "Experiment",
    "ExperimentError",
    "Measurements",
    "Progress",
    "ResultFolder",
    "Results",
    "RunError",
    "load",
    "read_experiment",
    "read_text",
    "run",
    "run_cells",
    "run_into",
]
