"""Two arms that are equally good, of which one is answered sooner, as the log of a bandit with windows of reward."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import rightarm as ra
from bandits import Clock

HOUR, DAY = 3_600.0, 86_400.0
RATE = 0.02
DELAYS = {"fast": DAY / 100, "slow": DAY}  # a click comes at any time within so many seconds


def equal_arms(path: Path, seed: int, learn: str, each_hour: int = 200, hours: int = 36) -> ra.Bandit[str]:
    """A bandit that mails each hour and is looked at after so many; windows are of a day, and silence is 0."""
    clock, random = Clock(), np.random.default_rng(seed)
    settings: dict[str, Any] = {"reward_window": DAY, "default_reward": 0.0, "learn": learn, "floor": 0.1}
    bandit = ra.Bandit(list(DELAYS), ra.BetaThompson(), seed=seed, log=path, clock=clock, **settings)
    clicks = list[tuple[float, int]]()
    for _ in range(hours):
        mails = bandit.ask(each_hour)
        chance, wait = random.random((2, each_hour))
        clicks += [
            (clock.now + DELAYS[mail.arm] * wait[i], mail.id) for i, mail in enumerate(mails) if chance[i] < RATE
        ]
        clicks.sort()
        until = clock.now + HOUR
        while clicks and clicks[0][0] <= until:
            clock.now, number = clicks.pop(0)
            bandit.tell(number, 1.0)
        clock.now = until
    bandit.close_windows()
    bandit.close()
    return bandit
