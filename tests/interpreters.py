"""Fresh interpreters for tests: this one's Python, and others that are there."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import rightarm

SOURCE = Path(rightarm.__file__).parents[1]
ROOT = Path(__file__).parents[1]


def run_python(code: str, *arguments: str, python: str = sys.executable, **environment: str) -> str:
    """What a fresh interpreter prints for ``code``, warnings being errors; its rightarm is the one of this process."""
    done = subprocess.run(
        [python, "-W", "error", "-c", textwrap.dedent(code), *arguments],
        env={**os.environ, "PYTHONPATH": str(SOURCE), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@functools.cache
def other_pythons() -> dict[str, str]:
    """Interpreters of other versions that have our dependencies, by version: ``{"3.13": ".venv-3.13/bin/python"}``.

    They are looked for in ``RIGHTARM_PYTHONS`` (paths, separated as in PATH) and in the environments that
    ``make test PYTHON=...`` leaves behind.
    """
    listed = os.environ.get("RIGHTARM_PYTHONS", "").split(os.pathsep)
    made = sorted(str(path) for path in ROOT.glob(".venv*/bin/python") if path.exists())
    code = """
        import importlib.util, sys
        missing = [name for name in ("numpy", "numba", "polars") if importlib.util.find_spec(name) is None]
        print("" if missing or sys.version_info < (3, 11) else "{}.{}".format(*sys.version_info))
    """
    found = {run_python(code, python=python).strip(): python for python in filter(None, [*made, *listed])}
    return {version: python for version, python in sorted(found.items()) if version not in ("", THIS)}


THIS = f"{sys.version_info.major}.{sys.version_info.minor}"
