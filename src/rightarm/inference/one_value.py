"""Rewards that are all equal: the sign that only clicks are told, or that no rewards arrive at all.

Who tells the clicks and not the silence gives every arm the mean 1, and no statistics can mend that. Nobody can see
from outside whether silence means 0; but rewards of one value prove nothing about arms in any case, so it is always
right to say so. `one_value` is the only place that decides when.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection

from rightarm.text import counted, number

MANY = 20  # rewards of one value that are worth a word: of fair coins that is chance in 2 of 10⁶ bandits
FEW = 5  # rewards that are enough where MANY decisions that are older than usual have none


def one_value(
    rewards: int, value: float | None, answered: Collection[int], silent: Collection[int], default: float | None = None
) -> str:
    """Say in one sentence that all rewards so far are equal and what to do about it; empty if there is nothing to say.

    - ``rewards``: how many there are. ``value``: what all of them are; None if they differ.
    - ``answered``, ``silent``: the decisions with a reward and those without, as numbers that grow with time, as ids
      do. A silent one is older than usual if half of those with a reward were made after it.
    - ``default``: the reward that silence gets when a window closes, if it gets one.

    There is nothing to say before 20 rewards; or 5, where 20 decisions that are older than usual have none.

    >>> one_value(3, 1.0, answered=[2, 7, 9], silent=[1, 3, 4, 5, 6, 8])
    ''
    >>> print(one_value(30, 1.0, answered=range(0, 900, 30), silent=range(1, 900, 2)))
    all 30 rewards are 1 and 450 decisions have none, so arms cannot be compared; if silence means 0, give the \
bandit a window with a default of 0 (window_of_reward=..., default=0)
    >>> print(one_value(500, 0.0, answered=range(500), silent=[], default=0.0))
    no reward other than 0 has come in 500, so arms cannot be compared; see whether rewards are told at all
    """
    if value is None or not (rewards >= MANY or (rewards >= FEW and _older(answered, silent) >= MANY)):
        return ""
    if value == (default or 0.0):
        told = f"no reward other than {number(value)} has come in {rewards:,}"
        return f"{told}, so arms cannot be compared; see whether rewards are told at all"
    if default is not None and silent:
        wait = f"{counted(len(silent), 'decision')} {'waits' if len(silent) == 1 else 'wait'} for that"
        closing = f"silence counts as {number(default)} only when windows close, and {wait}"
        return f"all {rewards:,} rewards so far are {number(value)}, so arms cannot be compared; {closing}"
    have = f" and {counted(len(silent), 'decision')} {'has' if len(silent) == 1 else 'have'} none" if silent else ""
    told = f"all {rewards:,} rewards are {number(value)}{have}, so arms cannot be compared"
    if default is not None:
        return told
    return f"{told}; if silence means 0, give the bandit a window with a default of 0 (window_of_reward=..., default=0)"


def _older(answered: Collection[int], silent: Collection[int]) -> int:
    """How many decisions without a reward are older than half of those with one."""
    middle = statistics.median(answered) if len(answered) else 0
    return sum(each < middle for each in silent)
