"""The engine against other ways to write it, on one core: `python -m benchmarks.engine`.

CPU nanoseconds per round and replication, the least of several measurements, and what they are as multiples of ours.
"""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from benchmarks.common import CACHE, POLICIES, TITLES, best_of, rightarm_ns, table
from benchmarks.peers import PARAMETERS, environment, numpy_loop, scalar, smpybandits

HORIZON = 1_000_000
REPLICATIONS = 64
ARMS = (10, 100)
TARGETS = {"scalar Numba": 7.0, "NumPy": 150.0, "SMPyBandits": 500.0}  # times slower than ours, at least
C_TARGET = 1.7  # ours over the C program, at most


def build_c() -> Path | None:
    """Build the C program; return None where there is no compiler or no AVX2."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        print("no C compiler here: the C program is left out")
        return None
    CACHE.mkdir(exist_ok=True)
    program = CACHE / "avx2"
    source = Path(__file__).parent / "peers" / "avx2.c"
    built = subprocess.run([compiler, "-O3", "-mavx2", "-mfma", source, "-o", program, "-lm"], check=False)
    if built.returncode or subprocess.run([program, "ucb", "2", "10", "1", "1", "1"], capture_output=True).returncode:
        print("the C program cannot be built or run here: it is left out")
        return None
    return program


def c_ns(program: Path, policy: str, arms: int) -> float:
    """Return the nanoseconds of the C program, which plays eight replications at once."""
    arguments = [program, policy, arms, HORIZON, REPLICATIONS // 8, PARAMETERS[policy.removesuffix("-sqrt")], 1]
    output = subprocess.run(list(map(str, arguments)), capture_output=True, text=True, check=True).stdout
    return float(json.loads(output)["ns_per_round"])


@functools.cache
def has_smpybandits() -> bool:
    """Return whether SMPyBandits can be installed here."""
    try:
        environment.install(CACHE / "smpybandits", smpybandits.REQUIREMENTS)
    except RuntimeError as error:
        print(f"{error}\nSMPyBandits is left out")
        return False
    return True


def peers(policy: str, arms: int, program: Path | None) -> dict[str, float]:
    """Return the nanoseconds of each peer that can be run here."""
    measures: dict[str, tuple[int, Callable[[], float]]] = {
        "scalar Numba": (3, lambda: scalar.run(policy, arms, HORIZON, 1, 1)[0]),
        "NumPy": (3, lambda: numpy_loop.run(policy, arms, HORIZON // 10, 1, 1)[0]),
    }
    if program is not None:
        measures["C, AVX2"] = (3, lambda: c_ns(program, policy, arms))
        if policy == "ucb":
            measures["C, root per arm"] = (3, lambda: c_ns(program, "ucb-sqrt", arms))
    if policy == "bge" and has_smpybandits():
        measures["SMPyBandits"] = (2, lambda: smpybandits.run(arms, 10_000, 5, CACHE / "smpybandits")[0])
    return {name: best_of(times, measure) for name, (times, measure) in measures.items()}


def main() -> None:
    """Measure everything and print it."""
    program = build_c()
    rows = []
    for arms in ARMS:
        for policy, title in TITLES.items():
            ours = best_of(5, functools.partial(rightarm_ns, POLICIES[policy], arms, HORIZON, REPLICATIONS))
            for peer, ns in peers(policy, arms, program).items():
                if peer in TARGETS:
                    target = f"≥ {TARGETS[peer]:.0f}"
                    reached = ns / ours >= TARGETS[peer]
                else:
                    target = f"≥ {1 / C_TARGET:.2f}"
                    reached = ours / ns <= C_TARGET
                verdict = "reached" if reached else "not reached"
                rows.append(
                    [f"{title}, K = {arms}", peer, f"{ours:.1f}", f"{ns:.1f}", f"{ns / ours:.2f}", target, verdict]
                )
                print(" ".join(rows[-1]), flush=True)
    print("\n" + table(["policy", "peer", "ours, ns", "peer, ns", "peer / ours", "target", ""], rows))


if __name__ == "__main__":
    main()
