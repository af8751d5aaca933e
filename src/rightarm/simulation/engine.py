"""A run: one policy on one problem in a block of lanes, as explicit state that can be played on slice by slice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rightarm import noise
from rightarm.noise import compiled_law
from rightarm.policies.policy import Policy, compiled_policy
from rightarm.problems import Problem, compiled_reward
from rightarm.simulation.kernels import Choice, Clock, Noise, Pull, Setting, Statistics, Streams, play
from rightarm.simulation.random_problem import RandomProblem
from rightarm.simulation.streams import initial_streams
from rightarm.simulation.types import F64, I64

NOISE_BLOCK = 16_384  # draws made ahead, in float32: 64 KiB, which stays in the second-level cache
SLICE = 8_000_000  # arm-rounds between two looks at the clock: some hundredths of a second


@dataclass(frozen=True)
class Start:
    """The arms' statistics from which a simulation starts; nothing pulled yet unless given.

    >>> Start(pulls=(1_000_000_000, 5), means=(0.5, 0.25)).rounds
    1000000005
    """

    pulls: tuple[int, ...]
    means: tuple[float, ...]

    @property
    def rounds(self) -> int:
        """The rounds already played."""
        return sum(self.pulls)


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
        self.score, self.affine, numbers = compiled_policy(policy)
        problems = _problems(problem, seed, first, lanes, replications or lanes)
        self.reward, arm_numbers = compiled_reward(*problems)
        gaps = np.broadcast_to(np.stack([each.gaps for each in problems], axis=1), (problem.arms, lanes))
        self.law, self.gaussian = compiled_law(policy.noise or noise.Gumbel()), compiled_law(noise.Gaussian())
        self.setting = _setting(policy, problem, start, numbers, arm_numbers, gaps)
        self.known = _statistics(policy, start, lanes)
        self.streams: Streams = initial_streams(seed, first, lanes)
        self.noise = _noise(self.setting, problem.arms, lanes)
        self.choice = _choice(problem.arms, lanes)
        self.pull = Pull(*(np.zeros(lanes) for _ in Pull._fields))
        self.clock = Clock(np.ones(1), np.zeros(1), np.zeros(1), np.zeros(1))
        self.regret: F64 = np.zeros((checkpoints.size, lanes))
        self.slice = max(1, SLICE // (problem.arms * lanes))

    def advance(self, end: int) -> None:
        """Play on to round ``end``."""
        formulas = (self.law, self.gaussian, self.score, self.affine, self.reward)
        state = (self.setting, self.known, self.streams, self.noise, self.choice, self.pull, self.clock)
        play(self.start, self.round, end, *formulas, *state, self.checkpoints, self.regret)
        self.round = end
        self._check()

    def _check(self) -> None:
        """Say that a reward or a score was not a number; the rounds look out for such scores."""
        if not np.isfinite(self.known.total).all():
            raise ValueError(f"a reward was not a finite number by round {self.round}")
        if self.choice.failed[0]:
            raise ValueError(f"{self.policy!r}: a score was not a number in round {self.choice.failed[0]}")


def _problems(
    problem: Problem | RandomProblem, seed: int, first: int, lanes: int, replications: int
) -> tuple[Problem, ...]:
    """One problem for all lanes, or one for each; padding plays what the last replication plays."""
    if isinstance(problem, Problem):
        return (problem,)
    drawn = [problem.draw(seed, replication) for replication in range(first, first + replications)]
    return (*drawn, *drawn[-1:] * (lanes - replications))


def _setting(
    policy: Policy, problem: Problem | RandomProblem, start: Start, numbers: F64, arm_numbers: F64, gaps: F64
) -> Setting:
    corruptions = [(c.arm, c.rounds, c.pulls, c.reward) for c in problem.corruptions]
    return Setting(
        numbers=numbers,
        arm_numbers=arm_numbers,
        corruptions=np.array(corruptions, dtype=float).reshape(-1, 4),
        gaps=np.ascontiguousarray(gaps),
        before=np.array(start.pulls, dtype=float),
        fresh=np.flatnonzero(np.array(start.pulls) == 0),
        noisy=policy.noise is not None,
        by_arm=policy.by_arm,
        clocked=policy.clocked,
        extremes=bool(policy.inputs & {"best", "worst"}),
        uniform="u" in problem.inputs,
        second="v" in problem.inputs,
        gaussian="w" in problem.inputs,
    )


def _statistics(policy: Policy, start: Start, lanes: int) -> Statistics:
    pulls, means = np.array(start.pulls, dtype=float), np.array(start.means, dtype=float)
    location, scale = np.zeros(pulls.size), np.zeros(pulls.size)
    if policy.by_arm and pulls.any():
        known = pulls > 0
        location[known], scale[known] = policy.location_and_scale(pulls[known], means[known], arms=pulls.size)
    columns = (pulls, pulls * means, means, location, scale)
    return Statistics(*(np.repeat(column[:, None], lanes, axis=1) for column in columns))


def _noise(setting: Setting, arms: int, lanes: int) -> Noise:
    rounds = max(1, NOISE_BLOCK // (arms * lanes))
    return Noise(
        words=np.zeros((rounds, arms if setting.noisy else 0, lanes), np.uint32),
        z=np.zeros((rounds, arms, lanes), np.float32),
        reward_words=np.zeros((rounds, 2 * (setting.uniform + setting.second) + setting.gaussian, lanes), np.uint32),
        uniform=np.zeros((rounds, 2, lanes)),
        w=np.zeros((rounds, lanes), np.float32),
    )


def _choice(arms: int, lanes: int) -> Choice:
    return Choice(
        scores=np.zeros((arms, lanes)),
        largest=np.zeros(lanes),
        best=np.zeros(lanes),
        worst=np.zeros(lanes),
        arm=np.zeros(lanes, np.int64),
        failed=np.zeros(1, np.int64),
    )
