"""Experiment files: a TOML file, read into the cells that are to be simulated."""

from rightarm.lab.experiment.cell import Cell
from rightarm.lab.experiment.errors import ExperimentError
from rightarm.lab.experiment.file import Experiment, read_experiment, read_text

__all__ = ["Cell", "Experiment", "ExperimentError", "read_experiment", "read_text"]
