"""Logs read the plain way: line by line, with dictionaries. The oracle for what reads them fast."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rightarm.logs.stream import read_events

NUMBERS = ("context", "arm_features", "error")


def rows(path: Path) -> list[dict[str, Any]]:
    """A row for each decision, with what is known of it at the end of the log."""
    found, arms, settings = dict[int, dict[str, Any]](), None, dict[str, Any]()
    for n, event in enumerate(read_events(path)):
        for row in found.values():
            row["latest"] = max(row["latest"], event["time"])
        match event["event"]:
            case "settings" if n == 0:
                settings = event["settings"]
            case "arms":
                arms = event["arms"]
            case "decision":
                row = {
                    "among": arms,
                    "reward": None,
                    "told": None,
                    "cancelled": False,
                    "corrected": False,
                    "open": True,
                    "latest": event["time"],
                }
                found[event["id"]] = row | dict.fromkeys(("unit", "group", "meta", *NUMBERS)) | event
            case "reward":
                found[event["id"]] |= {"reward": event["reward"], "told": event["time"], "open": "part" in event}
            case "cancel":
                found[event["id"]] |= {"reward": None, "told": event["time"], "cancelled": True, "open": False}
            case "expiry":
                for number in event["ids"]:
                    row = found[number] | {"open": False}
                    row |= {"reward": event["reward"]} if "reward" in event else {}
                    found[number] = row | ({"told": event["time"]} if row["reward"] is None else {})
            case "correction":
                found[event["id"]] |= {"reward": event["reward"], "corrected": True}
    return [row if settings.get("window_of_reward") is None else windowed(row, settings) for row in found.values()]


def windowed(row: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """A row as it counts where rewards have a window: not before that has closed."""
    over = row["latest"] >= row["time"] + settings["window_of_reward"]
    if row["open"] and over and row["reward"] is None:
        return row | {"reward": settings["default"], "open_window": False}
    if over or (settings["learn"] == "at close" and not row["open"]):
        return row | {"open_window": False}
    return row | {"reward": None, "open_window": row["open"] or row["reward"] is not None}


def as_in_a_frame(row: dict[str, Any]) -> dict[str, Any]:
    """A row as `read_log` gives it, with times in microseconds, if all arms are texts."""
    plain = {name: row[name] for name in ("id", "arm", "propensity", "reward", "round", "version")}
    times = {"asked": round(row["time"] * 1e6), "told": None if row["told"] is None else round(row["told"] * 1e6)}
    texts = {"unit": None if row["unit"] is None else str(row["unit"]), "group": row["group"]}
    texts |= {"meta": None if row["meta"] is None else json.dumps(row["meta"])}
    others = [name for name in ("cancelled", "corrected", "among", "open_window", *NUMBERS) if name in row]
    return plain | times | {name: row[name] for name in others} | texts
