"""Random lives of bandits with contexts beside dense regression: windows, corrections, arms that come and go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from naive_linear import NaiveLinear, standardised
from rightarm.types import F64

MOST = 6  # arms that there will be
SECONDS = 10.0  # in which rewards are awaited


class Life:
    """A bandit to which random things happen, and what follows from them by the formulas."""

    def __init__(self, seed: int, log: Path) -> None:
        self.random, self.now = np.random.default_rng(seed), 1e9
        self.arm_features, self.private = self.one_of(0, 1), self.one_of(True, ["x0"])
        self.standardise, self.discount = self.one_of(True, False), self.one_of(None, 0.8)
        self.floor, self.holdout, self.control = self.one_of(0.0, 0.03), self.one_of(0.0, 0.2), self.one_of(None, 0)
        self.window, self.default = self.one_of(None, SECONDS), self.one_of(None, 0.25)
        self.at_close = self.window is not None and self.one_of(True, False)
        linear = ra.estimators.Linear(
            2, self.arm_features or None, private=self.private, standardise=self.standardise, discount=self.discount
        )
        options: dict[str, Any] = {"floor": self.floor, "holdout": self.holdout, "control": self.control}
        if self.window is not None:
            learn = "at close" if self.at_close else "at once"
            options |= {"reward_window": self.window, "default_reward": self.default, "learn": learn}
        policy = ra.Boltzmann(temperature=0.5, estimator=linear)
        self.bandit = ra.Bandit([0, 1, 2], policy, seed=seed, log=log, clock=lambda: self.now, **options)
        own = 3 if self.private is True else 2
        joint = 3 - own + 3 * self.arm_features
        ridges = (1.0, 100.0 if joint else 1.0)
        self.model = NaiveLinear(MOST, own, joint, *ridges, discount=self.discount or 1.0)
        self.active, self.count = {0, 1, 2}, 3
        self.contexts, self.features = list[Any](), list[Any]()
        self.pending = dict[int, list[Any]]()  # time, arm, row, reward so far
        self.answered = dict[int, list[Any]]()  # arm, row, its place allowed what was learned

    def one_of(self, *choices: Any) -> Any:
        return choices[self.random.integers(len(choices))]

    def given(self, arms: list[int]) -> tuple[F64, dict[str, Any]]:
        """A context, and what arms have in it, as arguments of a call."""
        rows = self.random.normal(size=(len(arms), 1))
        return self.random.normal(3, 2, size=2), {"arm_features": rows} if self.arm_features else {}

    def rows(self, x: F64, given: dict[str, Any], arms: list[int]) -> dict[int, F64]:
        """The rows of some arms in a context, which counts from now on."""
        self.contexts.append(x)
        self.features += list(given.get("arm_features", ()))
        z, found = standardised(self.contexts, [0, 1] if self.standardise else []), dict[int, F64]()
        for place, arm in enumerate(arms):
            plain = [1.0, z[0], z[1]]  # of which the first ones, or all, are private
            if given:
                a = given["arm_features"][place, 0]
                if self.standardise:
                    deviation = np.std(self.features)
                    a = (a - np.mean(self.features)) / deviation if deviation else 0.0
                plain += [a, z[0] * a, z[1] * a]
            found[arm] = np.array(plain)
        return found

    def chances(self, rows: dict[int, F64]) -> dict[int, float]:
        """What each arm is chosen with, by its row."""
        means = np.array([self.model.read(arm, row)[0] for arm, row in rows.items()])
        chance = np.exp((means - means.max()) / 0.5)
        floor = self.floor / (1 - self.holdout)
        chance = floor + (1 - floor * len(rows)) * chance / chance.sum()
        held = [arm for arm in rows if self.control in (None, arm)]
        if self.holdout and held:
            chance = (1 - self.holdout) * chance + [self.holdout / len(held) * (arm in held) for arm in rows]
        return dict(zip(rows, chance.tolist(), strict=True))

    def learn(self, number: int, arm: int, row: F64, reward: float | None) -> None:
        self.answered[number] = [arm, row, None]
        if reward is not None:
            self.model.learn(arm, row, reward)
            self.answered[number][2] = len(self.model.rows) - 1

    def close_windows(self) -> None:
        for number, (time, arm, row, so_far) in list(self.pending.items()):
            if self.window is not None and time + self.window <= self.now:
                del self.pending[number]
                self.learn(number, arm, row, self.default if so_far is None else so_far)

    # What happens.

    def ask(self) -> None:
        arms = sorted(self.active)
        allowed = (
            sorted(self.random.choice(arms, size=2, replace=False).tolist()) if self.random.random() < 0.3 else arms
        )
        x, given = self.given(allowed)
        decision = self.bandit.ask(context=x, allowed=None if allowed == arms else allowed, **given)
        rows = self.rows(x, given, allowed)
        assert decision.propensity == pytest.approx(self.chances(rows)[decision.arm], rel=1e-8)
        self.pending[decision.id] = [self.now, decision.arm, rows[decision.arm], None]

    def tell(self) -> None:
        number, reward = self.one_of(*self.pending), float(self.random.normal())
        self.bandit.tell(number, reward)
        if self.at_close:
            self.pending[number][3] = reward
        else:
            _, arm, row, _ = self.pending.pop(number)
            self.learn(number, arm, row, reward)

    def correct(self) -> None:
        number, reward = self.one_of(*self.answered), float(self.random.normal())
        self.bandit.correct(number, reward)
        arm, row, place = self.answered[number]
        if place is None:
            self.learn(number, arm, row, reward)
        else:
            self.model.rows[place] = self.model.rows[place][0], reward

    def observe(self) -> None:
        arm, reward = int(self.random.integers(self.count)), float(self.random.normal())
        x, given = self.given([arm])
        self.bandit.tell(arm=arm, reward=reward, context=x, **given)
        self.model.learn(arm, self.rows(x, given, [arm])[arm], reward)

    def change_arms(self) -> None:
        arm = int(self.random.integers(1, self.count))
        if self.count < MOST and self.random.random() < 0.5:
            self.bandit.add_arm(self.count)
            self.active.add(self.count)
            self.count += 1
        elif arm in self.active and len(self.active) > 2:
            self.bandit.retire_arm(arm)
            self.active.remove(arm)
        else:
            self.bandit.restore_arm(arm)
            self.active.add(arm)

    def step(self) -> None:
        self.now += float(self.random.integers(3))
        self.close_windows()
        what = self.random.random()
        if what < 0.5 or not self.pending:
            self.ask()
        elif what < 0.75:
            self.tell()
        elif what < 0.85 and self.answered:
            self.correct()
        elif what < 0.92:
            self.observe()
        else:
            self.change_arms()


@pytest.mark.parametrize("seed", range(12))
def test_a_random_life_is_that_of_dense_regression(seed: int, tmp_path: Path) -> None:
    life = Life(seed, tmp_path / "log.jsonl")
    for _ in range(100):
        life.step()
    wanted = json.loads(life.bandit.to_json())
    life.bandit.close()
    with ra.Bandit.from_log(tmp_path / "log.jsonl") as again:
        assert json.loads(again.to_json()) == wanted
