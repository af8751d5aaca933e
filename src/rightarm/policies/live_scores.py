"""A policy's formulas compiled for live decisions: the law of every arm's score, and what an arm learns from a reward.

The state is a table with a column for each arm and a row for each thing that formulas ask for: pulls, mean, variance,
and what the policy has it remember.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from rightarm.estimators.compiled_estimators import GAP_VARIANCE, MEAN, MEMORY, PULLS, VARIANCE
from rightarm.formula import Formula
from rightarm.formula.compile import Untyped, define, function
from rightarm.formula.syntax import Function
from rightarm.noise.law import score_law
from rightarm.policies.compiled_scores import Common
from rightarm.policies.family import Part
from rightarm.policies.inputs import FAR, FORGOTTEN, draw, location_and_scale, mix, share_untried
from rightarm.policies.policy import Policy
from rightarm.policies.program import check_formulas, column_places, program
from rightarm.types import F64, I64

__all__ = ["MEAN", "MEMORY", "PULLS", "VARIANCE", "Live", "live_policy"]

LAW = "boolean(float64, float64[:,::1], int64[::1], float64[::1], float64[::1], float64[::1], float64[::1])"
LESSON = "void(float64, float64[:,::1], int64, float64, float64, float64, float64[::1])"
ARGUMENTS = "t, pulls, mean, best, worst, arms, p, memory, top, bottom, k"
LEARN_ARGUMENTS = "t, pulls, mean, reward, probability, arms, p, memory, k, new"


class ScoreRows(NamedTuple):
    """The number of rows of each kind in the memory of live formulas, in this order."""

    columns: int  # what an arm remembers
    kept: int  # what is computed of pulls and mean
    variance: int  # 1 if a formula asks for it
    gap_variance: int  # 1 if a formula asks for it


def law_of_scores(
    common: Common, law: Function, explore: Function, keep: Function, rows: ScoreRows, must_pull: bool
) -> Function:
    """Return the loop for the two numbers of each member's law, and the probability with which it is explored.

    It returns False, and finds nothing, if a member must be pulled before the formulas can be used.
    """
    columns, kept, varies, gaps = rows

    def law_of_scores(t: float, table: F64, members: I64, numbers: F64, first: F64, second: F64, explored: F64) -> bool:
        count = members.size
        arms = np.float64(count)
        pulls = table[PULLS]
        mean = table[MEAN]
        if must_pull:
            for i in range(count):
                if pulls[members[i]] < FORGOTTEN:
                    return False
        p = common(t, arms, numbers)
        memory = np.empty((columns + kept + varies + gaps, count))
        best = -np.inf
        worst = np.inf
        for i in range(count):
            k = members[i]
            best = max(best, mean[k])
            worst = min(worst, mean[k])
            for column in range(columns):
                memory[column, i] = table[MEMORY + column, k]
            if varies:
                memory[columns + kept, i] = table[VARIANCE, k]
            if gaps:
                memory[columns + kept + varies, i] = table[GAP_VARIANCE, k]
            keep(t, pulls[k], mean[k], 0.0, 0.0, arms, p, memory, memory, memory, i)
        top = np.empty(memory.shape[0])
        bottom = np.empty(memory.shape[0])
        for column in range(memory.shape[0]):  # written out: max() and min() of a row take long to compile
            top[column] = -np.inf
            bottom[column] = np.inf
            for i in range(count):
                top[column] = max(top[column], memory[column, i])
                bottom[column] = min(bottom[column], memory[column, i])
        for i in range(count):
            k = members[i]
            first[i], second[i] = law(t, pulls[k], mean[k], best, worst, arms, p, memory, top, bottom, i)
            explored[i] = explore(t, pulls[k], mean[k], best, worst, arms, p, memory, top, bottom, i)
        return True

    return law_of_scores


def lesson(common: Common, learn: Function, rows: ScoreRows) -> Function:
    """Return the function that puts the next values of an arm's columns in their places."""
    columns, kept, varies, _ = rows

    def lesson(t: float, table: F64, arm: int, reward: float, probability: float, arms: float, numbers: F64) -> None:
        p = common(t, arms, numbers)
        memory = np.empty((columns + kept + varies, 1))
        new = np.empty((columns, 1))
        for column in range(columns):
            memory[column, 0] = table[MEMORY + column, arm]
        if varies:
            memory[columns + kept, 0] = table[VARIANCE, arm]
        learn(t, table[PULLS, arm], table[MEAN, arm], reward, probability, arms, p, memory, 0, new)
        for column in range(columns):
            table[MEMORY + column, arm] = new[column, 0]

    return lesson


class Live(NamedTuple):
    """A policy's compiled functions for live decisions, and the numbers that they take.

    ``lesson`` is None where an arm remembers nothing.
    """

    law: Untyped
    lesson: Untyped
    numbers: F64


@functools.lru_cache(maxsize=256)
def live_policy(policy: Policy) -> Live:
    """Compile a policy's formulas, once for all values of the parameters; to find them again takes milliseconds.

    Whatever a live decision needs is compiled when this returns.
    """
    check_formulas(policy)
    law, numbers_of = policy.stated_law
    explored: list[Formula] = [] if policy.explore is None else [policy.explore]
    formulas = [numbers_of, *explored, *policy.learn.values(), *policy.keep.values()]
    parts = program(formulas, column_places(policy.memory_names))
    stated, *texts = parts.expressions
    functions: dict[str, Function] = {**parts.functions, "line": location_and_scale}
    if not isinstance(numbers_of, Part):  # the score itself: location + scale·z
        functions["score"] = define("score", f"z, {ARGUMENTS}", stated, parts.functions)
        stated = f"line(score(0.0, {ARGUMENTS}), score({FAR}, {ARGUMENTS}), {FAR})"
    exploring = texts.pop(0) if explored else "0.0"
    columns = len(policy.columns)
    learning = [f"new[{column}, 0] = {text}" for column, text in enumerate(texts[:columns])]
    keeping = [f"memory[{row}, k] = {text}" for row, text in enumerate(texts[columns:], start=columns)]
    rows = ScoreRows(columns, len(policy.keep), int(policy.asks_variance), int(policy.asks_gap_variance))
    common = parts.define_common()
    loop = law_of_scores(
        common,
        law=define("law", ARGUMENTS, stated, functions),
        explore=define("explore", ARGUMENTS, exploring, functions),
        keep=define("keep", ARGUMENTS, "None", functions, keeping),
        rows=rows,
        must_pull=policy.needs_pulls,
    )
    subject = f"the policy {policy.family.name}"
    learned = None
    if columns:
        learn = define("learn", LEARN_ARGUMENTS, "None", functions, learning)
        learned = function(subject, lesson(common, learn, rows), LESSON)
    _compile_draws(score_law(law))
    return Live(function(subject, loop, LAW), learned, np.array(parts.numbers, dtype=float))


def _compile_draws(law: Untyped) -> None:
    """Compile, by calling them, the kernel of a law and the functions that draw from what it finds."""
    chance = np.empty(1)
    heights = np.empty(1)
    one = np.ones(1)
    law.cached_solver()(one, one, chance)
    chance[0] = 1.0
    mix(chance, np.zeros(1), 0.0, heights)
    draw(chance, heights, 0.5)
    none = np.zeros(1, dtype=np.int64)
    share_untried(chance, none, none, heights)
