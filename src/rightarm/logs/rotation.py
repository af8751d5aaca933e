"""When a log goes on in a new file: at a size, or with a new day."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

UNITS = {"kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}
DAY = 86_400  # seconds


@dataclass(frozen=True)
class Rotation:
    """A part of a log has at most ``size`` bytes, unless one write has more, and events of one day if ``daily``."""

    size: float = float("inf")
    daily: bool = False

    def is_due(self, size: int, more: int, latest: float | None, time: float) -> bool:
        """Whether ``more`` bytes at ``time`` belong to a new part, if there are ``size`` up to the time ``latest``."""
        if size == 0:
            return False
        later = latest is not None and time // DAY > latest // DAY  # a clock that goes backwards begins no day
        return size + more > self.size or (self.daily and later)


def rotation_from(rotate: Any) -> Rotation:
    """What ``rotate`` asks for: "day" (in UTC), a size such as "100MB", or None for one file.

    >>> rotation_from("1.5 GB").size
    1500000000.0
    """
    if rotate is None:
        return Rotation()
    if rotate == "day":
        return Rotation(daily=True)
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?(kB|MB|GB)", rotate) if isinstance(rotate, str) else None
    if match is None or float(match[1]) == 0:
        raise ValueError(f"rotate must be 'day' or a size such as '500kB', '100MB' or '2GB', got {rotate!r}")
    return Rotation(size=float(match[1]) * UNITS[match[2]])
