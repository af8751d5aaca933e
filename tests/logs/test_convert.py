"""Logs in Parquet: made of JSON lines and back, and those that rightarm 0.1.0 wrote."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import polars as pl
import pytest

import rightarm as ra
from log_story import START, play, story, written
from rightarm.logs import LogWriter, convert_log, is_log, read_log
from rightarm.logs.parquet import write_events

OLD = Path(__file__).parent.parent / "data" / "0.1.0"


def test_a_log_becomes_parquet_and_lines_again(tmp_path: Path) -> None:
    lines, packed, again = (tmp_path / name for name in ("log.jsonl", "log.parquet", "again.jsonl"))
    with LogWriter(lines) as log:
        play(log, story())
        log.observation(True, 0.5, START)
        log.arms([1, "1", True], START)
        log.arms([], START)
        specification = ra.UCB(C=0.5).specification()
        log.write([{"event": "policy", "before": specification, "after": specification, "time": START}])
    assert convert_log(lines, packed) == packed
    assert convert_log(packed, again) == again
    assert again.read_bytes() == lines.read_bytes()
    assert read_log(packed).equals(read_log(lines))
    assert is_log(lines)
    assert is_log(packed)
    assert {path.name for path in tmp_path.iterdir()} == {"log.jsonl", "log.parquet", "again.jsonl"}


def test_an_empty_log_is_converted(tmp_path: Path) -> None:
    LogWriter(tmp_path / "log.jsonl").close()
    convert_log(convert_log(tmp_path / "log.jsonl", tmp_path / "log.parquet"), tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == b""


def test_what_cannot_be_converted_is_said(tmp_path: Path) -> None:
    written(tmp_path / "log.jsonl", story())
    with pytest.raises(ValueError, match=r"target must end in \.jsonl or \.parquet, got .*log\.csv"):
        convert_log(tmp_path / "log.jsonl", tmp_path / "log.csv")
    with pytest.raises(FileExistsError, match=r"target must be a new file, got .*log\.jsonl, which exists"):
        convert_log(tmp_path / "log.jsonl", tmp_path / "log.jsonl")
    (tmp_path / "wrong.jsonl").write_text('{"event": "cancel", "id": 5, "time": 1}\n')
    with pytest.raises(ValueError, match=r"wrong\.jsonl, line 1: id must be .*, got the unknown 5"):
        convert_log(tmp_path / "wrong.jsonl", tmp_path / "right.parquet")
    assert not (tmp_path / "right.parquet").exists()


def test_other_parquet_files_are_no_logs(tmp_path: Path) -> None:
    pl.DataFrame({"arm": ["a"]}).write_parquet(tmp_path / "table.parquet")
    assert not is_log(tmp_path / "table.parquet")
    with pytest.raises(ValueError, match=r"table\.parquet has no column 'event', .* read_table reads other tables"):
        read_log(tmp_path / "table.parquet")
    (tmp_path / "torn.parquet").write_bytes((tmp_path / "table.parquet").read_bytes()[:50])
    with pytest.raises(ValueError, match=r"torn\.parquet cannot be read as Parquet"):
        read_log(tmp_path / "torn.parquet")
    write_events([{"event": "cancel", "id": 3, "time": 1.0}], tmp_path / "wrong.parquet")
    with pytest.raises(ValueError, match=r"wrong\.parquet, row 1: id must be .* for a cancel, got the unknown 3"):
        read_log(tmp_path / "wrong.parquet")


# Folders of rightarm 0.1.0.


def as_of_old(path: Path) -> list[str]:
    """The lines of a log as 0.1.0 would have written them: without a head, and without numbers."""
    events = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    plain = [{name: value for name, value in event.items() if name != "n"} for event in events]
    return [json.dumps(event, separators=(",", ":")) + "\n" for event in plain]


def old_folder(path: Path, lines: list[str], sizes: list[int]) -> None:
    """Events as 0.1.0 left them: parts of these sizes in Parquet, and the rest in lines."""
    path.mkdir()
    (path / "lock").touch()
    for number, size in enumerate(sizes, start=1):
        write_events([json.loads(line) for line in lines[:size]], path / f"{number:06}.parquet")
        lines = lines[size:]
    (path / f"{len(sizes) + 1:06}.jsonl").write_text("".join(lines))


@pytest.mark.parametrize("sizes", [[], [7], [7, 7, 7, 9]], ids=str)
def test_folders_of_old_are_read_and_converted(tmp_path: Path, sizes: list[int]) -> None:
    whole = written(tmp_path / "log.jsonl", story())
    lines = as_of_old(tmp_path / "log.jsonl")
    old_folder(tmp_path / "log.parquet", lines, sizes)
    assert is_log(tmp_path / "log.parquet")
    assert read_log(tmp_path / "log.parquet").equals(whole)
    convert_log(tmp_path / "log.parquet", tmp_path / "converted.jsonl")
    converted = (tmp_path / "converted.jsonl").read_text(encoding="utf-8").splitlines()
    assert list(map(json.loads, converted)) == list(map(json.loads, lines))


def test_a_part_of_old_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    """A crash came after a part was packed and before its lines were removed; another while it was packed."""
    whole = written(tmp_path / "log.jsonl", story())
    lines = as_of_old(tmp_path / "log.jsonl")
    old_folder(tmp_path / "log.parquet", lines, [10])
    (tmp_path / "log.parquet" / "000001.jsonl").write_text("".join(lines[:10]))
    (tmp_path / "log.parquet" / "000002.parquet.new").write_bytes(b"half a part")
    assert read_log(tmp_path / "log.parquet").equals(whole)


def test_the_logs_kept_of_old_are_alike(tmp_path: Path) -> None:
    lines, folder = read_log(OLD / "decisions.jsonl"), read_log(OLD / "decisions.parquet")
    assert lines.equals(folder)
    assert len(lines) == 30
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few rows are worth little
        found = [ra.evaluate(OLD / f"decisions.{ending}", "uniform") for ending in ("jsonl", "parquet")]
    assert found[0] == found[1]
    converted = convert_log(OLD / "decisions.parquet", tmp_path / "log.jsonl")
    assert converted.read_bytes() == (OLD / "decisions.jsonl").read_bytes()


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_bandit_of_old_goes_on_in_its_log(tmp_path: Path, ending: str) -> None:
    """The state is from the middle of the log: the rest is learned from there."""
    path = tmp_path / "log.jsonl"
    if ending == "parquet":
        convert_log(OLD / "decisions.parquet", path)
    else:
        shutil.copy(OLD / "decisions.jsonl", path)
    before = path.read_bytes()
    with ra.Bandit.from_json((OLD / f"state-of-{ending}.json").read_text(), log=path, clock=lambda: 1e9) as bandit:
        assert [row["retired"] for row in bandit.table()] == [True, False, False]
        assert bandit.arms == ["green", "blue"]
        events = [json.loads(line) for line in before.splitlines()]
        arms = {event["id"]: event["arm"] for event in events if event["event"] == "decision"}
        rewards = [(event.get("arm") or arms[event["id"]], event["reward"]) for event in events if "reward" in event]
        for row in bandit.table():
            own = [reward for arm, reward in rewards if arm == row["arm"]]
            assert row["pulls"] == len(own)
            assert row["estimate"] == pytest.approx(sum(own) / len(own))
        assert bandit.ask().id == len(arms) + 1
    assert path.read_bytes().startswith(before)
