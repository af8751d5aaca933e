"""Two arms of a bandit that decides by contexts, compared in segments by weights."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from rightarm import inference
from rightarm.bandit import answers, ledger
from rightarm.inference import sequences as betting

FEATURES = ra.estimators.Features(numbers=["hour"], categories={"device": ["phone", "desktop"]}, required=True)
RATES = {"phone": {"a": 0.7, "b": 0.4, "c": 0.5}, "desktop": {"a": 0.2, "b": 0.5, "c": 0.5}}
Rows = list[tuple[Any, dict[str, Any], float]]


def bandit_of(seed: int, **options: Any) -> ra.Bandit[str]:
    policy = ra.BoltzmannGumbel(C=0.3, estimator=ra.estimators.Linear(FEATURES))
    return ra.Bandit(["a", "b", "c"], policy, seed=seed, **{"reward_range": (0, 1), **options})


def play(bandit: ra.Bandit[str], seed: int, rounds: int, share: float = 1.0, **ask: Any) -> Rows:
    """Decisions with contexts and rewards, told a few at a time and out of order; ``share`` makes rates smaller."""
    random, rows, waiting = np.random.default_rng(seed), Rows(), Rows()
    for t in range(rounds):
        context: dict[str, Any] = {
            "hour": float(random.integers(24)),
            "device": str(random.choice(["phone", "desktop"])),
        }
        decision = bandit.ask(context=context, **ask)
        rate = share * RATES[context["device"]][decision.arm]
        waiting.append((decision, context, float(random.random() < rate)))
        if t % 3 == 2 or t == rounds - 1:
            bandit.tell([(decision, reward) for decision, _, reward in reversed(waiting)])
            rows, waiting = rows + waiting, []
    return rows


def naive(rows: Rows, pair: tuple[str, str]) -> tuple[float, float, float]:
    """The estimate and the ends, a loop over decisions."""
    above, below, sums, weights = [], [], dict.fromkeys("abc", 0.0), dict.fromkeys("abc", 0.0)
    for decision, _, reward in rows:
        p = decision.propensity
        above.append((decision.arm == pair[0]) * reward / p + (decision.arm == pair[1]) * (1 - reward) / p)
        below.append((decision.arm == pair[1]) * reward / p + (decision.arm == pair[0]) * (1 - reward) / p)
        sums[decision.arm] += reward / p
        weights[decision.arm] += 1 / p
    first, second = (sums[arm] / weights[arm] for arm in pair)
    return first - second, betting.lower_bound(above, 0.975) - 1, 1 - betting.lower_bound(below, 0.975)


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        (None, lambda context: True),
        ({"device": "phone"}, lambda context: context["device"] == "phone"),
        ({"device": ["desktop", "other"], "hour": (6, 11)}, lambda c: c["device"] == "desktop" and 5 < c["hour"] < 12),
        ({"hour": (None, 7)}, lambda context: context["hour"] <= 7),
        ({"hour": 7}, lambda context: context["hour"] == 7),
    ],
    ids=["all", "phone", "mornings", "early", "seven"],
)
def test_as_a_loop_over_decisions(where: Any, kept: Any) -> None:
    bandit = bandit_of(1)
    rows = [row for row in play(bandit, 1, 400) if kept(row[1])]
    found = bandit.difference("a", "b", where=where)
    assert (found.estimate, found.low, found.high) == pytest.approx(naive(rows, ("a", "b")))
    assert (found.kind, found.decisions) == ("bounded", len(rows))


def test_segments_differ_where_the_means_hide_it() -> None:
    bandit = bandit_of(2, floor=0.1)
    play(bandit, 2, 3_000)
    phone, desktop = (bandit.difference("a", "b", where={"device": device}) for device in RATES)
    assert (phone.better, desktop.better) == (True, False)
    assert str(phone).startswith("a is better than b where device = phone: by 0.")
    assert bandit_of(2).difference("a", "b", where={"device": "phone"}).lacking == (
        "no reward of a or of b where device = phone"
    )


def test_a_floor_makes_it_narrower() -> None:
    bandit = bandit_of(3, floor=0.1)
    rows = play(bandit, 3, 2_000, share=0.1)
    found, plain = bandit.difference("a", "b"), naive(rows, ("a", "b"))
    assert found.high - found.low < 0.7 * (plain[2] - plain[1])
    held = bandit_of(3, holdout=0.3)
    assert answers._floor(held._state) == pytest.approx(0.1)
    assert answers._floor(bandit_of(3, holdout=0.3, control="a")._state) == 0.0


def test_only_decisions_that_could_choose_both() -> None:
    """Before an arm came, after it was retired, and where it was not among those given, nobody could choose it."""
    bandit = bandit_of(4)
    play(bandit, 4, 60, allowed=["a", "c"])
    rows = play(bandit, 5, 60)
    rows += play(bandit, 6, 60, allowed=["b", "a"])
    bandit.retire_arm("b")
    play(bandit, 7, 60)
    again = ra.Bandit.from_json(bandit.to_json())
    for one in (bandit, again):
        found = one.difference("a", "b")
        assert (found.estimate, found.low, found.high) == pytest.approx(naive(rows, ("a", "b")))


def test_what_was_cancelled_or_corrected() -> None:
    bandit = bandit_of(8)
    rows = play(bandit, 8, 50)
    bandit.cancel(bandit.ask(context={"hour": 1, "device": "phone"}))
    bandit.tell(arm="a", reward=1.0, context={"hour": 1, "device": "phone"})  # no decision, so no propensity
    decision, context, reward = rows[7]
    bandit.correct(decision, 1 - reward)
    rows[7] = decision, context, 1 - reward
    found = bandit.difference("a", "b")
    assert (found.estimate, found.low, found.high) == pytest.approx(naive(rows, ("a", "b")))


def test_more_than_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (ledger, answers):
        monkeypatch.setattr(module, "REMEMBERED", 40)
    with bandit_of(9, log=tmp_path / "log.jsonl") as bandit:
        rows = play(bandit, 9, 100)
        bandit.retire_arm("b")
        play(bandit, 10, 10)
        found = bandit.difference("a", "b", where={"hour": (0, 12)})
    kept = [row for row in rows if row[1]["hour"] <= 12]
    assert (found.estimate, found.low, found.high) == pytest.approx(naive(kept, ("a", "b")))


def test_more_than_is_remembered_and_no_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (ledger, answers):
        monkeypatch.setattr(module, "REMEMBERED", 40)
    bandit = bandit_of(9)
    play(bandit, 9, 60)
    with pytest.raises(ValueError, match="needs a log of this bandit: the bandit remembers its last 40 answers only"):
        bandit.difference("a", "b")
    with bandit_of(9, log=ra.logs.LogWriter(tmp_path / "log.jsonl", context=False)) as bandit:
        play(bandit, 9, 60)
        with pytest.raises(ValueError, match=r"got LogWriter\(context=False\)"):
            bandit.difference("a", "b")


def test_errors() -> None:
    bandit, plain = bandit_of(1), ra.Bandit(["a", "b"], ra.UCB(C=0.5))
    with pytest.raises(ValueError, match="where must have features only, which are hour, device, got 'age'"):
        bandit.difference("a", "b", where={"age": 3})
    with pytest.raises(ValueError, match=r"\['device'\] must be some of 'phone', 'desktop', 'other', got 'fridge'"):
        bandit.difference("a", "b", where={"device": "fridge"})
    with pytest.raises(ValueError, match=r"where\['hour'\] must have the lower end first, got \(5, 2\)"):
        bandit.difference("a", "b", where={"hour": (5, 2)})
    with pytest.raises(TypeError, match="where must be left out: UCB"):
        plain.difference("a", "b", where={"hour": 3})
    with pytest.raises(ValueError, match="cannot be compared without a reward_range"):
        bandit_of(1, reward_range=None).difference("a", "b")
    with pytest.raises(ValueError, match="which arm is the best depends on the context"):
        bandit.best()
    with pytest.raises(ValueError, match="guardrail must be None where a policy decides by contexts"):
        bandit_of(1, control="a").change(guardrail=0.1)


def plain_difference(bandit: ra.Bandit[str]) -> inference.Difference:
    """Of the plain means, as if it did not matter to whom arms were shown."""
    counts, means, spreads = bandit._state.lifetime()
    return inference.difference(counts[:2], means[:2], spreads[:2], (0, 1))


@pytest.mark.full
@pytest.mark.parametrize("floor", [0.0, 0.1])
def test_coverage_of_a_segment(floor: float) -> None:
    """Looked at ten times, the difference on phones is ever outside in 5% of runs at most; plain means mislead."""
    runs, looks, wrong, confounded = 150, 10, 0, 0
    for seed in range(runs):
        bandit = bandit_of(seed, floor=floor)
        missed = False
        for look in range(looks):
            play(bandit, 1_000 * seed + look, 80)
            found = bandit.difference("a", "b", where={"device": "phone"})
            missed |= not found.low <= 0.3 <= found.high
        wrong += missed
        confounded += plain_difference(bandit).better is True  # over all contexts a and b earn 0.45 each
    allowed = 0.05 * runs + 4.5 * math.sqrt(0.05 * 0.95 * runs)
    assert wrong <= allowed < confounded


def test_segments_in_words() -> None:
    features = ra.estimators.Features(
        numbers=["hour", "age", "day", "x"], categories={"device": ["phone"], "plan": [1, 2]}
    )
    where = {"device": "phone", "hour": (9, None), "age": (None, 30), "day": [1, 5], "plan": [1, 2], "x": None}
    said = "device = phone, hour from 9, age up to 30, day from 1 to 5, plan = 1 or 2, x missing"
    assert answers.in_words(features, where) == said
    assert answers.in_words(features, {"hour": (None, None)}) == "hour known"
