"""A test whether arms were shown as often as their logged propensities say; one may look at it after every row.

Let A_t be the arm of row t, p_t its propensity, and a an arm that could be chosen. Whatever p_t(a) is, the mean of
1{A_t = a}/p_t − 1 given the rows before is 0, or −1 if a could not be chosen after all. So a gambler who bets the share
λ of the capital that a comes,

    capital ← capital · (1 + λ (1{A_t = a}/p_t − 1)),      0 ≤ λ < 1,

plays a game that is fair at best, if arms were drawn as the log says. So does who bets on several arms alike, or on an
arm that the rows before point to: the same arm as in the row before. One may also begin later: after j hundred rows
with the share 1/((j + 1)(j + 2)). All such gamblers together reach 1/α times what they began with, with probability α
at most, at whatever row one looks (Ville).

Only the propensity of the chosen arm is needed. A row of propensity 1 says nothing and is passed over.

References
----------
Lindon and Malek, "Anytime-valid inference for multinomial count data", NeurIPS 2022; Ramdas, Grünwald, Vovk
and Shafer, "Game-theoretic statistics and safe anytime-valid inference", Statistical Science 2023.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rightarm.types import F64, I64

STAKES: F64 = np.array([0.9, *(0.5 ** np.arange(1, 10))])  # λ: large ones for what is plain, small ones for rare arms
LOOKS = 5_000  # rows; longer logs are not looked at after every one
BEGINS = 100  # rows after which another gambler begins, for what goes wrong later
MOST_ARMS = 64  # of which each is also bet against; where there are more, one that is lacking says little
BLOCK = 100  # rows
CHANCE = 1e-6  # of a block that comes twice by itself, anywhere in the log, at most

# What somebody bets on: an arm, all others, the arm of the row before, all others than that, all arms alike.
MORE = "more"
LESS = "less"
AGAIN = "again"
TURNS = "turns"
ALL = "all"
SHARES = {AGAIN: 0.2, TURNS: 0.125, ALL: 0.125}  # of the capital
FIRST = 0.5  # the share of the arms of the first row
LATER = 0.05  # the share of all arms that come later


class ArmDraws(NamedTuple):
    """The rows of a log: the arm of each, its propensity, and which set of arms it was drawn from."""

    arms: I64
    propensities: F64
    sets: I64
    members: NDArray[np.bool_]
    """Which arms (columns) are in each set (rows)."""


@dataclass(frozen=True, eq=False)
class Gambler:
    """Somebody who bets, with the logarithm of the capital at each look, which begins with the share."""

    bet: str
    arm: int | None
    capital: F64


def gamblers(draws: ArmDraws) -> tuple[I64, list[Gambler]]:
    """Return the rows that were looked at, counted from 0, and all gamblers with their capital there.

    The capital of all together is at least 1/α at some look with probability α at most.
    """
    uncertain = np.flatnonzero(draws.propensities < 1)
    rows = ArmDraws(draws.arms[uncertain], draws.propensities[uncertain], draws.sets[uncertain], draws.members)
    count = uncertain.size
    table = _Table(rows, 1 if count <= LOOKS else BEGINS * -(-count // (BEGINS * LOOKS)))
    last = np.minimum((np.arange(table.looks) + 1) * table.step, count) - 1
    return uncertain[last], [*table.on_arms(), *table.on_rows()]


class _Table:
    """The rows with what bets on them gain, summed up between looks."""

    def __init__(self, rows: ArmDraws, step: int) -> None:
        self.rows = rows
        self.step = step
        self.look = np.arange(rows.arms.size) // step
        self.looks = -(-rows.arms.size // step)
        self.sizes = rows.members.sum(axis=1)[rows.sets]
        self.begins = np.arange(0, max(self.looks, 1), max(BEGINS // step, 1))  # looks before which somebody begins

    def _capital(self, share: float, at: I64, values: F64, lost: I64) -> F64:
        """Return the capital of bets that gain ``values`` per unit in the rows ``at`` and lose all in ``lost``."""
        losses = np.bincount(self.look[lost], minlength=self.looks)
        each = [
            np.bincount(self.look[at], np.log1p(stake * values), self.looks) + losses * np.log1p(-stake)
            for stake in STAKES
        ]
        grown = np.cumsum(each, axis=1)
        return np.asarray(np.logaddexp.reduce(self._begun(grown), axis=0) + np.log(share / STAKES.size))

    def _begun(self, grown: F64) -> F64:
        """Return the capital of all who begin at some time, from that of the one who began at the first row."""
        before = np.concatenate([np.zeros((grown.shape[0], 1)), grown], axis=1)[:, self.begins]
        hundreds = self.begins * self.step // BEGINS
        ready = np.logaddexp.accumulate(-np.log((hundreds + 1.0) * (hundreds + 2.0)) - before, axis=1)
        looks = np.arange(self.looks)
        waiting = -np.log(looks * self.step // BEGINS + 2.0)  # the share of those who have yet to begin
        begun = grown + ready[:, np.searchsorted(self.begins, looks, side="right") - 1]
        return np.asarray(np.logaddexp(begun, waiting))

    def on_arms(self) -> Iterator[Gambler]:
        """Yield who bets on each arm and, if these are not too many, who bets on all arms but this one."""
        rows = self.rows
        weights = _weights(rows)
        for arm in np.flatnonzero(weights).tolist():
            there = np.flatnonzero(rows.members[:, arm][rows.sets] & (self.sizes > 1))
            is_arm = rows.arms[there] == arm
            mine = there[is_arm]
            others = there[~is_arm]
            both = weights.size <= MOST_ARMS
            share = weights[arm] / (2 if both else 1)
            yield Gambler(MORE, arm, self._capital(share, mine, 1 / rows.propensities[mine] - 1, others))
            if both:
                gain = 1 / (rows.propensities[others] * (self.sizes[others] - 1)) - 1
                yield Gambler(LESS, arm, self._capital(share, others, gain, mine))

    def on_rows(self) -> Iterator[Gambler]:
        """Yield who bet on the arm of the row before, on all others, and on all arms alike."""
        rows = self.rows
        places = np.arange(rows.arms.size)
        before = np.concatenate([rows.arms[:1], rows.arms[:-1]])
        able = rows.members[rows.sets, before] & (self.sizes > 1) & (places > 0)
        same = places[able & (rows.arms == before)]
        other = places[able & (rows.arms != before)]
        yield Gambler(AGAIN, None, self._capital(SHARES[AGAIN], same, 1 / rows.propensities[same] - 1, other))
        gain = 1 / (rows.propensities[other] * (self.sizes[other] - 1)) - 1
        yield Gambler(TURNS, None, self._capital(SHARES[TURNS], other, gain, same))
        gain = 1 / (rows.propensities * self.sizes) - 1
        yield Gambler(ALL, None, self._capital(SHARES[ALL], places, gain, places[:0]))


def _weights(rows: ArmDraws) -> F64:
    """Return shares of the capital by arm, which are known when an arm comes: nobody knows how many will."""
    weights = np.zeros(rows.members.shape[1])
    _, first = np.unique(rows.sets, return_index=True)
    sets = [np.flatnonzero(rows.members[rows.sets[t]]).tolist() for t in np.sort(first)]
    arms = list(dict.fromkeys(arm for one in sets for arm in one))
    begun = len(sets[0]) if sets else 0
    later = np.arange(1, len(arms) - begun + 1)
    weights[arms[:begun]] = FIRST / max(begun, 1)
    weights[arms[begun:]] = LATER / (later * (later + 1))
    return weights


def repeated_block(draws: ArmDraws) -> tuple[int, int] | None:
    """Return where two equal blocks of rows begin, counted from 0, that chance does not explain, or None.

    Equal means arm for arm with the same propensities. That a block repeats an earlier one has at most the probability
    that its propensities have together, and there are not more than n²/2 pairs of blocks.
    """
    count = draws.arms.size - BLOCK + 1
    if count < 2:
        return None
    _, codes = np.unique(np.stack([draws.arms, draws.propensities.view(np.int64)]), axis=1, return_inverse=True)
    marks = np.random.default_rng(0).integers(1, 2**63, codes.max() + 1, dtype=np.uint64)[codes.ravel()]
    base = np.uint64(0x9E3779B97F4A7C15)  # odd, so that it has an inverse among the numbers of 64 bits
    powers = np.cumprod(np.full(draws.arms.size, base))
    inverse = np.cumprod(np.full(count, np.uint64(pow(int(base), -1, 2**64))))
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(marks * powers)])
    hashes = (sums[BLOCK:] - sums[:-BLOCK]) * inverse
    surprise = np.concatenate([np.zeros(1), np.cumsum(-np.log(draws.propensities))])
    rare = surprise[BLOCK:] - surprise[:-BLOCK] >= 2 * np.log(draws.arms.size) - np.log(CHANCE)
    _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
    again = np.flatnonzero(rare & (first[which.ravel()] < np.arange(count)))
    for place in again.tolist():
        begin = int(first[which.ravel()[place]])
        if np.array_equal(codes.ravel()[begin : begin + BLOCK], codes.ravel()[place : place + BLOCK]):
            return begin, place
    return None
