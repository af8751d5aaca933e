"""Logs are read and checked, and so are tables of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import rightarm as ra
from log_story import HEAD, START
from rightarm.logs import LogWriter, read_log, read_table
from rightarm.logs.events import Arm


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


NAMES: dict[str, tuple[list[Arm], list[Any]]] = {
    "numbers": ([2, 1], [2, 1]),
    "prices": ([1, 2.5], [1.0, 2.5]),
    "truth": ([True, False], [True, False]),
    "mixed": (["1", 1, True], ['"1"', "1", "true"]),
}


@pytest.mark.parametrize(("arms", "read"), NAMES.values(), ids=NAMES)
def test_arms_of_any_type(path: Path, arms: list[Arm], read: list[Any]) -> None:
    with LogWriter(path) as log:
        for i, arm in enumerate(arms):
            log.decision(i, arm, 0.5, 1, 0, START, allowed=arms)
    frame = read_log(path)
    assert frame["arm"].to_list() == read
    assert frame["allowed"].to_list() == [read] * len(arms)


GOOD = '{"n":%d,"event":"decision","id":%d,"arm":"a","propensity":%s,"round":1,"version":0,"time":1.0}\n'
WRONG_LINES: dict[str, tuple[str, str]] = {
    "json": ('{"n":2,"event": \n', 'line 3: not a line of JSON, got b\'{"n":2,"event": '),
    "kind": ('{"n":2,"event":"end"}\n', "line 3: event Invalid value 'end', got 'end'"),
    "field": ('{"n":2,"event":"reward","id":1}\n', "line 3: Object missing required field `reward`, got"),
    "nan": ('{"n":2,"event":"reward","id":1,"reward":NaN,"time":1}\n', "line 3: not a line of JSON"),
    "unknown": (
        '{"n":2,"event":"cancel","id":5,"time":1}\n',
        "line 3: id must be .* for a cancel, got the unknown 5",
    ),
    "twice": (GOOD % (2, 1, "0.5"), "line 3: id must be a new one for every decision, got 1 again"),
    "propensity": (GOOD % (2, 2, "2"), "line 3: propensity must be float <= 1.0, got 2"),
}


@pytest.mark.parametrize(("line", "said"), WRONG_LINES.values(), ids=WRONG_LINES)
def test_errors_name_line_and_value(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(HEAD + GOOD % (1, 1, "0.5") + line)
    with pytest.raises(ValueError, match=said):
        read_log(path)
    with pytest.raises(ValueError, match=said):
        LogWriter(path)  # a wrong log is not continued
    path.write_text(HEAD + GOOD % (1, 1, "0.5"))
    LogWriter(path).close()  # and the failure kept no lock


def test_a_folder_that_is_no_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no.parquet").mkdir()
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        read_log(tmp_path / "no.parquet")
    with pytest.raises(ValueError, match=r"path must end in \.jsonl or \.parquet .*got .*/log\.csv"):
        read_log(tmp_path / "log.csv")
    with pytest.raises(FileNotFoundError):
        read_log(tmp_path / "nothing.jsonl")


def test_tables_of_others(tmp_path: Path) -> None:
    table = pl.DataFrame({"item": [3, 5], "p": [0.5, 0.25], "click": [1, None], "other": ["x", "y"]})
    table.write_csv(tmp_path / "log.csv")
    table.write_parquet(tmp_path / "log.parquet")
    for name in ("log.csv", "log.parquet"):
        read = read_table(tmp_path / name, arm="item", propensity="p", reward="click")
        assert read.rows() == [(1, 3, 0.5, 1.0, 1), (2, 5, 0.25, None, 2)]
        assert read.columns == ["id", "arm", "propensity", "reward", "round"]
    with pytest.raises(ValueError, match=r"arm must be a column of .*, item, p, click, other, got 'arm'"):
        read_table(tmp_path / "log.csv", propensity="p", reward="click")
    with pytest.raises(ValueError, match=r"path must end in .csv or .parquet, got log.txt"):
        read_table("log.txt")


def test_contexts_of_tables(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("arm,propensity,reward,hour,device,user\na,0.5,1,7,phone,u\nb,0.5,0,,tv,v\n")
    features = ra.estimators.Features(numbers=["hour"], categories={"device": ["phone"]}, required=["device"])
    read = read_table(path, context=features)
    assert read["context"].to_list() == [[7.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]]
    assert read.schema["context"] == pl.List(pl.Float64)
    assert read.drop("context").equals(read_table(path))
    guessed = read_table(path, context=["device", "hour"])["context"].to_list()
    # hour and whether it is missing, then phone, tv and other, since no device is missing
    assert guessed == [[7.0, 0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.0, 0.0]]
    with pytest.raises(ValueError, match=r"context must be columns of the table, arm, .*, user, got 'age'"):
        read_table(path, context=["age"])
    with pytest.raises(TypeError, match=r"row 1: user must be a number.*, got 'u'"):
        read_table(path, context=ra.estimators.Features(numbers=["user"]))


def test_categories_of_very_many_levels_are_hashed(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    table = pl.DataFrame({"arm": ["a"] * 60, "propensity": 0.5, "reward": 1.0, "user": [f"u{i}" for i in range(60)]})
    table.write_parquet(path)
    contexts = read_table(path, context=["user"])["context"].to_list()
    assert contexts == ra.estimators.Features(hashed={"user": 16}).encode_many(table.select("user")).tolist()


def test_errors_of_tables_name_the_line(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("arm,propensity,reward\na,0.5,\nb,0.5,inf\n")
    with pytest.raises(ValueError, match=r"log.csv, line 3: reward must be finite, got inf"):
        read_table(path)
    path.write_text("arm,propensity,reward\na,0.5,1\nb,0,1\n")
    with pytest.raises(ValueError, match=r"log.csv, line 3: propensity must be above 0 and at most 1, got 0.0"):
        read_table(path)
    path.write_text("arm,propensity,reward\n,0.5,1\n")
    with pytest.raises(ValueError, match=r"log.csv, line 2: arm must be a text, a number, true or false, got None"):
        read_table(path)
