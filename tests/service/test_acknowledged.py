"""The judge of the fault tests is strict: each harm to what was acknowledged is found."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import Acknowledged

import independent
import rightarm as ra


@pytest.fixture
def known(tmp_path: Path) -> tuple[Acknowledged, independent.Story]:
    """A bandit's life, as its clients saw it and as its log has it."""
    known, path = Acknowledged(), tmp_path / "log.jsonl"
    with ra.Bandit(["a", "b"], ra.BoltzmannGumbel(C=0.3), seed=1, log=path) as bandit:
        for number in range(20):
            made = bandit.ask()
            bandit.tell(made, number % 2)
            known.rewards[made.id] = float(number % 2)
            known.choices[str(number)] = {"decision": made.id, "arm": made.arm, "propensity": made.propensity}
    story = independent.read(path.read_text().splitlines())
    for choice in known.choices.values():
        choice["version"] = story.decisions[choice["decision"]]["n"] - 1
    return known, story


def test_what_is_right_is_accepted(known: tuple[Acknowledged, independent.Story]) -> None:
    known[0].check(known[1])


HARMS: dict[str, Callable[[independent.Story], object]] = {
    "lost decisions": lambda story: story.decisions.pop(7),
    "decisions made twice": lambda story: story.decisions.update({99: story.decisions[7]}),
    "lost rewards": lambda story: story.answers.pop(7),
    "rewards of nobody": lambda story: story.answers.update({99: 1.0}),
    "propensity": lambda story: story.decisions[7].update(propensity=0.5),
    "version": lambda story: story.decisions[7].update(n=4),
}


@pytest.mark.parametrize("complaint", HARMS)
def test_each_harm_is_found(known: tuple[Acknowledged, independent.Story], complaint: str) -> None:
    acknowledged, story = copy.deepcopy(known)
    HARMS[complaint](story)
    with pytest.raises(AssertionError, match=complaint):
        acknowledged.check(story)


def test_two_keys_with_one_decision_are_found(known: tuple[Acknowledged, independent.Story]) -> None:
    acknowledged, story = known
    acknowledged.choices["1"] = acknowledged.choices["2"]
    with pytest.raises(AssertionError, match="two keys have one decision"):
        acknowledged.check(story)
