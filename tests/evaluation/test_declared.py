"""What the bandit of a log was told beforehand is known to whoever evaluates the log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import rightarm as ra
from rightarm.cli import app
from rightarm.logs import log as log_module
from rightarm.logs.events import Changed
from rightarm.logs.lines import Block, Numbering, read_blocks
from rightarm.logs.log import log_of


def write(path: Path, **settings: Any) -> Path:
    """The log of 400 decisions with rewards of 0 and 10."""
    random = np.random.default_rng(1)
    with ra.Bandit(["a", "b"], ra.Boltzmann(5.0), seed=3, log=path, **settings) as bandit:
        for _ in range(400):
            decision = bandit.ask()
            bandit.tell(decision, 10.0 * (random.random() < (0.6 if decision.arm == "a" else 0.4)))
    return path


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_range_and_floor_are_those_of_the_bandit(tmp_path: Path, ending: str) -> None:
    log = write(tmp_path / "log.jsonl", reward_range=(0, 20), floor=0.1)
    path = log if ending == "jsonl" else ra.logs.convert_log(log, tmp_path / "log.parquet")
    frame, options = ra.logs.read_log(path), dict[str, Any](reward_range=(0, 20), floor=0.1)
    for use in (ra.evaluate, ra.evaluation.replay, ra.evaluation.lift):
        found = use(path, "b")
        assert (found.reward_range, found.floor) == ((0.0, 20.0), 0.1)
        assert found == use(frame, "b", **options)
        assert "rewards from 0 to 20, a floor of 0.1" in str(found)


def test_what_is_given_wins(tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", reward_range=(0, 20), floor=0.1)
    for use in (ra.evaluate, ra.evaluation.replay, ra.evaluation.lift):
        found = use(path, "b", reward_range=(0, 10), floor=0.05)
        assert (found.reward_range, found.floor) == ((0.0, 10.0), 0.05)
        assert found == use(ra.logs.read_log(path), "b", reward_range=(0, 10), floor=0.05)
        with pytest.raises(ValueError, match=r"reward must be from 0.0 to 5.0, .* give reward_range=\(low, high\)"):
            use(path, "b", reward_range=(0, 5))


def test_a_log_that_does_not_say(tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl")
    for use in (ra.evaluate, ra.evaluation.lift):
        with pytest.raises(ValueError, match=r"from 0.0 to 1.0, .* got 10.0 in row \d+; .* give reward_range=\(low"):
            use(path, "b")
        assert "rewards from 0 to 10, no floor" in str(use(path, "b", reward_range=(0, 10)))


def test_a_holdout_takes_its_share(tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", reward_range=(0, 10), floor=0.1, holdout=0.2, control="a")
    assert ra.evaluate(path, "b").floor == pytest.approx(0.08)


def test_replay_uses_all_rows_of_an_even_log_whatever_the_floor(tmp_path: Path) -> None:
    with ra.logs.LogWriter(tmp_path / "log.jsonl") as log:
        log.write([Changed(settings={"reward_range": [0, 10], "floor": 0.1}, time=0.5)])
        for i in range(100):
            log.decision(i, "ab"[i % 2], 0.5, i + 1, i, 1.0)
            log.reward(i, 10.0, 1.0)
    found = ra.evaluation.replay(tmp_path / "log.jsonl", "b")
    assert (found.rounds, found.mean, found.floor) == (50, 10.0, None)


@pytest.mark.parametrize("command", ["evaluate", "replay"])
def test_commands(tmp_path: Path, command: str) -> None:
    path = write(tmp_path / "log.jsonl", reward_range=(0, 20), floor=0.1)
    for options, said in (
        ([], "from 0 to 20, a floor of 0.1"),
        (["--range", "0", "10"], "from 0 to 10, a floor of 0.1"),
    ):
        done = CliRunner().invoke(app, [command, str(path), "--policy", "uniform", *options])
        assert said in done.output


def test_settings_that_change_are_known_at_their_widest(tmp_path: Path) -> None:
    """The range has all rewards in it, and no propensity could fall below the smallest floor."""
    path = tmp_path / "log.jsonl"
    with ra.logs.LogWriter(path) as log:
        log.write([Changed(settings={"reward_range": [0, 10], "floor": 0.2}, time=1.0)])
        log.write([Changed(settings={"reward_range": [-5, 5], "floor": 0.1, "holdout": 0.5}, time=2.0)])
        for i in range(400):
            log.decision(i, "ab"[i % 2], 0.5, i + 1, i, 3.0)
            log.reward(i, float(i % 5), 3.0)
    found = ra.evaluate(path, "b")
    assert (found.reward_range, found.floor) == ((-5.0, 10.0), 0.05)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_log_is_read_once(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many policies are evaluated, by a command or with a log that was read already."""
    path = write(tmp_path / "log.jsonl", reward_range=(0, 20), floor=0.1)
    path = path if ending == "jsonl" else ra.logs.convert_log(path, tmp_path / "log.parquet")
    reads = list[Path]()

    def counted(path: Path, numbering: Numbering) -> Iterator[Block]:
        reads.append(path)
        return read_blocks(path, numbering)

    monkeypatch.setattr(log_module, "read_blocks", counted)
    log = log_of(path)
    for policy in ("a", "b", ra.UCB(C=0.5)):
        assert ra.evaluate(log, policy) == ra.evaluate(path, policy)
    assert (ra.evaluation.lift(log), ra.evaluation.sample_ratio(log)) == (
        ra.evaluation.lift(path),
        ra.evaluation.sample_ratio(path),
    )
    assert ra.logs.read_log(log).equals(ra.logs.read_log(path))
    reads.clear()
    CliRunner().invoke(app, ["evaluate", str(path), *("--policy", "a", "--policy", "b", "--policy", "UCB(C=0.5)")])
    assert reads == [path]
