"""What one policy has learned, as another one sees it."""

from __future__ import annotations

from rightarm.formula import difference
from rightarm.live.arms import Arms
from rightarm.live.contextual import arms_for
from rightarm.scores.policy import Policy
from rightarm.scores.rewards import Scale


def change_of_scale(before: Scale | None, after: Scale | None) -> tuple[float, float]:
    """The factor and what is added that make of a reward as one policy sees it the reward as another one does."""
    low, high = (0.0, 1.0) if before is None else (before.back(0.0), before.back(1.0))
    if after is not None:
        low, high = after.apply(low), after.apply(high)
    return high - low, low


def carried_over(known: Arms, policy: Policy) -> Arms:
    """The same statistics for another policy, or an error that says what does not carry over.

    Pulls, means and spreads do, whatever the policy is. An estimator's state is of use to the same estimator only, and
    what a policy remembers besides (``learn``) to a policy that learns it by the same formulas and parameters.
    """
    before = known.policy
    try:
        _check_memory(before, policy)
        new = arms_for(policy, known.discount, known.window)
        for _ in range(known.count):
            new.add()
        new.restore(known.to_json())
    except ValueError as error:
        raise ValueError(f"what {before!r} has learned does not carry over to {policy!r}: {error}") from None
    return new


def _check_memory(before: Policy, after: Policy) -> None:
    if before.estimator != after.estimator:
        raise ValueError(f"the estimator was {before.estimator} and would be {after.estimator}")
    if before.columns != after.columns:
        columns = [", ".join(policy.columns) or "nothing" for policy in (before, after)]
        raise ValueError(f"it remembers {columns[0]} of an arm besides pulls and mean, the other {columns[1]}")
    for name, part in after.learn.items():
        other = difference(part, before.learn[name].specification())
        if other is not None:
            raise ValueError(f"it learned {name} by {'another formula' if other == 'formula' else 'other parameters'}")
