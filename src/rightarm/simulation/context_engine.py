"""Runs with contexts: the arrays that the compiled rounds of `rightarm.simulation.context_kernels` work on."""

from __future__ import annotations

import numpy as np

from rightarm import noise
from rightarm.estimators import Linear
from rightarm.estimators.compiled_estimators import no_estimator, simulated_estimator
from rightarm.estimators.reward_statistics import OWN
from rightarm.estimators.ridge_regression import VECTOR, begin, new_common, sizes
from rightarm.noise.law import compiled_law
from rightarm.policies.compiled_scores import compiled_policy
from rightarm.policies.policy import Policy
from rightarm.problems.contexts import DataContext
from rightarm.problems.contextual import ContextProblem
from rightarm.problems.random import AnyProblem
from rightarm.simulation.compiled_problems import compiled_context_problem
from rightarm.simulation.context_kernels import (
    EXPLORE_FAILED,
    REWARD_FAILED,
    SCORE_FAILED,
    ContextChoice,
    ContextFormulas,
    ContextUses,
    Luck,
    Model,
    Places,
    Replication,
    Seen,
    World,
    play,
)
from rightarm.streams import initial_stream, initial_streams
from rightarm.types import F64, I64

NOISE_BLOCK = 8_192  # random words drawn ahead
SLICE = 100_000_000  # multiplications between two looks at the clock: some hundredths of a second
ROUND = 1_000  # of them, what a round costs besides looking at the arms


class ContextRun:
    """Replications of one policy on one problem with contexts; one after another is begun and played on slice by slice.

    >>> import rightarm as ra
    >>> problem = ra.problems.LinearProblem([[1.0, 0.0], [0.0, 1.0]], noise=0.1)
    >>> run = ContextRun(ra.UCB(C=0.5), problem, checkpoints=np.array([100]))
    >>> run.begin(seed=1, replication=0)
    >>> run.advance(100)
    >>> int(run.arrays.seen.counts.sum())
    100
    """

    def __init__(self, policy: Policy, problem: ContextProblem, checkpoints: I64) -> None:
        check_pair(policy, problem)
        self.policy = policy
        self.problem = problem
        self.checkpoints = checkpoints
        self.uses = _uses(policy, problem)
        self.places, self.words = _places(problem)
        self.formulas = _formulas(policy, problem)
        self.slice = max(1, SLICE // (ROUND + problem.arms * _width(policy) ** 2))

    def begin(self, seed: int, replication: int) -> None:
        """Start a replication anew."""
        self.round = 0
        self.arrays = Replication(
            uses=self.uses,
            places=self.places,
            streams=initial_streams(seed, replication, 1),
            shuffles=initial_stream(seed, "parameters", replication, 1),
            luck=_luck(self.uses, self.problem, self.words),
            world=_world(self.problem),
            model=_model(self.policy, self.problem),
            seen=_seen(self.policy, self.problem),
            choice=_choice(self.problem.arms),
        )
        self.regret: F64 = np.zeros(self.checkpoints.size)

    def advance(self, end: int) -> None:
        """Play on to round ``end``."""
        play(self.round, end, self.formulas, self.arrays, self.checkpoints, self.regret)
        self.round = end
        failed = self.arrays.choice.failed
        if failed[REWARD_FAILED]:
            raise ValueError(f"{self.problem}: a reward was not a finite number in round {failed[REWARD_FAILED]}")
        if failed[SCORE_FAILED]:
            raise ValueError(f"{self.policy!r}: a score was not a number in round {failed[SCORE_FAILED]}")
        if failed[EXPLORE_FAILED]:
            raise ValueError(
                f"{self.policy!r}: what it explores were not probabilities in round {failed[EXPLORE_FAILED]}: "
                "each must be at least 0, and all together at most 1"
            )


def check_pair(policy: Policy, problem: AnyProblem) -> None:
    """Raise if a policy cannot be simulated on a problem because of contexts."""
    estimator = policy.estimator
    if not isinstance(problem, ContextProblem):
        if estimator.asks_context:
            raise ValueError(
                f"{policy} decides by a context, and {problem} has none; "
                "a problem with contexts is LinearProblem, Classification or ContextProblem"
            )
        return
    if isinstance(estimator, Linear):
        if estimator.arm_features is not None:
            raise ValueError(f"{policy} asks for features of arms, and the arms of {problem} have none")
        if estimator.features.size != problem.columns:
            raise ValueError(
                f"{policy} is for contexts of {estimator.features.size} columns, those of {problem} have "
                f"{problem.columns}"
            )
        if not estimator.sums:
            raise ValueError(f"{policy} cannot be simulated with contexts: of linear models only Linear is")
        if policy.noise is not None and policy.noise.is_correlated and estimator.design.joint:
            raise ValueError(
                f"{policy} draws all coefficients at once, which is simulated where all are private to arms only"
            )
        if not policy.affine:
            raise ValueError(f"{policy} has no contextual form: its score is not location + scale·z")
    if policy.asks_gap_variance:
        raise ValueError(f"{policy} asks for gap_variance, which is not simulated on problems with contexts")
    if policy.columns:
        raise ValueError(
            f"{policy} remembers {', '.join(policy.columns)} of every arm, which is not simulated on problems with "
            "contexts"
        )
    if estimator.longest:
        raise ValueError(f"{policy} keeps rewards one by one, which is not simulated on problems with contexts")


def _formulas(policy: Policy, problem: ContextProblem) -> ContextFormulas:
    compiled = compiled_policy(policy, by_arm=False)
    world = compiled_context_problem(problem)
    is_contextual = policy.estimator.asks_context
    estimator = no_estimator() if is_contextual else simulated_estimator(policy.estimator)
    return ContextFormulas(
        noise=compiled_law((policy.noise or noise.Gumbel()).drawn),
        gaussian=compiled_law(noise.Gaussian()),
        score=compiled.score,
        explore=compiled.explore,
        keep=compiled.learn,
        estimate=estimator.learn,
        context=world.context,
        means=world.means,
        reward=world.reward,
        numbers=compiled.numbers,
        own_numbers=policy.estimator.numbers,
        context_numbers=world.context_numbers,
        arm_numbers=world.numbers,
    )


def _width(policy: Policy) -> int:
    return policy.estimator.width


def _uses(policy: Policy, problem: ContextProblem) -> ContextUses:
    estimator = policy.estimator
    ridge, own_ridge = estimator.ridges
    low, high = (-np.inf, np.inf) if policy.reward_range is None else policy.reward_range
    names = policy.memory_names
    asked = {"best", "worst", *(f"{end}_{name}" for name in names for end in ("best", "worst"))}
    return ContextUses(
        noisy=policy.noise is not None,
        shared=isinstance(policy.noise, noise.Shared),
        explores=policy.explore is not None,
        contextual=estimator.asks_context,
        must_pull=policy.needs_pulls,
        extremes=bool(policy.decision_inputs & asked),
        kept=len(policy.keep),
        varies=policy.asks_variance,
        data=isinstance(problem.context, DataContext),
        discount=estimator.discount or 1.0,
        ridge=ridge,
        own_ridge=own_ridge,
        low=low,
        high=high,
    )


def _places(problem: ContextProblem) -> tuple[Places, int]:
    """Return where each kind of noise stands among a round's words, and how many words there are."""
    context = problem.context
    reward = problem.reward.inputs
    asked = frozenset() if isinstance(context, DataContext) else context.inputs
    sizes = {"u": 2, "v": 2, "w": 1, "normals": context.columns, "uniforms": 2 * context.columns}
    wanted = [(name in asked, size) for name, size in sizes.items()]
    wanted += [(name in reward, sizes[name]) for name in ("u", "v", "w")]
    found = []
    words = 0
    for is_asked, size in wanted:
        found.append(words if is_asked else -1)
        words += size * is_asked
    return Places(*found), words


def _luck(uses: ContextUses, problem: ContextProblem, words: int) -> Luck:
    drawn = problem.arms * uses.noisy + uses.explores
    rounds = max(1, NOISE_BLOCK // max(words, drawn, 1))
    return Luck(
        words=np.zeros((rounds, words), np.uint32),
        gaussian=np.zeros((rounds, words), np.float32),
        policy_words=np.zeros((rounds, drawn), np.uint32),
        z=np.zeros((rounds, drawn), np.float32),
        normals=np.zeros(problem.columns),
        uniforms=np.zeros(problem.columns),
    )


def _world(problem: ContextProblem) -> World:
    context = problem.context
    data = context.data if isinstance(context, DataContext) else np.zeros((0, 0))
    labels = context.labels if isinstance(context, DataContext) else np.zeros(0)
    return World(
        data=np.array(data),  # the problem's own cannot be written to, which is another type to the compiler
        labels=np.array(labels),
        order=np.arange(labels.size),
        place=np.array([labels.size]),
        x=np.zeros(problem.columns),
        means=np.zeros(problem.arms),
    )


def _model(policy: Policy, problem: ContextProblem) -> Model:
    """Return a linear model of arms that were never pulled."""
    nothing = np.zeros(0)
    none = np.zeros(0, np.int64)
    if not isinstance(policy.estimator, Linear):
        empty = np.zeros((0, 0))
        return Model(none, none, empty, none, none, nothing, empty, empty, empty, nothing, empty, nothing)
    estimator = policy.estimator
    design = estimator.design
    measured = estimator.features.measured if estimator.standardise else none
    indicator = estimator.features.indicator if estimator.standardise else none
    ridge, own_ridge = estimator.ridges
    room = -(-problem.arms // VECTOR) * VECTOR
    factor = _aligned(sizes(design.own, design.joint)[0], room)
    for arm in range(problem.arms):
        begin(factor, arm, design.own, design.joint, own_ridge)
    return Model(
        measured=np.array(measured, np.int64),
        indicator=np.array(indicator, np.int64),
        moments=np.zeros((3, measured.size)),
        private=design.private,
        shared=design.shared,
        own=np.zeros(design.own),
        joint=np.zeros((design.joint, room)),
        factor=factor,
        common=new_common(design.joint, ridge),
        row=np.zeros(design.own + design.joint + 1),
        rest=_aligned(design.own + design.joint + 2, VECTOR),
        z=np.zeros(problem.columns),
    )


def _aligned(rows: int, columns: int) -> F64:
    """Zeros from a multiple of 64 bytes on, so that no vector of eight lies across two cache lines."""
    numbers = np.zeros(rows * columns + VECTOR)
    first = -(numbers.ctypes.data // numbers.itemsize) % VECTOR
    return numbers[first : first + rows * columns].reshape(rows, columns)


def _seen(policy: Policy, problem: ContextProblem) -> Seen:
    arms = problem.arms
    columns = len(policy.keep) + policy.asks_variance
    pulls = np.zeros(arms)
    mean = np.zeros(arms)
    variance = np.zeros(arms if policy.asks_variance else 0)
    return Seen(
        pulls=pulls.reshape(1, -1),
        mean=mean.reshape(1, -1),
        pulls_of_arms=pulls,
        mean_of_arms=mean,
        pulls_column=pulls.reshape(-1, 1),
        mean_column=mean.reshape(-1, 1),
        variances=variance,
        variance_column=variance.reshape(-1, 1),
        kept=np.zeros((arms, 1, OWN + policy.estimator.size)),
        memory=np.zeros((columns, 1, arms)),
        learned=np.zeros((len(policy.keep), arms)),
        best=np.zeros(arms),
        worst=np.zeros(arms),
        top=np.zeros((columns, arms)),
        bottom=np.zeros((columns, arms)),
        counting=np.zeros(1),
        last=np.zeros(arms),
        counts=np.zeros(arms, np.int64),
    )


def _choice(arms: int) -> ContextChoice:
    return ContextChoice(
        scores=np.zeros((1, arms)),
        floors=np.zeros((1, arms)),
        z=np.zeros((1, arms), np.float32),
        still=np.zeros((1, arms), np.float32),
        zeros=np.zeros(arms),
        arm=np.zeros(1, np.int64),
        reward=np.zeros(1),
        new_pulls=np.zeros(1),
        new_mean=np.zeros(1),
        failed=np.zeros(3, np.int64),
        outside=np.zeros(1, np.int64),
        regret=np.zeros(1),
    )
