"""The plain mean, of all rewards or of those that still count."""

from __future__ import annotations

from rightarm.estimators.estimator import Estimator


class Mean(Estimator):
    """The mean of an arm's rewards, and their number.

    - ``discount``: every reward counts the less the more rewards came after it, by this factor for each.
    - ``window``: only the last so many rewards count, of all arms together.

    The round that formulas see is then one more than the rewards that count. Garivier and Moulines: On Upper-Confidence
    Bound Policies for Switching Bandit Problems, ALT 2011.

    >>> import rightarm as ra
    >>> ra.UCB(C=0.5, estimator=ra.Mean(window=500))
    UCB(C=0.5, estimator=Mean(window=500))
    >>> ra.UCB(C=0.5, estimator=ra.Mean())
    UCB(C=0.5)
    """
