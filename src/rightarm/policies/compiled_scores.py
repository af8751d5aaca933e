"""A policy's formulas compiled for simulations.

There is one loop for each kind of use, the same for all policies: a function takes the formulas, already flattened into
functions of numbers, and returns the loop around them. Arrays: pulls, mean, z and out are arms × lanes, memory is
columns × arms × lanes, best and worst are lanes, top and bottom (the extremes of each column) columns × lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rightarm.formula.compile import Untyped, attempting, define, pointer
from rightarm.formula.syntax import Function
from rightarm.policies.inputs import FAR, location_and_scale
from rightarm.policies.policy import Policy
from rightarm.policies.program import Program, check_formulas, column_places, program
from rightarm.types import F32, F64

Score = Callable[..., float]  # of SCORE_ARGUMENTS
Common = Callable[[float, float, F64], tuple[float, ...]]  # the parameters' values in a round, see `Program`

SCORE = (
    "void(float64, float64, float64[:,::1], float64[:,::1], float32[:,::1], float64[::1], float64[::1],"
    " float64[:,:,::1], float64[:,::1], float64[:,::1], float64[::1], float64[:,::1])"
)
AFFINE = (
    "void(float64, float64, float64, float64[::1], float64[::1], float64[:,:,::1], float64[::1], float64[::1],"
    " float64[::1])"
)
LEARN = (
    "void(float64, float64, float64[::1], float64[::1], float64[::1], float64[::1], float64[:,:,::1], float64[::1],"
    " float64[:,::1])"
)
SCORE_ARGUMENTS = "t, pulls, mean, z, best, worst, arms, p, memory, top, bottom, k, lane"
LEARN_ARGUMENTS = "t, pulls, mean, reward, probability, arms, p, memory, k, lane, out"


def score_block(common: Common, score: Score, attempt: Score) -> Function:
    """Return the loop for the scores of a block of arms × lanes; a row of it is one arm in all replications.

    ``attempt`` is quicker than ``score``, and gives the same number or NaN; it may be the score itself.
    """
    may_fail = attempt is not score

    def score_block(
        t: float,
        arms: float,
        pulls: F64,
        mean: F64,
        z: F32,
        best: F64,
        worst: F64,
        memory: F64,
        top: F64,
        bottom: F64,
        numbers: F64,
        out: F64,
    ) -> None:
        p = common(t, arms, numbers)
        for k in range(out.shape[0]):
            for lane in range(out.shape[1]):
                n = pulls[k, lane]
                m = mean[k, lane]
                noise = np.float64(z[k, lane])
                out[k, lane] = attempt(t, n, m, noise, best[lane], worst[lane], arms, p, memory, top, bottom, k, lane)
            if may_fail:
                for lane in range(out.shape[1]):
                    if out[k, lane] != out[k, lane]:
                        n = pulls[k, lane]
                        m = mean[k, lane]
                        noise = np.float64(z[k, lane])
                        out[k, lane] = score(
                            t, n, m, noise, best[lane], worst[lane], arms, p, memory, top, bottom, k, lane
                        )

    return score_block


def affine_lanes(common: Common, score: Score, distance: float) -> Function:
    """Return the loop for location and scale of one arm's score in all replications.

    Either z or the round makes the difference, by ``distance``. No such score asks for the extremes of columns, so
    anything may stand in their place.
    """

    def affine_lanes(
        early: float,
        late: float,
        arms: float,
        pulls: F64,
        mean: F64,
        memory: F64,
        numbers: F64,
        location: F64,
        scale: F64,
    ) -> None:
        p = common(early, arms, numbers)
        q = common(late, arms, numbers)
        z = FAR
        for lane in range(location.size):
            n = pulls[lane]
            m = mean[lane]
            at_early = score(early, n, m, 0.0, 0.0, 0.0, arms, p, memory, memory, memory, 0, lane)
            at_late = score(late, n, m, z, 0.0, 0.0, arms, q, memory, memory, memory, 0, lane)
            location[lane], scale[lane] = location_and_scale(at_early, at_late, distance)

    return affine_lanes


def learn_lanes(common: Common, learn: Function) -> Function:
    """Return the loop for the columns of one arm in all replications after a pull: columns × lanes."""

    def learn_lanes(
        t: float,
        arms: float,
        pulls: F64,
        mean: F64,
        reward: F64,
        probability: F64,
        memory: F64,
        numbers: F64,
        out: F64,
    ) -> None:
        p = common(t, arms, numbers)
        for lane in range(out.shape[1]):
            learn(t, pulls[lane], mean[lane], reward[lane], probability[lane], arms, p, memory, 0, lane, out)

    return learn_lanes


class Compiled(NamedTuple):
    """A policy's compiled functions and the numbers that all of them take; a blank stands for what it does not need."""

    score: Untyped
    affine: Untyped
    explore: Untyped
    learn: Untyped
    numbers: F64


def compiled_policy(policy: Policy, by_arm: bool | None = None) -> Compiled:
    """Compile a policy's formulas, once for all values of the parameters.

    ``by_arm`` is whether location and scale are kept between an arm's pulls; if they can be, unless given.
    """
    check_formulas(policy)
    by_arm = policy.by_arm if by_arm is None else by_arm
    if policy.weighted and not policy.shifted:
        raise TypeError(f"{policy.family.name}: learn asks for probability, so the score must be a location + z")
    explored = [] if policy.explore is None else [policy.explore]
    formulas = [policy, *explored, *policy.learn.values(), *policy.keep.values()]
    parts = program(formulas, column_places(policy.memory_names, ", lane"))
    scoring = parts.expressions[0]
    exploring = parts.expressions[1] if explored else None
    lessons = parts.expressions[1 + len(explored) :]
    subject = f"the policy {policy.family.name}"
    return Compiled(
        _compile_block(subject, parts, None if by_arm else scoring),
        _compile_lines(subject, parts, scoring if by_arm else None, FAR if policy.steady else 1.0),
        _compile_block(subject, parts, exploring),
        _compile_lessons(subject, parts, lessons),
        np.array(parts.numbers, dtype=float),
    )


def _compile_block(subject: str, parts: Program, expression: str | None) -> Untyped:
    """Compile a score, attempted first where a function of the formula can be; without a score, a blank."""
    if expression is None:
        parts = Program()
    score = define("score", SCORE_ARGUMENTS, expression or "0.0", parts.functions)
    attempt = score
    quick = {name: attempting(function) for name, function in parts.functions.items()}
    if any(quick[name] is not function for name, function in parts.functions.items()):
        attempt = define("score", SCORE_ARGUMENTS, expression or "0.0", quick)
    return pointer(subject, score_block(parts.define_common(), score, attempt), SCORE)


def _compile_lines(subject: str, parts: Program, expression: str | None, distance: float) -> Untyped:
    """Compile location and scale of a score; without a score, a blank."""
    if expression is None:
        parts = Program()
    score = define("score", SCORE_ARGUMENTS, expression or "0.0", parts.functions)
    return pointer(subject, affine_lanes(parts.define_common(), score, distance), AFFINE)


def _compile_lessons(subject: str, parts: Program, lessons: tuple[str, ...]) -> Untyped:
    """Compile what an arm learns from a pull."""
    # One statement a column, because a loop over a tuple would not be vectorised.
    statements = [f"out[{column}, lane] = {lesson}" for column, lesson in enumerate(lessons)]
    learn = define("learn", LEARN_ARGUMENTS, "None", parts.functions, statements)
    return pointer(subject, learn_lanes(parts.define_common(), learn), LEARN)
