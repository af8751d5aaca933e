"""Logs of bandits with windows of reward: early clicks are not counted while silence is still awaited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import rightarm as ra
from bandits import Clock
from delayed import DAY, DELAYS, RATE, equal_arms
from rightarm.cli import app

OPEN = "whose window of reward is open"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A thousand decisions, of which 50 were clicked, and as many of the day after, of which 20 have an early click."""
    clock, path = Clock(), tmp_path / "log.jsonl"
    settings: dict[str, Any] = {"reward_window": DAY, "default_reward": 0.0, "learn": "at close"}
    with ra.Bandit(["a", "b"], ra.BetaThompson(), log=path, clock=clock, seed=1, floor=0.5, **settings) as bandit:
        for decision in bandit.ask(1_000)[:50]:
            bandit.tell(decision, 1.0)
        clock.now += DAY
        for decision in bandit.ask(1_000)[:20]:
            clock.now += 60
            bandit.tell(decision, 1.0)
    return path


@pytest.mark.parametrize("missing", [None, 0.0, 1.0])
def test_open_windows_do_not_count_and_are_said(log: Path, missing: float | None) -> None:
    found = ra.evaluate(log, "uniform", missing=missing)
    assert (found.rows, found.left_out, found.open_windows, found.logged) == (1_000, 1_000, 1_000, 0.05)
    played = ra.evaluation.replay(log, ra.UCB(C=0.5), missing=missing)
    assert (played.rows, played.left_out, played.open_windows) == (1_000, 1_000, 1_000)
    gain = ra.evaluation.lift(log, missing=missing)
    assert (gain.rows, gain.left_out, gain.open_windows, gain.logged) == (1_000, 1_000, 1_000, 0.05)
    for result in (found, played, gain):
        words = " ".join(str(result).split())
        assert f"1,000 (1,000 {OPEN} left out)" in words
    assert OPEN in found._repr_html_()
    assert OPEN in played._repr_html_()


def test_a_frame_or_a_file_in_another_format_makes_no_difference(log: Path, tmp_path: Path) -> None:
    expected, packed = ra.evaluate(log, "a"), ra.logs.convert_log(log, tmp_path / "log.parquet")
    assert ra.evaluate(packed, "a") == expected
    assert ra.evaluate(ra.logs.read_log(log), "a", floor=0.5) == expected


def test_exports_leave_open_windows_out(log: Path, tmp_path: Path) -> None:
    feedback = ra.logs.to_obp(log, missing=0.0)
    assert (feedback["n_rounds"], feedback["open_windows"], feedback["reward"].sum()) == (1_000, 1_000, 50.0)
    assert len(ra.logs.to_vw(log, tmp_path / "log.dsjson", missing=0.0).read_text().splitlines()) == 1_000


def test_all_decisions_count_for_the_sample_ratio(log: Path) -> None:
    """An arm was drawn, whatever comes of it: who waited for rewards would notice a broken client a window later."""
    assert ra.evaluation.sample_ratio(log).rows == ra.evaluation.sample_ratio(ra.logs.read_log(log)).rows == 2_000


def test_a_log_with_open_windows_only_says_so(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"reward_window": DAY, "default_reward": 0.0}
    with ra.Bandit(["a", "b"], ra.BetaThompson(), log=tmp_path / "log.jsonl", seed=1, **settings) as bandit:
        for decision in bandit.ask(50):
            bandit.tell(decision, 1.0)
    with pytest.raises(ValueError, match="got 50 rows without, of which 50 have an open window of reward"):
        ra.evaluate(tmp_path / "log.jsonl", "uniform", missing=0.0)


def misled(path: Path, seed: int, learn: str, each_hour: int) -> tuple[int, int]:
    """How many of two intervals miss the truth, and how many of three comparisons of equal arms name a winner."""
    equal_arms(path, seed, learn, each_hour)
    found = [ra.evaluate(path, arm) for arm in DELAYS]
    gains = [ra.evaluation.lift(path, against) for against in ("uniform", *DELAYS)]
    path.unlink()
    return sum(not one.low <= RATE <= one.high for one in found), sum(not one.low <= 0 <= one.high for one in gains)


@pytest.mark.parametrize("learn", ["at close", "at once"])
@pytest.mark.parametrize(
    ("seeds", "each_hour"), [pytest.param(4, 100, id="4"), pytest.param(200, 200, marks=pytest.mark.full, id="200")]
)
def test_an_arm_that_is_answered_sooner_looks_no_better(tmp_path: Path, learn: str, seeds: int, each_hour: int) -> None:
    """After 36 hours of windows of a day. If early clicks counted, an interval would miss with every seed."""
    results = [misled(tmp_path / "log.jsonl", seed, learn, each_hour) for seed in range(seeds)]
    assert sum(misses > 0 for misses, _ in results) <= 0.05 * seeds
    assert sum(winners > 0 for _, winners in results) <= 0.05 * seeds


def test_the_folder_of_a_bandit_is_taken_for_its_log(tmp_path: Path) -> None:
    folder = tmp_path / "home.bandit"
    with ra.Bandit.open(folder, ["a", "b"], ra.BetaThompson(), seed=1, floor=0.5) as bandit:
        for decision in bandit.ask(300):
            bandit.tell(decision, float(decision.id % 3 == 0))
    log = folder / "log.jsonl"
    assert ra.logs.read_log(folder).equals(ra.logs.read_log(log))
    assert ra.evaluate(folder, "a") == ra.evaluate(log, "a")
    assert ra.evaluate(folder, "a").floor == 0.5
    assert ra.evaluation.replay(folder, "a") == ra.evaluation.replay(log, "a")
    assert ra.evaluation.lift(folder) == ra.evaluation.lift(log)
    assert ra.evaluation.sample_ratio(folder) == ra.evaluation.sample_ratio(log)
    assert ra.logs.to_obp(folder)["n_rounds"] == 300
    assert ra.logs.to_vw(folder, tmp_path / "log.txt").read_text().count("\n\n") == 300
    assert ra.logs.convert_log(folder, tmp_path / "copy.jsonl").read_bytes() == log.read_bytes()
    assert "Report of home.bandit" in ra.reports.log_report(folder, tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["report"], "wrote {}/home.html"),
        (["evaluate", "--policy", "a"], "IPS"),
        (["replay", "--policy", "a"], "rounds played"),
        (["log"], "300 with a reward, 0 waiting"),
        (["convert", "copy.parquet"], "wrote {}/copy.parquet"),
    ],
)
def test_commands_take_the_folder(tmp_path: Path, arguments: list[str], said: str) -> None:
    folder = tmp_path / "home.bandit"
    with ra.Bandit.open(folder, ["a", "b"], ra.BetaThompson(), seed=1, floor=0.5) as bandit:
        for decision in bandit.ask(300):
            bandit.tell(decision, float(decision.id % 3 == 0))
    command, *options = [str(tmp_path / one) if one.startswith("copy") else one for one in arguments]
    done = CliRunner().invoke(app, [command, str(folder), *options])
    assert done.exit_code == 0, done.output
    assert said.format(tmp_path) in done.output
