"""`Bandit`: decisions one by one, with the exact probability of each, and rewards that may come late or never."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Unpack, overload

from rightarm.bandit import answers, decide, explanations, recovery, rewards, saved, summary
from rightarm.bandit.context_arms import ArmFeatures
from rightarm.bandit.decide import ChangeOptions, PriorLike, SettingOptions, new_first_id, new_key
from rightarm.bandit.explanations import Explanation
from rightarm.bandit.ledger import hashable_name
from rightarm.bandit.recovery import Folder, Journaled, Log, policy_finder
from rightarm.errors import WrongType, WrongValue, polars_for
from rightarm.files import write_whole
from rightarm.formula import check_count
from rightarm.inference import Best, Coefficients, Difference
from rightarm.logs.events import A, Decision, Status, Unit, check_time
from rightarm.logs.journals import Journal
from rightarm.logs.settings import Late, Learn, Repeated, Settings, check_seconds
from rightarm.policies.boltzmann import ScaledGumbel
from rightarm.policies.policy import Policy

if TYPE_CHECKING:
    import polars
    from matplotlib.figure import Figure


class StartOptions(SettingOptions, total=False):
    """The options of a new bandit that `Bandit.open` passes on."""

    seed: int | None


class OpenOptions(StartOptions, total=False):
    """All options of `Bandit.open`."""

    change_policy: bool
    change_arms: bool
    snapshot_every: int
    sync: bool
    rotate: str | None
    clock: Callable[[], float]


class Bandit(Journaled, Generic[A]):
    """A live bandit: `ask` for an arm, `tell` its reward, at any later time and in any order.

    An arm is drawn from the exact probabilities of the moment, so the propensity is that of the choice by construction.
    While arms have no reward, a policy that looks at means tries them first: they share the draw evenly. One that waits
    for its reward meanwhile gets one decision in as many as there are arms, and the policy chooses among the others.

    All methods may be called from several threads; an exception from a signal handler, Ctrl-C say, leaves things done
    wholly or not at all. A process that is forked must make its own bandit. A pending decision takes some 500 bytes;
    the answers of the last 100,000 others are remembered, to notice or correct what is told again.

    Parameters
    ----------
    arms
        Their names, anything hashable; or a mapping from each to its prior, as `add_arm` takes it, or None.
    policy
        A policy of rightarm, or one's own; `ScaledGumbel`, which has no parameter to choose, unless given. For worlds
        that change, give it an estimator that forgets: ``ScaledGumbel(estimator=ra.estimators.Mean(window=1_000))``.
    reward_range
        The least and the largest reward, such as ``(0, 500)``; others are errors. Policies for rewards from 0 to 1
        (``policy.reward_range``) get them scaled; without a range, such policies take rewards from 0 to 1 only.
    floor
        A probability that every arm has at least; the propensities include it.
    reward_window
        How long rewards of a decision are awaited, in seconds or as a `timedelta`.
    default_reward
        The reward of a decision whose window has closed without any; None is no reward.
    learn
        "at once" learns a reward when it comes; "at close" when the window of its decision closes, so that quick
        answers and slow ones weigh the same.
    repeated
        Of several rewards of one decision, the "last" counts, or their "sum".
    late
        Rewards after the window "correct" what was learned, or the log alone has them ("keep").
    control
        The arm that others are compared with.
    holdout
        The share of all decisions that is given to the control, or drawn evenly from all arms if there is none,
        whatever the policy says; propensities include it.
    seed
        The same seed and the same answers give the same decisions, ids included. So whoever knows the seed can predict
        them. Without it decisions are drawn by a secret key, and ids begin at a number that no other bandit has used.
    log
        A path, a `LogWriter` or another journal (`rightarm.logs.journals.Journal`), to which everything that happens is
        written before it counts. It must be a new one: `open`, `from_json` and `from_log` go on with one that has
        events. The secret key is in a file beside the log, whose name ends in ``.key``.
    clock
        A function that returns seconds since 1970, for windows, `expire` and the log.

    Examples
    --------
    >>> import rightarm as ra
    >>> bandit = ra.Bandit(["red", "green"], ra.Boltzmann(0.25), seed=2)
    >>> decision = bandit.ask()
    >>> decision.arm, decision.propensity
    ('green', 0.5)
    >>> bandit.tell(decision, 0.5)
    True
    >>> bandit.tell(arm="red", reward=1.0)
    True
    >>> decision = bandit.ask()
    >>> decision.id, decision.arm, round(decision.propensity, 12), decision.round
    (2, 'red', 0.880797077978, 3)
    """

    def __init__(
        self,
        arms: Iterable[A] | Mapping[A, PriorLike | None],
        policy: Policy | None = None,
        *,
        reward_range: tuple[float, float] | None = None,
        floor: float = 0.0,
        reward_window: float | timedelta | None = None,
        default_reward: float | None = None,
        learn: Learn = "at once",
        repeated: Repeated = "last",
        late: Late = "correct",
        control: A | None = None,
        holdout: float = 0.0,
        seed: int | None = None,
        log: Log | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        names, prior = decide.names_and_priors(arms)
        entropy = seed if seed is None else check_count("seed", seed, least=0)
        settings = Settings(
            floor=floor,
            reward_range=reward_range,
            reward_window=None if reward_window is None else check_seconds("reward_window", reward_window, above=0.0),
            default_reward=default_reward,
            learn=learn,
            repeated=repeated,
            control=None if control is None else hashable_name(control),
            holdout=holdout,
            late=late,
        )
        if not callable(clock):
            raise WrongType("clock", f"must be a function that gives seconds, got {clock!r}")
        chosen = ScaledGumbel() if policy is None else policy
        recovery.check_policy(chosen)
        key = new_key(entropy)
        first_id = new_first_id(entropy)
        now = check_time(clock())
        created, state = decide.create(names, chosen, settings, prior=prior, first_id=first_id, now=now)
        with recovery.opened(log) as journal:
            if journal is not None:
                recovery.begin_new(journal, created, key)
            self._begin(state, [chosen], key, journal, clock)

    def __enter__(self) -> Bandit[A]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a bandit cannot be pickled or copied: it holds a lock and a log; to_json() has its whole state"
        )

    # Properties.

    @property
    def policy(self) -> Policy:
        """Return the policy that decides."""
        return self._look().arms.policy

    @property
    def arms(self) -> list[A]:
        """Return the arms that can be chosen."""
        with self._lock:
            return self._current().active_names()

    @property
    def pending(self) -> list[Decision[A]]:
        """Return the decisions that wait for a reward, the oldest first; not those whose window has closed."""
        with self._lock:
            closed = {one.decision.id for one in self._due()}
            pending = self._state.ledger.pending
            return [one.decision for number, one in pending.items() if number not in closed]

    @property
    def version(self) -> int:
        """Return the number of events that have happened to the bandit, its making included."""
        with self._lock:
            return self._current().events

    @property
    def settings(self) -> Settings:
        """Return all options besides arms and policy, as they are now; `change` changes them."""
        return self._look().settings

    @property
    def status(self) -> Status:
        """Say whether the bandit is "running", "paused" (it learns, but decides nothing) or "archived"."""
        return self._look().status

    @property
    def floor(self) -> float:
        """Return the probability that every arm has at least."""
        return self._look().settings.floor

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """Return the least and the largest reward; None if rewards can be anything."""
        return self._look().reward_range

    @property
    def log(self) -> Journal | None:
        """Return the log, if there is one."""
        return self._log

    @property
    def warning(self) -> str:
        """Return a sentence that says so, and what to do, if all rewards so far are equal; else nothing.

        Then arms cannot be compared, and often only clicks are told: `best`, `difference`, `print` and `summary` say
        it too. That is the case from 20 rewards on; or from 5, where 20 decisions that are older than usual have none.

        >>> import rightarm as ra
        >>> bandit = ra.Bandit(["red", "blue"], seed=1)
        >>> for decision in bandit.ask(500)[::10]:
        ...     _ = bandit.tell(decision, 1.0)  # the clicks, and nothing else
        >>> bandit.warning.partition(", ")[0]
        'all 50 rewards are 1 and 450 decisions have none'
        """
        with self._lock:
            return answers.warning(self._current())

    # Decisions.

    @overload
    def ask(
        self,
        *,
        context: object = None,
        arm_features: ArmFeatures | None = None,
        allowed: Iterable[A] | None = None,
        unit: Unit | None = None,
        meta: Mapping[str, object] | None = None,
    ) -> Decision[A]: ...
    @overload
    def ask(
        self, size: int, *, allowed: Iterable[A] | None = None, meta: Mapping[str, object] | None = None
    ) -> list[Decision[A]]: ...
    @overload
    def ask(
        self,
        *,
        contexts: object,
        arm_features: ArmFeatures | None = None,
        allowed: Iterable[A] | None = None,
        meta: Mapping[str, object] | None = None,
    ) -> list[Decision[A]]: ...
    def ask(
        self,
        size: int | None = None,
        *,
        context: object = None,
        contexts: object = None,
        arm_features: ArmFeatures | None = None,
        allowed: Iterable[A] | None = None,
        unit: Unit | None = None,
        meta: Mapping[str, object] | None = None,
    ) -> Decision[A] | list[Decision[A]]:
        """Decide: choose one arm, or several, each drawn by itself.

        Each decision waits for its reward until it is told, cancelled or expired.

        Parameters
        ----------
        size
            How many decisions to make; without it, and without ``contexts``, it is one.
        context
            The context of the decision, for a policy with an estimator such as `Linear`: a mapping, or a row of
            numbers, with the features that it was made for.
        contexts
            Several contexts, a list of such or a data frame: one decision each.
        arm_features
            A mapping from every arm in question to its features, or an array with a row for each in the order of
            `arms`; for an estimator to which arms have features.
        allowed
            The arms to choose from, if not all.
        unit
            Whom the decision is for, a visitor say. It is made once: asked again, it comes back as it was, unless its
            arm is retired or not ``allowed``.
        meta
            A mapping that goes to the log.
        """
        with self._lock:
            state, now = self._ready()
            members = None if allowed is None else state.chosen(allowed)
            checked = None if meta is None else decide.check_meta(meta)
            if size is not None or contexts is not None:
                if unit is not None:
                    raise WrongType("unit", f"is for one decision, got unit={unit!r} and {size=}")
                if context is not None or (size is not None and contexts is not None):
                    what = f"takes one of size, contexts and context, got {size=}, {context=!r:.200}"
                    raise WrongType("ask", what)
                several = decide.encode_several(state, size, contexts, arm_features, members)
                made = decide.decide_several(state, self._draws, now, members, several, meta=checked)
                self._happen(made, now, several)
                return [state.ledger.pending[decision.id].decision for decision in made]
            if unit is not None:
                before = decide.assigned(state, unit, members)
                if before is not None:
                    return before
            if context is None and arm_features is None and not state.has_contexts:  # by far the most
                decision = decide.decide(state, self._draws, now, members, unit=unit, meta=checked)
                self._happen((decision,), now)
                return decision
            encoded = state.encode(context, arm_features, members)
            decision = decide.decide(state, self._draws, now, members, encoded, unit=unit, meta=checked)
            self._happen((decision,), now, (encoded,))
            return state.ledger.pending[decision.id].decision

    def probabilities(
        self, context: object = None, *, arm_features: ArmFeatures | None = None, allowed: Iterable[A] | None = None
    ) -> dict[A, float]:
        """Return the probability of every arm in the next decision, in a context if the policy decides by it."""
        with self._lock:
            return self._current().named_probabilities(context, arm_features, allowed)

    # Rewards.

    @overload
    def tell(self, decision: Decision[A] | int | str, reward: float) -> bool: ...
    @overload
    def tell(self, decision: Iterable[tuple[Decision[A] | int | str, float]] | Mapping[Any, float]) -> list[bool]: ...
    @overload
    def tell(
        self, *, arm: A, reward: float, context: object = None, arm_features: ArmFeatures | None = None
    ) -> bool: ...
    def tell(
        self,
        decision: Any = None,
        reward: float | None = None,
        *,
        arm: A | EllipsisType = ...,
        context: object = None,
        arm_features: ArmFeatures | None = None,
    ) -> bool | list[bool]:
        """Learn the reward of a decision, of a batch of decisions, or of an arm without a decision.

        Parameters
        ----------
        decision
            A decision or its id; or a batch, as pairs of decisions and rewards or a mapping: of it either all is taken
            or, if something is wrong, nothing.
        reward
            The reward, if it is not a batch.
        arm, context, arm_features
            The arm that the reward is of, if it belongs to no decision; a policy that decides by contexts needs the
            context, as `ask` takes it.

        Returns
        -------
        bool or list of bool
            True if the reward was taken, False if it came too late to be learned (``late="keep"``) or is the same for
            the same decision again. Another one is an error, see `correct`; but with a ``reward_window`` it is the
            last, or is added, as ``repeated`` says.
        """
        with self._lock:
            state, now = self._ready()
            is_one = type(decision) is Decision or isinstance(decision, Decision | int | str)
            if is_one and reward is not None and arm is ... and context is None and arm_features is None:
                events, outcome = rewards.reward(state, decision, reward, now)
                self._happen(events, now)
                return outcome in rewards.TAKEN
            batch = rewards.Rewards(state, now)
            taken = batch.take(decision, reward, arm, context, arm_features)
            self._happen(batch.checked(), now, batch.contexts())
            return taken

    def correct(self, decision: Decision[A] | int | str, reward: float) -> bool:
        """Replace the reward of a decision: a refund, a click after its time, a wrong message.

        The statistics become what they would be had this reward come in the place of the other one, to 12 digits. True
        if something changed. A decision that was cancelled, or expired without a reward, learns it now. While its
        window is open, the reward so far is replaced.

        Refused, and nothing changes, where a policy's memory cannot be taken back (`EXP3`), for decisions that were
        answered too long ago, and where all rewards have to be learned again for it and not all are remembered.

        >>> import rightarm as ra
        >>> bandit = ra.Bandit(["a"], seed=1)
        >>> decision = bandit.ask()
        >>> bandit.tell(decision, 20.0), bandit.correct(decision, 0.0)
        (True, True)
        >>> bandit.summary()["estimate"].to_list()
        [0.0]
        """
        with self._lock:
            state, now = self._ready()
            batch = rewards.Rewards(state, now)
            outcome = batch.correct(decision, reward)
            self._happen(batch.checked(), now)
            return outcome != rewards.DUPLICATE

    def cancel(self, decision: Decision[A] | int | str) -> bool:
        """Forget a decision that will have no reward; False if it does not wait for one any more."""
        with self._lock:
            state, now = self._ready()
            events = rewards.cancel(state, decision, now)
            self._happen(events, now)
            return bool(events)

    def expire(self, older_than: float | timedelta, reward: float | None = None) -> int:
        """Cancel all decisions that have waited longer than so many seconds, or give them ``reward``; says how many.

        A decision that has a reward so far (``learn="at close"``) gets that. Decisions whose ``reward_window`` has
        closed need no call: every `ask` and `tell` sees to them first.
        """
        with self._lock:
            state, now = self._ready()
            events = rewards.expire(state, older_than, reward, now)
            self._happen(events, now)
            return len(events)

    def close_windows(self) -> float | None:
        """Learn the decisions whose window of reward has closed; says when the next one can close, if they ever do.

        Every `ask` and `tell` does this first: it is for bandits that nobody asks for a while.

        >>> import rightarm as ra
        >>> bandit = ra.Bandit(["a"], reward_window=60, default_reward=0.0, clock=lambda: 1000.0)
        >>> bandit.close_windows()
        1060.0
        """
        with self._lock:
            state, now = self._ready()
            seconds = state.settings.reward_window
            if seconds is None:
                return None
            first = next(iter(state.ledger.pending.values()), None)
            return seconds + (now if first is None else first.decision.time)

    # Changes.

    def change(
        self,
        *,
        arms: Iterable[A] | Mapping[A, PriorLike | None] | None = None,
        policy: Policy | None = None,
        status: Status | None = None,
        **settings: Unpack[ChangeOptions],
    ) -> bool:
        """Change arms, policy, status or settings from now on, as one event of the log; what is left out stays.

        Everything is tried first on a copy: if one part is refused, nothing changes. False if all of it was so already.

        Parameters
        ----------
        arms
            All arms that can be chosen from now on: others are retired, new ones added. A mapping has the priors of new
            arms, as `Bandit` takes it.
        policy
            Another policy, which decides by what was learned so far; what does not carry over is refused. A policy with
            the estimator `Linear` may have more features than before: older rows have them missing.
        status
            "running", "paused" (it learns, but decides nothing) or "archived", which is for good.
        **settings
            The settings of `Bandit`: reward_range, floor, reward_window, default_reward, learn, repeated, late,
            control, holdout. Decisions that wait follow the new ones too. And ``guardrail``: an arm that is shown to be
            worse than the control by more than this is retired by itself; not where the policy decides by contexts.

        Examples
        --------
        >>> import rightarm as ra
        >>> bandit = ra.Bandit(["a", "b"], ra.BoltzmannGumbel(C=0.5), seed=7)
        >>> bandit.change(policy=ra.BoltzmannGumbel(C=0.07), floor=0.05), bandit.policy.C, bandit.floor
        (True, 0.07, 0.05)
        >>> bandit.change(floor=0.05)
        False
        """
        recovery.check_policy(policy)
        for name in settings:
            if name not in Settings.__struct_fields__:
                raise WrongType(name, f"is not a setting: these are {', '.join(Settings.__struct_fields__)}")
        if settings.get("control") is not None:
            settings["control"] = hashable_name(settings["control"])
        with self._lock:
            return self._change(arms, policy, status, **settings)

    def _change(
        self,
        arms: Iterable[Any] | None = None,
        policy: Policy | None = None,
        status: Status | None = None,
        **settings: Unpack[ChangeOptions],
    ) -> bool:
        """Change something; to be called with the lock."""
        names, prior = (None, None) if arms is None else decide.names_and_priors(arms)
        state, now = self._ready()
        if self._log is not None:
            decide.check_names(names or ())
        events = decide.change(state, now, arms=names, prior=prior, policy=policy, status=status, **settings)
        if policy is not None:
            self._policies.append(policy)
        self._happen(events, now)
        return bool(events)

    def add_arm(self, arm: A, *, prior: PriorLike | None = None) -> None:
        """Add an arm; a policy that looks at means tries it first, unless it has a ``prior``.

        It starts from that as if it had had these rewards: a pair of the mean and the number of rewards, or these and
        their variance; or ``("like", another arm, number)``: that one's mean and variance, as so many rewards. Priors
        are part of what the policy sees, never of the intervals.
        """
        with self._lock:
            state, _ = self._ready()
            name = hashable_name(arm)
            if name in state.index:
                hint = "" if state.active[state.index[name]] else "; it is retired: restore_arm brings it back"
                raise WrongValue("arms", f"must differ, got {name!r} again{hint}")
            self._change(dict.fromkeys(state.active_names()) | {name: prior})

    def replace_arm(self, arm: A, by: A, *, prior: PriorLike | None = None) -> None:
        """Retire an arm and add the one that comes in its place, at once: a new version starts without rewards."""
        with self._lock:
            state, _ = self._ready()
            name = hashable_name(by)
            old = state.names[state.arm_number("arm", arm)]
            if name in state.index:
                raise WrongValue("by", f"must be a new arm, got {name!r}")
            active = state.active_names()
            if old not in active:
                raise WrongValue("arm", f"must be one that is not retired, got {arm!r}")
            self._change({(name if one == old else one): (prior if one == old else None) for one in active})

    def retire_arm(self, arm: A) -> None:
        """Choose an arm no more; what is pending for it is still learned."""
        with self._lock:
            state, _ = self._ready()
            name = state.names[state.arm_number("arm", arm)]
            self._change([one for one in state.active_names() if one != name])

    def restore_arm(self, arm: A) -> None:
        """Choose a retired arm again, with its statistics of before."""
        with self._lock:
            state, _ = self._ready()
            name = state.names[state.arm_number("arm", arm)]
            self._change([one for one in state.names if one == name or state.active[state.index[one]]])

    # Answers.

    def difference(
        self, arm: A, other: A, *, where: Mapping[str, object] | None = None, confidence: float = 0.95
    ) -> Difference:
        """Return by how much the mean of ``arm`` is above that of ``other``: an interval that holds at any time.

        One may look after every reward and stop when one likes; that the bandit chose what to pull does not matter. The
        bandit's ``reward_range`` makes the interval hold for any number of rewards; without it is asymptotic, says so,
        and there is none before 100 effective rewards of both arms (`rightarm.inference.means`); ``lacking`` says what
        has to come. `rightarm.inference` has the same for statistics from elsewhere.

        A bandit that decides by contexts shows arms to different people: there decisions are weighted by propensities,
        and a ``reward_range`` is needed. ``where`` asks for a segment, ``{"device": "phone", "hour": (9, 17)}``: a
        level or a list of levels of categories, a value or two ends of numbers; see `Features.select`.

        >>> import rightarm as ra
        >>> bandit = ra.Bandit(["blue", "red"], ra.UCB(C=0.5))
        >>> print(bandit.difference("blue", "red"))
        cannot tell yet: no reward of blue or red
        """
        with self._lock:
            return answers.difference(self._current(), self._log, arm, other, where, confidence)

    def best(self, *, confidence: float = 0.95, tolerance: float = 0.0) -> Best:
        """Return which arms can still be the best, which one to choose, and what that can cost; at any time.

        ``stop`` says whether that is ``tolerance`` per decision at most; never while an arm lacks rewards, as
        ``lacking`` says then. ``leader`` is None while there is nothing to choose an arm by. Retired arms are left out.
        A bandit that decides by contexts has no best arm: see `difference`.
        """
        with self._lock:
            return answers.best(self._current(), confidence, tolerance)

    def coefficients(self, *, arm: A | None = None, confidence: float = 0.95) -> Coefficients:
        """Return what each column of a context adds to the reward of each arm, with intervals.

        They can be printed, drawn, or had as a table. A row has the ``arm``, or "shared", the ``feature``, the
        ``coefficient`` by which the policy decides, in the unit of the rewards and for one deviation of the column, the
        ends ``low`` and ``high`` of an interval, its ``kind``, and the same ``per_unit`` of the raw feature, by its
        present deviation. Levels of a category are compared with the average of those that came. With a
        ``reward_range`` intervals hold at any time, for rewards that are linear in the columns; without, the noise is
        estimated and they are "approximate". Where there is none, ``lacking`` says why. With ``arm`` the rows are those
        of one arm, and the shared ones. `rightarm.inference.coefficients` has the formulas.

        >>> import rightarm as ra
        >>> policy = ra.BoltzmannGumbel(C=0.05, estimator=ra.estimators.Linear(["hour"], intercept=False))
        >>> bandit = ra.Bandit(["red"], policy, seed=1, reward_range=(-1, 1))
        >>> for hour in range(24):
        ...     _ = bandit.tell(bandit.ask(context={"hour": hour}), hour / 24)
        >>> [(row["arm"], row["feature"], round(row["coefficient"], 2)) for row in bandit.coefficients().table()]
        [('red', 'hour', 0.33)]
        """
        with self._lock:
            return explanations.coefficients(self._current(), confidence, arm)

    def explain(self, decision: Decision[A] | int | str) -> Explanation:
        """Explain why a decision, pending or remembered, chose its arm: a page of text, or HTML in a notebook.

        It has the probability with which the arm was drawn; by what was learned until now, the arm's prediction and how
        many pulls that is worth, and what each column of the context contributes to it; and for all arms prediction,
        pulls, probability, and location and scale of the score, in that context as the decision saw it. ``frame()`` has
        the contributions. Without contexts there are no columns.

        >>> import rightarm as ra
        >>> bandit = ra.Bandit(["red"], ra.UCB(C=0.5, estimator=ra.estimators.Linear(["hour"])), seed=1)
        >>> found = bandit.explain(bandit.ask(context={"hour": 9}))
        >>> found.arm, found.propensity, [row["column"] for row in found.columns]
        ('red', 1.0, ['1', 'hour'])
        """
        with self._lock:
            return explanations.explain(self._current(), decision)

    # The arms at a glance.

    def summary(self) -> polars.DataFrame:
        """Return a Polars frame with a row for each arm; if there is a `warning`, it is one of Python's too.

        Columns are pulls, estimate, mean of all rewards with a 95% interval, share, probability now, pending. The
        interval, from ``low`` to ``high``, holds at any time, as `difference` says; ``kind`` says what it rests on, and
        where there is none ``lacking`` says why. It is about all rewards that were learned, also where the policy
        forgets some. Where a policy decides by contexts, mean and interval are those of the decisions where the arm was
        chosen, and do not compare arms.
        """
        with self._lock:
            warning = answers.warning(self._current())
            rows = summary.arm_rows(self._state, self._due())
        if warning:
            warnings.warn(warning, stacklevel=2)
        plain = [{**row, "arm": str(row["arm"])} for row in rows]
        frame: polars.DataFrame = polars_for("summary()").DataFrame(plain, infer_schema_length=None)
        return frame

    @overload
    def plot(self, path: None = None, *, title: str | None = None) -> Figure: ...
    @overload
    def plot(self, path: str | os.PathLike[str], *, title: str | None = None) -> Path: ...
    def plot(self, path: str | os.PathLike[str] | None = None, *, title: str | None = None) -> Figure | Path:
        """Draw every arm's estimate with its interval, its share of the pulls and its probability now.

        Into a file, PNG, SVG or PDF by the path's ending, and its path is given back; or into a new figure, which is
        given back and which a notebook shows.
        """
        with self._lock:
            return summary.draw_arms(self._current(), self._due(), None if path is None else Path(path), title)

    def __str__(self) -> str:
        with self._lock:
            return summary.as_text(self._current(), self._due())

    def _repr_html_(self) -> str:
        with self._lock:
            return summary.as_html(self._current(), self._due())

    def __repr__(self) -> str:
        state = self._state
        return f"<Bandit: {state.arms.policy}, {len(state.names)} arms, {state.arms.learned:,} rewards>"

    # The whole state, as text and as files.

    def to_json(self) -> str:
        """Return everything as text: statistics, pending decisions, the key of its draws.

        `from_json` makes the same bandit of it. Who has the text can predict decisions.

        >>> import rightarm as ra
        >>> bandit = ra.Bandit(["a", "b"], ra.BoltzmannGumbel(C=0.5), seed=7)
        >>> waiting = bandit.ask(3)
        >>> same = Bandit.from_json(bandit.to_json())
        >>> same.tell(waiting[0], 1.0), bandit.tell(waiting[0], 1.0), same.ask() == bandit.ask()
        (True, True, True)
        """
        with self._lock:
            state = self._current()
            place = None if self._log is None else saved.Place(self._log.identity, self._log.events)
            return saved.to_json(state, place, self._draws.key)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write `to_json` to one file, wholly or not at all."""
        target = Path(path)
        write_whole(target, self.to_json().encode(), mode=0o600)  # it has the key of the draws
        return target

    @classmethod
    def from_json(
        cls,
        text: str | bytes,
        *,
        policy: Policy | None = None,
        change_policy: bool = False,
        log: Log | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Bandit[Any]:
        """Return the bandit that `to_json` described; it goes on as the original would have.

        Parameters
        ----------
        text
            The text that `to_json` returned.
        policy
            The policy. It is found by its name if its module is imported already, else it must be given: text from
            elsewhere never imports anything.
        change_policy
            True to go on with ``policy`` instead of the one that there was, and with what was learned so far; what does
            not carry over is refused. The log has this as an event.
        log
            With the same log as before, what happened since the text was made is learned from there, to the last event:
            decisions, rewards, arms, other policies. A new log begins with what is pending; the log of another bandit
            is refused.
        clock
            A function that returns seconds since 1970.

        Examples
        --------
        >>> import rightarm as ra
        >>> bandit = ra.Bandit(["a", "b"], ra.BoltzmannGumbel(C=0.5), seed=7)
        >>> ra.Bandit.from_json(bandit.to_json(), policy=ra.BoltzmannGumbel(C=0.07), change_policy=True).policy
        BoltzmannGumbel(C=0.07, location=0.5772156649015329)
        """
        recovery.check_policy(policy, change_policy)
        policies = [] if policy is None else [policy]
        found = saved.from_json(text, policy_finder(policies))
        state = found.state
        with recovery.opened(log) as journal:
            is_new = journal is None or not journal.events
            if journal is not None and journal.events:
                recovery.read_on(journal, state, found.place)
            recovery.check_agreement(state, policy, change_policy)
            if is_new:
                state.ledger.skip_ids()
            key = found.key if found.key is not None or journal is None else journal.key()
            key = new_key() if key is None else key
            if journal is not None and is_new:
                recovery.begin_again(journal, state, key, check_time(clock()))
            made: Bandit[Any] = cls.__new__(cls)
            made._begin(state, policies, key, journal, clock)
            made._go_on(policy if change_policy else None)
            return made

    @classmethod
    def from_log(
        cls,
        log: Log,
        policy: Policy | None = None,
        *,
        change_policy: bool = False,
        clock: Callable[[], float] = time.time,
        **settings: Unpack[SettingOptions],
    ) -> Bandit[Any]:
        """Return the bandit that wrote a log, from the log alone; it goes on with it.

        Without the file of its key, it goes on with a new key. ``policy`` is needed if its module is not imported, or
        if the log was not written by a bandit, so that it does not name one; for such a log ``settings`` are those of
        `Bandit`, such as ``floor``.
        """
        recovery.check_policy(policy, change_policy)
        policies = [] if policy is None else [policy]
        with recovery.opened(log) as journal:
            assert journal is not None
            state = recovery.from_log(journal, policy_finder(policies), policy, settings)
            recovery.check_agreement(state, policy, change_policy)
            made: Bandit[Any] = cls.__new__(cls)
            made._begin(state, policies, recovery.key_of(journal), journal, clock)
            made._go_on(policy if change_policy else None)
            return made

    def _go_on(self, policy: Policy | None, arms: Iterable[Any] | None = None) -> None:
        """Go on with another policy, or with other arms, where they are given.

        Arms that the guardrail retires when windows close just now stay retired.
        """
        if policy is None and arms is None:
            return
        with self._lock:
            state, _ = self._ready()
            names, prior = (None, None) if arms is None else decide.names_and_priors(arms)
            wanted = recovery.wanted_arms(state, names, change_arms=True)
            if policy is not None or wanted is not None:
                new = {name: one for name, one in (prior or {}).items() if name not in state.index}
                self._change(None if wanted is None else {name: new.get(name) for name in wanted}, policy)

    @overload
    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        arms: Iterable[A] | Mapping[A, PriorLike | None],
        policy: Policy | None = None,
        **options: Unpack[OpenOptions],
    ) -> Bandit[A]: ...
    @overload
    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        arms: None = None,
        policy: Policy | None = None,
        **options: Unpack[OpenOptions],
    ) -> Bandit[Any]: ...
    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        arms: Iterable[Any] | None = None,
        policy: Policy | None = None,
        *,
        change_policy: bool = False,
        change_arms: bool = False,
        snapshot_every: int = 10_000,
        sync: bool = False,
        rotate: str | None = None,
        clock: Callable[[], float] = time.time,
        **settings: Unpack[StartOptions],
    ) -> Bandit[Any]:
        """Return the bandit of a folder: made if it is not there, else gone on with to the last event, after any crash.

        The folder has a log, to which everything is written before it counts, the secret key of its draws, and a
        snapshot, which is written whole now and then and by `close`.

        Parameters
        ----------
        path
            The folder.
        arms, policy, **settings
            What `Bandit` takes: needed to make it (``policy`` and ``settings`` have defaults). Afterwards they may be
            left out; what is given must be what there is.
        change_policy, change_arms
            True to change the policy to the one given, or to add and retire arms so that there are those given; both
            are events of the log.
        snapshot_every
            The number of events after which a snapshot is written, or a tenth of all if that is more.
        sync
            True to have an event on the disk, not only with the operating system, before it counts.
        rotate
            A size such as "100MB", or "day": the log goes on in a new file then.
        clock
            A function that returns seconds since 1970.

        Examples
        --------
        >>> import rightarm as ra, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> for _ in range(3):
        ...     with ra.Bandit.open(folder.name + "/home.bandit", ["red", "blue"]) as bandit:
        ...         _ = bandit.tell(bandit.ask(), 1.0)
        >>> bandit.summary()["pulls"].sum()
        3.0
        >>> folder.cleanup()
        """
        recovery.check_policy(policy, change_policy)
        folder = Folder(Path(path), check_count("snapshot_every", snapshot_every))
        policies = [] if policy is None else [policy]
        with folder.opened(sync, rotate) as log:
            if not log.events:
                if arms is None:
                    raise WrongValue("arms", f"must be given to make a bandit: there is none in {path}")
                kind: type[Bandit[Any]] = cls
                made = kind(arms, policy, log=log, clock=clock, **settings)
            else:
                state = folder.load(log, policy_finder(policies), policy)
                recovery.check_settings(state.settings, settings)
                names, prior = (None, None) if arms is None else decide.names_and_priors(arms)
                recovery.wanted_arms(state, names, change_arms)  # which refuses others, unless they are to be
                recovery.check_agreement(state, policy, change_policy)
                made = cls.__new__(cls)
                made._begin(state, policies, recovery.key_of(log), log, clock)
                made._go_on(policy if change_policy else None, (prior or names) if change_arms else None)
            made._folder = folder
            folder.save_if_due(made._state, log)
            return made
