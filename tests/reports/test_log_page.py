"""The report of a log: what it says is in the log, for logs that are whole, wrong, and of others."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl
import pytest
from typer.testing import CliRunner

import rightarm as ra
from adaptive_logs import softmax_log
from bandits import Clock
from delayed import DELAYS, equal_arms
from pages import Page
from rightarm.cli import app
from rightarm.display import signed

HOSTILE = "</script><script>alert(1)</script>"
RATES = {"red": 0.2, "blue": 0.6, HOSTILE: 0.3}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A bandit of 900 decisions, 3 without a reward, 2 cancelled, one observation."""
    clock, random, path = Clock(), np.random.default_rng(1), tmp_path / "week.jsonl"
    clock.now = 1_790_000_000.0
    with ra.Bandit(list(RATES), ra.Boltzmann(0.3), seed=3, floor=0.05, log=path, clock=clock) as bandit:
        for t in range(900):
            decision = bandit.ask()
            clock.now += 90
            if t % 450 == 1:
                bandit.cancel(decision)
            elif t < 897:
                bandit.tell(decision, float(random.random() < RATES[str(decision.arm)]))
            clock.now += 30
        bandit.tell(arm="red", reward=1.0)
    return path


def test_the_log_says_how_its_bandit_was_set_up(tmp_path: Path) -> None:
    random, path = np.random.default_rng(1), tmp_path / "week.jsonl"
    settings: dict[str, Any] = {"reward_range": (0, 20), "control": "b", "holdout": 0.2, "floor": 0.1}
    with ra.Bandit(["a", "b"], ra.UCB(C=0.5), seed=3, log=path, **settings) as bandit:
        for _ in range(600):
            decision = bandit.ask()
            bandit.tell(decision, float(random.choice([0.0, 10.0 if decision.arm == "a" else 4.0])))
    page = page_of(path, tmp_path)
    assert "that of the control, b:" in page.words
    assert "rewards from 0 to 20" in page.words
    found = ra.evaluation.lift(path, "b", reward_range=(0, 20), floor=0.08)
    assert f"{signed(found.low, 3)} to {signed(found.high, 3)}" in page.words


@pytest.mark.parametrize("context", [True, False])
def test_arms_that_were_chosen_by_contexts(context: bool, tmp_path: Path) -> None:
    """No arm is called the best, and differences are those of the bandit, which weighs decisions by propensities."""
    random, path = np.random.default_rng(1), tmp_path / "week.jsonl"
    policy = ra.BoltzmannGumbel(C=0.1, estimator=ra.estimators.Linear(["x"]))
    log = ra.logs.LogWriter(path, context=context)
    with ra.Bandit(["a", "b", "c"], policy, seed=3, log=log, reward_range=(0, 1)) as bandit:
        for t in range(300):
            x = random.normal()
            decision = bandit.ask(context=[x], allowed=["a", "c"] if t < 50 else None)
            bandit.tell(decision, float(random.random() < 0.5 + 0.4 * np.tanh(x if decision.arm == "a" else -x)))
        page, found = page_of(path, tmp_path), bandit.difference("b", "a")
    assert "The best arm: that depends on the context" in page.words
    assert "Mean reward of each arm where it was chosen" in page.words
    assert "This bandit decides by contexts" in page.words
    assert "the difference from the first arm, a, weighted by propensities, over all contexts:" in page.words
    assert "mean minus" not in page.words
    assert "the control" not in page.words
    assert f"{signed(found.low, 3)} to {signed(found.high, 3)}" in page.words


@pytest.mark.parametrize("learn", ["at close", "at once"])
def test_windows_of_reward(tmp_path: Path, learn: str) -> None:
    """Of two equal arms the one that is answered sooner is not called the best, and delays are those of clicks."""
    equal_arms(tmp_path / "log.jsonl", 1, learn)
    frame, text = (
        ra.logs.read_log(tmp_path / "log.jsonl"),
        ra.reports.log_report(tmp_path / "log.jsonl", tmp_path / "a.html"),
    )
    page = text.read_text()
    assert "one can stop" not in page
    assert '<p class="verdict banner"><strong>The best arm:' in page
    assert "<td>4,600</td><td>decisions whose window of reward is open, with or without a reward so far</td>" in page
    assert "wait for a reward" not in page
    assert "closed without a reward" not in page
    assert "A decision counts on this page when its window of reward has closed" in page
    section = page[page.index('<section id="delays">') : page.index('<section id="left-out">')]
    rows = [re.findall("<td.*?>(.*?)</td>", row) for row in section.split("<tr>")[2:]]
    clicked = frame.filter(pl.col("reward") == 1.0)
    clicks = [clicked.height, *(clicked.filter(pl.col("arm") == arm).height for arm in DELAYS)]
    assert [row[:2] for row in rows] == [[arm, str(count)] for arm, count in zip(["all", *DELAYS], clicks, strict=True)]
    assert [bool(re.fullmatch(r"(\d+ min ?)?(\d+ s)?", longest)) for *_, longest in rows] == [False, True, False]
    assert [longest.endswith(" d") for *_, longest in rows] == [False] * 3


def page_of(log: Any, folder: Path, **options: Any) -> Page:
    return Page(ra.reports.log_report(log, folder / "page.html", **options).read_text())


def test_the_page_says_what_the_log_has(log: Path, tmp_path: Path) -> None:
    page, frame = page_of(log, tmp_path, floor=0.05), ra.logs.read_log(log)
    assert "Report of week.jsonl" in page.words
    assert "blue is the best of 3 arms (95%, at any time): one can stop." in page.words
    assert "The log is in order" in page.words
    assert "The last column is the arm’s mean minus that of the first arm, red: green" in page.words
    assert "2026-09-21 14:13 to 2026-09-22 20:11 UTC" in page.words
    for kind, times in {"wait for a reward": 3, "closed without a reward": 2, "no decision led to": 1}.items():
        assert re.search(rf"\b{times}\s*[^\d]*{kind}", page.words)
    assert "1 min 30 s" in page.words
    own = [frame.filter(frame["arm"] == arm)["reward"].drop_nulls().to_numpy() for arm in ("blue", "red")]
    counts, means = [values.size for values in own], [values.mean() for values in own]
    spreads = [values.size * values.var() for values in own]
    expected = ra.inference.difference(counts, means, spreads, (0, 1), names=("blue", "red"))
    assert str(expected) in page.words
    for against in ("uniform", "red"):
        found = ra.evaluation.lift(frame, against, floor=0.05)
        assert found.low > 0
        assert f"{signed(found.low, 3)} to {signed(found.high, 3)}" in page.words
    assert page.words.count("earned more") >= 2


def test_charts(log: Path, tmp_path: Path) -> None:
    estimates, shares = page_of(log, tmp_path).figures
    for figure in (estimates, shares):
        go.Figure(figure)
    assert len(estimates["data"]) == 3
    frame = ra.logs.read_log(log)
    assert estimates["data"][1]["x"][0] == pytest.approx(
        frame.filter(frame["arm"] == "blue")["reward"].mean(), rel=1e-4
    )
    totals = np.sum([trace["y"] for trace in shares["data"]], axis=0)
    assert totals == pytest.approx(np.ones(40), abs=1e-3)
    blue = shares["data"][1]
    assert blue["name"] == "blue"
    time = frame["decided_at"].dt.timestamp("ms").to_numpy()
    first = frame["arm"].to_list()[: int((time < time[0] + (time[-1] - time[0]) / 40).sum())]
    assert blue["y"][0] == pytest.approx(first.count("blue") / len(first), abs=1e-4)


def test_the_page_stands_by_itself_and_takes_names_for_what_they_are(log: Path, tmp_path: Path) -> None:
    page = page_of(log, tmp_path)
    assert page.count("script") == 2 + len(page.figures)
    assert HOSTILE in page.words
    assert not [value for _, attributes in page.tags for name, value in attributes.items() if name == "src"]
    assert {target[1:] for target in page.targets} <= set(page.identifiers)
    text = (tmp_path / "page.html").read_text()
    assert ra.reports.log_report(log, tmp_path / "again.html").read_text() == text


def test_a_log_that_is_not_in_order(tmp_path: Path) -> None:
    rows = softmax_log(4, 600)
    wrong = rows | {"arm": ["b" if arm == "c" else arm for arm in rows["arm"]]}
    page = page_of(wrong, tmp_path)
    assert "Do not trust these figures yet" in page.words
    assert "came more often than its propensities say" in page.words
    assert "The log does not say." in page.words


def test_a_control_that_was_not_always_there(tmp_path: Path) -> None:
    rows: dict[str, Any] = softmax_log(5, 400)
    rows["allowed"] = [["a", "b", "c"]] * 400
    rows["allowed"][0] = sorted({"a", rows["arm"][0]})
    rows["propensity"][0] = 1.0
    page = page_of(rows, tmp_path, control="b" if rows["arm"][0] != "b" else "c")
    assert "cannot be said: against must be an arm that every row could choose" in page.words


def test_many_arms_have_few_colours(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    rows = {"arm": random.integers(30, size=3_000).tolist(), "propensity": [1 / 30] * 3_000}
    rows["reward"] = (random.random(3_000) < 0.5).astype(float).tolist()
    estimates, shares = page_of(rows, tmp_path).figures
    assert len(shares["data"]) == 9
    assert shares["data"][-1]["name"] == "the other 22 arms"
    assert len(estimates["data"]) == 30


def test_the_command(log: Path, tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["report", str(log), "--control", "blue"], catch_exceptions=False)
    assert found.output == f"wrote {log.with_suffix('.html')}\n"
    assert "that of the control, blue:" in log.with_suffix(".html").read_text()
    wrong = CliRunner().invoke(app, ["report", str(log), "--control", "grey"])
    assert wrong.exit_code == 2
    assert "control must be one of red, blue" in wrong.output
    outside = CliRunner().invoke(app, ["report", str(log), "--range", "0", "0.5"])
    assert outside.exit_code == 2
    assert "reward must be from 0.0 to 0.5" in outside.output


def test_a_log_of_others_lacks_columns(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="log must have the columns arm, propensity, reward, got none called 'reward'"):
        ra.reports.log_report({"arm": ["a"], "propensity": [1.0]}, tmp_path / "page.html")
    assert not os.listdir(tmp_path)
