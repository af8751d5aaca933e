"""`sample_ratio`: checks that the arms of a log came as often as the propensities beside them say."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from rightarm.display import counted, number
from rightarm.evaluation.targets import as_text
from rightarm.inference.propensity_bets import (
    AGAIN,
    ALL,
    BLOCK,
    LESS,
    MORE,
    TURNS,
    ArmDraws,
    Gambler,
    gamblers,
    repeated_block,
)
from rightarm.inference.sequences import check_confidence
from rightarm.logs.log import UNKNOWN, Log, LogLike, listed, log_of

SENTENCES = {
    MORE: "{arm} came more often than its propensities say",
    LESS: "{arm} came less often than its propensities say",
    AGAIN: "an arm is followed by itself more often than by chance: a stale cache, or rows written twice?",
    TURNS: "an arm is followed by itself less often than by chance: are arms shown in turn?",
    ALL: "the propensities are smaller than those of a choice among so many arms can be",
}
MOST = 5  # sentences


@dataclass(frozen=True)
class SampleRatio:
    """The findings about arms and their propensities; `sample_ratio` makes it.

    Attributes
    ----------
    rows
        The decisions looked at.
    e_value
        The largest capital that somebody who bets against the propensities has had; 1 at the beginning.
    p_value
        Its inverse, at most 1: valid although one looked after every row.
    confidence
        One minus the probability of a false alarm.
    row
        The row, counted from 1, at which the alarm came, if it did.
    arms
        The arms that came too often or too seldom.
    findings
        What is wrong, in words; empty if nothing is.
    """

    rows: int
    e_value: float
    p_value: float
    confidence: float
    row: int | None
    arms: tuple[Hashable, ...]
    findings: tuple[str, ...]

    @property
    def alarm(self) -> bool:
        """Say whether arms and propensities do not fit, or rows are there twice."""
        return bool(self.findings)

    def __str__(self) -> str:
        verdict = "arms and propensities do not fit" if self.alarm else "arms came as their propensities say"
        pairs = {
            "rows": f"{self.rows:,}",
            "p-value, at any time": number(self.p_value),
            "alarm below": number(1 - self.confidence),
            **({} if self.row is None else {"alarm since row": f"{self.row:,}"}),
        }
        return as_text(verdict, pairs, self.findings)


def sample_ratio(log: LogLike, *, arms: Iterable[Hashable] | None = None, confidence: float = 0.99) -> SampleRatio:
    """Check that the arms of a log came as often as their propensities say, and that no row is there twice.

    Where they do not fit, a client shows other arms than the bandit chose, or a cache shows one choice to many, or
    rows were lost or written twice: then no estimate from the log can be trusted. An alarm is false with probability
    1 − ``confidence`` at most (and one in a million), however often one looks while the log grows.

    Parameters
    ----------
    log
        A path, a frame such as `read_log` gives, or a mapping of columns ``arm``, ``propensity`` and, if known,
        ``allowed``, the arms that each row could choose, and ``id``. All decisions count, also those without reward and
        those whose window of reward is open: what was drawn does not depend on what comes of it.
    arms
        All arms, if the log does not show them all.
    confidence
        One minus the probability of a false alarm.

    Returns
    -------
    SampleRatio
        The verdict; ``findings`` says in words what is wrong.

    References
    ----------
    `rightarm.inference.propensity_bets` has the method and references.

    Examples
    --------
    >>> fair = {"arm": ["a", "b", "b", "a", "a", "b"] * 5, "propensity": [0.5] * 30}
    >>> sample_ratio(fair).alarm
    False
    >>> sample_ratio({"arm": ["a"] * 10 + ["b"] * 20, "propensity": [0.5] * 30}).findings
    ('an arm is followed by itself more often than by chance: a stale cache, or rows written twice?',)
    """
    level = -math.log(1 - check_confidence(confidence))
    log = log_of(log, needed=("arm", "propensity"))
    names, draws = draws_of(log, arms)
    looks, players = gamblers(draws)
    together = np.logaddexp.reduce([player.capital for player in players], axis=0)
    most = max(0.0, float(together.max(initial=-math.inf)))
    row = None if most < level else int(looks[np.argmax(together >= level)]) + 1
    guilty = [] if row is None else _guilty(players, level)
    findings = [SENTENCES[one.bet].format(arm=None if one.arm is None else names[one.arm]) for one in guilty[:MOST]]
    return SampleRatio(
        rows=draws.arms.size,
        e_value=math.exp(min(most, 700.0)),
        p_value=math.exp(-most),
        confidence=confidence,
        row=row,
        arms=tuple(dict.fromkeys(names[one.arm] for one in guilty if one.arm is not None)),
        findings=(*findings, *_twice(log, draws)),
    )


def _guilty(players: list[Gambler], level: float) -> list[Gambler]:
    """Return those whose capital would have raised the alarm alone, the richest first; or the richest one."""
    ranked = sorted(players, key=lambda player: -float(player.capital.max()))
    return [player for player in ranked if player.capital.max() >= level] or ranked[:1]


def draws_of(log: Log, arms: Iterable[Hashable] | None) -> tuple[list[Hashable], ArmDraws]:
    """Return the names of all arms, and the rows of a log by their numbers, checked."""
    every = np.arange(log.arms.size)
    log.check_propensities(every)
    log.check_lists(every)
    in_lists = [log.names[i] for i in dict.fromkeys(i for one in log.lists for i in one)]
    names = list(dict.fromkeys([*(arms or ()), *in_lists, *log.names]))
    place = {name: i for i, name in enumerate(names)}
    places = np.array([place[name] for name in log.names], dtype=np.int64)
    members = np.zeros((len(log.lists) + 1, len(names)), dtype=bool)
    for members_of_list, one in zip(members, log.lists, strict=False):
        members_of_list[places[list(one)]] = True
    members[-1] = True  # which UNKNOWN finds
    sets = np.where(log.allowed == UNKNOWN, len(log.lists), log.allowed)
    return names, ArmDraws(places[log.arms], log.propensities, sets, members)


def _twice(log: Log, draws: ArmDraws) -> list[str]:
    """Return sentences about rows that are there twice."""
    found = []
    if log.ids is not None:
        double = [number for number, times in Counter(listed(log.ids)).items() if times > 1]
        if double:
            found.append(f"{counted(len(double), 'id')} came more than once, the first is {double[0]}")
    blocks = repeated_block(draws)
    if blocks is not None:
        rows = [f"{place + 1:,} to {place + BLOCK:,}" for place in blocks]
        found.append(f"rows {rows[1]} repeat rows {rows[0]}, arm for arm with the same propensities")
    return found
