"""Runs: replications of one policy on one problem in a block of lanes, played on slice by slice.

What follows from the policy and the problem alone is a `Plan`: it is derived and compiled once, and the same for all
their runs. A `Run` has the arrays of some replications. The rounds themselves are in `rightarm.simulation.rounds`.
"""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from rightarm import noise
from rightarm.estimators.compiled_estimators import no_estimator, simulated_estimator
from rightarm.estimators.reward_statistics import COUNT, OWN, SPREAD, SUM
from rightarm.formula import Formula
from rightarm.formula.identity import bytecode_hash
from rightarm.noise.law import compiled_law
from rightarm.policies.compiled_scores import compiled_policy
from rightarm.policies.inputs import FORGOTTEN, ArmsState
from rightarm.policies.policy import Policy
from rightarm.problems import Problem
from rightarm.problems.random import AnyProblem, RandomProblem
from rightarm.simulation.compiled_problems import compiled_reward, reward_numbers
from rightarm.simulation.context_engine import check_pair
from rightarm.simulation.lanes import (
    Bounds,
    Choice,
    Clock,
    Estimates,
    Formulas,
    Lanes,
    Noise,
    Pull,
    Setting,
    Statistics,
    Uses,
    Weights,
)
from rightarm.simulation.rounds import play
from rightarm.streams import initial_streams
from rightarm.types import F64, I64

NOISE_BLOCK = 16_384  # draws made ahead, in float32: 64 KiB, which stays in the second-level cache
MOST_KEPT = 2**28  # rewards of all replications that are played side by side: at least four gigabytes
SLICE = 8_000_000  # arm-rounds between two looks at the clock: some hundredths of a second
MOST_PLANS = 256  # that are remembered


@dataclass(frozen=True)
class Start:
    """The arms' statistics from which a simulation starts; nothing pulled yet unless given.

    >>> Start(pulls=(1_000_000_000, 5), means=(0.5, 0.25)).rounds
    1000000005
    """

    pulls: tuple[int, ...]
    means: tuple[float, ...]
    memory: tuple[tuple[str, tuple[float, ...]], ...] = ()  # columns of a policy's own, by name
    variances: tuple[float, ...] = ()  # for policies that ask for them

    @classmethod
    def of_nothing(cls, arms: int) -> Start:
        """Return the start of arms that were never pulled."""
        return cls((0,) * arms, (0.0,) * arms)

    @property
    def rounds(self) -> int:
        """The rounds already played."""
        return sum(self.pulls)

    def specification(self) -> dict[str, Any]:
        """Return what `simulate` takes to start from it again, as plain data."""
        variances = {"variances": list(self.variances)} if self.variances else {}
        return {"pulls": list(self.pulls), "means": list(self.means), "memory": dict(self.memory) or None, **variances}


class CompiledRewards(NamedTuple):
    """The data that compiled rewards need, for one problem or for a problem in each lane."""

    arm_numbers: F64  # parameters × arms, or × arms·lanes
    gaps: F64  # arms × 1, or × lanes
    limits: F64  # the smallest and the largest reward that the policy is for; empty if there can be no others


class Plan:
    """A plan for a policy on a problem: everything that is the same for all their runs.

    Formulas are compiled when the first run asks for them.
    """

    def __init__(self, policy: Policy, problem: AnyProblem) -> None:
        check_pair(policy, problem)
        self.policy = policy
        self.problem = problem
        self.functions = (*_functions(policy), *_functions(problem))
        self.code = bytecode_hash(*self.functions)
        self.label = str(policy)
        self.title = str(problem)
        self.policy_specification = policy.specification()
        self.problem_specification = problem.specification()
        self.problem_inputs = problem.inputs

    @functools.cached_property
    def uses(self) -> Uses:
        """Return the parts of a round that the formulas make use of."""
        policy = self.policy
        return Uses(
            noisy=policy.noise is not None,
            shared=isinstance(policy.noise, noise.Shared),
            by_arm=policy.by_arm,
            clocked=policy.clocked,
            lazy=policy.lazy,
            weighted=policy.weighted,
            explores=policy.explore is not None,
            learns=bool(policy.memory_names),
            extremes=bool(policy.decision_inputs & {"best", "worst", "gap_variance"}),
            unsure=policy.asks_gap_variance,
            inline=policy.estimator.plain and not policy.asks_variance,
            forgets=policy.estimator.forgets,
            weighs=policy.estimator.weighs,
            uniform="u" in self.problem_inputs,
            second="v" in self.problem_inputs,
            normal="w" in self.problem_inputs,
        )

    @functools.cached_property
    def _compiled(self) -> tuple[Formulas, F64]:
        policy = self.policy
        compiled = compiled_policy(policy)
        estimator = no_estimator() if self.uses.inline else simulated_estimator(policy.estimator)
        formulas = Formulas(
            noise=compiled_law((policy.noise or noise.Gumbel()).drawn),
            gaussian=compiled_law(noise.Gaussian()),
            score=compiled.score,
            affine=compiled.affine,
            explore=compiled.explore,
            learn=compiled.learn,
            reward=compiled_reward(self.problem.family, by_lane=isinstance(self.problem, RandomProblem)),
            estimate=estimator.learn,
            forget=estimator.forget,
            weigh=estimator.weigh,
        )
        return formulas, compiled.numbers

    @property
    def formulas(self) -> Formulas:
        """The compiled formulas."""
        return self._compiled[0]

    @property
    def numbers(self) -> F64:
        """The policy's parameters as compiled formulas take them."""
        return self._compiled[1]

    @functools.cached_property
    def fixed_rewards(self) -> CompiledRewards:
        """Return what rewards need if all replications play the same problem."""
        return self._rewards_of(cast(Problem, self.problem))

    def rewards(self, seed: int, first: int, lanes: int, replications: int) -> CompiledRewards:
        """Return what rewards need in some replications; lanes after them play what the last of them plays."""
        if not isinstance(self.problem, RandomProblem):
            return self.fixed_rewards
        drawn = [self.problem.draw(seed, replication) for replication in range(first, first + replications)]
        return self._rewards_of(*drawn, *drawn[-1:] * (lanes - replications))

    def _rewards_of(self, *problems: Problem) -> CompiledRewards:
        limits = self.policy.reward_range
        is_safe = limits is None or all(each.stays_within(*limits) for each in problems)
        return CompiledRewards(
            arm_numbers=reward_numbers(*problems),
            gaps=np.stack([each.gaps for each in problems], axis=1),
            limits=np.array(() if is_safe else limits, dtype=float),  # to look at rewards takes time
        )


_plans: dict[tuple[int, int], Plan] = {}
_lock = threading.Lock()


def plan_of(policy: Policy, problem: AnyProblem) -> Plan:
    """Return the plan of a policy on a problem; it is made anew when the code of their formulas has changed.

    In a notebook a global constant that a formula reads may get another value between two simulations. Those that a
    noise law or an estimator reads are taken once.
    """
    key = (id(policy), id(problem))  # the plan holds both, so nothing else can have these while it is remembered
    with _lock:
        plan = _plans.pop(key, None)
        if plan is None or plan.code != bytecode_hash(*plan.functions):
            plan = Plan(policy, problem)
        _plans[key] = plan
        if len(_plans) > MOST_PLANS:
            del _plans[next(iter(_plans))]  # the one that was not used for the longest time
    return plan


def _functions(value: Any) -> Iterator[types.FunctionType]:
    """Yield the functions that a formula is made of, those of its parameters included."""
    if isinstance(value, Formula):
        yield from _functions((value.family.made_of, *value.values.values()))
    elif isinstance(value, tuple):
        for each in value:
            yield from _functions(each)
    elif isinstance(value, types.FunctionType):
        yield value


class Run:
    """Replications ``first`` to ``first + lanes − 1`` of one policy on one problem, from ``start`` on.

    If only so many ``replications`` are wanted, the lanes after them are padding.
    """

    def __init__(
        self,
        policy: Policy,
        problem: Problem | RandomProblem,
        start: Start,
        seed: int,
        first: int,
        lanes: int,
        checkpoints: I64,
        replications: int | None = None,
    ) -> None:
        plan = plan_of(policy, problem)
        arms = problem.arms
        self.policy = policy
        self.checkpoints = checkpoints
        self.start = start.rounds
        self.round = start.rounds
        self.formulas = plan.formulas
        self.statistics = _statistics(policy, start, lanes)
        self.lanes = Lanes(
            setting=_setting(plan, start, lanes, plan.rewards(seed, first, lanes, replications or lanes)),
            uses=plan.uses,
            statistics=self.statistics,
            estimates=_estimates(policy, start, self.statistics, int(checkpoints[-1])),
            streams=initial_streams(seed, first, lanes),
            noise=_noise(plan.uses, arms, lanes),
            choice=_choice(arms, len(policy.memory_names), lanes),
            weights=_weights(arms, lanes),
            bounds=_bounds(arms, lanes),
            pull=_pull(policy, lanes),
            clock=_clock(policy, arms),
        )
        self.regret: F64 = np.zeros((checkpoints.size, lanes))
        self.slice = max(1, SLICE // (arms * lanes))

    def advance(self, end: int) -> None:
        """Play on to round ``end``."""
        play(self.start, self.round, end, self.formulas, self.lanes, self.checkpoints, self.regret)
        self.round = end
        self._check()

    def _check(self) -> None:
        """Raise if a reward, a score or a remembered value was not a number, or exploration was no probability."""
        sums = self.statistics.total if self.lanes.uses.inline else self.lanes.estimates.kept[:, :, SUM]
        if not np.isfinite(sums).all():
            raise ValueError(f"a reward was not a finite number by round {self.round}")
        if self.lanes.choice.failed[0]:
            raise ValueError(f"{self.policy!r}: a score was not a number in round {self.lanes.choice.failed[0]}")
        if self.lanes.choice.failed[1]:
            raise ValueError(
                f"{self.policy!r}: what it explores were not probabilities in round {self.lanes.choice.failed[1]}: "
                "each must be at least 0, and all together at most 1"
            )
        if not np.isfinite(self.statistics.memory).all():
            raise ValueError(f"{self.policy!r}: what it remembers was not a finite number by round {self.round}")


def _columns_asked_for(policy: Policy, end: str) -> I64:
    """Return the columns whose largest or smallest values a decision depends on."""
    names = policy.memory_names
    return np.array([i for i, name in enumerate(names) if f"{end}_{name}" in policy.decision_inputs], np.int64)


def _setting(plan: Plan, start: Start, lanes: int, rewards: CompiledRewards) -> Setting:
    policy = plan.policy
    corruptions = [(c.arm, c.rounds, c.pulls, c.reward) for c in plan.problem.corruptions]
    return Setting(
        numbers=plan.numbers,
        arm_numbers=rewards.arm_numbers,
        corruptions=np.array(corruptions, dtype=float).reshape(-1, 4),
        gaps=np.ascontiguousarray(np.broadcast_to(rewards.gaps, (len(rewards.gaps), lanes))),
        before=np.array(start.pulls, dtype=float),
        fresh=np.flatnonzero((np.array(start.pulls) == 0) & policy.needs_pulls),
        tops=_columns_asked_for(policy, "best"),
        bottoms=_columns_asked_for(policy, "worst"),
        limits=rewards.limits,
    )


def _statistics(policy: Policy, start: Start, lanes: int) -> Statistics:
    pulls = np.array(start.pulls, dtype=float)
    means = np.array(start.means, dtype=float)
    nothing = np.zeros(pulls.size)
    variances = np.array(start.variances or nothing, dtype=float)
    given = {name: np.array(column) for name, column in start.memory}
    memory = {name: given.get(name, nothing) for name in policy.columns}
    location = np.zeros(pulls.size)
    scale = np.zeros(pulls.size)
    has_score = (pulls > 0) | (not policy.needs_pulls)
    columns = {name: column[has_score] for name, column in memory.items()}
    state = ArmsState(1.0, pulls[has_score], means[has_score], columns, variances[has_score], pulls.size)
    kept = {name: np.zeros(pulls.size) for name in policy.keep}
    if has_score.any():
        for name, part in policy.keep.items():
            kept[name][has_score] = part.evaluate(state.inputs(0.0))
    if policy.by_arm and has_score.any():
        with np.errstate(all="ignore"):
            line = policy.line(state)
        if np.isnan(line).any():
            raise ValueError(
                f"{policy!r}: a score is not a number before the first pull, when what is remembered is 0; "
                "if the formula asks for pulls as well, every arm is pulled once first"
            )
        location[has_score] = line[0]
        scale[has_score] = line[1]
    more = [variances] * policy.asks_variance + [nothing] * policy.asks_gap_variance
    table = np.array([*memory.values(), *kept.values(), *more], dtype=float).reshape(-1, pulls.size)
    columns_of_all = (pulls, pulls * means, nothing, means, location, scale, table)
    return Statistics(*(np.repeat(column[..., None], lanes, axis=-1) for column in columns_of_all))


def _estimates(policy: Policy, start: Start, statistics: Statistics, end: int) -> Estimates:
    estimator = policy.estimator
    arms, lanes = statistics.pulls.shape
    if any(start.pulls) and not estimator.plain:
        raise ValueError(f"{policy!r} cannot start from pulls and means: its estimator keeps more of past rewards")
    if 0 < estimator.longest < arms or (estimator.discount or 1.0) ** arms < FORGOTTEN:
        raise ValueError(f"{policy!r} forgets an arm before all of the {arms} arms have been pulled once")
    kept = np.zeros((arms, lanes, OWN + estimator.size))
    kept[:, :, COUNT] = statistics.pulls
    kept[:, :, SUM] = statistics.total
    if policy.asks_variance:
        kept[:, :, SPREAD] = statistics.memory[len(policy.own_names) - 1] * statistics.pulls
    columns = len(policy.columns) if estimator.forgets else 0
    entries = min(estimator.longest, end) + 1 if estimator.longest else 0
    if entries * lanes > MOST_KEPT:
        what = f"discount={estimator.discount}" if estimator.window is None else f"window={estimator.window}"
        raise ValueError(f"{what} must keep at most {MOST_KEPT // lanes:,} rewards one by one, got {entries - 1:,}")
    return Estimates(
        numbers=estimator.numbers,
        discount=estimator.discount or 1.0,
        columns=columns,
        kept=kept,
        recent=np.zeros((entries, lanes, 2 + columns)),
        pulls=statistics.pulls if estimator.plain else statistics.pulls.copy(),
        variance=statistics.memory[len(policy.own_names) - 1] if policy.asks_variance else np.zeros((0, 0)),
        last=np.zeros((arms, lanes)),
        first=np.zeros(lanes, np.int64),
        counting=np.zeros(1),
    )


def _noise(uses: Uses, arms: int, lanes: int) -> Noise:
    rounds = max(1, NOISE_BLOCK // (arms * lanes))
    drawn = arms * uses.noisy + uses.explores
    return Noise(
        words=np.zeros((rounds, drawn, lanes), np.uint32),
        z=np.zeros((rounds, drawn if uses.noisy else arms, lanes), np.float32),
        reward_words=np.zeros((rounds, 2 * (uses.uniform + uses.second) + uses.normal, lanes), np.uint32),
        uniform=np.zeros((rounds, 2, lanes)),
        w=np.zeros((rounds, lanes), np.float32),
    )


def _clock(policy: Policy, arms: int) -> Clock:
    """Return the reference arm: pulled once, mean 0, nothing remembered."""
    state = policy.reference_arm._replace(arms=arms)
    kept = [np.broadcast_to(part.evaluate(state.inputs(0.0)), 1) for part in policy.keep.values()]
    none = [np.zeros(1) for name in policy.memory_names if name not in policy.keep]
    memory = np.array([*none[: len(policy.columns)], *kept, *none[len(policy.columns) :]], dtype=float)
    return Clock(
        pulls=state.pulls,
        mean=state.means,
        memory=memory.reshape(-1, 1, 1),
        location=np.zeros(1),
        scale=np.zeros(1),
        span=np.zeros(2),
        now=np.zeros(1),
    )


def _choice(arms: int, columns: int, lanes: int) -> Choice:
    return Choice(
        scores=np.zeros((arms, lanes)),
        largest=np.zeros(lanes),
        best=np.zeros(lanes),
        worst=np.zeros(lanes),
        top=np.zeros((columns, lanes)),
        bottom=np.zeros((columns, lanes)),
        arm=np.zeros(lanes, np.int64),
        failed=np.zeros(2, np.int64),
        still=np.zeros((arms, lanes), np.float32),
    )


def _weights(arms: int, lanes: int) -> Weights:
    return Weights(
        floors=np.zeros((arms, lanes)), explored=np.zeros(lanes), peak=np.zeros(lanes), weight=np.zeros(lanes)
    )


def _bounds(arms: int, lanes: int) -> Bounds:
    return Bounds(
        bound=np.zeros((arms, lanes)),
        until=np.zeros(1),
        looked=np.zeros((arms, lanes)),
        candidate=np.zeros(lanes, np.int64),
    )


def _pull(policy: Policy, lanes: int) -> Pull:
    return Pull(
        pulls=np.zeros((1, lanes)),
        mean=np.zeros((1, lanes)),
        memory=np.zeros((len(policy.memory_names), 1, lanes)),
        learned=np.zeros((len(policy.columns) + len(policy.keep), lanes)),
        reward=np.zeros(lanes),
        probability=np.ones(lanes),
        location=np.zeros(lanes),
        scale=np.zeros(lanes),
        score=np.zeros((1, lanes)),
        outside=np.zeros(lanes),
    )
