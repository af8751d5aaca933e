"""Results: the folder of an experiment, written by a run and read by everybody."""

from rightarm.lab.results.folder import PARTS, CellRecord, Results, Sample
from rightarm.lab.results.reading import CellResult, Loaded, load

__all__ = ["PARTS", "CellRecord", "CellResult", "Loaded", "Results", "Sample", "load"]
