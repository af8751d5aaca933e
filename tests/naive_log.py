"""Logs read the plain way: line by line, with dictionaries. The oracle for what reads them fast."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rightarm.logs.stream import read_events

NUMBERS = ("context", "arm_features", "error")


def rows(path: Path) -> list[dict[str, Any]]:
    """A row for each decision, with what is known of it at the end of the log."""
    found, arms = dict[int, dict[str, Any]](), None
    for event in read_events(path):
        match event["event"]:
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
                }
                found[event["id"]] = row | dict.fromkeys(("unit", "group", "meta", *NUMBERS)) | event
            case "reward":
                found[event["id"]] |= {"reward": event["reward"], "told": event["time"], "open": "part" in event}
            case "cancel":
                found[event["id"]] |= {"reward": None, "told": event["time"], "cancelled": True, "open": False}
            case "expiry":
                for number in event["ids"]:
                    found[number] |= {"told": event["time"], "open": False}
                    found[number] |= {"reward": event["reward"]} if "reward" in event else {}
            case "correction":
                found[event["id"]] |= {"reward": event["reward"], "corrected": True}
    return list(found.values())


def as_in_a_frame(row: dict[str, Any]) -> dict[str, Any]:
    """A row as `read_log` gives it, with times in microseconds, if all arms are texts."""
    plain = {name: row[name] for name in ("id", "arm", "propensity", "reward", "round", "version")}
    times = {"asked": round(row["time"] * 1e6), "told": None if row["told"] is None else round(row["told"] * 1e6)}
    texts = {"unit": None if row["unit"] is None else str(row["unit"]), "group": row["group"]}
    texts |= {"meta": None if row["meta"] is None else json.dumps(row["meta"])}
    return plain | times | {name: row[name] for name in ("cancelled", "corrected", "among", *NUMBERS)} | texts
