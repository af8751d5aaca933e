"""Exceptions from signal handlers, between any two steps: everything is done wholly or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from bandits import CATONI, arm_rows, forgetful
from interrupts import interrupted

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


SETTINGS: dict[str, tuple[ra.Policy, dict[str, Any]]] = {
    "sums": (ra.BoltzmannGumbel(C=0.5), {}),
    "discount": (ra.BoltzmannGumbel(C=0.5), {"discount": 0.99}),
    "window": (ra.BoltzmannGumbel(C=0.5), {"window": 23}),
    "memory": (ra.EXP3(gamma=0.2), {}),
    "memory in a window": (ra.EXP3(gamma=0.2), {"window": 23}),
    "catoni": (CATONI, {}),
    "contexts": (ra.BoltzmannGumbel(C=0.5, estimator=ra.estimators.Linear(2)), {}),
    "contexts, shared and discounted": (
        ra.UCB(C=0.5, estimator=ra.estimators.Linear(2, private=["x0"], discount=0.99)),
        {},
    ),
    "contexts at close": (
        ra.ScaledGumbel(estimator=ra.estimators.Linear(2)),
        {"reward_window": 5.0, "default_reward": 0.0, "learn": "at close"},
    ),
    "at close": (ra.UCB(C=0.5), {"reward_window": 5.0, "default_reward": 0.0, "learn": "at close"}),
}


class Life:
    """Things that happen to a bandit by chance, with what the caller knows of them."""

    def __init__(self, bandit: ra.Bandit[Any], seed: int) -> None:
        self.bandit, self.random = bandit, np.random.default_rng(seed)
        self.contextual = bandit.policy.estimator.asks_context
        self.corrects = not bandit.policy.columns

    def ask(self, several: bool) -> None:
        unit, context = f"unit {self.random.integers(1000)}", self.context()
        if several:
            self.bandit.ask(contexts=[context, context]) if self.contextual else self.bandit.ask(3)
        else:
            self.bandit.ask(unit=unit, context=context)

    def context(self) -> Any:
        return self.random.normal(size=2) if self.contextual else None

    def step(self) -> None:
        bandit, what = self.bandit, self.random.random()
        pending = bandit.pending
        if what < 0.4 or not pending:
            self.ask(what < 0.03)
        elif what < 0.8:
            bandit.tell(pending[self.random.integers(len(pending))], float(self.random.random()))
        elif what < 0.85:
            bandit.tell([(decision, float(self.random.random())) for decision in pending[:3]])
        elif what < 0.9:
            bandit.tell(arm=bandit.arms[0], reward=float(self.random.random()), context=self.context())
        elif what < 0.93 and self.corrects and bandit._state.ledger.answered:
            bandit.correct(next(reversed(bandit._state.ledger.answered)), float(self.random.random()))
        elif what < 0.96:
            bandit.cancel(pending[0])
        elif len(bandit._state.names) < 12:
            bandit.add_arm(f"new {len(bandit._state.names)}")
        elif len(bandit.arms) > 2:
            bandit.retire_arm(bandit.arms[0])
        else:
            bandit.restore_arm(bandit._state.names[0])


def run(name: str, path: Path | None, times: int) -> None:
    policy, settings = SETTINGS[name]
    ticks = iter(range(1_700_000_000, 2_000_000_000))
    bandit = forgetful(["a", "b", "c"], policy, seed=5, log=path, clock=lambda: float(next(ticks)), **settings)
    life, inside = Life(bandit, 7), list[bool]()
    for _ in range(200):  # everything is compiled then: an interrupt must not break that off
        life.step()
    interrupted(life.step, times, 3e-4, after=lambda: inside.append(bandit._is_stale))
    assert any(inside)
    text = bandit.to_json()
    copy = ra.Bandit.from_json(text, clock=lambda: float(next(ticks)))  # which looks at every number
    whole = json.loads(text) | {"log": None}
    assert json.loads(copy.to_json()) == whole
    context = life.context()
    assert copy.probabilities(context) == bandit.probabilities(context)
    if path is None:
        return
    bandit.close()
    now = float(next(ticks))
    bandit._clock = lambda: now  # windows that have closed since are not pending
    with ra.Bandit.from_log(path, bandit.policy, clock=lambda: now) as again:
        assert arm_rows(again) == arm_rows(bandit)
        assert again.pending == bandit.pending
        assert again.version == bandit.version
        assert again._draws.key == bandit._draws.key


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("logged", [False, True], ids=["memory", "log"])
def test_interrupts_leave_nothing_torn(name: str, logged: bool, tmp_path: Path) -> None:
    run(name, tmp_path / "log.jsonl" if logged else None, 300)


@pytest.mark.full
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("logged", [False, True], ids=["memory", "log"])
def test_a_hundred_thousand_interrupts(name: str, logged: bool, tmp_path: Path) -> None:
    run(name, tmp_path / "log.jsonl" if logged else None, 7_200)
