"""A real `rightarm serve` in a process of its own, for tests."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator

COMMAND = [sys.executable, "-c", "from rightarm.cli import main; main()"]


@contextlib.contextmanager
def serving(store: str, *options: str) -> Iterator[str]:
    """The address of a service on this store, until the block ends; it must end well."""
    command = [*COMMAND, "serve", "--store", store, "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()  # which comes when it is ready
            assert said.startswith("rightarm answers at "), process.communicate()
            yield said.split()[-1]
        finally:
            process.send_signal(signal.SIGTERM)
            _, journal = process.communicate(timeout=60)
        assert process.returncode == 0, journal
