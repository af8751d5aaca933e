"""The service: a store, the policies that its texts name, and the queue of what is to be committed."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, TypeVarTuple

from rightarm.bandit.bandit import Bandit
from rightarm.bandit.state import State
from rightarm.estimators import Estimator
from rightarm.messages import Arm, ContextValues
from rightarm.policies.policy import Policy, PolicyFamily
from rightarm.policies.text import read_estimator, read_policy
from rightarm.service.access import Access
from rightarm.service.monitoring import Metrics, ServiceLog
from rightarm.service.problem_details import RETRY, Refusal
from rightarm.store import PROBE, Commits, StoredBandit, Work
from rightarm.store.store import work_of

MOST_NUMBERS = 20_000_000  # that a bandit with contexts may keep

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Policies:
    """Reads policies from their texts; ``modules`` are imported now, and never another one.

    >>> Policies([]).read("UCB(C=0.5)", "Linear(['hour'])", arms=2)
    UCB(C=0.5, estimator=Linear(['hour']))
    """

    def __init__(self, modules: Iterable[str]) -> None:
        self._families: dict[str, PolicyFamily] = {}
        sys.path.insert(0, os.getcwd())
        try:
            for module in modules:
                found = vars(importlib.import_module(module)).items()
                self._families |= {f"{module}:{name}": kind for name, kind in found if isinstance(kind, PolicyFamily)}
        finally:
            sys.path.remove(os.getcwd())

    def read(self, policy: str | None, estimator: str | None, arms: int) -> Policy:
        """Return the policy of that text, or the default one, with the estimator of the other text."""
        if policy is None:
            asks_context = estimator is not None and _read_estimator(estimator).asks_context
            policy = "ResidualGumbel()" if asks_context else "ScaledGumbel()"
        with blaming("policy"):
            made = read_policy(policy, self._find)
        if estimator is not None:
            if "estimator" in made.values:
                raise Refusal(422, f"estimator must be left out: the policy has one, {made!r}", "estimator")
            made = with_estimator(made, estimator)
        check_size(made, arms)
        return made

    def compiled(self, policy: str | None, estimator: str | None, arms: int) -> Policy:
        """Return what `read` does, compiled here and not where decisions would wait for it."""
        return compiled("policy", self.read(policy, estimator, arms))

    def changed(self, present: Policy, policy: str | None, estimator: str | None, arms: int) -> Policy | None:
        """Return the policy that is to decide from now on, if that is another one than the present one."""
        if policy is not None:
            return self.compiled(policy, estimator, arms)
        made = present if estimator is None else with_estimator(present, estimator)
        check_size(made, arms)
        return None if estimator is None else compiled("estimator", made)

    def _find(self, address: str) -> PolicyFamily:
        if address not in self._families:
            found = ", ".join(self._families) or "none"
            raise ValueError(f"there is no {address} among the modules named at start; there are {found}")
        return self._families[address]


def compiled(field: str, policy: Policy) -> Policy:
    """Return the policy, compiled; if it decides nothing, the field is to blame that it came from."""
    with blaming(field):
        bandit = Bandit(["a", "b"], policy, seed=0)
        compute_one(policy, bandit.arms, bandit.probabilities)
    return policy


def probabilities_of(
    state: State,
    context: ContextValues | None = None,
    arm_features: Mapping[Hashable, ContextValues] | None = None,
    allowed: Iterable[Arm] | None = None,
) -> dict[Arm, float]:
    """Return the probability of every arm in the next decision."""
    return state.named_probabilities(context, arm_features, allowed)


def compute_one(policy: Policy, arms: Sequence[Hashable], compute: Callable[..., object]) -> None:
    """Compute the probabilities of one decision, in an empty context if the policy looks at contexts.

    >>> import rightarm as ra
    >>> bandit = ra.Bandit(["a", "b"], ra.UCB(C=0.5, estimator=ra.estimators.Linear(["hour"])))
    >>> compute_one(bandit.policy, bandit.arms, bandit.probabilities)
    """
    estimator: Any = policy.estimator
    if not arms:
        return
    if not estimator.asks_context:
        compute()
        return
    design = estimator.arm_features
    features = None if design is None else {arm: [0.0] * design.size for arm in arms}
    compute([0.0] * estimator.features.size, arm_features=features)


def with_estimator(policy: Policy, text: str) -> Policy:
    """Return the policy with the estimator of that text in the place of its own."""
    estimator = _read_estimator(text)
    with blaming("estimator"):
        made: Policy = policy.family(**policy.values | {"estimator": estimator})
    return made


def check_size(policy: Policy, arms: int) -> None:
    """Raise if what the policy keeps of contexts would fill the memory."""
    design = getattr(policy.estimator, "design", None)
    if design is None:
        return
    numbers = arms * design.own * (design.own + design.joint) + design.joint**2
    if numbers > MOST_NUMBERS:
        detail = (
            f"estimator must have fewer columns: with {arms:,} arms it would keep {numbers:,} numbers, "
            f"more than {MOST_NUMBERS:,}"
        )
        raise Refusal(422, detail, "estimator", code="too_large")


def _read_estimator(text: str) -> Estimator:
    with blaming("estimator"):
        return read_estimator(text)


@contextlib.contextmanager
def blaming(field: str) -> Iterator[None]:
    """Have errors within name the field of the request that is wrong."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise Refusal(422, f"{field}: {error}", field, code=getattr(error, "code", None)) from None


THREADS = 4  # for reads
MOST_READS = 100  # that wait for a thread
MOST_STREAMS = 32


class Service:
    """A store and what answers requests about it."""

    def __init__(
        self,
        commits: Commits,
        modules: Iterable[str] = (),
        rate: float | None = None,
        log: ServiceLog | None = None,
        host_names: Iterable[str] = (),
    ) -> None:
        self.commits = commits
        self.store = commits.store
        self.threads = ThreadPoolExecutor(THREADS, "reads")
        self._finds = ThreadPoolExecutor(2, "tokens")  # every request needs its token, however long reads take
        self.access = Access(self.store.tokens, rate, self._finds, host_names=host_names)
        self.policies = Policies(modules)
        self.metrics = Metrics()
        self.log = ServiceLog(sys.stderr) if log is None else log
        self.ready = False  # compiled and folded
        self.streams = 0
        self._reads = 0
        self._done: deque[tuple[asyncio.Future[Any], object]] = deque()
        self._delivering = False  # whether the event loop has been called
        commits.observe = self.metrics.committed

    async def commit(self, work: Work[T] | str, function: Callable[[StoredBandit], T] | None = None) -> T:
        """Return what work gives, or a function of the bandit of this name, once all that it did is written."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[T] = loop.create_future()

        def done(result: object) -> None:  # in the thread of the commits
            self._done.append((waiter, result))
            if not self._delivering:
                self._delivering = True
                loop.call_soon_threadsafe(self._deliver)

        self.commits.call(work_of(work, function), done)
        return await waiter

    def _deliver(self) -> None:
        """Give the results that are there to those who wait: all at once, not each by itself."""
        self._delivering = False  # first, so that what comes from now on calls again
        while self._done:
            waiter, result = self._done.popleft()
            if waiter.done():  # nobody waits any more
                continue
            if isinstance(result, BaseException):
                waiter.set_exception(result)
            else:
                waiter.set_result(result)

    async def read(self, name: str, function: Callable[[StoredBandit], T]) -> T:
        """Return what a function gives that changes nothing, of the bandit of this name."""
        return await self.commit(Work(name, function, reads=True))

    async def in_thread(self, function: Callable[[*Ts], T], *arguments: *Ts) -> T:
        """Return what a function gives that may take long."""
        if self._reads >= MOST_READS:
            raise Refusal(503, f"{MOST_READS} others wait for reads; try again", None, RETRY, "busy")
        self._reads += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.threads, function, *arguments)
        finally:
            self._reads -= 1

    async def check_ready(self) -> None:
        """Raise unless a decision would be answered now: by trying all that it needs but the bandit."""
        if not self.ready:
            raise Refusal(503, self.commits.status.last_error or "bandits are being loaded", None, RETRY, "loading")
        await self.commit(PROBE)

    def check_streams(self) -> None:
        """Raise if as many answers are being streamed as may be."""
        if self.streams >= MOST_STREAMS:
            raise Refusal(503, f"{MOST_STREAMS} others read events; try again", None, RETRY, "busy")

    @contextlib.contextmanager
    def streaming(self) -> Iterator[None]:
        """Count an answer that is streamed: while it is prepared, and while it is sent."""
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1

    def close(self) -> None:
        """Finish what was acknowledged."""
        self.commits.close()
        for threads in (self._finds, self.threads):
            threads.shutdown(cancel_futures=True)
        self.log.close()
