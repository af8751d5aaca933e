"""Logs in other formats, above all Parquet: made of JSON lines and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import polars as pl
import pytest

import rightarm as ra
from log_story import HEAD, START, play, story, written
from rightarm.logs import LogWriter, convert_log, is_log, read_log, to_obp
from rightarm.logs.events import Cancellation, Changed
from rightarm.logs.exports import EXPORTS
from rightarm.logs.lines import Head, write_parquet
from rightarm.messages import Format


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
    with pytest.raises(ValueError, match=r"target must end in one of \.jsonl, \.parquet, .*, got .*log\.csv"):
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
    write_parquet(Head("0", 1, 1, 1.0), [Cancellation(id=3, time=1.0)], tmp_path / "wrong.parquet")
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


def test_every_format_has_a_row_in_one_table(tmp_path: Path) -> None:
    """What is added to the table is written by its ending; the service names all of them."""
    written(tmp_path / "log.jsonl", story())
    for name, export in EXPORTS.items():
        assert convert_log(tmp_path / "log.jsonl", tmp_path / f"{name}{export.ending}").stat().st_size > 0
    assert set(get_args(get_type_hints(Format)["format"])) == set(EXPORTS)
    with np.load(tmp_path / "obp.npz") as feedback:
        assert json.loads(str(feedback["arms"])) == to_obp(tmp_path / "log.jsonl")["arms"]
