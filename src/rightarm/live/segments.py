"""Two arms of a bandit that decides by contexts, compared over all decisions or those of a segment.

Such a bandit shows arms to different people on purpose, so the means of the arms' rewards are not those of the same
people. Decisions are therefore weighted by their propensities (`rightarm.inference.weighted`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np

from rightarm import inference
from rightarm.contexts import Features
from rightarm.inference import Difference
from rightarm.live.contextual import could_choose
from rightarm.live.ledger import REMEMBERED
from rightarm.live.state import State
from rightarm.logs.journal import Journal
from rightarm.logs.writer import LogWriter
from rightarm.text import number
from rightarm.types import F64


class Decided(NamedTuple):
    """Decisions that have a reward, in their order, that could have chosen either of two arms."""

    arms: F64
    """0 for the first arm, 1 for the second, 2 for any other."""
    propensities: F64
    rewards: F64
    encoded: F64
    """Their contexts, a row each."""


def difference(
    state: State,
    log: Journal | None,
    arm: Hashable,
    other: Hashable,
    where: Mapping[str, Any] | None,
    confidence: float,
    limits: tuple[float, float] | None,
) -> Difference:
    """By how much ``arm`` earns more than ``other``, over the decisions ``where`` contexts are in a segment."""
    if limits is None:
        raise ValueError(
            "the arms of a bandit that decides by contexts cannot be compared without a reward_range: decisions are "
            "weighted by 1/propensity, and nobody can say how large such numbers may become"
        )
    pair, features = (state.index[arm], state.index[other]), state.features()
    rows = _remembered(state, pair) if len(state.ledger.answered) < REMEMBERED else _logged(state, log, (arm, other))
    kept = features.select(rows.encoded, {} if where is None else where)
    columns = rows.arms[kept], rows.propensities[kept], rows.rewards[kept]
    return inference.weighted_difference(
        *columns, limits, confidence, floor=_floor(state), names=(arm, other), where=in_words(features, where or {})
    )


def _floor(state: State) -> float:
    """A probability below which no arm that could be chosen has ever been."""
    return max(state.least_floor, state.least_even / len(state.names))


def _remembered(state: State, pair: tuple[int, int]) -> Decided:
    """The decisions that the ledger remembers."""
    answered = state.ledger.answered
    rows = [(number, one, one.context) for number, one in answered.items() if one.reward is not None]
    could = {one.could for _, _, one in rows if one is not None}
    able = {bits for bits in could if all(could_choose(bits, i) for i in pair)}
    kept = sorted((number, one, context) for number, one, context in rows if context and context.could in able)
    places = {pair[0]: 0.0, pair[1]: 1.0}
    encoded = np.frombuffer(b"".join(context.encoded for _, _, context in kept))
    return Decided(
        np.array([places.get(one.arm, 2.0) for _, one, _ in kept]),
        np.array([one.propensity for _, one, _ in kept]),
        np.array([one.reward for _, one, _ in kept], dtype=float),
        encoded.reshape(len(kept), state.features().size),
    )


def _logged(state: State, log: Journal | None, pair: tuple[Any, Any]) -> Decided:
    """The decisions of the bandit's log, where there are more than it remembers."""
    reason = f"the bandit remembers its last {REMEMBERED:,} answers only, and there were more"
    if not isinstance(log, LogWriter):
        raise ValueError(f"difference needs a log of this bandit: {reason}")
    if not state.settings.log_context:
        raise ValueError(f"difference needs the contexts in the log, got log_context=False: {reason}")
    if len({type(name) for name in state.names}) > 1:
        raise ValueError(f"difference needs arms of one type to find them in the log, got {state.names[:8]}: {reason}")
    frame = log.frame()
    columns = [frame[name].to_list() for name in ("arm", "propensity", "reward", "among", "context")]
    places = {pair[0]: 0.0, pair[1]: 1.0}
    rows = [
        (places.get(arm, 2.0), propensity, reward, context)
        for arm, propensity, reward, among, context in zip(*columns, strict=True)
        if reward is not None and context is not None and pair[0] in among and pair[1] in among
    ]
    arms, propensities, rewards, encoded = zip(*rows, strict=True) if rows else ((), (), (), ())
    table = np.array(encoded, dtype=float).reshape(len(rows), state.features().size)
    return Decided(np.array(arms), np.array(propensities), np.array(rewards, dtype=float), table)


def in_words(features: Features, where: Mapping[str, Any]) -> str:
    """A segment as people say it: device = phone, hour from 9 to 17."""
    return ", ".join(f"{name} {_wanted(value, name in features.numbers)}" for name, value in where.items())


def _wanted(value: Any, measured: bool) -> str:
    if measured and isinstance(value, tuple | list):
        words = "from", "up to" if value[0] is None else "to"
        ends = [f"{word} {number(end)}" for word, end in zip(words, value, strict=True) if end is not None]
        return " ".join(ends) or "known"
    if isinstance(value, tuple | list | set | frozenset):
        return f"= {' or '.join(map(str, value))}"
    return "missing" if value is None else f"= {value}"
