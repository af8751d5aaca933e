"""What is derived from a policy and a problem is remembered, and derived anew when their code has changed."""

from __future__ import annotations

import pytest

import rightarm as ra
from rightarm.simulation import engine
from rightarm.simulation.engine import plan_of

LEAN = 1.0
PROBLEM = ra.problems.Deterministic([0.25, 0.75])


@ra.policy
def leaning(mean):  # type: ignore[no-untyped-def]
    return LEAN * mean


def test_a_plan_is_made_once() -> None:
    policy = leaning()
    assert plan_of(policy, PROBLEM) is plan_of(policy, PROBLEM)
    assert plan_of(policy, PROBLEM) is not plan_of(leaning(), PROBLEM)


def test_a_constant_that_has_changed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = leaning()
    before = ra.simulate(policy, PROBLEM, horizon=10, replications=1, seed=1)
    assert before.pulls.tolist() == [[[1, 9]]]
    monkeypatch.setitem(globals(), "LEAN", -1.0)
    after = ra.simulate(policy, PROBLEM, horizon=10, replications=1, seed=1)
    assert after.pulls.tolist() == [[[9, 1]]]
    assert after.specification["policies"][0]["code"] != before.specification["policies"][0]["code"]


def test_only_the_last_plans_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_plans", {})
    monkeypatch.setattr(engine, "MOST_PLANS", 2)
    first, second, third = leaning(), leaning(), leaning()
    plan = plan_of(first, PROBLEM)
    plan_of(second, PROBLEM)
    assert plan_of(first, PROBLEM) is plan
    plan_of(third, PROBLEM)
    assert plan_of(first, PROBLEM) is plan
    assert [each.policy for each in engine._plans.values()] == [third, first]
