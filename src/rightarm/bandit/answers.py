"""Answers that hold at any time: the intervals of the arms, the difference of two, the best of them.

They are made from every reward that was ever learned, also where the policy's estimator has forgotten some.

A bandit that decides by contexts shows arms to different people on purpose, so the means of the arms' rewards are not
those of the same people. There decisions are weighted by their propensities (`rightarm.inference.comparisons`), over
all decisions or those of a segment.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rightarm import inference
from rightarm.bandit.context_arms import could_choose
from rightarm.bandit.ledger import REMEMBERED
from rightarm.bandit.state import State
from rightarm.display import number
from rightarm.estimators.features import Features
from rightarm.inference import Best, Difference
from rightarm.inference.comparisons import one_value
from rightarm.inference.sequences import Rewards, rewards_of
from rightarm.logs.journals import Journal, LogWriter
from rightarm.logs.reader import read_log
from rightarm.types import F64, I64

Segment = Mapping[str, object]
Pair = tuple[Any, Any]

"""Features and the values that they are to have: ``{"device": "phone", "hour": (9, 17)}``."""


def warning(state: State) -> str:
    """Say why no answer is to be trusted yet, where all rewards so far are equal; empty otherwise."""
    value = state.only_reward()
    if value is None:
        return ""
    ledger = state.ledger
    silent: Collection[int] = ledger.pending  # of which there may be very many: not copied without need
    if state.settings.at_close:
        silent = [number for number, one in ledger.pending.items() if one.so_far is None]
    answered = [number for number, one in ledger.answered.items() if one.reward is not None]
    closed = [number for number, one in ledger.answered.items() if one.reward is None]
    silent = [*silent, *closed] if closed else silent
    return one_value(int(state.lifetime()[0].sum()), value, answered, silent, state.settings.default_reward)


def rewards(state: State) -> Rewards:
    """Return the statistics of every arm's rewards, for intervals."""
    counts, centres, spreads = state.lifetime()
    return rewards_of(counts, centres, spreads, state.reward_range, None, _extremes(state))


def _extremes(state: State, arms: Sequence[int] | I64 | None = None) -> tuple[F64, F64] | None:
    """Return the lowest and the highest reward of every arm, or of some; None where a range makes them needless."""
    if state.reward_range is not None:
        return None
    lows, highs = state.ledger.extremes()
    return (lows, highs) if arms is None else (lows[arms], highs[arms])


def difference(
    state: State, log: Journal | None, arm: Hashable, other: Hashable, where: Segment | None, confidence: float
) -> Difference:
    """Return the difference of two arms' means; where the policy decides by contexts, of the same people."""
    both = [state.arm_number("arm", arm), state.arm_number("other", other)]
    if both[0] == both[1]:
        raise ValueError(f"other must be another arm than {arm!r}, got {other!r}")
    if state.has_contexts:
        found = _weighted_difference(state, log, (arm, other), where or {}, confidence)
        return replace(found, warning=warning(state))
    if where is not None:
        raise TypeError(f"where must be left out: {state.arms.policy!r} does not look at contexts, got {where!r:.80}")
    counts, centres, spreads = (column[both] for column in state.lifetime())
    found = inference.difference(
        counts,
        centres,
        spreads,
        state.reward_range,
        confidence,
        extremes=_extremes(state, both),
        names=(arm, other),
    )
    return replace(found, warning=warning(state))


def harmful(state: State, budget: float) -> list[Hashable]:
    """Return the active arms that are worse than the control by more than ``budget``.

    The error is 5% over all arms that ever were or will be: the j-th has a share of 1/(j(j + 1)) of it.
    """
    control = state.index[state.settings.control]
    found = list[Hashable]()
    extremes = _extremes(state)
    for i in np.flatnonzero(state.active).tolist():
        if i == control:
            continue
        confidence = 1 - 0.05 / ((i + 1) * (i + 2))
        counts, centres, spreads = (column[[i, control]] for column in state.lifetime())
        ends = None if extremes is None else (extremes[0][[i, control]], extremes[1][[i, control]])
        if inference.harm(counts, centres, spreads, budget, state.reward_range, confidence, extremes=ends):
            found.append(state.names[i])
    return found


def best(state: State, confidence: float, tolerance: float) -> Best:
    """Return which of the active arms can be the best, and what choosing one for good can cost."""
    if state.has_contexts:
        raise ValueError(
            f"which arm is the best depends on the context that {state.arms.policy!r} decides by: "
            "difference(arm, other, where=...) compares two arms in a segment"
        )
    active = np.flatnonzero(state.active)
    if not active.size:
        raise ValueError("every arm is retired; restore or add one")
    counts, centres, spreads = (column[active] for column in state.lifetime())
    found = inference.best(
        counts,
        centres,
        spreads,
        state.reward_range,
        confidence,
        tolerance=tolerance,
        extremes=_extremes(state, active),
        names=[state.names[i] for i in active],
    )
    return replace(found, warning=warning(state))


# Two arms of a bandit that decides by contexts.


class Decided(NamedTuple):
    """Decisions that have a reward, in their order, that could have chosen either of two arms."""

    arms: F64
    """0 for the first arm, 1 for the second, 2 for any other."""
    propensities: F64
    rewards: F64
    encoded: F64
    """Their contexts, a row each."""


def _weighted_difference(
    state: State, log: Journal | None, pair: Pair, where: Segment, confidence: float
) -> Difference:
    """Return by how much an arm earns more than another, over the decisions ``where`` contexts are in a segment."""
    if state.reward_range is None:
        raise ValueError(
            "the arms of a bandit that decides by contexts cannot be compared without a reward_range: decisions are "
            "weighted by 1/propensity, and nobody can say how large such numbers may become"
        )
    features = state.features()
    is_whole = len(state.ledger.answered) < REMEMBERED
    rows = _remembered(state, pair) if is_whole else _logged(state, log, pair)
    chosen = features.select(rows.encoded, where)
    return inference.weighted_difference(
        rows.arms[chosen],
        rows.propensities[chosen],
        rows.rewards[chosen],
        state.reward_range,
        confidence,
        floor=_floor(state),
        names=pair,
        where=in_words(features, where),
    )


def _floor(state: State) -> float:
    """Return a probability below which no arm that could be chosen has ever been."""
    return max(state.least_floor, state.least_even / len(state.names))


def _remembered(state: State, pair: Pair) -> Decided:
    """Return the decisions that the ledger remembers."""
    numbers = [state.index[name] for name in pair]
    places = {numbers[0]: 0.0, numbers[1]: 1.0}
    rows = [
        (number, one, one.context)
        for number, one in sorted(state.ledger.answered.items())
        if one.reward is not None and one.context is not None
    ]
    could = {context.could for _, _, context in rows}
    able = {bits for bits in could if all(could_choose(bits, i) for i in numbers)}
    rows = [row for row in rows if row[2].could in able]
    encoded = np.frombuffer(b"".join(context.encoded for _, _, context in rows))
    return Decided(
        np.array([places.get(one.arm, 2.0) for _, one, _ in rows]),
        np.array([one.propensity for _, one, _ in rows]),
        np.array([one.reward for _, one, _ in rows], dtype=float),
        encoded.reshape(len(rows), state.features().size),
    )


def _logged(state: State, log: Journal | None, pair: Pair) -> Decided:
    """Return the decisions of the bandit's log, where there are more than it remembers."""
    reason = f"the bandit remembers its last {REMEMBERED:,} answers only, and there were more"
    if not isinstance(log, LogWriter):
        raise ValueError(f"difference needs a log of this bandit: {reason}")
    if not log.context:
        raise ValueError(f"difference needs the contexts in the log, got LogWriter(context=False): {reason}")
    if len({type(name) for name in state.names}) > 1:
        raise ValueError(f"difference needs arms of one type to find them in the log, got {state.names[:8]}: {reason}")
    frame = read_log(log.path)
    columns = [frame[name].to_list() for name in ("arm", "propensity", "reward", "allowed", "context")]
    places = {pair[0]: 0.0, pair[1]: 1.0}
    rows = [
        (places.get(arm, 2.0), propensity, reward, context)
        for arm, propensity, reward, allowed, context in zip(*columns, strict=True)
        if reward is not None and context is not None and pair[0] in allowed and pair[1] in allowed
    ]
    arms, propensities, rewards, encoded = zip(*rows, strict=True) if rows else ((), (), (), ())
    table = np.array(encoded, dtype=float).reshape(len(rows), state.features().size)
    return Decided(np.array(arms), np.array(propensities), np.array(rewards, dtype=float), table)


def in_words(features: Features, where: Segment) -> str:
    """Return a segment as people say it: device = phone, hour from 9 to 17."""
    return ", ".join(f"{name} {_wanted(value, name in features.numbers)}" for name, value in where.items())


def _wanted(value: object, is_number: bool) -> str:
    if is_number and isinstance(value, tuple | list):
        words = "from", "up to" if value[0] is None else "to"
        ends = [f"{word} {number(end)}" for word, end in zip(words, value, strict=True) if end is not None]
        return " ".join(ends) or "known"
    if isinstance(value, tuple | list | set | frozenset):
        return f"= {' or '.join(map(str, value))}"
    return "missing" if value is None else f"= {value}"
