"""Who tells the clicks and not the silence hears of it wherever a number is shown; and nobody else does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from bandits import Clock, arm_rows, told
from pages import Page

SAID = "all 507 rewards are 1 and 19,493 decisions have none, so arms cannot be compared"
REMEDY = "give the bandit a window with a default of 0"
LINEAR = ra.BoltzmannGumbel(C=0.1, estimator=ra.estimators.Linear(1))


def mails(log: Path | None = None, policy: ra.Policy | None = None, **settings: Any) -> ra.Bandit[str]:
    """The trial that this came from: 20,000 mails, 507 answers, all 1."""
    bandit = ra.Bandit(["a", "b"], policy, seed=1, reward_range=(0, 1), log=log, **settings)
    contextual = policy is not None and policy.estimator.asks_context
    decisions = bandit.ask(contexts=np.zeros((20_000, 1))) if contextual else bandit.ask(20_000)
    for place in np.random.default_rng(1).permutation(20_000)[:507]:
        bandit.tell(decisions[place], 1.0)
    return bandit


def flat(text: object) -> str:
    return " ".join(str(text).split())


def check(bandit: ra.Bandit[str]) -> None:
    assert bandit.warning.startswith(SAID)
    assert REMEDY in bandit.warning
    for shown in (bandit, bandit.best(tolerance=0.1), bandit.difference("a", "b"), bandit._repr_html_()):
        assert bandit.warning in flat(shown)
    best = bandit.best(tolerance=0.1)
    assert best.cost < 0.1
    assert not best.stop
    assert "one can stop" not in str(best)
    with pytest.warns(UserWarning, match=SAID):
        bandit.summary()
    assert bandit.warning in flat(bandit.plot().get_suptitle())


def test_a_bandit_says_so_and_after_it_was_saved_too(tmp_path: Path) -> None:
    bandit = mails(tmp_path / "log.jsonl")
    check(bandit)
    check(ra.Bandit.from_json(bandit.to_json()))
    bandit.close()
    with ra.Bandit.from_log(tmp_path / "log.jsonl") as again:
        check(again)


def test_contexts() -> None:
    bandit = mails(policy=LINEAR)
    assert bandit.warning.startswith(SAID)
    found = bandit.difference("a", "b")
    assert str(found) == f"cannot tell yet: {bandit.warning}"
    assert found.better is None


def test_whatever_forgets_remembers_that_rewards_differed() -> None:
    """One 0 long ago is enough: then silence is told by somebody."""
    for estimator in (ra.estimators.Mean(discount=0.5), ra.estimators.Mean(window=10)):
        bandit = ra.Bandit(["a", "b"], ra.ScaledGumbel(estimator=estimator), seed=1)
        for reward in (0.0, *[1.0] * 200):
            bandit.tell(bandit.ask(), reward)
        assert bandit.warning == ""
        bandit = ra.Bandit(["a", "b"], ra.ScaledGumbel(estimator=estimator), seed=1)
        for _ in range(200):
            bandit.tell(bandit.ask(), 1.0)
        assert bandit.warning.startswith("all 200 rewards are 1, so ")


def test_the_log_of_it(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    mails(path, floor=0.1).close()
    with pytest.warns(UserWarning, match=SAID):
        found = ra.evaluate(path, "uniform")
    assert SAID in flat(found)
    assert REMEDY in flat(found)
    for other in (ra.evaluation.lift(path), ra.evaluation.replay(path, ra.UCB(C=0.5))):
        assert SAID in flat(other)
    page = ra.reports.log_report(path, tmp_path / "week.html").read_text()
    assert f"Do not trust these figures yet: {SAID}" in Page(page).words
    assert f"The best arm: cannot tell yet: {SAID}" in Page(page).words
    assert "The log is in order" not in page
    assert 'class="verdict holds"' not in page


def test_silence_that_counts_is_nothing_to_speak_of(tmp_path: Path) -> None:
    """The remedies: zeros for what is old, a window with a default, ``missing`` for a log."""
    path = tmp_path / "log.jsonl"
    bandit = mails(path)
    assert ra.evaluate(path, "uniform", missing=0.0).warnings == ()
    assert bandit.expire(0.0, 0.0) == 19_493
    assert bandit.warning == ""
    bandit.close()
    clock = Clock()
    bandit = mails(clock=clock, reward_window=60, default_reward=0.0)
    assert bandit.warning.endswith("silence counts as 0 only when windows close, and 19,493 decisions wait for that")
    clock.now += 60
    bandit.close_windows()
    assert bandit.warning == ""
    assert bandit.best(tolerance=0.5).stop


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"policy": ra.BetaThompson(), "reward_range": (-3, 7)},
        {"policy": ra.BetaThompson(), "reward_range": (0, 500)},
        {"policy": ra.UCB(C=0.5), "reward_range": (-3, 7)},
    ],
    ids=str,
)
@pytest.mark.parametrize("value", [0.1, 0.3, 0.0, 6.7])
def test_equal_rewards_are_equal_in_any_unit(settings: dict[str, Any], value: float) -> None:
    """Sums round; so does scaling there and back. What rounding does not explain is a difference."""
    bandit = told({"a": [value] * 700, "b": [value] * 333}, **settings)
    said = "no reward other than 0 has come in 1,033," if value == 0 else f"all 1,033 rewards are {value:g}, so"
    assert bandit.warning.startswith(said)
    bandit.tell(arm="b", reward=value + 0.001)
    assert bandit.warning == ""


def test_sure_arms_that_differ() -> None:
    bandit = told({"a": [0.5] * 300, "b": [0.5001] * 300})
    assert bandit.warning == ""


def test_priors_are_no_rewards() -> None:
    bandit = ra.Bandit({"a": (0.2, 50), "b": (0.9, 50)}, ra.UCB(C=0.5), seed=1)
    assert bandit.warning == ""
    for _ in range(20):
        bandit.tell(arm="a", reward=1.0)
    assert bandit.warning.startswith("all 20 rewards are 1, so")


def test_decisions_that_were_closed_without_a_reward_are_silent() -> None:
    bandit = ra.Bandit(["a", "b"], seed=1, clock=Clock(), reward_range=(0, 1))
    decisions = bandit.ask(60)
    for decision in decisions[::10]:
        bandit.tell(decision, 1.0)
    young = bandit.ask(6)
    said = bandit.warning
    assert said.startswith("all 6 rewards are 1 and 60 decisions have none")
    for decision in (*decisions[1:10], *young):
        bandit.cancel(decision)
    assert bandit.warning == said


def test_honest_clicks_of_few_people_are_nothing_to_speak_of() -> None:
    """Rewards that are told at once, whatever they are: a coin of 1% is all 0 in the first 20, and that is said."""
    random = np.random.default_rng(1)
    bandit = ra.Bandit(["a", "b"], seed=1, reward_range=(0, 1))
    silent = True
    for t in range(1, 401):
        reward = float(random.random() < 0.01)
        silent = silent and not reward
        bandit.tell(bandit.ask(), reward)
        assert bool(bandit.warning) == (silent and t >= 20)
    assert not silent


def test_windows_that_have_closed_are_not_pending() -> None:
    """Though nobody asked since; and what was not learned yet is said."""
    clock = Clock()
    bandit = ra.Bandit(["a", "b"], seed=1, clock=clock, reward_window=10, default_reward=0.0)
    bandit.ask(3)
    clock.now += 5
    last = bandit.ask()
    assert len(bandit.pending) == 4
    assert "0 rewards, 4 pending" in str(bandit)
    clock.now += 5
    text = bandit.to_json()
    for _ in range(2):
        assert bandit.pending == [last]
        assert sum(row["pending"] for row in arm_rows(bandit)) == 1
        assert [row["pending"] for row in arm_rows(bandit) if row["arm"] == last.arm] == [1]
        assert "0 rewards, 1 pending" in str(bandit)
        assert "Not learned yet: 3 decisions whose window has closed; the next ask, tell or close_w" in flat(bandit)
    assert bandit.to_json() == text  # looking changes nothing
    bandit.close_windows()
    assert "3 rewards, 1 pending" in str(bandit)
    assert "close_windows" not in str(bandit)
