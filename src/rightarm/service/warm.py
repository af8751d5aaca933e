"""Before the first decision: what it needs is compiled and folded, and nothing is written."""

from __future__ import annotations

from typing import Any

from rightarm.live import Bandit


def warm_up(bandit: Bandit[Any]) -> None:
    """Compute the probabilities of a decision, in an empty context if the policy looks at contexts.

    >>> import rightarm as ra
    >>> warm_up(ra.Bandit(["a", "b"], ra.UCB(C=0.5, estimator=ra.Linear(["hour"]))))
    """
    estimator: Any = bandit.policy.estimator
    if not bandit.arms:
        return
    if not estimator.asks_context:
        bandit.probabilities()
        return
    own = estimator.arm_features
    features = None if own is None else {arm: [0.0] * own.size for arm in bandit.arms}
    bandit.probabilities([0.0] * estimator.features.size, arm_features=features)
