"""`simulate`: several policies on one problem or on several, all meeting the same luck."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from rightarm.display import percent
from rightarm.formula import check_count
from rightarm.policies.inputs import check_memory, check_statistics, check_variances
from rightarm.policies.policy import Policy
from rightarm.problems.contextual import ContextProblem
from rightarm.problems.random import AnyProblem, RandomProblem
from rightarm.simulation.engine import Plan, Start, plan_of
from rightarm.simulation.jobs import Job, Outcome, available_cores, lanes_for, play_jobs, share_of
from rightarm.simulation.kernels import WIDTH
from rightarm.simulation.result import Result, ResultsByProblem, distinct
from rightarm.types import F64

MOST_ROUNDS = 2**53  # a float counts no further
MOST_CHECKPOINTS = 10**6
MOST_WORKERS = 1024
MOST_NUMBERS = 2**30  # of an array: eight gigabytes


class SimulationOptions(TypedDict, total=False):
    """Options of `simulate` besides policies, problems and horizon."""

    replications: int
    seed: int | None
    checkpoints: int | Sequence[int]
    workers: int | None
    progress: bool
    pulls: ArrayLike | None
    means: ArrayLike | None
    memory: Mapping[str, ArrayLike] | None
    variances: ArrayLike | None
    lanes: int | None


Policies = Policy | Sequence[Policy]
Problems = Sequence[AnyProblem] | Mapping[str, AnyProblem]


@overload
def simulate(
    policies: Policies, problem: AnyProblem, *, horizon: int, **settings: Unpack[SimulationOptions]
) -> Result: ...
@overload
def simulate(
    policies: Policies, problem: Problems, *, horizon: int, **settings: Unpack[SimulationOptions]
) -> ResultsByProblem: ...
def simulate(
    policies: Policies,
    problem: AnyProblem | Problems,
    *,
    horizon: int,
    replications: int = 64,
    seed: int | None = None,
    checkpoints: int | Sequence[int] = 100,
    workers: int | None = None,
    progress: bool = False,
    pulls: ArrayLike | None = None,
    means: ArrayLike | None = None,
    memory: Mapping[str, ArrayLike] | None = None,
    variances: ArrayLike | None = None,
    lanes: int | None = None,
) -> Result | ResultsByProblem:
    """Play every policy on ``problem`` for ``horizon`` rounds, ``replications`` times, and return what came of it.

    Parameters
    ----------
    policies
        One policy, or several that differ from each other.
    problem
        A problem; a `RandomProblem` is drawn afresh for every replication. On a problem with contexts (`LinearProblem`,
        `Classification`, `ContextProblem`) regret is against the arm that is best in the round's context; a policy
        without contexts plays it without looking at them. A list of problems, or a dictionary of them by name, is
        played as one job.
    horizon
        The rounds of each replication.
    replications
        Replication r of every policy meets the same luck, so differences between policies are sharper than each of
        their means.
    seed
        The same seed gives the same result, bit for bit, whatever ``workers`` and ``lanes`` are. Without one a fresh
        seed is drawn, which the result has.
    checkpoints
        The rounds at which regret is recorded, or about how many, spaced evenly on a log scale.
    workers
        Threads; one per core unless given.
    progress
        Show a bar with the rate and the time left.
    pulls, means
        Statistics to start from, one of each per arm, as if those rounds had been played.
    memory
        What a policy remembers besides, one value per arm for each of its columns.
    variances
        The variances of the rewards so far, for policies that ask for them.
    lanes
        Replications played side by side; chosen for speed unless given.

    Returns
    -------
    Result or ResultsByProblem
        The result; of several problems, a mapping from their names to results.

    Warns
    -----
    UserWarning
        If rewards were outside the range that a policy is for (`Policy.reward_range`).

    Notes
    -----
    Ctrl-C ends it cleanly within a moment.

    Examples
    --------
    >>> import rightarm as ra
    >>> problem = ra.problems.Bernoulli([0.9, 0.1])
    >>> policies = [ra.BoltzmannGumbel(C=0.5), ra.UCB(C=0.5)]
    >>> result = ra.simulate(policies, problem, horizon=1_000, replications=16, seed=1)
    >>> result.regret.shape == (2, 16, result.rounds.size)
    True
    >>> problems = {"easy": problem, "hard": ra.problems.Bernoulli([0.6, 0.5])}
    >>> results = ra.simulate(policies, problems, horizon=1_000, seed=1)
    >>> results["hard"].regret.shape == (2, 64, results["hard"].rounds.size)
    True
    """
    chosen = _check_policies(policies)
    problems = _check_problems(problem)
    horizon = check_count("horizon", horizon, most=MOST_ROUNDS)
    replications = check_count("replications", replications, most=MOST_NUMBERS)
    workers = available_cores() if workers is None else check_count("workers", workers, most=MOST_WORKERS)
    seed = int(np.random.SeedSequence().entropy) if seed is None else check_count("seed", seed, least=0)  # type: ignore[arg-type]
    size = len(chosen) * len(problems)
    lanes = lanes_for(replications, size, workers) if lanes is None else _check_lanes(lanes)
    games = []
    for each in problems.values():
        plans = [plan_of(policy, each) for policy in chosen]
        if "t" in plans[0].problem_inputs:
            check_fixed(each)
        start = check_start(chosen, each, pulls, means, memory, variances)
        rounds = check_checkpoints(checkpoints, start.rounds, horizon)
        _check_memory_for(len(chosen) * replications, each.arms, len(rounds), lanes)
        games.append(_Game(plans, start, seed, replications, rounds))
    pieces = [piece for game in games for piece in game.pieces(lanes, workers)]
    keepers = {id(job): keep for job, keep in pieces}
    silent = contextlib.nullcontext(lambda rounds: None)
    with _bar(sum(job.rounds for job, _ in pieces)) if progress else silent as on_rounds:
        for job, outcome in play_jobs([job for job, _ in pieces], workers, on_rounds):
            keepers[id(job)](outcome)
    misfits = [text for game in games for text in game.misfits()]
    if misfits:
        warnings.warn(f"policies got rewards that they are not for: {'; '.join(misfits)}", UserWarning, stacklevel=2)
    results = [game.result() for game in games]
    if isinstance(problem, AnyProblem):
        return results[0]
    return ResultsByProblem(dict(zip(problems, results, strict=True)))


class _Game:
    """Some policies on one problem: its jobs, and the arrays that their outcomes go into."""

    def __init__(
        self, plans: Sequence[Plan], start: Start, seed: int, replications: int, rounds: tuple[int, ...]
    ) -> None:
        self.plans = plans
        self.problem = plans[0].problem
        self.start = start
        self.seed = seed
        self.replications = replications
        self.rounds = rounds
        self.drawn_means = _drawn_means(self.problem, seed, replications)
        self.regret = np.empty((len(plans), replications, len(rounds)))
        self.pulls = np.empty((len(plans), replications, self.problem.arms), np.int64)
        self.outside = [0] * len(plans)  # rewards that the policy is not for

    def pieces(self, lanes: int, workers: int) -> Iterator[tuple[Job, Callable[[Outcome], None]]]:
        """Yield the jobs, each with a function that takes its outcome."""
        if isinstance(self.problem, ContextProblem):
            lanes = min(lanes, share_of(self.replications, len(self.plans), workers))
        for index, plan in enumerate(self.plans):
            for first in range(0, self.replications, lanes):
                size = min(lanes, self.replications - first)
                job = Job(plan.policy, self.problem, self.start, self.seed, first, size, self.rounds, lanes)
                yield job, functools.partial(self._keep, index, slice(first, first + size))

    def _keep(self, policy: int, replications: slice, outcome: Outcome) -> None:
        self.regret[policy, replications] = outcome.regret
        self.pulls[policy, replications] = outcome.pulls
        self.outside[policy] += outcome.outside

    def misfits(self) -> Iterator[str]:
        """Yield, for each policy that got rewards outside the range that it is for, how many there were."""
        total = self.replications * (self.rounds[-1] - self.start.rounds)
        for plan, count in zip(self.plans, self.outside, strict=True):
            if count and plan.policy.reward_range is not None:
                low, high = plan.policy.reward_range
                share = f"{count:,} of {total:,} rewards ({percent(count / total)})"
                yield f"{plan.label} on {plan.title}: {share} outside [{low:g}, {high:g}]"

    def result(self) -> Result:
        """Return all outcomes together."""
        return Result.of(
            self.plans,
            self.start,
            self.seed,
            rounds=np.array(self.rounds),
            regret=self.regret,
            pulls=self.pulls,
            drawn_means=self.drawn_means,
        )


def _check_problems(problem: AnyProblem | Problems) -> dict[str, AnyProblem]:
    """Return the problems by name; those of a list are named by what they are."""
    if isinstance(problem, AnyProblem):
        return {"": problem}
    if isinstance(problem, Mapping):
        named = {str(name): each for name, each in problem.items()}
    else:
        listed = list(problem) if np.iterable(problem) and not isinstance(problem, str) else [problem]
        named = dict(zip(distinct([str(each) for each in listed]), listed, strict=True))
    for each in named.values():
        if not isinstance(each, AnyProblem):
            raise TypeError(f"problem must be a problem such as Bernoulli([0.5, 0.4]), or several, got {problem!r}")
    if not named:
        raise ValueError("problem must name at least one problem, got none")
    if len(set(named.values())) < len(named):
        raise ValueError(f"problems must differ from each other, got {', '.join(map(str, named.values()))}")
    return named


def check_fixed(problem: AnyProblem) -> None:
    """Raise if rewards depend on the round: regret would then be counted against means that are not those of a round.

    >>> import rightarm as ra
    >>> @ra.problems.problem(mean=lambda level: level)
    ... def tides(t, *, level: float):
    ...     return level + np.sin(t)
    >>> check_fixed(tides([0.0, 1.0]))
    Traceback (most recent call last):
    ValueError: tides asks for t: its means change, and regret is against fixed ones, got tides(level=[0.0, 1.0])
    """
    if "t" in problem.inputs and not isinstance(problem, ContextProblem):  # which has regret for every round
        name = problem.family.name
        raise ValueError(f"{name} asks for t: its means change, and regret is against fixed ones, got {problem}")


def _check_policies(policies: Policies) -> tuple[Policy, ...]:
    if isinstance(policies, str):
        raise TypeError(f"policies must be policies such as UCB(C=0.5), got {policies!r}")
    listed = (policies,) if isinstance(policies, Policy) or not np.iterable(policies) else tuple(policies)
    for policy in listed:
        if not isinstance(policy, Policy):
            hint = "; call it with its parameters first" if callable(policy) else ""
            raise TypeError(f"policies must be policies such as UCB(C=0.5), got {policy!r}{hint}")
    if not listed:
        raise ValueError("policies must name at least one policy, got none")
    if len(listed) > 1 and len(set(listed)) < len(listed):
        raise ValueError(f"policies must differ from each other, got {', '.join(map(str, listed))}")
    return listed


def _drawn_means(problem: AnyProblem, seed: int, replications: int) -> F64 | None:
    """Return the means of the problem that each replication draws; a mistake in one shows before any is played."""
    if not isinstance(problem, RandomProblem):
        return None
    return np.array([problem.draw(seed, replication).means for replication in range(replications)])


def check_start(
    policies: Sequence[Policy],
    problem: AnyProblem,
    pulls: ArrayLike | None,
    means: ArrayLike | None,
    memory: Mapping[str, ArrayLike] | None,
    variances: ArrayLike | None = None,
) -> Start:
    """Return the statistics from which ``policies`` start on ``problem``; nothing pulled yet unless given."""
    if (pulls is None) != (means is None):
        raise TypeError(f"pulls and means go together, got pulls={pulls!r} and means={means!r}")
    if pulls is None and memory is None and variances is None:
        return Start.of_nothing(problem.arms)
    if pulls is not None and np.any(pulls) and isinstance(problem, ContextProblem):
        raise ValueError(f"pulls and means are for problems without contexts, got {problem}")
    nothing = np.zeros(problem.arms)
    counts, averages = check_statistics(nothing if pulls is None else pulls, nothing if means is None else means)
    if counts.size != problem.arms:
        raise ValueError(f"pulls must have one value for each of the {problem.arms} arms, got {counts.size}")
    if counts.sum() > MOST_ROUNDS:
        raise ValueError(f"pulls must be at most {MOST_ROUNDS:,} in all, got {counts.tolist()}")
    columns = sorted({name for policy in policies for name in policy.columns})
    if columns and memory is None and counts.any():
        raise ValueError(f"memory must be given with pulls: these policies remember {', '.join(columns)} as well")
    kept = {} if memory is None else check_memory(columns, memory, problem.arms)
    for policy in policies:
        check_variances(policy, policy.asks_variance, variances, counts)
    spreads = check_variances(policies, False, variances, counts)
    return Start(
        pulls=tuple(int(n) for n in counts),
        means=tuple(np.where(counts > 0, averages, 0.0).tolist()),
        memory=tuple((name, tuple(column.tolist())) for name, column in kept.items()),
        variances=() if spreads is None else tuple(np.where(counts > 0, spreads, 0.0).tolist()),
    )


def check_checkpoints(checkpoints: int | Sequence[int], played: int, horizon: int) -> tuple[int, ...]:
    """Return the rounds at which regret is recorded; the last is always the horizon's."""
    if played + horizon > MOST_ROUNDS:
        raise ValueError(f"horizon must be at most {MOST_ROUNDS - played:,} after {played:,} rounds, got {horizon}")
    if np.ndim(checkpoints) == 0:
        count = check_count("checkpoints", checkpoints, most=MOST_CHECKPOINTS)
        spaced = np.geomspace(horizon, 1, count).round()
        return tuple(int(played + n) for n in np.unique([*spaced, horizon]))
    rounds = [check_count("checkpoints", value) for value in np.asarray(checkpoints).tolist()]
    if not rounds or sorted(set(rounds)) != rounds or not played < rounds[0] <= rounds[-1] <= played + horizon:
        raise ValueError(f"checkpoints must rise from {played + 1} to {played + horizon} at most, got {rounds}")
    return (*rounds, *(() if rounds[-1] == played + horizon else (played + horizon,)))


def _check_memory_for(runs: int, arms: int, checkpoints: int, lanes: int) -> None:
    """Raise if no computer's memory will do: better now than after hours."""
    if runs * checkpoints > MOST_NUMBERS:
        raise ValueError(
            f"replications times policies times checkpoints must be at most {MOST_NUMBERS:,}, "
            f"got {runs:,} times {checkpoints:,}"
        )
    if arms * max(runs, lanes) > MOST_NUMBERS:
        raise ValueError(
            f"arms times replications times policies, or lanes, must be at most {MOST_NUMBERS:,}, "
            f"got {arms:,} times {max(runs, lanes):,}"
        )


def _check_lanes(lanes: int) -> int:
    whole = check_count("lanes", lanes, most=MOST_NUMBERS)
    if whole % WIDTH:
        raise ValueError(f"lanes must be a multiple of {WIDTH}, got {lanes}")
    return whole


def _bar(total: int) -> contextlib.AbstractContextManager[Callable[[int], None]]:
    from rightarm.simulation.progress import bar

    return bar("simulating", total)
