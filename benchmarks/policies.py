"""The cost of a round of each policy, K = 10, on one core: `python -m benchmarks.policies`.

CPU nanoseconds per round and replication, the least of several measurements, and what they are as multiples of BGE's.
A plain formula is one that needs no memory, no exploration of its own and no method of several steps.
"""

from __future__ import annotations

import functools

import rightarm as ra
from benchmarks.common import best_of, rightarm_ns, table

ARMS = 10
HORIZON = 200_000
REPLICATIONS = 64
TIMES = 5
TARGET = 2.0  # times BGE, at most
REFERENCE = ra.BoltzmannGumbel(C=0.5)
PLAIN = [
    ra.Boltzmann(0.1),
    ra.Boltzmann(ra.schedules.inverse_log(0.25)),
    ra.Boltzmann(ra.schedules.glie()),
    ra.UCB(C=0.5),
    ra.UCB1(),
    ra.MOSS(horizon=HORIZON),
    ra.AnytimeMOSS(),
    ra.GaussianKLUCB(),
    ra.GaussianThompson(),
    ra.Maillard(),
    ra.KLMS(),
    ra.ExploreThenCommit(each=1_000),
    ra.PerturbedMean(ra.noise.Gumbel(), 0.5),
    ra.PerturbedMean(ra.noise.Gaussian(), 0.5),
    ra.PerturbedMean(ra.noise.Exponential(), 0.5),
    ra.PerturbedMean(ra.noise.Uniform(), 0.5),
]
OTHERS = [
    ra.BoltzmannGumbel(C=0.5, estimator="catoni"),
    ra.EpsilonGreedy(0.1),
    ra.EpsilonGreedy(ra.schedules.decreasing(d=0.1)),
    ra.EXP3(gamma=0.05),
    ra.SoftMix(d=0.1),
    ra.EXP3PlusPlus(),
    ra.RobustUCB(u=0.5),
    ra.UCBImproved(horizon=HORIZON),
    ra.KLUCB(),
    ra.BetaThompson(),
]


def looking_at_all() -> ra.Policy:
    """Return KL-UCB without the statement that its score never falls while an arm rests: all arms are looked at."""
    keep = {name: part.function for name, part in ra.KLUCB.keep.items()}
    made: ra.Policy = ra.policy(keep=keep)(ra.KLUCB.function)()
    return made


def measured(policy: ra.Policy, times: int = TIMES) -> float:
    """Return nanoseconds per round and replication."""
    return best_of(times, functools.partial(rightarm_ns, policy, ARMS, HORIZON, REPLICATIONS))


def main() -> None:
    """Measure all and print them; the reference again after each, because the machine may change its pace."""
    reference = measured(REFERENCE)
    rows = [[f"`{REFERENCE}`", f"{reference:.1f}", "1.00", ""]]
    for policy in [*PLAIN, *OTHERS]:
        ns = measured(policy)
        ratio = ns / min(measured(REFERENCE, 2), 1.1 * reference)
        verdict = ("reached" if ratio <= TARGET else "not reached") if policy in PLAIN else "not a plain formula"
        rows.append([f"`{policy}`", f"{ns:.1f}", f"{ratio:.2f}", verdict])
    print(f"ns per round, K = {ARMS}, T = {HORIZON:,}; plain formulas: at most {TARGET:.0f} times BGE\n")
    print(table(["policy", "ns", "over BGE", ""], rows) + "\n")
    print("KL-UCB, ns per round: T = 30,000: looking only at arms that may win, and at all of them\n")
    pairs = [
        [f"K = {k}", *(f"{lazy_ns(policy, k):,.0f}" for policy in (ra.KLUCB(), looking_at_all()))] for k in (10, 100)
    ]
    print(table(["arms", "those that may win", "all"], pairs))


def lazy_ns(policy: ra.Policy, arms: int) -> float:
    """Return nanoseconds per round and replication."""
    return best_of(2, functools.partial(rightarm_ns, policy, arms, 30_000, REPLICATIONS))


if __name__ == "__main__":
    main()
