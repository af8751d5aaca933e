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
from rightarm.logs import LogWriter, read_log
from rightarm.logs.events import (
    Arm,
    Cancellation,
    Changed,
    Correction,
    Created,
    Decision,
    Event,
    Expiry,
    LateReward,
    Observation,
    Reward,
)
from rightarm.logs.lines import Head, Numbering, as_lines, read_blocks
from rightarm.logs.outcomes import WholeNumbers, read_events, read_order
from rightarm.logs.settings import Settings

ARMS: list[Arm] = ["red", "grün", "blue", "7"]


def life(chance: random.Random, events: int) -> list[Event]:
    """Events of all kinds, in an order that can be; their times are in any order."""
    made: list[Event] = [Created(arms=ARMS[:2], policy={}, settings=Settings(**windows(chance)), time=START)]
    waiting, answered, next_id = list[int](), list[int](), chance.choice([0, 1, 2**52])
    while len(made) < events:
        time, kind = START + chance.random() * 1e6, chance.random()
        closed = list[int]()
        if kind < 0.45 or not waiting:
            event: Event = decision(chance, next_id, len(made), time)
            waiting.append(next_id)
            next_id += 1 + 5 * (chance.random() < 0.1)
        elif kind < 0.6:
            event = Reward(id=chance.choice(waiting), reward=chance.gauss(0, 1), time=time, part=True)
        elif kind < 0.65 and answered:
            type_ = chance.choice([Correction, Correction, LateReward])
            event = type_(id=chance.choice(answered), reward=chance.choice([0.0, 1.5]), time=time)
        elif kind < 0.67:
            event = Changed(arms=chance.sample(ARMS, 3), time=time)
        elif kind < 0.68:
            event = Changed(settings=windows(chance), time=time, by="somebody")
        elif kind < 0.7:
            event = Observation(arm="red", reward=0.5, time=time)
        elif kind < 0.75:
            closed = chance.sample(waiting, chance.randint(1, min(3, len(waiting))))
            event = Expiry(ids=closed, time=time, reward=chance.choice([None, 0.0]))
        else:
            closed = [chance.choice(waiting)]
            rewarded = Reward(id=closed[0], reward=chance.choice([1.0, 0.5]), time=time)
            event = chance.choice([rewarded, rewarded, Cancellation(id=closed[0], time=time)])
        waiting, answered = [one for one in waiting if one not in closed], answered + closed
        made.append(event)
    return made


def windows(chance: random.Random) -> dict[str, Any]:
    """Settings of windows of reward, or of none."""
    seconds = chance.choice([None, 3e5, 9e5])
    if seconds is None:
        return {"reward_window": None, "default_reward": None, "learn": "at once"}
    learn = chance.choice(["at once", "at close"])
    return {"reward_window": seconds, "default_reward": chance.choice([None, 0.25]), "learn": learn}


def decision(chance: random.Random, number: int, round: int, time: float) -> Decision[str]:
    """A decision, with those fields that it may have."""
    more: dict[str, Any] = {"allowed": ARMS} if chance.random() < 0.2 else {}
    more |= {"unit": chance.choice([3, "u"])} if chance.random() < 0.2 else {}
    more |= {"meta": {"a": [1, None]}, "group": "holdout"} if chance.random() < 0.1 else {}
    more |= {"context": [chance.random(), 1.0], "arm_features": [[0.5], [2.0]]} if chance.random() < 0.2 else {}
    more |= {"error": chance.random()} if chance.random() < 0.1 else {}
    more |= {"id": number, "arm": chance.choice(ARMS), "propensity": chance.random() or 1.0}
    return Decision(round=round, version=0, time=time, **more)


def written(path: Path, events: list[Event]) -> list[bytes]:
    """Write a log, and give its lines."""
    path.write_bytes(as_lines(Head("0" * 32, 1, 1, START), events, 1))
    return path.read_bytes().splitlines(keepends=True)


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
    texts = [pl.lit(None, pl.String).alias(name) for name in ("unit", "group", "meta", "context", "arm_features")]
    absent = [one for one in (*texts, pl.lit(0.0).alias("error")) if one.meta.output_name() not in frame.columns]
    frame = frame.with_columns(pl.col("decided_at", "answered_at").dt.epoch("us"), *absent)
    expected = [naive_log.as_in_a_frame(row) for row in rows]
    if frame["arm"].str.starts_with('"').any():  # an arm became a number, so all are given as JSON
        expected = [row | {"arm": json.dumps(row["arm"]), "allowed": as_json(row["allowed"])} for row in expected]
    assert frame.select(*(expected[0] if rows else frame.columns)).to_dicts() == expected
    order = read_order(path, Numbering())
    assert order.events == sum(1 for _ in read_events(path))
    assert order.waiting == {row["id"] for row in rows if row["open"]}
    assert order.last_id == max((row["id"] for row in rows), default=None)
    assert all(row["id"] in order.decided for row in rows)
    assert not any(row["id"] + 1 in order.decided for row in rows if row["id"] + 1 not in {r["id"] for r in rows})


def as_json(arms: list[Any] | None) -> list[str] | None:
    return None if arms is None else list(map(json.dumps, arms))


@pytest.mark.parametrize("seed", range(12))
def test_right_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr("rightarm.logs.lines.SIZE", 2_000 if seed % 2 else 1 << 17)
    path = tmp_path / "log.jsonl"
    events = life(random.Random(seed), 300)
    written(path, events)
    assert list(read_events(path)) == events
    for after in (0, 1, 7, 299, 300):
        some = [block for block in read_blocks(path, Numbering(), after=after) if block.events]
        rest = [event for block in some for event in block.events[max(0, after + 1 - block.first) :]]
        assert rest == events[after:]
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
            lines[i] = compact(event)
        case _:
            event = json.loads(lines[i])
            del event[chance.choice(list(event))]
            lines[i] = compact(event)
    return lines


def compact(event: dict[str, Any]) -> bytes:
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def test_spoiled_logs(tmp_path: Path) -> None:
    path, chance = tmp_path / "log.jsonl", random.Random(11)
    for _ in range(300):
        lines = written(tmp_path / "right.jsonl", life(chance, 40))
        path.write_bytes(b"".join(spoiled(chance, lines)))
        agrees(path)


def test_bit_flips(tmp_path: Path) -> None:
    """A bit that is otherwise makes a log that is refused, or one that both readers read alike."""
    path, chance = tmp_path / "log.jsonl", random.Random(12)
    whole = b"".join(written(path, life(chance, 40)))
    for _ in range(300):
        place = chance.randrange(len(whole) - 1)  # not the end of the last line, which would be torn
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << chance.randrange(8)]) + whole[place + 1 :])
        agrees(path)


UNUSUAL = {
    "spaces": [
        '{"n":2, "event": "decision", "id": 1, ',
        '"arm": "a"',
        ', "propensity": 1, "round": 1, "version": 0, "time": 1}',
    ],
    "fields in another order": [
        '{"n":2,"id":1,"arm":"a","propensity":1.0,"time":1,',
        '"round":1,"version":0,"event":"decision"}',
    ],
    "whole rewards": [
        '{"n":2,"event":"decision","id":1,"arm":1,"propensity":1,"round":1,"version":0,"time":1}\n',
        '{"n":3,"event":"reward","id":1,"reward":1000000000000000000000000,"time":1}',
    ],
    "a large arm": ['{"n":2,"event":"decision","id":1,"arm":1e30,"propensity":1,"round":1,"version":0,"time":1}'],
}


@pytest.mark.parametrize("parts", UNUSUAL.values(), ids=UNUSUAL)
def test_unusual_lines_are_read_too(tmp_path: Path, parts: list[str]) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(HEAD + '{"n":1,"event":"change","arms":["a"],"time":1}\n' + "".join(parts) + "\n")
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
    "propensity": (2.0, "propensity must be float <= 1.0, got 2.0"),
    "propensity of 0": (0.0, "propensity must be float > 0.0, got 0.0"),
    "propensity as text": ("0.5", "propensity must be float, got '0.5'"),
    "id": (-1, "id must be int >= 0, got -1"),
    "id as float": (3.0, "id must be int, got 3.0"),
    "id too large": (2**63, "id must be int <= 9223372036854775807, got 9223372036854775808"),
    "round as truth": (True, "round must be int, got True"),
    "time": (1e12, "time must be float < 253402300800.0, got 1000000000000.0"),
    "time before": (-1.0, "time must be float >= 0.0, got -1.0"),
    "arm": (None, "arm must be bool | int | float | str, got None"),
    "arm as list": (["blue"], r"arm must be .*, got \['blue'\]"),
    "arm too large": (10**30, "arm must be int <= 9223372036854775807, got 10{30}"),
    "allowed": (["red"], r"arm must be among \['red'\], got 'blue'"),
    "allowed twice": (["blue", "red", "red"], "allowed must have every arm once"),
    "unit": ([], r"unit must be int | str | null, got \[\]"),
    "meta": ([1], r"meta must be object | null, got \[1\]"),
    "context": ([1.0, "2"], r"context\[1\] must be float, got '2'"),
    "arm_features": ([[1.0], 2.0], r"arm_features\[1\] must be array, got 2.0"),
    "unknown": (1, "Object contains unknown field `unknown`, got {'"),
    "n as truth": (True, "a line must begin with the number of its event"),
    "n as float": (20.0, "a line must begin with the number of its event"),
    "event": ("end", "event Invalid value 'end', got 'end'"),
}


@pytest.fixture
def lines(tmp_path: Path) -> list[bytes]:
    made = [Decision(id=i, arm="blue", propensity=0.5, round=1, version=0, time=START) for i in range(40)]
    return written(tmp_path / "log.jsonl", list[Event](made))


def refuses(path: Path, lines: list[bytes], said: str) -> None:
    path.write_bytes(b"".join(lines))
    for use in (read_log, LogWriter):
        with pytest.raises(ValueError, match=said):
            use(path)


@pytest.mark.parametrize("name", WRONG_FIELDS)
def test_one_wrong_field_among_right_ones(tmp_path: Path, lines: list[bytes], name: str) -> None:
    value, said = WRONG_FIELDS[name]
    event = json.loads(lines[PLACE - 1]) | {name.split()[0]: value}
    spoilt = [*lines[: PLACE - 1], compact(event), *lines[PLACE:]]
    refuses(tmp_path / "log.jsonl", spoilt, rf"line {PLACE}: {said}")


@pytest.mark.parametrize(
    ("replace", "said"),
    [
        ((b"\n", b" "), rf"line {PLACE}: not a line of JSON"),  # two events in one line
        ((b"\n", b"\n\n"), rf"line {PLACE + 1}: a line must begin with the number of its event"),  # an empty line
        ((b',"arm"', b',\n"arm"'), rf"line {PLACE}: not a line of JSON"),  # an event in two lines
        ((b'"blue"', b'"bl\x00ue"'), rf"line {PLACE}: not a line of JSON"),
        ((b'"blue"', b'"bl\xffue"'), rf"line {PLACE}: not a line of JSON"),
        ((b'"blue"', b'"bl\\ud800ue"'), rf"line {PLACE}: not a line of JSON, got .* surrogate"),
        ((b"0.5", b"NaN"), rf"line {PLACE}: not a line of JSON"),
        ((b"0.5", b"1e999"), rf"line {PLACE}: propensity Number out of range, got "),
        ((b"0.5", b".5"), rf"line {PLACE}: not a line of JSON"),
        ((b"{", b"["), rf"line {PLACE}: a line must begin with the number of its event"),
        ((b'{"n":20', b'{"n":020'), rf"line {PLACE}: a line must begin with the number of its event"),
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
