"""What reads many lines at once agrees with what reads one after the other, on logs that are right and on others."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import naive_log
from log_story import HEAD, START
from rightarm.logs import LogWriter, blocks, read_log
from rightarm.logs.order import WholeNumbers
from rightarm.logs.stream import read_events

ARMS = ["red", "grün", "blue", "7"]


def life(chance: random.Random, events: int) -> list[dict[str, Any]]:
    """Events of all kinds, in an order that can be; their times are in any order."""
    settings: dict[str, Any] = {
        "window_of_reward": chance.choice([None, 3e5, 9e5]),
        "default": chance.choice([None, 0.25]),
    }
    settings["learn"] = chance.choice(["at once", "at close"])
    made: list[dict[str, Any]] = [{"event": "settings", "settings": settings, "time": START}]
    made.append({"event": "arms", "arms": ARMS[:2], "time": START})
    waiting, answered, next_id = list[int](), list[int](), chance.choice([0, 1, 2**52])
    while len(made) < events:
        time, kind = {"time": START + chance.random() * 1e6}, chance.random()
        if kind < 0.45 or not waiting:
            event: dict[str, Any] = {"event": "decision", "id": next_id, "arm": chance.choice(ARMS)}
            event |= {"propensity": chance.random() or 1.0, "round": len(made), "version": 0, **time}
            event |= {"among": ARMS} if chance.random() < 0.2 else {}
            event |= {"unit": chance.choice([3, "u"])} if chance.random() < 0.2 else {}
            event |= {"meta": {"a": [1, None]}, "group": "holdout"} if chance.random() < 0.1 else {}
            event |= {"context": [chance.random(), 1], "arm_features": [[0.5], [2]]} if chance.random() < 0.2 else {}
            event |= {"error": chance.random()} if chance.random() < 0.1 else {}
            waiting.append(next_id)
            next_id += 1 + 5 * (chance.random() < 0.1)
        elif kind < 0.6:
            event = {
                "event": "reward",
                "id": chance.choice(waiting),
                "reward": chance.gauss(0, 1),
                **time,
                "part": True,
            }
        elif kind < 0.65 and answered:
            event = {"event": "correction", "id": chance.choice(answered), "reward": chance.choice([0, 1.5]), **time}
        elif kind < 0.68:
            event = {"event": "arms", "arms": chance.sample(ARMS, 3), **time}
        elif kind < 0.7:
            event = {"event": "observation", "arm": "red", "reward": 0.5, **time}
        elif kind < 0.75:
            ids = chance.sample(waiting, chance.randint(1, min(3, len(waiting))))
            event = {"event": "expiry", "ids": ids, **time} | ({"reward": 0.0} if chance.random() < 0.5 else {})
        else:
            event = {"event": chance.choice(["reward", "reward", "cancel"]), "id": chance.choice(waiting), **time}
            event |= {"reward": chance.choice([1, 0.5])} if event["event"] == "reward" else {}
        if event["event"] in ("reward", "cancel", "expiry") and "part" not in event:
            closed = event.get("ids", [event.get("id")])
            waiting, answered = [one for one in waiting if one not in closed], answered + closed
        made.append(event)
    return made


def agrees(path: Path) -> None:
    """Both readers give the same rows, and the writer knows the same of the log, or both refuse it."""
    try:
        rows = naive_log.rows(path)
    except ValueError:
        for use in (read_log, LogWriter):
            with pytest.raises(ValueError, match=r"log\.jsonl, line \d+: "):
                use(path)
        return
    frame = read_log(path)
    others = ("unit", "group", "meta", *naive_log.NUMBERS)
    absent = [pl.lit(None, pl.String).alias(name) for name in others if name not in frame.columns]
    frame = frame.with_columns(pl.col("asked", "told").dt.epoch("us"), *absent)
    assert frame.select(*(naive_log.as_in_a_frame(rows[0]) if rows else frame.columns)).to_dicts() == [
        naive_log.as_in_a_frame(row) for row in rows
    ]
    with LogWriter(path) as log:
        order = log._order
        assert order.events == sum(1 for _ in read_events(path))
        assert order.waiting == {row["id"] for row in rows if row["open"]}
        assert order.last_id == max((row["id"] for row in rows), default=None)
        assert all(row["id"] in order.decided for row in rows)
        assert not any(row["id"] + 1 in order.decided for row in rows if row["id"] + 1 not in {r["id"] for r in rows})


@pytest.mark.parametrize("seed", range(6))
def test_right_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(blocks, "SIZE", 2_000 if seed % 2 else 1 << 17)
    path = tmp_path / "log.jsonl"
    events = life(random.Random(seed), 300)
    with LogWriter(path) as log:
        log.write(events)
        assert list(log) == [pytest.approx(event) if event.get("reward") == 1 else event for event in events]
        for after in (0, 1, 7, 299, 300):
            assert list(log.since(after)) == list(log)[after:]
    agrees(path)


def spoiled(chance: random.Random, lines: list[bytes]) -> list[bytes]:
    """The lines of a log with one thing that is otherwise: a byte, a number, a line."""
    lines, i = lines.copy(), chance.randrange(len(lines))
    match chance.randrange(6):
        case 0:
            del lines[i]
        case 1:
            lines.insert(i, chance.choice(lines))
        case 2:
            j = chance.randrange(len(lines))
            lines[i], lines[j] = lines[j], lines[i]
        case 3:
            place = chance.randrange(len(lines[i]))
            lines[i] = lines[i][:place] + bytes([chance.randrange(256)]) + lines[i][place + 1 :]
        case 4:
            event = json.loads(lines[i])
            name = chance.choice(list(event))
            event[name] = chance.choice([None, -1, 0, 1, 2, 1.5, 1e300, 10**30, True, "x", "", [], ["red"], {}, 3])
            lines[i] = json.dumps(event).encode() + b"\n"
        case _:
            event = json.loads(lines[i])
            del event[chance.choice(list(event))]
            lines[i] = json.dumps(event).encode() + b"\n"
    return lines


def test_spoiled_logs(tmp_path: Path) -> None:
    path, chance = tmp_path / "log.jsonl", random.Random(11)
    for _ in range(150):
        events, target = life(chance, 40), tmp_path / "right.jsonl"
        with LogWriter(target) as log:
            log.write(events)
        lines = target.read_bytes().splitlines(keepends=True)
        target.unlink()
        path.write_bytes(b"".join(spoiled(chance, lines)))
        agrees(path)


UNUSUAL = {
    "spaces": [
        '{"event": "decision", "n": 2, "id": 1, ',
        '"arm": "a"',
        ', "propensity": 1, "round": 1, "version": 0, "time": 1}',
    ],
    "more fields": [
        '{"event":"decision","n":2,"id":1,"arm":"a","propensity":1.0,',
        '"round":1,"version":0,"time":1,"x":[1]}',
    ],
    "whole rewards": [
        '{"event":"decision","n":2,"id":1,"arm":1,"propensity":1,"round":1,"version":0,"time":1}\n',
        '{"event":"reward","n":3,"id":1,"reward":1000000000000000000000000,"time":1}',
    ],
    "a large arm": ['{"event":"decision","n":2,"id":1,"arm":1e30,"propensity":1,"round":1,"version":0,"time":1}'],
}


@pytest.mark.parametrize("parts", UNUSUAL.values(), ids=UNUSUAL)
def test_unusual_lines_are_read_too(tmp_path: Path, parts: list[str]) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(HEAD + '{"event":"arms","n":1,"arms":["a"],"time":1}\n' + "".join(parts) + "\n")
    frame = read_log(path)
    assert len(frame) == 1
    assert frame["reward"].to_list() == [row["reward"] for row in naive_log.rows(path)]


def test_a_set_of_many_numbers_at_once() -> None:
    import numpy as np

    for numbers in ([], [5], [9, 3, 4, 5, 20, 21], [2**53, 2**53 + 1, 1], list(range(10, 0, -1))):
        many, one_by_one = WholeNumbers(), WholeNumbers()
        many.add_all(np.array(numbers, dtype=np.int64))
        for number in numbers:
            one_by_one.add(number)
        for near in {number + d for number in [*numbers, 0] for d in (-1, 0, 1)}:
            assert (near in many) == (near in one_by_one) == (near in numbers)
        assert len(many.others) <= len(one_by_one.others)


PLACE = 21  # of the line that is wrong, in a block of right ones
WRONG_FIELDS: dict[str, tuple[Any, str]] = {
    "propensity": (2.0, "propensity must be above 0 and at most 1, got 2.0"),
    "propensity of 0": (0.0, "propensity must be above 0 and at most 1, got 0.0"),
    "propensity as text": ("0.5", "propensity must be a number, got '0.5'"),
    "id": (-1, "id must be a whole number from 0 .*, got -1"),
    "id as float": (3.0, "id must be a whole number from 0 .*, got 3.0"),
    "id too large": (2**63, "id must be a whole number from 0 .*, got 9223372036854775808"),
    "round as truth": (True, "round must be a whole number from 0 .*, got True"),
    "time": (1e12, "time must be in seconds since 1970"),
    "time before": (-1.0, "time must be in seconds since 1970"),
    "arm": (None, "arm must be a text, a number, true or false, got None"),
    "arm too large": (10**30, "arm must be a finite number of at most 64 bits"),
    "among": (["red"], r"arm must be among \['red'\], got 'blue'"),
    "among twice": (["blue", "red", "red"], "among must have every arm once"),
    "unit": ([], r"unit must be a whole number from 0 .*, got \[\]"),
    "meta": ({"a": "x" * 10_000}, "meta must be at most 10,000 bytes"),
    "n as truth": (True, "n must be a whole number .*, got True"),
    "n as float": (20.0, "n must be a whole number .*, got 20.0"),
    "event": ("end", "an event must be one of decision"),
}


@pytest.fixture
def lines(tmp_path: Path) -> list[bytes]:
    with LogWriter(tmp_path / "log.jsonl") as log:
        for i in range(40):
            log.decision(i, "blue", 0.5, 1, 0, START)
    return (tmp_path / "log.jsonl").read_bytes().splitlines(keepends=True)


def refuses(path: Path, lines: list[bytes], said: str) -> None:
    path.write_bytes(b"".join(lines))
    for use in (read_log, LogWriter):
        with pytest.raises(ValueError, match=said):
            use(path)


@pytest.mark.parametrize("name", WRONG_FIELDS)
def test_one_wrong_field_among_right_ones(tmp_path: Path, lines: list[bytes], name: str) -> None:
    value, said = WRONG_FIELDS[name]
    event = json.loads(lines[PLACE - 1]) | {name.split()[0]: value}
    spoilt = [*lines[: PLACE - 1], json.dumps(event).encode() + b"\n", *lines[PLACE:]]
    refuses(tmp_path / "log.jsonl", spoilt, rf"line {PLACE}: {said}")


@pytest.mark.parametrize(
    ("replace", "said"),
    [
        ((b"\n", b" "), rf"line {PLACE}: not a line of JSON"),  # two events in one line
        ((b"\n", b"\n\n"), rf"line {PLACE + 1}: not a line of JSON"),  # an empty line
        ((b',"arm"', b',\n"arm"'), rf"line {PLACE}: not a line of JSON"),  # an event in two lines
        ((b'"blue"', b'"bl\x00ue"'), rf"line {PLACE}: not a line of JSON"),
        ((b'"blue"', b'"bl\xffue"'), rf"line {PLACE}: not a line of JSON"),
        ((b'"blue"', b'"bl\\ud800ue"'), rf"line {PLACE}: arm must be a text that UTF-8 can encode"),
        ((b'"blue"', b'["blue"]'), rf"line {PLACE}: arm must be a text, a number, true or false"),
        ((b"0.5", b"NaN"), rf"line {PLACE}: propensity must be finite, got nan"),
        ((b"0.5", b"1e999"), rf"line {PLACE}: propensity must be finite, got inf"),
        ((b"0.5", b".5"), rf"line {PLACE}: not a line of JSON"),
        ((b"{", b"["), rf"line {PLACE}: not a line of JSON"),
    ],
)
def test_one_wrong_line_among_right_ones(
    tmp_path: Path, lines: list[bytes], replace: tuple[bytes, bytes], said: str
) -> None:
    spoilt = [*lines[: PLACE - 1], lines[PLACE - 1].replace(*replace), *lines[PLACE:]]
    refuses(tmp_path / "log.jsonl", spoilt, said)


def test_lines_of_another_system(tmp_path: Path, lines: list[bytes]) -> None:
    """A line may end as on Windows, and have other white space between its parts."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(line.replace(b"\n", b"\r\n").replace(b',"arm"', b' ,\r"arm"') for line in lines))
    assert len(read_log(path)) == len(naive_log.rows(path)) == 40
