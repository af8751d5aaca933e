"""When it is said that all rewards are equal, and what."""

from __future__ import annotations

import pytest

from rightarm.inference.comparisons import one_value

REMEDY = "window with a default of 0 (reward_window=..., default_reward=0)"


def test_only_clicks() -> None:
    """The trial that this came from: 20,000 mails, 507 answers, all 1."""
    said = one_value(507, 1.0, range(0, 20_000, 40), range(19_493))
    assert said.startswith("all 507 rewards are 1 and 19,493 decisions have none, so arms cannot be compared; if ")
    assert said.endswith(REMEDY)
    assert ". " not in said


@pytest.mark.parametrize("rewards", [0, 1, 2, 3, 4, 19])
def test_few_rewards_prove_nothing(rewards: int) -> None:
    """Not even beside many decisions, if these are younger than those that have a reward."""
    assert one_value(rewards, 1.0, range(rewards), range(1_000, 3_000)) == ""


@pytest.mark.parametrize(("rewards", "older", "speaks"), [(5, 20, True), (5, 19, False), (4, 2_000, False)])
def test_silence_that_is_older_than_usual_counts(rewards: int, older: int, speaks: bool) -> None:
    answered = range(10_000, 10_000 + rewards)
    assert bool(one_value(rewards, 1.0, answered, [*range(older), *range(20_000, 30_000)])) == speaks


def test_rewards_that_differ_are_nothing_to_speak_of() -> None:
    assert one_value(10_000, None, range(5_000), range(5_000, 90_000)) == ""


def test_equal_rewards_of_sure_arms() -> None:
    """What is said is true where nothing waits, too."""
    said = one_value(20, 0.25, range(20), [])
    assert said.startswith("all 20 rewards are 0.25, so arms cannot be compared; if silence means 0,")
    assert said.endswith(REMEDY)


@pytest.mark.parametrize(("value", "default"), [(0.0, None), (0.0, 0.0), (0.5, 0.5)])
def test_nothing_but_silence(value: float, default: float | None) -> None:
    """A window would not help."""
    said = one_value(400, value, range(400), range(9), default)
    assert said.startswith(f"no reward other than {value:g} has come in 400,")
    assert "window" not in said


def test_windows_that_are_open() -> None:
    """Who has the remedy already has to wait."""
    said = one_value(30, 1.0, range(30), range(500), 0.0)
    assert said.endswith("silence counts as 0 only when windows close, and 500 decisions wait for that")
    assert one_value(30, 1.0, range(30), [7], 0.0).endswith("and 1 decision waits for that")
    assert one_value(30, 1.0, range(30), [], 0.0) == "all 30 rewards are 1, so arms cannot be compared"
