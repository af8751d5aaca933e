"""What is known of the arms of a live bandit, and the decisions made about them: the data that everything shares."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rightarm.estimators import CatoniEstimator
from rightarm.formula import check_count, check_number
from rightarm.policies.policy import Policy

F64 = NDArray[np.float64]
FORGOTTEN = 1e-9  # pulls, discounted, from which on an arm counts as never pulled


@dataclass(frozen=True, slots=True)
class Decision:
    """One choice of an arm: its number, the arm, the probability with which it was chosen, and when.

    ``round`` counts rewards learned, and one; ``version`` counts the states of the bandit.
    """

    id: int
    arm: Hashable
    propensity: float
    round: int
    version: int


class Statistics:
    """Pulls, means and spreads of all arms, and what the policy remembers besides; arms are known by their index."""

    def __init__(self, policy: Policy, discount: float | None, window: int | None) -> None:
        if discount is not None and window is not None:
            raise ValueError(f"discount and window exclude each other, got {discount} and {window}")
        if discount is not None and not 0 < check_number("discount", discount) < 1:
            raise ValueError(f"discount must be between 0 and 1, got {discount}")
        if (discount or window) and (policy.columns or policy.estimator != "mean"):
            name = "discount" if window is None else "window"
            raise ValueError(f"{name} works on pulls and means, but {policy!r} keeps more of past rewards than that")
        self.policy, self.discount = policy, discount
        self.window = None if window is None else check_count("window", window)
        self.pulls: F64 = np.zeros(0)
        self.mean: F64 = np.zeros(0)
        self.spread: F64 = np.zeros(0)  # Σ (x − mean)²
        self.memory: dict[str, F64] = {name: np.zeros(0) for name in policy.columns}
        self.robust: list[CatoniEstimator] = []
        self.recent: deque[tuple[int, float]] = deque()
        self.forgotten = 0

    def add_arm(self) -> None:
        """One arm more, of which nothing is known."""
        self.pulls, self.mean, self.spread = (np.append(row, 0.0) for row in (self.pulls, self.mean, self.spread))
        self.memory = {name: np.append(column, 0.0) for name, column in self.memory.items()}
        if self.policy.estimator == "catoni":
            self.robust.append(CatoniEstimator(self.policy.values["C"]))

    def learn(self, arm: int, reward: float, propensity: float) -> None:
        """Take a reward of an arm, which was chosen with ``propensity``."""
        t = self.rounds + 1
        if self.discount is not None:
            self.pulls *= self.discount
            self.spread *= self.discount
        self.pulls[arm] += 1
        step = reward - self.mean[arm]
        self.mean[arm] += step / self.pulls[arm]
        self.spread[arm] += step * (reward - self.mean[arm])
        if self.robust:
            self.robust[arm].push(reward)
        if self.window is not None:
            self.recent.append((arm, reward))
            if len(self.recent) > self.window:
                self._forget()
        if self.memory:
            known = {name: float(column[arm]) for name, column in self.memory.items()}
            state = (int(self.pulls[arm]), self.estimate[arm], reward, known, self.pulls.size, propensity)
            for name, value in self.policy.learned(t, *state).items():
                self.memory[name][arm] = value

    def _forget(self) -> None:
        """Leave the oldest reward out; once in a window all is computed anew, so that no rounding adds up."""
        arm, reward = self.recent.popleft()
        self.forgotten += 1
        n = self.pulls[arm] - 1
        before = self.mean[arm]
        self.pulls[arm] = n
        self.mean[arm] = before - (reward - before) / n if n else 0.0
        self.spread[arm] = max(0.0, self.spread[arm] - (reward - before) * (reward - self.mean[arm])) if n else 0.0
        if self.forgotten % len(self.recent) == 0:
            self._count_again()

    def _count_again(self) -> None:
        arms, rewards = (np.array(column) for column in zip(*self.recent, strict=True))
        for arm in range(self.pulls.size):
            own = rewards[arms == arm]
            self.pulls[arm], self.mean[arm] = own.size, own.mean() if own.size else 0.0
            self.spread[arm] = ((own - self.mean[arm]) ** 2).sum()

    @property
    def rounds(self) -> int:
        """The rewards that count, all arms together; rounded, if they are discounted."""
        return round(float(self.pulls.sum()))

    @property
    def estimate(self) -> F64:
        """The estimate of each arm's mean."""
        if self.robust:
            return np.array([one.value if one.count else 0.0 for one in self.robust])
        return self.mean

    @property
    def counted(self) -> F64:
        """The pulls; an arm whose rewards are as good as forgotten has none."""
        return np.where(self.pulls < FORGOTTEN, 0.0, self.pulls)

    def half_width(self) -> F64:
        """Half of a 95% interval of each mean, by the normal law; infinite below two pulls."""
        enough = self.pulls > 1
        variance = np.divide(self.spread, self.pulls - 1, out=np.full(self.pulls.size, np.inf), where=enough)
        return np.asarray(1.96 * np.sqrt(np.divide(variance, self.pulls, out=variance, where=enough)))

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "pulls": self.pulls.tolist(),
            "mean": self.mean.tolist(),
            "spread": self.spread.tolist(),
            "memory": {name: column.tolist() for name, column in self.memory.items()},
            "robust": [one.to_json() for one in self.robust],
            "recent": [[arm, reward] for arm, reward in self.recent],
            "forgotten": self.forgotten,
        }

    def restore(self, state: Mapping[str, Any], arms: int) -> None:
        """Take what `to_json` gave, after a look at all of it."""
        rows = {name: check_row(name, state[name], arms) for name in ("pulls", "mean", "spread")}
        memory = {name: check_row(f"memory[{name!r}]", state["memory"][name], arms) for name in self.memory}
        robust = [CatoniEstimator.from_json(one) for one in state["robust"]]
        recent = [(int(arm), check_number("reward", reward)) for arm, reward in state["recent"]]
        if set(state["memory"]) != set(memory) or len(robust) != (arms if self.policy.estimator == "catoni" else 0):
            raise ValueError(f"memory must be that of {self.policy!r}, got {list(state['memory'])}")
        if (rows["pulls"] < 0).any() or (rows["spread"] < 0).any():
            raise ValueError("pulls and spread must not be negative")
        if len(recent) > (self.window or 0) or any(not 0 <= arm < arms for arm, _ in recent):
            raise ValueError(f"recent must be at most {self.window} rewards of known arms, got {len(recent)}")
        self.pulls, self.mean, self.spread, self.memory = rows["pulls"], rows["mean"], rows["spread"], memory
        self.robust, self.recent = robust, deque(recent)
        self.forgotten = check_count("forgotten", state["forgotten"], least=0)


def check_row(name: str, values: Any, arms: int) -> F64:
    """A finite number for each arm."""
    if not isinstance(values, list) or len(values) != arms:
        raise ValueError(f"{name} must be a list of {arms} numbers, got {values!r:.60}")
    return np.array([check_number(name, value) for value in values], dtype=float)
