"""Policies of a live bandit: found by their specification, and given what another one has learned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rightarm.errors import WrongValue
from rightarm.estimators import Linear
from rightarm.estimators.extension import Extension, extended
from rightarm.formula import difference, from_specification, present
from rightarm.live.arms import Arms
from rightarm.live.contextual import ContextArms, arms_for
from rightarm.live.ledger import Ledger
from rightarm.scores.policy import Policy
from rightarm.scores.rewards import Scale

Specification = Mapping[str, Any]


def policy_from(specification: Specification, given: Policy | None = None) -> Policy:
    """Return the policy that a text describes: ``given`` if it is that, else one made anew.

    Nothing is imported for it.
    """
    try:
        if given is not None and difference(given, specification) is None:
            return given
        found = from_specification(specification, partial(_present, given))
    except (KeyError, TypeError, AttributeError) as error:
        raise WrongValue("policy", f"must be described, got {specification!r:.200}: {error}") from None
    if not isinstance(found, Policy):
        raise WrongValue("policy", f"must describe a policy, got {specification['formula']!r}")
    return found


def _present(given: Policy | None, address: str) -> Any:
    """Return what stands at an address: the given policy's formula, or something in a module that is imported."""
    if given is not None and address == given.specification()["formula"]:
        return given.family
    return present(address)


def finder(given: list[Policy]) -> Callable[[Specification], Policy]:
    """Return a function that finds policies by their specification, among those given first.

    If a policy is gone, the first one given stands in for it where that makes no difference to the statistics.
    """

    def find(specification: Specification) -> Policy:
        for policy in given:
            if difference(policy, specification) is None:
                return policy
        if not given:
            return policy_from(specification)
        try:
            return policy_from(specification, given[0])
        except ValueError as error:
            return _stand_in(specification, given[0], error)

    return find


def _stand_in(specification: Specification, policy: Policy, error: ValueError) -> Policy:
    """Return a policy in the place of one that is gone, if nothing but the formula was that one's own."""
    estimators = [one["parameters"].get("estimator", "mean") for one in (specification, policy.specification())]
    if policy.columns or estimators[0] != estimators[1]:
        raise ValueError(f"{policy!r} cannot go on with what another policy has learned: {error}") from None
    return policy


def check_same_policy(policy: Policy, specification: Specification) -> None:
    """Raise if a policy is not the one described; where its source stands does not matter."""
    other = difference(policy, specification)
    if other is None:
        return
    differs = {"formula": "formula differs", "parameters": "parameters differ"}[other]
    what = f"must be the one of the state, {specification['formula']}, got {policy!r}, whose {differs}"
    raise WrongValue("policy", f"{what}; change_policy=True changes it on purpose")


# What one policy has learned, as another one sees it.


def change_of_scale(before: Scale | None, after: Scale | None) -> tuple[float, float]:
    """Return the factor and what is added that make of a reward as one policy sees it the reward as another does."""
    low, high = (0.0, 1.0) if before is None else (before.back(0.0), before.back(1.0))
    if after is not None:
        low, high = after.apply(low), after.apply(high)
    return high - low, low


def carried_over(known: Arms, policy: Policy, ledger: Ledger) -> tuple[Arms, Ledger]:
    """Return the same statistics and decisions for another policy, or raise an error that says what is in the way.

    Pulls, means and spreads carry over, whatever the policy is. An estimator's state is of use to the same estimator
    only, or to a linear one with more features, which are missing in what was learned; and what a policy remembers
    besides (``learn``) to a policy that learns it by the same formulas and parameters.
    """
    before = known.policy
    try:
        _check_memory(before, policy)
        new = arms_for(policy, known.discount, known.window)
        if before.estimator != policy.estimator:
            extension = _extension(before, policy)
            assert isinstance(known, ContextArms)
            assert isinstance(new, ContextArms)
            new.take_extended(known, extension)
            return new, ledger.extended(extension)
        for _ in range(known.count):
            new.add()
        new.restore(known.to_json())
    except ValueError as error:
        what = f"what {before!r} has learned does not carry over to {policy!r}: {error}"
        raise WrongValue("policy", f"must carry on: {what}") from None
    return new, ledger


def _extension(before: Policy, after: Policy) -> Extension:
    """Return the way to an estimator with more features."""
    if not isinstance(before.estimator, Linear) or not isinstance(after.estimator, Linear):
        raise ValueError(f"the estimator was {before.estimator} and would be {after.estimator}")
    return extended(before.estimator, after.estimator)


def _check_memory(before: Policy, after: Policy) -> None:
    if before.columns != after.columns:
        columns = [", ".join(policy.columns) or "nothing" for policy in (before, after)]
        raise ValueError(f"it remembers {columns[0]} of an arm besides pulls and mean, the other {columns[1]}")
    for name, part in after.learn.items():
        other = difference(part, before.learn[name].specification())
        if other is not None:
            raise ValueError(f"it learned {name} by {'another formula' if other == 'formula' else 'other parameters'}")
