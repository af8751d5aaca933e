"""Which language model answers? Rewards are quality less cost, any numbers, so the bandit takes its default policy.

`python examples/model_router.py` routes 2,000 made-up questions. `ra.ScaledGumbel`, the default, reads the scale of its
exploration off the rewards; nothing is to be chosen.
"""

from __future__ import annotations

import numpy as np

import rightarm as ra

QUALITY = {"small": 0.62, "medium": 0.74, "large": 0.80}  # on average, with a deviation of 0.2; nobody knows these
PRICE = {"small": 0.01, "medium": 0.04, "large": 0.15}  # of an answer, in the unit of quality


def main(questions: int = 2_000) -> ra.Bandit:
    """Route questions one by one."""
    bandit = ra.Bandit(list(QUALITY), seed=1)
    judge, earned = np.random.default_rng(2), 0.0
    for _ in range(questions):
        decision = bandit.ask()
        model = str(decision.arm)
        reward = judge.normal(QUALITY[model], 0.2) - PRICE[model]
        bandit.tell(decision, reward)
        earned += reward
    best = max(QUALITY[model] - PRICE[model] for model in QUALITY)
    print(bandit)
    print(f"{earned / questions:.3f} per question; the best model alone has {best:.3f}")
    return bandit


if __name__ == "__main__":
    main()
