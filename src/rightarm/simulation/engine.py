"""A run: one policy on one problem in a block of lanes, as explicit state that can be played on slice by slice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rightarm import noise
from rightarm.estimators.compiled import no_estimator, simulated_estimator
from rightarm.estimators.statistics import COUNT, OWN, SPREAD, SUM
from rightarm.noise import compiled_law
from rightarm.problems import Problem
from rightarm.problems.random import RandomProblem
from rightarm.scores.inputs import State
from rightarm.scores.policy import Policy
from rightarm.scores.rules import FORGOTTEN
from rightarm.scores.simulated import compiled_policy
from rightarm.simulation.kernels import play
from rightarm.simulation.rewards import compiled_reward
from rightarm.simulation.state import (
    Bounds,
    Choice,
    Clock,
    Estimates,
    Formulas,
    Noise,
    Pull,
    Setting,
    Statistics,
    Uses,
    Weights,
)
from rightarm.streams import Streams, initial_streams
from rightarm.types import F64, I64

NOISE_BLOCK = 16_384  # draws made ahead, in float32: 64 KiB, which stays in the second-level cache
MOST_KEPT = 2**28  # rewards of all replications that are played side by side: at least four gigabytes
SLICE = 8_000_000  # arm-rounds between two looks at the clock: some hundredths of a second


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

    @property
    def rounds(self) -> int:
        """The rounds already played."""
        return sum(self.pulls)

    def specification(self) -> dict[str, Any]:
        """What `simulate` takes to start from it again, as plain data."""
        variances = {"variances": list(self.variances)} if self.variances else {}
        return {"pulls": list(self.pulls), "means": list(self.means), "memory": dict(self.memory) or None, **variances}


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
        self.policy = policy
        self.checkpoints = checkpoints
        self.start = self.round = start.rounds
        compiled = compiled_policy(policy)
        problems = _problems(problem, seed, first, lanes, replications or lanes)
        reward, arm_numbers = compiled_reward(*problems)
        gaps = np.broadcast_to(np.stack([each.gaps for each in problems], axis=1), (problem.arms, lanes))
        law, gaussian = compiled_law((policy.noise or noise.Gumbel()).drawn), compiled_law(noise.Gaussian())
        self.uses = _uses(policy, problem)
        estimator = no_estimator() if self.uses.inline else simulated_estimator(policy.estimator)
        self.formulas = Formulas(law, gaussian, *compiled[:4], reward, *estimator)
        limits = _limits(policy, problems)
        self.setting = _setting(policy, problem, start, compiled.numbers, arm_numbers, gaps, limits)
        self.known = _statistics(policy, start, lanes)
        self.estimates = _estimates(policy, start, self.known, int(checkpoints[-1]))
        self.streams: Streams = initial_streams(seed, first, lanes)
        self.noise = _noise(self.uses, problem.arms, lanes)
        self.choice = _choice(problem.arms, len(policy.memory_names), lanes)
        self.weights, self.bounds = _weights(problem.arms, lanes), _bounds(problem.arms, lanes)
        self.pull = _pull(policy, lanes)
        self.clock = _clock(policy, problem.arms)
        self.regret: F64 = np.zeros((checkpoints.size, lanes))
        self.slice = max(1, SLICE // (problem.arms * lanes))

    def advance(self, end: int) -> None:
        """Play on to round ``end``."""
        played = (self.formulas, self.setting, self.uses, self.known, self.estimates, self.streams, self.noise)
        scratch = (self.choice, self.weights, self.bounds, self.pull, self.clock)
        play(self.start, self.round, end, *played, *scratch, self.checkpoints, self.regret)
        self.round = end
        self._check()

    def _check(self) -> None:
        """Raise if a reward, a score or a remembered value was not a number, or exploration was no probability."""
        sums = self.known.total if self.uses.inline else self.estimates.kept[:, :, SUM]
        if not np.isfinite(sums).all():
            raise ValueError(f"a reward was not a finite number by round {self.round}")
        if self.choice.failed[0]:
            raise ValueError(f"{self.policy!r}: a score was not a number in round {self.choice.failed[0]}")
        if self.choice.failed[1]:
            raise ValueError(
                f"{self.policy!r}: what it explores were not probabilities in round {self.choice.failed[1]}: "
                "each must be at least 0, and all together at most 1"
            )
        if not np.isfinite(self.known.memory).all():
            raise ValueError(f"{self.policy!r}: what it remembers was not a finite number by round {self.round}")


def _columns_asked_for(policy: Policy, end: str) -> I64:
    """The columns whose largest or smallest values a decision depends on."""
    return np.array(
        [i for i, name in enumerate(policy.memory_names) if f"{end}_{name}" in policy.decision_inputs], np.int64
    )


def _problems(
    problem: Problem | RandomProblem, seed: int, first: int, lanes: int, replications: int
) -> tuple[Problem, ...]:
    """One problem for all lanes, or one for each; padding plays what the last replication plays."""
    if isinstance(problem, Problem):
        return (problem,)
    drawn = [problem.draw(seed, replication) for replication in range(first, first + replications)]
    return (*drawn, *drawn[-1:] * (lanes - replications))


def _setting(
    policy: Policy,
    problem: Problem | RandomProblem,
    start: Start,
    numbers: F64,
    arm_numbers: F64,
    gaps: F64,
    limits: F64,
) -> Setting:
    corruptions = [(c.arm, c.rounds, c.pulls, c.reward) for c in problem.corruptions]
    return Setting(
        numbers=numbers,
        arm_numbers=arm_numbers,
        corruptions=np.array(corruptions, dtype=float).reshape(-1, 4),
        gaps=np.ascontiguousarray(gaps),
        before=np.array(start.pulls, dtype=float),
        fresh=np.flatnonzero((np.array(start.pulls) == 0) & policy.needs_pulls),
        tops=_columns_asked_for(policy, "best"),
        bottoms=_columns_asked_for(policy, "worst"),
        limits=limits,
    )


def _limits(policy: Policy, problems: tuple[Problem, ...]) -> F64:
    """The rewards that the policy is for, if it is not known that all are such: to look costs time in every round."""
    if policy.rewards is None or all(each.stays_within(*policy.rewards) for each in problems):
        return np.zeros(0)
    return np.array(policy.rewards)


def _uses(policy: Policy, problem: Problem | RandomProblem) -> Uses:
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
        uniform="u" in problem.inputs,
        second="v" in problem.inputs,
        normal="w" in problem.inputs,
    )


def _statistics(policy: Policy, start: Start, lanes: int) -> Statistics:
    pulls, means = np.array(start.pulls, dtype=float), np.array(start.means, dtype=float)
    variances = np.array(start.variances or np.zeros(pulls.size), dtype=float)
    given = {name: np.array(column) for name, column in start.memory}
    memory = {name: given.get(name, np.zeros(pulls.size)) for name in policy.columns}
    location, scale = np.zeros(pulls.size), np.zeros(pulls.size)
    known = (pulls > 0) | (not policy.needs_pulls)
    columns = {name: column[known] for name, column in memory.items()}
    state = State(1.0, pulls[known], means[known], columns, variances[known], pulls.size)
    kept = {name: np.zeros(pulls.size) for name in policy.keep}
    if known.any():
        for name, part in policy.keep.items():
            kept[name][known] = part.evaluate(state.inputs(0.0))
    if policy.by_arm and known.any():
        with np.errstate(all="ignore"):
            line = policy.line(state)
        if np.isnan(line).any():
            raise ValueError(
                f"{policy!r}: a score is not a number before the first pull, when what is remembered is 0; "
                "if the formula asks for pulls as well, every arm is pulled once first"
            )
        location[known], scale[known] = line
    more = [variances] * policy.asks_variance + [np.zeros(pulls.size)] * policy.asks_gap_variance
    table = np.array([*memory.values(), *kept.values(), *more], dtype=float).reshape(-1, pulls.size)
    columns_of_all = (pulls, pulls * means, np.zeros(pulls.size), means, location, scale, table)
    return Statistics(*(np.repeat(column[..., None], lanes, axis=-1) for column in columns_of_all))


def _estimates(policy: Policy, start: Start, known: Statistics, end: int) -> Estimates:
    estimator, (arms, lanes) = policy.estimator, known.pulls.shape
    if any(start.pulls) and not estimator.plain:
        raise ValueError(f"{policy!r} cannot start from pulls and means: its estimator keeps more of past rewards")
    if 0 < estimator.longest < arms or (estimator.discount or 1.0) ** arms < FORGOTTEN:
        raise ValueError(f"{policy!r} forgets an arm before all of the {arms} arms have been pulled once")
    kept = np.zeros((arms, lanes, OWN + estimator.size))
    kept[:, :, COUNT], kept[:, :, SUM] = known.pulls, known.total
    if policy.asks_variance:
        kept[:, :, SPREAD] = known.memory[len(policy.own_names) - 1] * known.pulls
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
        pulls=known.pulls if estimator.plain else known.pulls.copy(),
        variance=known.memory[len(policy.own_names) - 1] if policy.asks_variance else np.zeros((0, 0)),
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
    """The reference arm: pulled once, mean 0, nothing remembered."""
    state = policy.reference_arm._replace(arms=arms)
    kept = [np.broadcast_to(part.evaluate(state.inputs(0.0)), 1) for part in policy.keep.values()]
    none = [np.zeros(1) for name in policy.memory_names if name not in policy.keep]
    memory = np.array([*none[: len(policy.columns)], *kept, *none[len(policy.columns) :]], dtype=float)
    return Clock(state.pulls, state.means, memory.reshape(-1, 1, 1), np.zeros(1), np.zeros(1))


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
    return Weights(np.zeros((arms, lanes)), np.zeros(lanes), np.zeros(lanes), np.zeros(lanes))


def _bounds(arms: int, lanes: int) -> Bounds:
    return Bounds(np.zeros((arms, lanes)), np.zeros(1), np.zeros((arms, lanes)), np.zeros(lanes, np.int64))


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
