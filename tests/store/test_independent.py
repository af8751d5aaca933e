"""The independent reader, on logs of bandits and on logs in which one thing is wrong."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import independent
import rightarm as ra

POLICIES = {
    "softmax": ra.Boltzmann(0.25),
    "cooling softmax": ra.Boltzmann(ra.schedules.inverse_log(0.5)),
    "BGE": ra.BoltzmannGumbel(C=0.3),
    "scaled": ra.ScaledGumbel(),
    "UCB": ra.UCB(C=0.5),
}


def lived(folder: Path, policy: Any, rounds: int = 300, **options: Any) -> list[dict[str, Any]]:
    """The events of a bandit to which all kinds of things happen."""
    luck, waiting, path = random.Random(5), list[int](), folder / "log.jsonl"
    with ra.Bandit(["a", "b", "c"], policy, seed=3, log=path, **options) as bandit:
        for number in range(rounds):
            waiting.append(bandit.ask(allowed=["a", "c"] if luck.random() < 0.1 else None).id)
            if luck.random() < 0.8:
                bandit.tell(waiting.pop(luck.randrange(len(waiting))), luck.choice([0.0, 0.25, 1.0]))
            if luck.random() < 0.05 and waiting:
                bandit.cancel(waiting.pop(luck.randrange(len(waiting))))
            if number % 50 == 20:
                bandit.tell(arm="b", reward=0.5)
            if number == 150:
                bandit.add_arm("d")
                bandit.retire_arm("a")
                bandit.restore_arm("a")
    return [json.loads(line) for line in path.read_text().splitlines()]


def read(events: list[dict[str, Any]]) -> independent.Story:
    return independent.read(map(json.dumps, events))


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("options", [{}, {"floor": 0.02, "holdout": 0.1}, {"holdout": 0.2, "control": "b"}])
def test_every_propensity_follows_from_the_events_before_it(tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    story = read(lived(tmp_path, POLICIES[name], **options))
    assert story.recomputed == 300
    assert len(set(story.answers.values())) > 3  # rewards, and none


@pytest.mark.parametrize("spread", [1e-3, 3.0])
def test_the_integral_is_that_of_mpmath(spread: float) -> None:
    import mpmath

    location, scale = [0.0, 0.3 * spread, -0.2], [1.0, 0.2, 0.05]

    def chance(i: int) -> Any:
        def integrand(z: Any) -> Any:
            x = location[i] + scale[i] * z
            others = (mpmath.exp(-(x - location[j]) / scale[j]) for j in range(3) if j != i)
            return mpmath.exp(-z - mpmath.exp(-z) - sum(others))

        return mpmath.quad(integrand, [-20, *(mpmath.mpf(k) / 4 for k in range(-12, 160)), 60, 120])

    with mpmath.workdps(20):
        expected = [float(chance(i)) for i in range(3)]
    assert independent.largest(location, scale) == pytest.approx(expected, rel=1e-9, abs=0)


@pytest.mark.full
def test_beside_sure_scores_the_integral_is_a_limit() -> None:
    """Scores that are nearly sure have nearly the same probabilities."""
    location, sure, nearly = [0.3, 0.1, 0.2, 0.0], [0.0, 0.3, 0.1, 0.0], [1e-6, 0.3, 0.1, 1e-6]
    found = independent.largest(location, sure)
    assert found == pytest.approx(independent.largest(location, nearly), abs=1e-5)
    assert sum(found) == pytest.approx(1.0, rel=1e-10)


def drop(events: list[dict[str, Any]]) -> None:
    del events[40]


def repeat(events: list[dict[str, Any]]) -> None:
    answer = next(event for event in events if event["event"] == "reward")
    events.append(answer | {"n": events[-1]["n"] + 1})


def change_reward(events: list[dict[str, Any]]) -> None:
    next(event for event in events if event.get("reward") == 0.25)["reward"] = 0.250001


def change_propensity(events: list[dict[str, Any]]) -> None:
    events[-5]["propensity"] = 0.123


def answer_nothing(events: list[dict[str, Any]]) -> None:
    next(event for event in events if event["event"] == "reward")["id"] = 10_000


def decide_again(events: list[dict[str, Any]]) -> None:
    first = next(event for event in events if event["event"] == "decision")
    events.append(first | {"n": events[-1]["n"] + 1})


@pytest.mark.parametrize(
    ("harm", "complaint"),
    [
        (drop, "follows"),
        (repeat, "again"),
        (change_reward, "propensity"),
        (change_propensity, "propensity"),
        (answer_nothing, "before it is made"),
        (decide_again, "twice"),
    ],
)
def test_what_is_wrong_is_found(tmp_path: Path, harm: Callable[[list[dict[str, Any]]], None], complaint: str) -> None:
    events = lived(tmp_path, ra.BoltzmannGumbel(C=0.3))
    while events[-5]["event"] != "decision":
        events.pop()
    harm(events)
    with pytest.raises(independent.Wrong, match=complaint):
        read(events)
