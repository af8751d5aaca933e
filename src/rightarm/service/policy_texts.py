"""Policies from text: a fixed list, and modules that were named when the server started. Nothing else is ever run."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

from rightarm.lab.experiment.expressions import read_estimator, read_policy
from rightarm.live import Bandit
from rightarm.scores.policy import Policy, PolicyFamily
from rightarm.service.problems import Refusal
from rightarm.service.reading import compute_one

MOST_NUMBERS = 20_000_000  # that a bandit with contexts may keep


class Policies:
    """Reads policies from their texts; ``modules`` are imported now, and never another one.

    >>> Policies([]).read("UCB(C=0.5)", "Linear(['hour'])", arms=2)
    UCB(C=0.5, estimator=Linear(['hour']))
    """

    def __init__(self, modules: Iterable[str]) -> None:
        self._families: dict[str, PolicyFamily] = {}
        sys.path.insert(0, os.getcwd())
        try:
            for module in modules:
                found = vars(importlib.import_module(module)).items()
                self._families |= {f"{module}:{name}": kind for name, kind in found if isinstance(kind, PolicyFamily)}
        finally:
            sys.path.remove(os.getcwd())

    def read(self, policy: str | None, estimator: str | None, arms: int) -> Policy:
        """Return the policy of that text, or the default one, with the estimator of the other text."""
        if policy is None:
            by_contexts = estimator is not None and blamed("estimator", read_estimator, estimator).asks_context
            policy = "ResidualGumbel()" if by_contexts else "ScaledGumbel()"
        made: Policy = blamed("policy", read_policy, policy, self._find)
        if estimator is not None:
            if "estimator" in made.values:
                raise Refusal(422, f"estimator must be left out: the policy has one, {made!r}", "estimator")
            made = with_estimator(made, estimator)
        check_size(made, arms)
        return made

    def compiled(self, policy: str | None, estimator: str | None, arms: int) -> Policy:
        """Return what `read` does, compiled here and not where decisions would wait for it."""
        return compiled("policy", self.read(policy, estimator, arms))

    def changed(self, present: Policy, policy: str | None, estimator: str | None, arms: int) -> Policy | None:
        """Return the policy that is to decide from now on, if that is another one than the present one."""
        if policy is not None:
            return self.compiled(policy, estimator, arms)
        made = present if estimator is None else with_estimator(present, estimator)
        check_size(made, arms)
        return None if estimator is None else compiled("estimator", made)

    def _find(self, address: str) -> PolicyFamily:
        if address not in self._families:
            known = ", ".join(self._families) or "none"
            raise ValueError(f"there is no {address} among the modules named at start; there are {known}")
        return self._families[address]


def compiled(field: str, policy: Policy) -> Policy:
    """Return the policy, compiled; if it decides nothing, the field is to blame that it came from."""

    def try_it() -> None:
        bandit: Bandit[Any] = Bandit(["a", "b"], policy, seed=0)
        compute_one(policy, bandit.arms, bandit.probabilities)

    blamed(field, try_it)
    return policy


def with_estimator(policy: Policy, text: str) -> Policy:
    """Return the policy with the estimator of that text in the place of its own."""
    estimator = blamed("estimator", read_estimator, text)
    made: Policy = blamed("estimator", lambda: policy.family(**policy.values | {"estimator": estimator}))
    return made


def check_size(policy: Policy, arms: int) -> None:
    """Raise if what the policy keeps of contexts would fill the memory."""
    design = getattr(policy.estimator, "design", None)
    if design is None:
        return
    numbers = arms * design.own * (design.own + design.joint) + design.joint**2
    if numbers > MOST_NUMBERS:
        detail = (
            f"estimator must have fewer columns: with {arms:,} arms it would keep {numbers:,} numbers, "
            f"more than {MOST_NUMBERS:,}"
        )
        raise Refusal(422, detail, "estimator", code="too_large")


def blamed(field: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what the function gives; its error names the field."""
    try:
        return function(*arguments)
    except (TypeError, ValueError) as error:
        raise Refusal(422, f"{field}: {error}", field, code=getattr(error, "code", None)) from None
