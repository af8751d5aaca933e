"""A whole sweep by the command line: killed at random moments, moved between executors, and the same in the end."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rightarm as ra

SWEEP = """
title = "five hundred cells"
horizon = 2_000
replications = 64
seed = 7
checkpoints = 5

[problems.gap]
use = "Bernoulli"
mean = "[0.5 + gap] + [0.5] * 3"

[policies]
bge = { use = "BoltzmannGumbel", C = "C" }
ucb = { use = "UCB", C = "C" }

[let]
gap = [0.01, 0.02, 0.05, 0.1, 0.2]
C = [GRID]
""".replace("GRID", ", ".join(f"{0.02 * n:.2f}" for n in range(1, 51)))
EXECUTORS: tuple[list[str], ...] = ([], ["--dask", "local"])


SAYING = """
from rightarm.cli import main
from rightarm.experiments import ResultFolder

put = ResultFolder.put

def put_and_say(results, pieces):
    put(results, pieces)
    print("kept", flush=True)

ResultFolder.put = put_and_say
main()
"""  # the command line, which also says of every part that it was kept


def command(file: Path, folder: Path, *options: str) -> list[str]:
    return [sys.executable, "-c", SAYING, "run", str(file), "--output", str(folder), "--workers", "2", *options]


def test_a_changed_file_computes_only_what_is_new(tmp_path: Path) -> None:
    file, folder = tmp_path / "sweep.toml", tmp_path / "results"
    small = SWEEP.replace("2_000", "200").replace("0.01, 0.02, 0.05, 0.1, 0.2", "0.1")
    file.write_text(small)
    done = subprocess.run(command(file, folder), capture_output=True, text=True, check=True)
    assert "100 cells are complete; blocks of replications computed now: 100" in done.stdout
    file.write_text(small.replace('ucb = { use = "UCB", C = "C" }', 'ucb = { use = "UCB", C = 0.5 }'))
    done = subprocess.run(command(file, folder), capture_output=True, text=True, check=True)
    assert "51 cells are complete; blocks of replications computed now: 0" in done.stdout  # C = 0.5 was there before
    file.write_text(small.replace("replications = 64", "replications = 96"))
    done = subprocess.run(command(file, folder), capture_output=True, text=True, check=True)
    assert "100 cells are complete; blocks of replications computed now: 100" in done.stdout


@pytest.mark.full
def test_a_sweep_killed_and_moved_between_executors_is_the_same(tmp_path: Path) -> None:
    """Each attempt is killed when it has kept some more parts, however fast the machine is."""
    file, folder, seeded, cut = tmp_path / "sweep.toml", tmp_path / "cut", random.Random(5), 0
    file.write_text(SWEEP.replace("2_000", "40_000"))
    subprocess.run(command(file, tmp_path / "whole"), capture_output=True, check=True)
    for attempt in range(6):
        with subprocess.Popen(
            command(file, folder, *EXECUTORS[attempt % 2]),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as run:
            assert run.stdout is not None
            kept = (line for line in run.stdout if line == "kept\n")
            wanted = seeded.randrange(1, 6)
            cut += len(list(itertools.islice(kept, wanted))) == wanted
            run.kill()
    subprocess.run(command(file, folder, "--dask", "local"), capture_output=True, check=True)
    assert cut >= 2  # or nothing was shown
    whole, again = ra.experiments.load(tmp_path / "whole"), ra.experiments.load(folder)
    assert len(whole) == len(again) == 500
    assert whole.frame.equals(again.frame)
    for i in range(0, 500, 7):
        np.testing.assert_array_equal(whole[i].regret, again[i].regret)
        np.testing.assert_array_equal(whole[i].pulls, again[i].pulls)
