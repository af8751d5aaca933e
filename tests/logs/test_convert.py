"""Logs in Parquet: made of JSON lines and back."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import rightarm as ra
from log_story import HEAD, START, play, story, written
from rightarm.logs import LogWriter, convert_log, is_log, read_log
from rightarm.logs.events import Cancellation, Changed
from rightarm.logs.lines import Head
from rightarm.logs.parquet import write_events


def test_a_log_becomes_parquet_and_lines_again(tmp_path: Path) -> None:
    lines, packed, again = (tmp_path / name for name in ("log.jsonl", "log.parquet", "again.jsonl"))
    with LogWriter(lines) as log:
        play(log, story())
        log.observation(True, 0.5, START)
        log.arms([1, "1", True], START)
        log.arms([], START)
        specification = ra.UCB(C=0.5).specification()
        log.write([Changed(policy=specification, time=START)])
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
    (tmp_path / "wrong.jsonl").write_text(HEAD + '{"n":1,"event":"cancel","id":5,"time":1}\n')
    with pytest.raises(ValueError, match=r"wrong\.jsonl, line 2: id must be .*, got the unknown 5"):
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
    write_events(Head("0", 1, 1, 1.0), [Cancellation(id=3, time=1.0)], tmp_path / "wrong.parquet")
    with pytest.raises(ValueError, match=r"wrong\.parquet, row 2: id must be .* for a cancel, got the unknown 3"):
        read_log(tmp_path / "wrong.parquet")
    right = pl.read_parquet(tmp_path / "wrong.parquet")
    for column, said in {
        "id": "row 2: Object missing required field `id`",
        "n": "row 2: n must be 1, got None",
        "event": "row 1: a part of a log must begin with a head",
    }.items():
        right.with_columns(pl.lit(None).cast(right.schema[column]).alias(column)).write_parquet(tmp_path / "no.parquet")
        with pytest.raises(ValueError, match=said):
            read_log(tmp_path / "no.parquet")
    right.with_columns(-pl.col("id")).write_parquet(tmp_path / "no.parquet")
    with pytest.raises(ValueError, match=r"no\.parquet, row 2: id must be int >= 0, got -3"):
        read_log(tmp_path / "no.parquet")
