"""What people saved with version 0.1.0 loads for ever, on every Python: states, logs, results, folders of results."""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra

FILES = Path(__file__).parent / "data" / "0.1.0"
STATES = sorted(path.stem for path in (FILES / "states").glob("*.json") if not path.stem.endswith(".after"))
NAMES = "is taken by its name"  # the warning about a formula of a user's own


@pytest.fixture(autouse=True)
def own_formulas(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The user's module of that time."""
    monkeypatch.syspath_prepend(str(FILES))
    yield importlib.import_module("own_formulas")
    sys.modules.pop("own_formulas", None)


def test_there_are_states_of_all_sorts() -> None:
    assert len(STATES) == 30


@pytest.mark.parametrize("name", STATES)
def test_a_bandit_goes_on_as_it_would_have(name: str) -> None:
    """The ten decisions that followed when the state was written follow now."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", f".*{NAMES}", UserWarning)
        bandit = ra.Bandit.from_json((FILES / "states" / f"{name}.json").read_text(), clock=lambda: 1e9)
    rewards = np.random.default_rng(1)
    rewards.random(40)
    for arm, propensity in json.loads((FILES / "states" / f"{name}.after.json").read_text()):
        decision = bandit.ask()
        assert decision.arm == (tuple(arm) if isinstance(arm, list) else arm)
        assert decision.propensity == pytest.approx(propensity, rel=1e-12, abs=0)
        bandit.tell(decision, float(rewards.random() < 0.6))


def own_state(**changes: Any) -> str:
    state = json.loads((FILES / "states" / "own.json").read_text())
    state["policy"] |= changes
    return json.dumps(state)


def test_a_policy_of_ones_own_is_taken_by_its_name(own_formulas: Any) -> None:
    """The hash that 0.1.0 wrote is that of one Python; on another one there is nothing to compare it with."""
    elsewhere = own_state(code="0123456789abcdef01234567")
    with pytest.warns(UserWarning, match=f"own_formulas:Cautious {NAMES}.*0.1.0"):
        assert ra.Bandit.from_json(elsewhere).policy == own_formulas.Cautious(C=0.5)
    with pytest.warns(UserWarning, match=NAMES):
        ra.Bandit.from_json(elsewhere, policy=own_formulas.Cautious(C=0.5))


def test_names_must_fit(own_formulas: Any) -> None:
    @ra.policy
    def Cautious(mean, *, D: float):  # type: ignore[no-untyped-def]
        return mean * D

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on other Pythons than that which saved it, formulas are taken by their names
        with pytest.raises(ValueError, match="whose formula differs"):
            ra.Bandit.from_json(own_state(), policy=Cautious(D=0.5))
        with pytest.raises(ValueError, match="whose formula differs"):
            ra.Bandit.from_json(own_state(), policy=ra.UCB(C=0.5))
        with pytest.raises(ValueError, match="its parameters were E"):
            ra.Bandit.from_json(own_state(parameters={"E": 0.5}))
    with pytest.warns(UserWarning, match=NAMES), pytest.raises(ValueError, match="whose parameters differ"):
        ra.Bandit.from_json(own_state(code="0" * 24), policy=own_formulas.Cautious(C=0.25))


@pytest.mark.parametrize("name", ["result", "own-result", "random-result"])
def test_a_result_repeats_bit_for_bit(name: str) -> None:
    pytest.importorskip("polars")
    result = ra.Result.load(FILES / f"{name}.parquet")
    assert all(label in str(result) for label in result.labels)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", f".*{NAMES}", UserWarning)
        again = result.repeat()
    np.testing.assert_array_equal(again.regret, result.regret)
    np.testing.assert_array_equal(again.pulls, result.pulls)
    np.testing.assert_array_equal(again.means, result.means)


# The numbers below are what 0.1.0 itself reads from these files.


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_log_is_read(ending: str) -> None:
    pytest.importorskip("polars")
    decisions = ra.read_log(FILES / f"decisions.{ending}")
    assert (len(decisions), decisions["reward"].sum(), decisions["reward"].null_count()) == (30, 12.0, 9)
    assert decisions["propensity"].sum() == pytest.approx(20.475278285039312, rel=1e-12)
    state = ra.Bandit.from_json((FILES / f"state-of-{ending}.json").read_text())
    assert [row["arm"] for row in state.table()] == ["red", "green", "blue"]


def test_a_bandit_goes_on_in_its_log(tmp_path: Path) -> None:
    """The state is from the middle of the log; what happened later is learned from there."""
    log = tmp_path / "decisions.jsonl"
    log.write_bytes((FILES / "decisions.jsonl").read_bytes())
    with ra.Bandit.from_json((FILES / "state-of-jsonl.json").read_text(), log=log) as bandit:
        rows = [(row["arm"], row["pulls"], row["estimate"]) for row in bandit.table()]
        chances = [row["probability"] for row in bandit.table()]
    assert rows == [("red", 4.0, 0.25), ("green", 15.0, pytest.approx(2 / 3)), ("blue", 3.0, pytest.approx(2 / 3))]
    assert chances == pytest.approx([0.0, 0.3437343955747445, 0.6562656044252556], rel=1e-12)


def test_a_folder_of_results_is_read() -> None:
    pytest.importorskip("polars")
    even = [6.290625, 7.6375, 5.43125, 7.490625, 6.39375]
    drawn = [13.171875, 14.578125, 16.5390625, 17.3515625, 17.328125]
    frame = ra.load(FILES / "sweep").frame
    assert frame["problem"].to_list() == ["even"] * 5 + ["drawn"] * 5
    assert frame["policy"].to_list() == ["bge", "bge", "ucb", "softmax", "own"] * 2
    assert frame["C"].to_list() == [0.5, 1.0, None, None, None] * 2
    assert frame["regret"].to_list() == pytest.approx(even + drawn, rel=1e-12)
