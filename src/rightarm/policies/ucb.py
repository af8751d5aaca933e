"""Upper confidence bounds: optimism instead of noise."""

from __future__ import annotations

import numpy as np

from rightarm.formula import Positive
from rightarm.policies.policy import policy


@policy
def UCB(t, pulls, mean, *, C: Positive):
    """Add to each arm's mean a bonus that grows slowly with time and shrinks with the arm's own pulls.

    I = arg max_i { μ̂_i + √(C² log t / N_i) }

    The form of the paper's section 6. UCB1 of Auer, Cesa-Bianchi, Fischer (2002) is C = √2.

    >>> import rightarm as ra
    >>> ra.UCB(C=0.5).scores(round=9, pulls=[4, 4], means=[0.25, 0.5]).round(3)
    array([0.621, 0.871])
    """
    return mean + C * np.sqrt(np.log(t) / pulls)
