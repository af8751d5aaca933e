"""Compile policies ahead, into the folder of machine code: for images of containers, and before a service starts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import rightarm
from rightarm import noise
from rightarm.formula import WHOLE, Family, rule_of
from rightarm.formula.cache import cache_directory
from rightarm.lab.experiment.expressions import families
from rightarm.live import Bandit
from rightarm.policies.boltzmann import Schedule
from rightarm.problems import ProblemFamily
from rightarm.scores.policy import Policy, PolicyFamily
from rightarm.simulation import simulate

LAWS = (noise.Gumbel(), noise.Gaussian(), noise.Exponential(), noise.Uniform())


class Warmed(NamedTuple):
    """What was compiled."""

    policies: int
    problems: int
    functions: int
    """How many functions were compiled now; the others were there."""


def every_policy() -> list[Policy]:
    """A policy of each kind that is compiled apart: parameters that are numbers do not matter, schedules and laws do.

    >>> len(every_policy()) > 30
    True
    """
    return [policy for family in families(PolicyFamily).values() for policy in _members(family)]


def _members(family: Family) -> Iterator[Any]:
    """The family with some value for each parameter, and with each of the values that are compiled apart."""
    needed = [p.name for p in family.parameters if p.default is p.empty]
    values = {name: _values(family.annotations.get(name)) for name in needed}
    apart = max(values, key=lambda name: len(values[name]), default=None)
    usual = {name: options[0] for name, options in values.items()}
    for option in values[apart] if apart is not None else [None]:
        yield family(**(usual if apart is None else usual | {apart: option}))


def _values(annotation: Any) -> Sequence[Any]:
    if annotation is Schedule:
        found = [value for value in vars(rightarm).values() if isinstance(value, Family) and value.kind is Schedule]
        return [schedule for family in found for schedule in _members(family)]
    if inspect.isclass(annotation) and issubclass(annotation, noise.Law):
        return LAWS
    return [_number(annotation)]


def _number(annotation: Any) -> float:
    """A number that a parameter may have."""
    rule = WHOLE if annotation is int else rule_of(annotation)
    return next(number for number in (0.5, 2.0) if rule is None or rule.holds(number))


def warm(policies: Sequence[Policy] | None = None, say: Callable[[str], object] = lambda text: None) -> Warmed:
    """Compile ``policies``, or all that there are, live and simulated, and all problems; ``say`` hears of each."""
    before = _compiled()
    chosen = every_policy() if policies is None else list(policies)
    for policy in chosen:
        say(str(policy))
        Bandit(["a", "b"], policy)
        simulate(policy, rightarm.Bernoulli([0.5, 0.5]), horizon=3, replications=1, seed=1)
    problems = list(families(ProblemFamily).values()) if policies is None else []
    for family in problems:
        say(family.name)
        values = {each.name: [_number(family.annotations.get(each.name))] * 2 for each in family.parameters}
        simulate(rightarm.UCB(C=0.5), family(**values), horizon=3, replications=1, seed=1)
    return Warmed(len(chosen), len(problems), _compiled() - before)


def _compiled() -> int:
    return sum(1 for _ in cache_directory().rglob("*.nbc"))
