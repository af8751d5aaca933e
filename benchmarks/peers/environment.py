"""Libraries that peers need, each set in an environment of its own; standard library only."""

import os
import subprocess
import venv
from collections.abc import Sequence
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def execute(command: list[str], complaint: str) -> str:
    """Return what a command prints, run where this package can be imported and without a display."""
    variables = os.environ | {"MPLBACKEND": "Agg"}
    outcome = subprocess.run(command, cwd=PACKAGE.parent, env=variables, capture_output=True, text=True, check=False)
    if outcome.returncode:
        raise RuntimeError(f"{complaint}:\n{outcome.stderr.strip()}")
    return outcome.stdout


def install(environment: Path, requirements: Sequence[str], alone: Sequence[str] = ()) -> Path:
    """Return the interpreter of an environment that holds ``requirements``, made at the first call.

    ``alone`` are packages that are installed without what they say that they need, an older Python included.
    """
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = environment / "requirements.txt"
    wanted = "\n".join([*requirements, *alone]) + "\n"
    if done.is_file() and done.read_text() == wanted:
        return python
    venv.create(environment, clear=True, with_pip=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    execute([*command, *requirements], f"{requirements[0]} cannot be installed in {environment}")
    if alone:
        execute(
            [*command, "--no-deps", "--ignore-requires-python", *alone],
            f"{alone[0]} cannot be installed in {environment}",
        )
    done.write_text(wanted)  # last, so that an interrupted installation is begun again
    return python


def run(file: str, requirements: Sequence[str], environment: Path, *arguments: str, alone: Sequence[str] = ()) -> str:
    """Return what a module of this package prints, run in an environment with ``requirements``."""
    module = f"{PACKAGE.name}.{Path(file).stem}"
    command = [str(install(environment.absolute(), requirements, alone)), "-W", "ignore", "-m", module, *arguments]
    return execute(command, f"{requirements[0]} failed")
