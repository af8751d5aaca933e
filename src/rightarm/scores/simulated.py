"""A policy's formulas as compiled functions: one loop for each kind of use, the same for all policies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rightarm.formula import Formula, Program, define, program
from rightarm.formula.compile import attempting, pointer
from rightarm.scores.inputs import State, one_each
from rightarm.scores.policy import Policy
from rightarm.scores.rules import FAR, location_and_scale
from rightarm.scores.score import PROBE_ROUND
from rightarm.types import F64

PER_ROUND = frozenset({"t", "arms"})  # what is the same for all arms and replications of a round

# Arrays: pulls, mean, z and out are arms × lanes, memory is columns × arms × lanes, best and worst are lanes, and
# top and bottom (the extremes of each column) columns × lanes.
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
distance = 1.0  # stands in `affine_lanes` for the distance between its two readings
attempts = False  # stands in `score_block` for whether `score` only attempts what `surely` does
LEARN_ARGUMENTS = "t, pulls, mean, reward, probability, arms, p, memory, k, lane, out"


def score_block(
    t: float,
    arms: float,
    pulls: Any,
    mean: Any,
    z: Any,
    best: Any,
    worst: Any,
    memory: Any,
    top: Any,
    bottom: Any,
    numbers: Any,
    out: Any,
) -> None:
    """Scores of a block of arms × lanes; a row of it is one arm in all replications."""
    p = common(t, arms, numbers)
    for k in range(out.shape[0]):
        for lane in range(out.shape[1]):
            noise = np.float64(z[k, lane])
            out[k, lane] = score(
                t, pulls[k, lane], mean[k, lane], noise, best[lane], worst[lane], arms, p, memory, top, bottom, k, lane
            )
        if attempts:
            for lane in range(out.shape[1]):
                if out[k, lane] != out[k, lane]:
                    n, m, noise = pulls[k, lane], mean[k, lane], np.float64(z[k, lane])
                    out[k, lane] = surely(
                        t, n, m, noise, best[lane], worst[lane], arms, p, memory, top, bottom, k, lane
                    )


def affine_lanes(
    early: float,
    late: float,
    arms: float,
    pulls: Any,
    mean: Any,
    memory: Any,
    numbers: Any,
    location: Any,
    scale: Any,
) -> None:
    """Location and scale of one arm's score in all replications; either z or the round makes the difference.

    No such score asks for the extremes of columns, so anything may stand in their place.
    """
    p, q, z = common(early, arms, numbers), common(late, arms, numbers), FAR
    for lane in range(location.size):
        n, m = pulls[lane], mean[lane]
        at_early = score(early, n, m, 0.0, 0.0, 0.0, arms, p, memory, memory, memory, 0, lane)
        at_late = score(late, n, m, z, 0.0, 0.0, arms, q, memory, memory, memory, 0, lane)
        location[lane], scale[lane] = location_and_scale(at_early, at_late, distance)


def learn_lanes(
    t: float,
    arms: float,
    pulls: Any,
    mean: Any,
    reward: Any,
    probability: Any,
    memory: Any,
    numbers: Any,
    out: Any,
) -> None:
    """The columns of one arm in all replications after a pull: columns × lanes."""
    p = common(t, arms, numbers)
    for lane in range(out.shape[1]):
        learn(t, pulls[lane], mean[lane], reward[lane], probability[lane], arms, p, memory, 0, lane, out)


def common(t: float, arms: float, numbers: Any) -> tuple[float, ...]:
    """Stands in the templates for the parameters' values in round t."""
    raise NotImplementedError


def score(*arguments: Any) -> float:
    """Stands in the templates for the policy's formula, of SCORE_ARGUMENTS."""
    raise NotImplementedError


def surely(*arguments: Any) -> float:
    """Stands in `score_block` for the policy's formula where the attempt has failed, of SCORE_ARGUMENTS."""
    raise NotImplementedError


def learn(*arguments: Any) -> tuple[float, ...]:
    """Stands in `learn_lanes` for putting the next values of the columns in their places, of LEARN_ARGUMENTS."""
    raise NotImplementedError


def put(value: float, out: Any, column: int, lane: int) -> float:
    """One value of `learn`; they are put one by one, because a loop over a tuple would not be vectorised."""
    out[column, lane] = value
    return 0.0


def _check_arm_by_arm(policy: Policy) -> None:
    """An arm's score must be its own: compiled code sees one arm at a time, where a sum over arms is a sum over one."""
    random = np.random.default_rng(20170529)
    pulls, means, z = random.integers(1, 21, 4).astype(float), random.random(4), random.random(4)
    columns = {name: random.random(4) for name in policy.memory_names}
    inputs = State(PROBE_ROUND, pulls, means, columns, None, arms=4).inputs(z)

    def values(formula: Formula, of: slice) -> F64:
        own = {name: value[of] if np.ndim(value) else value for name, value in inputs.items()}
        return one_each(policy.family.name, formula.evaluate(own), means[of].shape)

    for formula in (policy, policy.explore):
        if formula is None:
            continue
        with np.errstate(all="ignore"):
            together, again = values(formula, slice(None)), values(formula, slice(None))
            alone = np.concatenate([values(formula, slice(i, i + 1)) for i in range(pulls.size)])
        if not np.array_equal(together, again, equal_nan=True):
            raise TypeError(f"{policy.family.name} gives another score each time; ask for noise by name instead")
        if not np.allclose(together, alone, rtol=1e-9, equal_nan=True):
            raise TypeError(
                f"{policy.family.name} mixes the arms in a sum, mean or maximum, which cannot be compiled: "
                f"ask for t (the pulls of all arms and one), best, worst or arms instead"
            )


def _check_lessons(policy: Policy) -> None:
    """Every column's formula must give one number; here the error can say which does not."""
    inputs = {"t": PROBE_ROUND, "arms": 4.0, "pulls": 5.0, "mean": 0.5, "variance": 0.25, "reward": 0.5}
    inputs |= {"probability": 0.5, **dict.fromkeys(policy.columns, 0.25)}
    for place, parts in (("learn", policy.learn), ("keep", policy.keep)):
        for name, part in parts.items():
            with np.errstate(all="ignore"):
                value = part.evaluate(inputs)
            if isinstance(value, tuple | list) or np.ndim(value):
                raise TypeError(f"{policy.family.name}: {place}[{name!r}] must give one number, got {value!r:.200}")


def check_formulas(policy: Policy) -> None:
    """Raise, and say why, if a policy's formulas would compile to something else than they say, or have no value."""
    try:
        _check_arm_by_arm(policy)
        _check_lessons(policy)
    except ArithmeticError as error:  # a parameter is so large or so small that a formula divides by zero or overflows
        raise ValueError(f"{policy!r} has no value in round {PROBE_ROUND:g}: {error}") from error


class Compiled(NamedTuple):
    """A policy's compiled functions and the numbers that all of them take; what it does not need is a blank."""

    score: Any
    affine: Any
    explore: Any
    learn: Any
    numbers: F64


def compiled_policy(policy: Policy, by_arm: bool | None = None) -> Compiled:
    """The compiled functions, the same for all values of the parameters.

    ``by_arm`` is whether location and scale are kept between an arm's pulls; if they can be, unless given.
    """
    check_formulas(policy)
    by_arm = policy.by_arm if by_arm is None else by_arm
    if policy.weighted and not policy.shifted:
        raise TypeError(f"{policy.family.name}: learn asks for probability, so the score must be a location + z")
    columns = policy.memory_names
    names = {name: f"memory[{column}, k, lane]" for column, name in enumerate(columns)}
    names |= {f"best_{name}": f"top[{column}, lane]" for column, name in enumerate(columns)}
    names |= {f"worst_{name}": f"bottom[{column}, lane]" for column, name in enumerate(columns)}
    explored = [] if policy.explore is None else [policy.explore]
    parts = program([policy, *explored, *policy.learn.values(), *policy.keep.values()], PER_ROUND, names)
    scoring, lessons = parts.expressions[0], parts.expressions[1 + len(explored) :]
    exploring = parts.expressions[1] if explored else "0.0"
    learning = "".join(f"put({lesson}, out, {column}, lane), " for column, lesson in enumerate(lessons))
    subject = f"the policy {policy.family.name}"
    apart = FAR if policy.steady else 1.0
    return Compiled(
        pointer(subject, score_block, SCORE, **_attempted(parts, "0.0" if by_arm else scoring)),
        pointer(subject, affine_lanes, AFFINE, distance=apart, **_score(parts, scoring if by_arm else "0.0")),
        pointer(subject, score_block, SCORE, **_attempted(parts, exploring)),
        pointer(subject, learn_lanes, LEARN, common=common_of(parts), learn=_learn(parts, f"({learning})")),
        np.array(parts.numbers, dtype=float),
    )


def common_of(parts: Program) -> Any:
    """The parameters' values of a round, as a function of the round and the number of arms."""
    values = "".join(f"{value}, " for value in parts.common)
    return define("common", "t, arms, numbers", f"({values})", parts.functions)


def _score(parts: Program, expression: str) -> dict[str, Any]:
    if expression == "0.0":  # a blank, the same for all policies
        return {
            "common": define("common", "t, arms, numbers", "()", {}),
            "score": define("score", SCORE_ARGUMENTS, "0.0", {}),
        }
    return {"common": common_of(parts), "score": define("score", SCORE_ARGUMENTS, expression, parts.functions)}


def _attempted(parts: Program, expression: str) -> dict[str, Any]:
    """A score for `score_block`: attempted first, where a function of the formula can be."""
    surely = _score(parts, expression)
    quick = {name: attempting(function) for name, function in parts.functions.items()}
    attempts = expression != "0.0" and any(quick[name] is not own for name, own in parts.functions.items())
    score = define("score", SCORE_ARGUMENTS, expression, quick) if attempts else surely["score"]
    return surely | {"score": score, "surely": surely["score"], "attempts": attempts}


def _learn(parts: Program, expression: str) -> Any:
    return define("learn", LEARN_ARGUMENTS, expression, {**parts.functions, "put": put})
