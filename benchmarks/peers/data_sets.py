"""Data sets that come with scikit-learn, in an environment of its own, as plain numbers."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from . import environment

REQUIREMENTS = ["scikit-learn==1.9.1"]


def run(name: str, folder: Path) -> tuple[list[list[float]], list[int]]:
    """Return the rows and the classes of a data set."""
    rows, classes = json.loads(environment.run(__file__, REQUIREMENTS, folder / "data-sets", name))
    return rows, classes


def main(name: str) -> None:
    """Print a data set as JSON."""
    found: Any = getattr(importlib.import_module("sklearn.datasets"), f"load_{name}")()
    print(json.dumps([found.data.tolist(), found.target.tolist()]))


if __name__ == "__main__":
    main(sys.argv[1])
