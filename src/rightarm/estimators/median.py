"""The median of means: an estimate of a mean for heavy tails that needs only the variance to be finite."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np

from rightarm.estimators.estimator import Estimator
from rightarm.formula import Rule

LARGEST = 256
Groups = Annotated[float, Rule(f"a whole number from 1 to {LARGEST}", lambda x: x == int(x) and 1 <= x <= LARGEST)]


class MedianOfMeans(Estimator):
    """The median of the means of ``groups`` groups of an arm's rewards, and the number of rewards.

    The rewards are dealt to the groups in turn; while there are fewer rewards than groups, it is their median. With an
    even number of groups the two in the middle are averaged.

    Bubeck, Cesa-Bianchi, Lugosi: Bandits with Heavy Tail, 2013, there with groups of successive rewards, formed anew at
    each pull.

    >>> import rightarm as ra
    >>> ra.UCB(C=0.5, estimator=ra.MedianOfMeans(groups=9))
    UCB(C=0.5, estimator=MedianOfMeans(groups=9.0))
    """

    groups: Groups
    MOST: ClassVar[int] = LARGEST
    KEEPS = 1 + LARGEST

    @staticmethod
    def learn(kept: Any, reward: float, groups: float) -> None:
        kept[1 + int(kept[0] % groups)] += reward
        kept[0] += 1.0

    @staticmethod
    def read(kept: Any, groups: float) -> tuple[float, float]:
        used = int(min(kept[0], groups))
        means = np.empty(max(used, 1))
        each, more = kept[0] // groups, kept[0] % groups
        for g in range(used):
            means[g] = kept[1 + g] / (each + (1.0 if g < more else 0.0))
        means.sort()
        return (means[(used - 1) // 2] + means[used // 2]) / 2, kept[0]
