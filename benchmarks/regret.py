"""Regrets of our policies beside those of SMPyBandits' own, where the definitions agree: `python -m benchmarks.regret`.

They agree but for the first rounds: its bonuses take log(t − 1) in round t, its Thompson sampling and ours differ in
that ours pulls every arm once first, and its EXP3 does so, in random order. Its EpsilonGreedy follows the largest sum
of rewards, not the largest mean, and is shown for that; its MOSS is the anytime one, and MOSSH that of a horizon.
"""

from __future__ import annotations

import math

import numpy as np

import rightarm as ra
from benchmarks.common import CACHE, table
from benchmarks.peers import smpybandits_regret

MEANS = [0.9, 0.8, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]
HORIZON, OURS, THEIRS = 5_000, 4_096, 100
SUSPICIOUS = 4.5  # standard errors
DIFFERENT = {"epsilon-greedy": "by sums, not means"}

POLICIES: dict[str, tuple[ra.Policy, tuple[str, dict[str, object]]]] = {
    "UCB1": (ra.UCB1(), ("UCB", {})),
    "UCB, C² = 1/2": (ra.UCB(C=math.sqrt(0.5)), ("UCBalpha", {"alpha": 1.0})),
    "MOSS": (ra.MOSS(horizon=HORIZON), ("MOSSH", {"horizon": HORIZON})),
    "anytime MOSS": (ra.AnytimeMOSS(), ("MOSSAnytime", {"alpha": 1.0})),
    "KL-UCB": (ra.KLUCB(), ("klUCB", {"tolerance": 1e-9})),
    "Thompson": (ra.BetaThompson(), ("Thompson", {})),
    "BGE, location 0": (ra.BoltzmannGumbel(C=0.5, location=0.0), ("BoltzmannGumbel", {"C": 0.5})),
    "EXP3": (ra.EXP3(gamma=0.1), ("Exp3", {"gamma": 0.1})),
    "epsilon-greedy": (ra.EpsilonGreedy(0.1), ("EpsilonGreedy", {"epsilon": 0.1})),
}


def rows() -> list[list[object]]:
    """Mean regrets with standard errors, and their difference in standard errors."""
    policies = [policy for policy, _ in POLICIES.values()]
    result = ra.simulate(
        policies, ra.problems.Bernoulli(MEANS), horizon=HORIZON, replications=OURS, seed=1, checkpoints=1, lanes=64
    )
    wanted = {name: theirs for name, (_, theirs) in POLICIES.items()}
    found = smpybandits_regret.run(wanted, MEANS, HORIZON, THEIRS, CACHE / "smpybandits")
    lines: list[list[object]] = []
    for name, ours in zip(POLICIES, result.regret[:, :, -1], strict=True):
        theirs = np.array(found[name])
        errors = [x.std(ddof=1) / math.sqrt(x.size) for x in (ours, theirs)]
        z = (ours.mean() - theirs.mean()) / math.hypot(*errors)
        note = DIFFERENT.get(name, "differs" if abs(z) > SUSPICIOUS else "")
        means = [f"{x.mean():.2f} ± {error:.2f}" for x, error in zip((ours, theirs), errors, strict=True)]
        lines.append([name, *means, f"{z:+.1f}", note])
    return lines


def main() -> None:
    """Print the table."""
    print(f"Bernoulli {MEANS}, {HORIZON:,} rounds; {OURS:,} replications of ours, {THEIRS} of theirs\n")
    print(table(["policy", "rightarm", "SMPyBandits", "z", ""], rows()))


if __name__ == "__main__":
    main()
