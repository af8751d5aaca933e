"""Exports of a service: each format is read by who it is for, and says what the bandit knows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

import rightarm as ra
from rightarm.cli import app
from service_process import serving


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a service and that of its store, with a bandit that has lived a little."""
    store = f"sqlite:///{tmp_path_factory.mktemp('store')}/home.db"
    with serving(store) as url, ra.connect(url) as service:
        policy = ra.BoltzmannGumbel(C=0.1, estimator=ra.estimators.Linear(["hour"]))
        home = service.create("home", ["a", "b", 3], policy, reward_range=(0, 1), seed=1)
        decisions = home.ask(contexts=[{"hour": hour % 24} for hour in range(1_000)])
        home.tell([(decision, decision.id % 2) for decision in decisions])
        decisions += [home.ask(context={"hour": hour % 24}, unit=f"visitor {hour}") for hour in range(100)]
        home.correct(decisions[0], 0.5)
        home.cancel(decisions[-1])
        home.pause()
        home.resume()
        service.create("new", ["a", "b"])
        yield url, store


def exported(url: str, kind: str, path: Path) -> Path:
    with httpx.stream("GET", f"{url}/bandits/home/export", params={"format": kind}) as answer:
        assert answer.status_code == 200
        assert f'filename="home{path.suffix}"' in answer.headers["content-disposition"]
        path.write_bytes(answer.read())
    return path


def test_the_log_is_the_bandit(place: tuple[str, str], tmp_path: Path) -> None:
    log = exported(place[0], "jsonl", tmp_path / "home.jsonl")
    home = ra.connect(place[0])["home"]
    frame = ra.logs.read_log(log)
    assert frame.height == 1_100
    assert frame["reward"].drop_nulls().len() == 1_000
    with ra.Bandit.from_log(log) as again:
        assert again.summary().equals(home.summary())
    events = [json.loads(line) for line in log.read_bytes().splitlines()]
    assert events[1:] == home.events() == list(home.events(limit=10**6))
    parquet = exported(place[0], "parquet", tmp_path / "home.parquet")
    assert ra.logs.read_log(parquet).equals(frame)


def test_what_other_programs_read(place: tuple[str, str], tmp_path: Path) -> None:
    log = exported(place[0], "jsonl", tmp_path / "home.jsonl")
    feedback, expected = np.load(exported(place[0], "obp", tmp_path / "home.npz")), ra.logs.to_obp(log)
    assert json.loads(str(feedback["arms"])) == expected["arms"] == ['"a"', '"b"', "3"]
    assert (int(feedback["n_rounds"]), int(feedback["n_actions"])) == (1_000, 3)
    for name in ("context", "action_context", "action", "reward", "pscore"):
        assert np.array_equal(feedback[name], expected[name])
    lines = exported(place[0], "vw", tmp_path / "home.dsjson").read_text().splitlines()
    costs = [json.loads(line)["_label_cost"] for line in lines]
    assert costs == (-expected["reward"]).tolist()


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "npz", "dsjson", "txt"])
def test_the_command_writes_the_same(place: tuple[str, str], tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"home.{ending}"
    arguments = ["export", place[1], "home", str(path)]
    done = CliRunner().invoke(app, arguments)
    assert (done.exit_code, done.output.split()[0]) == (0, "wrote")
    kinds = {"jsonl": "jsonl", "dsjson": "vw", "parquet": "parquet"}
    if ending in kinds:
        (tmp_path / "other").mkdir()
        assert path.read_bytes() == exported(place[0], kinds[ending], tmp_path / "other" / path.name).read_bytes()
    assert [each.name for each in tmp_path.iterdir() if each.name != "other"] == [path.name]
    again = CliRunner().invoke(app, arguments)
    assert (again.exit_code, "target must be a new file" in again.output) == (1, True)


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("nobody/export", 404, "there is no bandit nobody"),
        ("nobody/export?format=parquet", 404, "there is no bandit nobody"),
        ("home/export?format=xlsx", 422, "format"),
        ("new/export?format=obp", 422, "log must have rows with rewards"),
    ],
)
def test_what_cannot_be_exported(place: tuple[str, str], path: str, status: int, text: str) -> None:
    answer = httpx.get(f"{place[0]}/bandits/{path}")
    assert answer.status_code == status
    assert text in answer.json()["detail"]


@pytest.mark.parametrize(
    ("name", "target", "text"),
    [("nobody", "x.jsonl", "there is no bandit nobody"), ("home", "x.csv", "target must end")],
)
def test_what_the_command_cannot_export(
    place: tuple[str, str], tmp_path: Path, name: str, target: str, text: str
) -> None:
    done: Any = CliRunner().invoke(app, ["export", place[1], name, str(tmp_path / target)])
    assert done.exit_code != 0
    assert text in done.output
    assert list(tmp_path.iterdir()) == []
