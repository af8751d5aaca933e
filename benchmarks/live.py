"""One decision and one reward after the other, beside MABWiser and river: `python -m benchmarks.live`.

CPU microseconds of ask + tell on one core, ours with the exact propensity of every decision; processes take turns, and
the least of several measurements counts.
"""

from __future__ import annotations

import rightarm as ra
from benchmarks.common import CACHE, table
from benchmarks.peers import ask_and_tell, live_libraries

TIMES = 5
ROUNDS = {10: 1_000, 100: 500, 1_000: 100}
PEERS = {
    10: ("mabwiser", "MABWiser's Softmax", 10),
    100: ("river", "river's UCB", 3),
    1_000: ("river", "river's UCB", 5),
}
POLICIES: tuple[ra.Policy, ...] = (
    ra.BoltzmannGumbel(C=0.5),
    ra.Boltzmann(0.25),
    ra.UCB(C=0.5),
    ra.EXP3(gamma=0.1),
    ra.GaussianThompson(sigma=0.5),
    ra.BetaThompson(),
)


def ours(policy: ra.Policy, arms: int, rounds: int) -> float:
    """CPU microseconds per ask and tell, every arm known."""
    bandit = ra.Bandit(range(arms), policy, seed=1)
    for arm in range(arms):
        bandit.tell(arm=arm, reward=0.5)
    return ask_and_tell(bandit.ask, bandit.tell, rounds, arm_of=lambda decision: decision.arm)


def rows(arms: int) -> list[list[object]]:
    """A line for each policy: its time, the peer's, and their ratio."""
    library, title, target = PEERS[arms]
    own, peer = dict.fromkeys(POLICIES, float("inf")), float("inf")
    for _ in range(TIMES):
        peer = min(peer, live_libraries.run(library, arms, ROUNDS[arms], CACHE / "live-peers"))
        own = {policy: min(before, ours(policy, arms, ROUNDS[arms])) for policy, before in own.items()}
    return [
        [f"{arms:,}", policy, f"{time:,.1f}", f"{title}: {peer:,.1f}", f"{peer / time:.1f}", f"≥ {target}"]
        for policy, time in own.items()
    ]


def main() -> None:
    """Measure everything and print it."""
    print("ask + tell with the exact propensity recorded, µs\n")
    lines = [row for arms in PEERS for row in rows(arms)]
    print(table(["K", "policy", "rightarm", "peer", "times as fast", "target"], lines))


if __name__ == "__main__":
    main()
