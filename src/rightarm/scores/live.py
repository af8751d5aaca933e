"""A policy's formulas compiled for live decisions: the law of every arm's score, and what an arm learns from a reward.

The state is a table with a column for each arm and a row for each thing that formulas see of it: pulls, mean, variance,
and what the policy has it remember.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from rightarm.estimators.compiled import GAP_VARIANCE, MEAN, MEMORY, PULLS, VARIANCE
from rightarm.formula import Formula, define, program
from rightarm.formula.compile import function
from rightarm.propensity import score_law
from rightarm.scores.family import Part
from rightarm.scores.policy import Policy
from rightarm.scores.rules import FAR, FORGOTTEN, draw, location_and_scale, mix, share_untried
from rightarm.scores.simulated import PER_ROUND, check_formulas, common_of, put
from rightarm.types import F64

__all__ = ["MEAN", "MEMORY", "PULLS", "VARIANCE", "Live", "live_policy"]

LAW = "boolean(float64, float64[:,::1], int64[::1], float64[::1], float64[::1], float64[::1], float64[::1])"
LESSON = "void(float64, float64[:,::1], int64, float64, float64, float64, float64[::1])"
ARGUMENTS = "t, pulls, mean, best, worst, arms, p, memory, top, bottom, k"


# Numbers that stand in the templates for those of a policy: the columns that an arm remembers, those that are computed
# of pulls and mean, 1 if a formula asks for the variance, 1 if it asks for that of the gap (these two are the last
# columns), and whether every arm must be pulled once.
columns, kept, varies, gaps, must_pull = 0, 0, 0, 0, False


def law_of_scores(t: float, table: Any, members: Any, numbers: Any, first: Any, second: Any, explored: Any) -> bool:
    """The two numbers of each member's law, and the probability with which it is explored.

    False, and nothing is found, if a member must be pulled before the formulas can be used.
    """
    arms, count = np.float64(members.size), members.size
    pulls, mean = table[PULLS], table[MEAN]
    if must_pull:
        for i in range(count):
            if pulls[members[i]] < FORGOTTEN:
                return False
    p = common(t, arms, numbers)
    memory = np.empty((columns + kept + varies + gaps, count))
    best, worst = -np.inf, np.inf
    for i in range(count):
        k = members[i]
        best, worst = max(best, mean[k]), min(worst, mean[k])
        for column in range(columns):
            memory[column, i] = table[MEMORY + column, k]
        if varies:
            memory[columns + kept, i] = table[VARIANCE, k]
        if gaps:
            memory[columns + kept + varies, i] = table[GAP_VARIANCE, k]
        keep(t, pulls[k], mean[k], 0.0, 0.0, arms, p, memory, memory, memory, i)
    top, bottom = np.empty(memory.shape[0]), np.empty(memory.shape[0])
    for column in range(memory.shape[0]):  # written out: max() and min() of a row take long to compile
        top[column], bottom[column] = -np.inf, np.inf
        for i in range(count):
            top[column], bottom[column] = max(top[column], memory[column, i]), min(bottom[column], memory[column, i])
    for i in range(count):
        k = members[i]
        first[i], second[i] = law(t, pulls[k], mean[k], best, worst, arms, p, memory, top, bottom, i)
        explored[i] = explore(t, pulls[k], mean[k], best, worst, arms, p, memory, top, bottom, i)
    return True


def lesson(t: float, table: Any, arm: int, reward: float, probability: float, arms: float, numbers: Any) -> None:
    """The next values of an arm's columns, in their places."""
    p = common(t, arms, numbers)
    memory, new = np.empty((columns + kept + varies, 1)), np.empty((columns, 1))
    for column in range(columns):
        memory[column, 0] = table[MEMORY + column, arm]
    if varies:
        memory[columns + kept, 0] = table[VARIANCE, arm]
    learn(t, table[PULLS, arm], table[MEAN, arm], reward, probability, arms, p, memory, 0, new)
    for column in range(columns):
        table[MEMORY + column, arm] = new[column, 0]


def common(t: float, arms: float, numbers: Any) -> tuple[float, ...]:
    """Stands in the templates for the parameters' values in round t."""
    raise NotImplementedError


def law(*arguments: Any) -> tuple[float, float]:
    """Stands for the two numbers of the score's law, of ARGUMENTS."""
    raise NotImplementedError


def explore(*arguments: Any) -> float:
    """Stands for the policy's exploration, of ARGUMENTS."""
    raise NotImplementedError


def keep(*arguments: Any) -> tuple[float, ...]:
    """Stands for putting what is computed of pulls and mean beside the columns, of ARGUMENTS."""
    raise NotImplementedError


def learn(*arguments: Any) -> tuple[float, ...]:
    """Stands for putting the next values of the columns in ``new``."""
    raise NotImplementedError


class Live(NamedTuple):
    """A policy's compiled functions for live decisions, and the numbers that they take.

    ``lesson`` is None where an arm remembers nothing.
    """

    law: Any
    lesson: Any
    numbers: F64


@functools.lru_cache(maxsize=256)
def live_policy(policy: Policy) -> Live:
    """The compiled functions, the same for all values of the parameters; to find them again takes milliseconds.

    Whatever a live decision needs is compiled when this returns.
    """
    check_formulas(policy)
    law, numbers_of = policy.stated_law
    names = policy.memory_names
    places = {name: f"memory[{column}, k]" for column, name in enumerate(names)}
    places |= {f"best_{name}": f"top[{column}]" for column, name in enumerate(names)}
    places |= {f"worst_{name}": f"bottom[{column}]" for column, name in enumerate(names)}
    explored: list[Formula] = [] if policy.explore is None else [policy.explore]
    parts = program([numbers_of, *explored, *policy.learn.values(), *policy.keep.values()], PER_ROUND, places)
    functions, texts = {**parts.functions, "put": put, "line": location_and_scale}, list(parts.expressions)
    stated = texts.pop(0)
    if not isinstance(numbers_of, Part):  # the score itself: location + scale·z
        functions["score"] = define("score", f"z, {ARGUMENTS}", stated, parts.functions)
        stated = f"line(score(0.0, {ARGUMENTS}), score({FAR}, {ARGUMENTS}), {FAR})"
    exploring = texts.pop(0) if explored else "0.0"
    learning = [f"put({text}, new, {column}, 0), " for column, text in enumerate(texts[: len(policy.columns)])]
    keeping = [
        f"put({text}, memory, {len(policy.columns) + column}, k), "
        for column, text in enumerate(texts[len(policy.columns) :])
    ]
    sizes = {"columns": len(policy.columns), "kept": len(policy.keep), "varies": int(policy.asks_variance)}
    sizes["gaps"] = int(policy.asks_gap_variance)
    shared: dict[str, Any] = {"common": common_of(parts), **sizes}
    subject = f"the policy {policy.family.name}"
    _compile_draws(score_law(law))
    return Live(
        function(
            subject,
            law_of_scores,
            LAW,
            law=define("law", ARGUMENTS, stated, functions),
            explore=define("explore", ARGUMENTS, exploring, functions),
            keep=define("keep", ARGUMENTS, f"({''.join(keeping)})", functions),
            must_pull=policy.needs_pulls,
            **shared,
        ),
        function(
            subject,
            lesson,
            LESSON,
            learn=define(
                "learn",
                "t, pulls, mean, reward, probability, arms, p, memory, k, new",
                f"({''.join(learning)})",
                functions,
            ),
            **shared,
        )
        if policy.columns
        else None,
        np.array(parts.numbers, dtype=float),
    )


def _compile_draws(law: Any) -> None:
    """Compile, by calling them, the kernel of a law and the functions that draw from what it finds."""
    chance, heights, one = np.empty(1), np.empty(1), np.ones(1)
    law.keeping()(one, one, chance)
    chance[0] = 1.0
    mix(chance, np.zeros(1), 0.0, heights)
    draw(chance, heights, 0.5)
    none = np.zeros(1, dtype=np.int64)
    share_untried(chance, none, none, heights)
