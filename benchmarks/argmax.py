"""The arg max in hand-written LLVM against plain Numba: `python -m benchmarks.argmax`.

CPU nanoseconds of finding the arm with the largest location + scale·z in one lane, all arms together: the least of
several measurements in turn. All ways give the same arms and the same marks, which is checked first.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.common import table
from rightarm.formula.compile import fma, jit
from rightarm.simulation.kernels import TIE, largest_affine
from rightarm.types import F32, F64, I64

LANES = 64
ARMS = (2, 10, 100)
PASSES = 2_000_000  # times arms
TURNS = 20
TARGET = 1.2  # plain Numba over LLVM, from which on the hand-written one is worth its lines


@jit
def plain_affine(location: F64, scale: F64, z: F32, largest: F64, arm: I64) -> None:
    """Find the arms as `largest_affine` does: the loop over lanes is the inner one, which LLVM makes vector code of."""
    for lane in range(arm.size):
        largest[lane] = -np.inf
        arm[lane] = TIE
    for k in range(location.shape[0]):
        for lane in range(arm.size):
            score = fma(scale[k, lane], np.float64(z[k, lane]), location[k, lane])
            before = largest[lane]
            tied = arm[lane] | TIE if score == before else arm[lane]
            arm[lane] = k if score > before else tied
            largest[lane] = score if score > before else before


@jit
def lane_by_lane(location: F64, scale: F64, z: F32, largest: F64, arm: I64) -> None:
    """Find the arms with the loop over arms inside, and the largest score and its arm in registers."""
    for lane in range(arm.size):
        best = -np.inf
        index = TIE
        for k in range(location.shape[0]):
            score = fma(scale[k, lane], np.float64(z[k, lane]), location[k, lane])
            tied = index | TIE if score == best else index
            index = k if score > best else tied
            best = score if score > best else best
        largest[lane] = best
        arm[lane] = index


@jit
def repeat_llvm(times: int, location: F64, scale: F64, z: F32, largest: F64, arm: I64) -> None:
    """Call `largest_affine` many times, as the compiled rounds do: inlined."""
    for i in range(times):
        location[0, i % arm.size] += 1e-300  # nothing may be left out as done before
        largest_affine(location, scale, z, largest, arm)


@jit
def repeat_plain(times: int, location: F64, scale: F64, z: F32, largest: F64, arm: I64) -> None:
    """Call `plain_affine` many times."""
    for i in range(times):
        location[0, i % arm.size] += 1e-300
        plain_affine(location, scale, z, largest, arm)


@jit
def repeat_lanes(times: int, location: F64, scale: F64, z: F32, largest: F64, arm: I64) -> None:
    """Call `lane_by_lane` many times."""
    for i in range(times):
        location[0, i % arm.size] += 1e-300
        lane_by_lane(location, scale, z, largest, arm)


WAYS = {"LLVM": repeat_llvm, "Numba, arms outside": repeat_plain, "Numba, lanes outside": repeat_lanes}


def measure(arms: int) -> dict[str, float]:
    """Return nanoseconds per lane of each way, after checking that all find the same."""
    random = np.random.default_rng(1)
    location = random.integers(0, 4, (arms, LANES)).astype(float)  # some of them tie
    scale = np.where(random.random((arms, LANES)) < 0.5, 0.0, 1.0)
    z = random.random((arms, LANES)).astype(np.float32)
    found = {}
    for name, repeat in WAYS.items():
        largest = np.zeros(LANES)
        arm = np.zeros(LANES, np.int64)
        repeat(1, location.copy(), scale, z, largest, arm)
        found[name] = (arm.tolist(), largest.tolist())
    if any(each != found["LLVM"] for each in found.values()):
        raise RuntimeError("the ways do not find the same arms")
    times = PASSES // (arms * LANES)
    least = dict.fromkeys(WAYS, np.inf)
    for _ in range(TURNS):
        for name, repeat in WAYS.items():
            begin = time.process_time()
            repeat(times, location, scale, z, np.zeros(LANES), np.zeros(LANES, np.int64))
            least[name] = min(least[name], 1e9 * (time.process_time() - begin) / (times * LANES))
    return least


def main() -> None:
    """Measure all ways and print them."""
    rows = []
    for arms in ARMS:
        least = measure(arms)
        plainest = min(least["Numba, arms outside"], least["Numba, lanes outside"])
        ratio = plainest / least["LLVM"]
        verdict = "worth it" if ratio > TARGET else "not worth it"
        rows.append([f"K = {arms}", *(f"{ns:.2f}" for ns in least.values()), f"{ratio:.2f}", verdict])
    print(table(["arms", *(f"{name}, ns" for name in WAYS), "best Numba / LLVM", f"> {TARGET}"], rows))


if __name__ == "__main__":
    main()
