"""Contract checks for policies, problems, estimators, journals and stores, also one's own.

In a test, they raise what is broken.

>>> import rightarm as ra
>>> check_policy(ra.BoltzmannGumbel(C=0.5))
>>> check_problem(ra.problems.Bernoulli([0.5, 0.25]))
>>> check_estimator(ra.estimators.Mean(window=50))
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from rightarm.bandit.arms import Arms
from rightarm.bandit.bandit import Bandit
from rightarm.errors import needed_for
from rightarm.estimators import Estimator
from rightarm.estimators.compiled_estimators import MEAN, PULLS
from rightarm.logs.events import (
    ENCODER,
    Cancellation,
    Changed,
    Correction,
    Created,
    Decision,
    Event,
    Expiry,
    LateReward,
    Observation,
    Reward,
)
from rightarm.logs.journals import Journal
from rightarm.logs.settings import Settings
from rightarm.policies import UCB, Policy, policy
from rightarm.policies.inputs import Scale
from rightarm.problems import ContextProblem, DataContext, Problem, Uniform, problem
from rightarm.problems.problem import quadrature
from rightarm.simulation import simulate
from rightarm.simulation.context_engine import ContextRun
from rightarm.simulation.engine import Run, Start
from rightarm.types import F64, I64

ARMS = 5
STATES = 20
ROUNDS = 300
LIVE_ROUNDS = 50
REPLICATIONS = 40
NUMPY_PULLS = 100_000  # of each arm of a problem, by NumPy
COMPILED_PULLS = 64_000  # the same, compiled
CERTAIN = 4.5  # standard errors
CONTEXTS = 30  # rounds of a problem with contexts
DRAWS = 20_000  # rewards drawn in each of them
LIVE = 5_000  # first choices of a policy
SIMULATED = 20_480  # the same, compiled, in few and wide jobs
LANES = 2_048


def check_policy(policy: Policy) -> None:
    """Check that a policy scores every arm, treats arms alike, and runs live and compiled with the same law.

    - its scores are numbers, one for each arm, and relabelling the arms relabels them, where rewards are such that the
      policy is for them, or between 0 and 1;
    - what it explores are probabilities; if it says that its scores rise while an arm rests, they do;
    - the arm that `choose` takes live and the first arm of a simulation from the same state have the same law;
    - a simulation gives every arm a pull, and the same result for every number of lanes and threads;
    - as a live `Bandit` it states its exact probabilities, and goes on after `to_json` and `from_json` as if nothing
      had been; this is left out for a policy that has no exact probabilities.

    Parameters
    ----------
    policy : Policy
        The policy, which must not ask for contexts.

    Raises
    ------
    AssertionError
        If one of these does not hold; the text names the state in which it does not.
    """
    _check_no_context("policy", policy, policy.estimator)
    random = np.random.default_rng(1)
    for _ in range(STATES):
        _check_scores(policy, random)
    if policy.estimator.plain:  # others cannot start from given means
        _check_choices(policy, random)
    unit = _from_unit(policy)
    problem = Uniform(low=unit.apply(np.linspace(0.0, 0.4, ARMS)), high=unit.to_high)
    one, other = (
        simulate(policy, problem, horizon=ROUNDS, replications=REPLICATIONS, seed=1, lanes=lanes, workers=workers)
        for lanes, workers in ((32, 1), (64, 2))
    )
    _require(bool((one.pulls > 0).all()), f"{policy}: an arm was never pulled")
    _require(np.array_equal(one.pulls, other.pulls), f"{policy}: the result depends on lanes or threads")
    if policy.affine or policy.family.score_law is not None:
        _check_live(policy, random)


def _check_scores(policy: Policy, random: np.random.Generator) -> None:
    """Check the scores of a policy in a random state."""
    unit = _from_unit(policy)
    pulls = 1.0 + random.integers(0, 1_000, ARMS)
    means = unit.apply(random.random(ARMS))
    z = np.zeros(ARMS) if policy.noise is None else policy.noise.sample(random, ARMS)
    t = int(pulls.sum()) + 1
    order = random.permutation(ARMS)
    memory: dict[str, F64] = {}
    variances = random.random(ARMS) * (unit.to_high - unit.to_low) ** 2 if policy.asks_variance else None
    if policy.columns:  # only what a policy has learned itself makes sense to it
        t, pulls, means, memory, variances = _played(policy, random)
    scores = policy.scores(t, pulls, means, z, memory or None, variances)
    state = f"{scores} at {pulls=}, {means=}, {memory=}, {variances=}"
    _require(not np.isnan(scores).any(), f"{policy}: a score is not a number: {state}")
    _require(scores.max() < np.inf, f"{policy}: a score is infinite: {state}")
    moved = {name: column[order] for name, column in memory.items()}
    moved_variances = None if variances is None else variances[order]
    relabelled = policy.scores(t, pulls[order], means[order], z[order], moved or None, moved_variances)
    _require(np.allclose(relabelled, scores[order], rtol=1e-12), f"{policy}: scores depend on the arms' order")
    policy.floors(t, pulls, means, memory or None, variances)  # refuses what are no probabilities
    if policy.family.rising:
        later_t = t + t // 10 + 1
        now = policy.scores(t, pulls, means, 0.0, memory or None, variances)
        later = policy.scores(later_t, pulls, means, 0.0, memory or None, variances)
        _require(bool((later >= now).all()), f"{policy}: a score falls while its arm rests: {now}, later {later}")


def _from_unit(policy: Policy) -> Scale:
    """Return the scale from rewards between 0 and 1 to those that the policy is for."""
    return Scale(0.0, 1.0, *(policy.reward_range or (0.0, 1.0)))


class _Past:
    """Rewards of some arms, and what a policy makes of them by NumPy."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.pulls = np.zeros(ARMS)
        self.totals = np.zeros(ARMS)
        self.squares = np.zeros(ARMS)
        self.memory = {name: np.zeros(ARMS) for name in policy.columns}

    def state(self) -> tuple[int, F64, F64, dict[str, F64], F64]:
        """Return the next round, pulls, means, memory and variances."""
        counts = np.maximum(self.pulls, 1)
        means = self.totals / counts
        variances = np.maximum(self.squares / counts - means**2, 0.0)
        return int(self.pulls.sum()) + 1, self.pulls, means, self.memory, variances

    def take(self, arm: int, reward: float, probability: float) -> None:
        """Learn the reward of a decision that had this probability."""
        self.pulls[arm] += 1
        self.totals[arm] += reward
        self.squares[arm] += reward**2
        after, pulls, means, memory, variances = self.state()
        before = {name: float(column[arm]) for name, column in memory.items()}
        with np.errstate(all="ignore"):
            learned = self.policy.learned(
                after - 1,
                float(pulls[arm]),
                float(means[arm]),
                reward,
                before,
                ARMS,
                probability,
                float(variances[arm]),
            )
        _require(bool(np.isfinite([*learned.values()]).all()), f"{self.policy}: a column is not finite: {learned}")
        for name, value in learned.items():
            memory[name][arm] = value


def _check_live(policy: Policy, random: np.random.Generator) -> None:
    """Compare live rounds with a reload between any two of them with the same without, and with the formulas."""
    bandit = Bandit(range(ARMS), policy, seed=1)
    past = _Past(policy)
    unit = _from_unit(policy)
    for _ in range(LIVE_ROUNDS):
        again = Bandit.from_json(bandit.to_json(), policy=policy)
        if policy.estimator.plain:
            t, pulls, means, memory, variances = past.state()
            expected = policy.probabilities(*past.state())
            found = list(bandit.probabilities().values())
            stated = f"{found} live, {expected.tolist()} by the formulas at {t=}, {pulls=}, {means=}, {memory=}"
            _require(np.allclose(expected, found, atol=1e-9), f"{policy}: probabilities differ: {stated}, {variances=}")
        decision = bandit.ask()
        same = again.ask()
        _require(decision == same, f"{policy}: {decision} becomes {same} after a reload")
        reward = random.random()
        if not policy.asks_variance:  # variances are rounded, so that a tie of theirs here may be none live
            reward = float(reward < 0.5)
        reward = unit.apply(reward)
        bandit.tell(decision, reward)
        past.take(int(decision.arm), reward, decision.propensity)


def _played(policy: Policy, random: np.random.Generator) -> tuple[int, F64, F64, dict[str, F64], F64]:
    """Return a state that some live rounds lead to: next round, pulls, means, memory, variances."""
    past = _Past(policy)
    unit = _from_unit(policy)
    for _ in range(int(random.integers(2 * ARMS, 80))):
        t, pulls, means, memory, variances = past.state()
        probability = policy.probabilities(*past.state()) if policy.weighted else np.ones(ARMS)
        arm = policy.choose(t, pulls, means, random, memory, variances)
        past.take(arm, unit.apply(float(random.random() < 0.3 + 0.1 * arm)), float(probability[arm]))
    return past.state()


def _check_choices(policy: Policy, random: np.random.Generator) -> None:
    """Compare first choices from one state, live and simulated, arm by arm; live ones take longer and are fewer."""
    unit = _from_unit(policy)
    pulls = np.array([40.0, 5, 2, 20, 10])
    shares = np.array([0.4, 0.5, 0.3, 0.5, 0.45])  # arm 0 is not to be the best
    t = int(pulls.sum()) + 1
    memory: dict[str, F64] = {}
    variances = shares * (1 - shares) * (unit.to_high - unit.to_low) ** 2
    means = unit.apply(shares)
    if policy.columns:
        t, pulls, means, memory, variances = _played(policy, random)
    choices = [policy.choose(t, pulls, means, random, memory or None, variances) for _ in range(LIVE)]
    live = np.bincount(choices, minlength=ARMS)
    problem = Uniform(low=[unit.to_low] * ARMS, high=unit.to_high)
    start = simulate(
        policy,
        problem,
        horizon=1,
        replications=SIMULATED,
        seed=2,
        pulls=pulls,
        means=means,
        memory=memory or None,
        variances=variances if policy.asks_variance else None,
        lanes=LANES,
    )
    compiled = (start.pulls[0] - pulls).sum(axis=0)
    for arm in range(ARMS):
        share = (live[arm] + compiled[arm]) / (LIVE + SIMULATED)
        spread = math.sqrt(share * (1 - share) * (1 / LIVE + 1 / SIMULATED))
        z = (live[arm] / LIVE - compiled[arm] / SIMULATED) / spread if spread else 0.0
        _require(
            abs(z) < CERTAIN,
            f"{policy}: arm {arm} is chosen {live[arm]} times of {LIVE} live, {compiled[arm]} of {SIMULATED} compiled",
        )


def check_estimator(estimator: Estimator) -> None:
    """Check that an estimator gives sound numbers, and the same ones live, in simulation and after a reload.

    - after every reward the mean is a finite number and the pulls are positive, and equal histories of two arms have
      equal numbers; unless it forgets, a reward changes nothing of other arms;
    - what it forgets is as if it had not been: its numbers are those of the rewards that count alone;
    - a live bandit goes on after `to_json` and `from_json` as if nothing had been;
    - a policy with it pulls the same arms live and in simulation, round by round, where nothing is random.

    Parameters
    ----------
    estimator : Estimator
        The estimator, which must not ask for contexts.

    Raises
    ------
    AssertionError
        If one of these does not hold.
    """
    if not isinstance(estimator, Estimator):
        raise TypeError(f"estimator must be an estimator such as Mean(window=50), got {estimator!r}")
    _check_no_context("estimator", estimator, estimator)
    random = np.random.default_rng(1)
    rewards: list[F64] = [
        (random.random(ROUNDS) < 0.3).astype(np.float64),
        random.normal(1.0, 2.0, ROUNDS),
        random.standard_t(2.5, ROUNDS),
    ]
    for values in rewards:
        arms = random.integers(0, ARMS - 1, ROUNDS)  # the last arm stays without a reward
        _check_numbers(estimator, arms, values)
        _check_forgetting(estimator, arms, values)
    _check_same_arms(estimator)


def _check_no_context(name: str, subject: object, estimator: Estimator) -> None:
    if estimator.asks_context:
        raise TypeError(f"{name} must not ask for contexts: what is checked here has none, got {subject!r}")


def _learned(estimator: Estimator, arms: Iterable[int], rewards: Iterable[float]) -> Arms:
    """Return what a live bandit has learned after some rewards."""
    learned = Arms(UCB(C=0.5, estimator=estimator))
    for _ in range(ARMS):
        learned.add()
    for arm, reward in zip(arms, rewards, strict=True):
        learned.learn(int(arm), float(reward), 1.0)
    return learned


def _pulls_and_means(learned: Arms) -> F64:
    """Return pulls and means of all arms, as formulas see them."""
    if learned.estimator.weighs:
        learned.probabilities(np.arange(ARMS), [0] * ARMS)  # which is when the means are computed
    return learned.table[[PULLS, MEAN], :ARMS].copy()


def _check_numbers(estimator: Estimator, arms: I64, rewards: F64) -> None:
    learned = _learned(estimator, [], [])
    before = np.zeros((2, ARMS))
    for t, (arm, reward) in enumerate(zip(arms.tolist(), rewards.tolist(), strict=True)):
        if t == ROUNDS // 2:
            state = json.loads(json.dumps(learned.to_json()))
            learned = _learned(estimator, [], [])
            learned.restore(state)
        learned.learn(arm, reward, 1.0)
        now = _pulls_and_means(learned)
        sound = np.isfinite(now).all() and now[0, arm] > 0
        _require(bool(sound), f"{estimator}: pulls and means are {now.tolist()} after the reward {reward} of arm {arm}")
        others = np.delete(np.arange(ARMS), arm)
        same = np.array_equal(now[:, others], before[:, others]) or estimator.forgets
        _require(
            same, f"{estimator}: a reward of arm {arm} changes other arms from {before.tolist()} to {now.tolist()}"
        )
        before = now
    whole = _pulls_and_means(_learned(estimator, arms, rewards))
    _require(np.array_equal(before, whole), f"{estimator}: {whole.tolist()} becomes {before.tolist()} after a reload")
    pairs = np.repeat(rewards, 2)
    twins = _pulls_and_means(_learned(estimator, np.tile([0, 1], ROUNDS), pairs))
    tie = np.array_equal(twins[:, 0], twins[:, 1]) or estimator.forgets  # which makes later rewards count more
    _require(tie, f"{estimator}: equal rewards of two arms make {twins[:, :2].tolist()}")


def _check_forgetting(estimator: Estimator, arms: I64, rewards: F64) -> None:
    """Compare pulls and means with those of the rewards that count."""
    if not estimator.forgets:
        return
    ages = np.arange(ROUNDS)[::-1]
    weights = np.where(ages < (estimator.window or ROUNDS), (estimator.discount or 1.0) ** ages, 0.0)
    found = _pulls_and_means(_learned(estimator, arms, rewards))
    for arm in range(ARMS):
        counting = (arms == arm) & (weights > 0)
        count = weights[counting].sum()
        mean = 0.0 if not counting.any() else float(weights[counting] @ rewards[counting] / count)
        if counting.any() and estimator.weighs:
            parameters = estimator.parameters.values()
            mean = float(type(estimator).estimate(rewards[counting], weights[counting], *parameters))  # type: ignore[misc]
        close = np.allclose(found[:, arm], [count, mean], rtol=1e-9, atol=1e-9 * np.abs(rewards).max())
        _require(
            close, f"{estimator}: pulls and mean are {found[:, arm]}, of the rewards that count {count} and {mean}"
        )


@problem(mean=lambda level: level + 0.5)
def paid_by_turns(t, arm, *, level: float = 0.0):  # type: ignore[no-untyped-def]
    """Rewards that look random and are not."""
    return level + (7919.0 * t * (arm + 3.0) % 1009.0) / 1009.0


def _check_same_arms(estimator: Estimator) -> None:
    """Compare the arms of a policy without noise, live and in simulation, where rewards are not random."""
    player = UCB(C=0.5, estimator=estimator)
    rewards = paid_by_turns(level=np.linspace(0.0, 0.2, ARMS))
    run = Run(player, rewards, Start((0,) * ARMS, (0.0,) * ARMS), 1, 0, 32, np.array([ROUNDS]))
    bandit = Bandit(range(ARMS), player, seed=1)
    before = np.zeros(ARMS)
    for t in range(1, ROUNDS + 1):
        run.advance(t)
        pulls = run.statistics.pulls[:, 0].copy()
        simulated = int(np.argmax(pulls - before))
        before = pulls
        decision = bandit.ask()
        stated = f"in round {t} the arm {decision.arm} live and {simulated} in simulation"
        _require(decision.arm == simulated or decision.propensity < 1, f"{estimator}: {stated}")
        inputs = {"t": np.array([float(t)]), "arm": np.array([simulated])}
        bandit.cancel(decision)
        bandit.tell(arm=simulated, reward=float(np.asarray(rewards.evaluate(inputs)).reshape(-1)[0]))


def check_problem(problem: Problem | ContextProblem) -> None:
    """Check that a problem pays what its moments say, live and compiled, over many pulls of every arm.

    Where a second moment is infinite no sample can tell the mean, and rewards have to be finite numbers, no more. Of a
    problem with contexts the mean is checked in some contexts of a simulation.

    Parameters
    ----------
    problem : Problem or ContextProblem
        The problem.

    Raises
    ------
    AssertionError
        If an arm pays something else; the text has both numbers.
    """
    if isinstance(problem, ContextProblem):
        _check_contexts(problem)
        return
    random = np.random.default_rng(1)
    compiled = _compiled_means(problem)
    spread = _check_second_moments(problem)
    for arm in range(problem.arms):
        inputs = {
            "t": np.arange(1.0, NUMPY_PULLS + 1),
            "pulls": np.arange(1.0, NUMPY_PULLS + 1),
            "arm": np.full(NUMPY_PULLS, arm),
        }
        rewards = np.broadcast_to(
            np.asarray(problem.evaluate(inputs | _noise(random, NUMPY_PULLS)), dtype=float), NUMPY_PULLS
        )
        _require(bool(np.isfinite(rewards).all()), f"{problem}: arm {arm} pays what is not a finite number")
        if problem.support is not None:
            low, high = (float(end[arm]) for end in problem.support)
            rounding = 1e-12 * (1 + abs(low) + abs(high))
            paid = f"pays from {rewards.min()} to {rewards.max()}, its support is said to be {low} to {high}"
            inside = bool(low - rounding <= rewards.min() and rewards.max() <= high + rounding)
            _require(inside, f"{problem}: arm {arm} {paid}")
        if not np.isfinite(spread[arm]):
            continue
        error = max(rewards.std() / math.sqrt(NUMPY_PULLS), 1e-12 * (1 + abs(problem.means[arm])))
        claim = f"its mean is said to be {problem.means[arm]}"
        z = (rewards.mean() - problem.means[arm]) / error
        _require(abs(z) < CERTAIN, f"{problem}: arm {arm} pays {rewards.mean()}, {claim}")
        z = (compiled[arm] - problem.means[arm]) / (error * math.sqrt(NUMPY_PULLS / COMPILED_PULLS))
        _require(abs(z) < CERTAIN, f"{problem}: arm {arm} pays {compiled[arm]} compiled, {claim}")


def _noise(random: np.random.Generator, count: int) -> dict[str, F64]:
    """Draw the noise of rewards."""
    return {"u": random.random(count), "v": random.random(count), "w": random.standard_normal(count)}


def _check_contexts(problem: ContextProblem) -> None:
    """Check each round of a short simulation: compiled means are the formula's, and one arm's rewards have them."""
    run = ContextRun(UCB(C=1.0), problem, np.array([CONTEXTS]))
    random = np.random.default_rng(1)
    data = problem.context
    run.begin(seed=1, replication=0)
    for t in range(1, CONTEXTS + 1):
        run.advance(t)
        world = run.arrays.world
        arm = t % problem.arms
        at = {"t": float(t), "label": 0.0}
        if isinstance(data, DataContext):
            at["label"] = float(data.labels[world.order[world.place[0] - 1]])
        means = problem.means_at(world.x, **at)
        where = f"in the context {world.x.tolist()}"
        same = bool(np.allclose(means, world.means, rtol=1e-9, atol=1e-12))
        _require(same, f"{problem}: {where} the means are {means}, compiled {world.means}")
        noise = _noise(random, DRAWS)
        rewards = np.broadcast_to(problem.reward_at(arm, float(means[arm]), world.x, noise, **at), DRAWS)
        _require(bool(np.isfinite(rewards).all()), f"{problem}: {where} arm {arm} pays what is not a finite number")
        error = max(rewards.std() / math.sqrt(DRAWS), 1e-9 * (1 + abs(means[arm])))
        paid = f"arm {arm} pays {rewards.mean()}, its mean is said to be {means[arm]}"
        _require(abs(rewards.mean() - means[arm]) < CERTAIN * error, f"{problem}: {where} {paid}")


def _check_second_moments(problem: Problem) -> F64:
    """Return the second moments that the problem claims, after checking those that can be integrated; else 0."""
    if problem.family.second_moment is None:
        return np.zeros(problem.arms)
    claimed = problem.second_moments
    _require(bool((claimed >= problem.means**2 * (1 - 1e-12)).all()), f"{problem}: a second moment below mean²")
    if not problem.inputs & {"t", "pulls"}:
        for arm in np.flatnonzero(np.isfinite(claimed)):
            found, spread, certain = quadrature(problem, int(arm), power=2)
            _require(
                not certain or abs(claimed[arm] - found) <= 1e-3 * spread + 1e-12 * found,
                f"{problem}: arm {arm} has the second moment {found}, it is said to be {claimed[arm]}",
            )
    return claimed


def _compiled_means(problem: Problem) -> F64:
    """Return what the compiled problem pays on average, every arm being pulled in turn in every lane."""
    lanes = 64
    start = Start((0,) * problem.arms, (0.0,) * problem.arms)
    end = np.array([COMPILED_PULLS // lanes * problem.arms])
    run = Run(in_turn(), problem, start, 1, 0, lanes, end)
    run.advance(int(end[0]))
    paid: F64 = run.statistics.total.sum(axis=1) / run.statistics.pulls.sum(axis=1)
    return paid


@policy
def in_turn(pulls):  # type: ignore[no-untyped-def]
    """Pull the arm that was pulled least."""
    return -pulls


def check_journal(make: Callable[[], Journal]) -> None:
    """Check that a journal keeps the events of a bandit whole, in order, and for the next one who opens it.

    - what is appended comes back in its order, from any number of events on; a part of an `append` is never kept;
    - the key by which decisions are drawn is kept beside the events, and is none of them;
    - closed and opened again, the journal has the same identity, events and key, and goes on.

    Parameters
    ----------
    make
        Opens the journal: an empty one at first and, after that one was closed, the same with all that was appended.

    Raises
    ------
    AssertionError
        If the journal breaks one of these promises; the text says which.

    Examples
    --------
    >>> from rightarm.logs.journals import MemoryJournal
    >>> journal = MemoryJournal()
    >>> check_journal(lambda: journal)
    """
    journal = make()
    identity = journal.identity
    _require(isinstance(identity, str) and identity != "", f"a journal has the identity {identity!r}")
    _check_events(journal, [])
    expected = list[Event]()
    for events in ([], _story(0), *([event] for event in _story(1)), [], _story(2)[:3]):
        journal.append(events)
        expected += events
        _check_events(journal, expected)
    _check_whole(journal, expected)
    key = _check_key(journal)
    journal.flush()
    _check_events(journal, expected)
    journal.close()
    for number in (3, 4):
        journal = make()
        found = journal.identity
        _require(found == identity, f"a journal that was {identity} is {found} when it is opened again")
        _check_events(journal, expected)
        _require(journal.key() == key, "a journal that is opened again has another key")
        journal.append(_story(number))
        expected += _story(number)
        _check_events(journal, expected)
        journal.close()


def _story(number: int) -> list[Event]:
    """Return events of every kind, as they can follow each other; each story has ids of its own."""
    first = 10 * number + 1
    time = 1_700_000_000.0 + first
    choices: list[dict[str, Any]] = [
        {"arm": "red", "unit": "visitor é😀", "meta": {"page": [1, None, {"a": "b"}]}},
        {"arm": 2, "context": [0.5, -1e-300], "arm_features": [[1.0], [2.0]]},
        {"arm": True, "allowed": [True, "red"], "group": "holdout", "error": 1e-9},
        {"arm": 0.5, "unit": 7},
    ]
    made: list[Event] = [
        Decision(id=number, propensity=0.25, round=1, version=number, time=time, **choice)
        for number, choice in enumerate(choices, start=first)
    ]
    made += [
        Reward(id=first, reward=0.1 + 0.2, time=time),
        Reward(id=first + 1, reward=-1e100, part=True, time=time + 0.125),
        Cancellation(id=first + 2, time=time),
        Expiry(ids=[first + 1, first + 3], reward=0.0, time=time),
        Correction(id=first, reward=5e-324, time=time),
        LateReward(id=first + 3, reward=1.0, time=time),
        Observation(arm="red", reward=1.0, time=time, context=[0.5]),
        Changed(arms=["red", 2], settings={"floor": 0.125}, status="paused", reason="a test", time=time),
    ]
    if number == 0:
        settings = Settings(reward_range=(-1.0, 500.0), control="red")
        made.insert(0, Created(arms=["red", 2, True, 0.5], policy={"formula": "a:b"}, settings=settings, time=time))
    return made


def _check_events(journal: Journal, expected: Sequence[Event]) -> None:
    """Check that a journal has these events, from whatever number on they are asked for."""
    count = journal.events
    _require(count == len(expected), f"a journal says that it has {count} events after {len(expected)} were appended")
    places = range(count + 1) if count <= 20 else (0, 1, count // 2, count - 1, count)
    for place in places:
        found = [_as_text(event) for event in journal.since(place)]
        wanted = [_as_text(event) for event in expected[place:]]
        _require(found == wanted, f"since({place}) gives {found!r:.500}, appended were {wanted!r:.500}")


def _check_whole(journal: Journal, expected: list[Event]) -> None:
    """Append events of which one cannot be written as JSON: either all are kept, as in memory, or none."""
    good = Observation(arm="red", reward=0.5, time=1_700_000_000.0)
    bad = Decision(id=999, arm="red", propensity=0.5, round=1, version=1, time=1.0, meta={"a": object()})
    with contextlib.suppress(TypeError, ValueError):
        journal.append([good, bad, good])
        expected += [good, bad, good]
    _check_events(journal, expected)


def _check_key(journal: Journal) -> int:
    """Check that a journal keeps a key that it is given, unless it was made with one."""
    key = journal.key()
    if key is None:
        key = 0x0F1E2D3C4B5A69788796A5B4C3D2E1F0
        journal.keep_key(key)
    _require(journal.key() == key, "a journal does not keep the key that it was given")
    text = "".join(_as_text(event) for event in journal.since(0))
    _require(f"{key:032x}" not in text and str(key) not in text, "the key is among the events, which others may read")
    return key


def _as_text(event: Event) -> str:
    """Return everything about an event."""
    try:
        return ENCODER.encode(event).decode()
    except TypeError:
        return repr(event)


def check_store(url: str) -> None:
    """Check that a database, which must be empty, keeps what a store promises.

    Two replicas decide on it as one bandit in memory does; events are numbered without gaps; keys, rewards, units and
    windows count once; what fails leaves nothing; and everything in it follows from its events.

    Parameters
    ----------
    url : str
        The address of the database, such as ``sqlite:///store.db``.

    Raises
    ------
    AssertionError
        If the store breaks one of these promises; the text says which.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_store(f"sqlite:///{folder}/store.db")
    """
    with needed_for("check_store()", "service"):
        from rightarm.store.store_contract import check
    check(url)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)
