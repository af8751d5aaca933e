"""Logs read the plain way: line by line, with dictionaries. The oracle for what reads them fast."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from rightarm.logs.events import AnyEvent, Time
from rightarm.logs.outcomes import EventOrder

NUMBERS = ("context", "arm_features", "error")
NOTHING: dict[str, Any] = {"reward_window": None, "default_reward": None, "learn": "at once"}


def refuse(constant: str) -> None:
    """Refuse NaN and the infinities, which Python reads and JSON does not know."""
    raise ValueError(f"{constant} is no JSON")


def events(path: Path) -> list[dict[str, Any]]:
    """The events of a log in one part, each checked by itself and against those before it."""
    head, *lines = [json.loads(line, parse_constant=refuse) for line in path.read_bytes().split(b"\n")[:-1]]
    if not isinstance(head, dict):
        raise ValueError("this is no head")
    log, time = head.pop("log", None), head.pop("time", None)
    expected = {"event": "head", "format": "rightarm log", "version": 4, "part": 1, "first": 1}
    if head != expected or {*map(type, head.values())} != {str, int}:
        raise ValueError("this is no head")
    msgspec.convert((log, time), tuple[str, Time])
    order = EventOrder()
    for n, line in enumerate(lines, start=1):
        if not isinstance(line, dict) or [*line, ""][0] != "n" or repr(line.pop("n")) != str(n):
            raise ValueError(f"event {n} is not there")
        typed: Any = msgspec.convert(line, AnyEvent)
        try:
            order.check([typed])
        except TypeError as error:  # settings of another type
            raise ValueError(str(error)) from None
        order.take(typed, n)
        if line.get("reward") is not None:
            line["reward"] = float(line["reward"])
    return lines


def rows(path: Path) -> list[dict[str, Any]]:
    """A row for each decision, with what is known of it at the end of the log."""
    found = dict[int, dict[str, Any]]()
    arms = None
    settings = NOTHING
    has_windows = False
    for event in events(path):
        has_windows |= settings["reward_window"] is not None
        match event["event"]:
            case "created" | "change":
                close(found, settings, event["time"])
                arms = event.get("arms", arms)
                settings = (NOTHING if event["event"] == "created" else settings) | event.get("settings", {})
                continue
            case "decision":
                row = {
                    "allowed": arms,
                    "reward": None,
                    "told": None,
                    "cancelled": False,
                    "corrected": False,
                    "open": True,
                    "closed": False,
                    "worth": None,
                }
                found[event["id"]] = row | dict.fromkeys(("unit", "group", "meta", *NUMBERS)) | {"error": 0.0} | event
            case "reward":
                part = event.get("part", False)
                found[event["id"]] |= {"reward": event["reward"], "told": event["time"], "open": part}
            case "cancel":
                found[event["id"]] |= {"reward": None, "told": event["time"], "cancelled": True, "open": False}
            case "expiry":
                for number in event["ids"]:
                    row = found[number] | {"open": False}
                    row |= {"reward": event["reward"]} if event.get("reward") is not None else {}
                    found[number] = row | ({"told": event["time"]} if row["reward"] is None else {})
            case "correction":
                found[event["id"]] |= {"reward": event["reward"], "corrected": True}
        if event["event"] in ("reward", "cancel", "expiry") and not event.get("part"):
            for number in event.get("ids", [event.get("id")]):
                found[number]["closed"] |= settings["reward_window"] is None or settings["learn"] == "at close"
        close(found, settings, event["time"])
    has_windows |= settings["reward_window"] is not None
    return [windowed(row, settings) if has_windows else row for row in found.values()]


def close(found: dict[int, dict[str, Any]], settings: dict[str, Any], now: float) -> None:
    """Close the windows that have run out at some time."""
    for row in found.values():
        window = settings["reward_window"]
        if not row.get("over") and window is not None and row["time"] + window <= now:
            row |= {"closed": True, "over": True, "worth": settings["default_reward"]}


def windowed(row: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """A row as it counts where rewards have a window: not before that has closed."""
    if row["open"] and row["closed"] and row["reward"] is None:
        return row | {"reward": row["worth"], "open_window": False}
    if row["closed"] or settings["reward_window"] is None:
        return row | {"open_window": False}
    return row | {"reward": None, "open_window": row["open"] or row["reward"] is not None}


def as_in_a_frame(row: dict[str, Any]) -> dict[str, Any]:
    """A row as `read_log` gives it, with times in microseconds, if all arms are texts."""
    plain = {name: row[name] for name in ("id", "arm", "propensity", "reward", "round", "version")}
    times = {
        "decided_at": round(row["time"] * 1e6),
        "answered_at": None if row["told"] is None else round(row["told"] * 1e6),
    }
    texts = {"unit": None if row["unit"] is None else str(row["unit"]), "group": row["group"]}
    texts |= {"meta": None if row["meta"] is None else json.dumps(row["meta"])}
    others = [name for name in ("cancelled", "corrected", "allowed", "open_window", *NUMBERS) if name in row]
    return plain | times | {name: row[name] for name in others} | texts
