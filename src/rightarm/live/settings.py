"""How a live bandit was set up: everything besides its arms and its policy."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

from rightarm.formula import check_choice, check_count, check_number
from rightarm.live.names import name_from, plain_name
from rightarm.logs.windows import AT_CLOSE
from rightarm.scores.rewards import check_reward_range

AT_ONCE = "at once"
LAST, SUM = "last", "sum"
CORRECT, KEEP = "correct", "keep"


@dataclass(frozen=True)
class Settings:
    """The options of a bandit that never change, checked; `rightarm.Bandit` says what each is."""

    floor: float = 0.0
    discount: float | None = None
    window: int | None = None
    reward_range: tuple[float, float] | None = None
    window_of_reward: float | timedelta | None = None
    """In seconds, once it is checked."""
    default: float | None = None
    learn: str = AT_ONCE
    several: str = LAST
    control: Hashable | None = None
    holdout: float = 0.0
    guardrail: float | None = None
    log_context: bool = True
    late: str = CORRECT

    def __post_init__(self) -> None:
        self._set("floor", check_share("floor", self.floor))
        if self.discount is not None:
            self._set("discount", check_number("discount", self.discount))
        if self.window is not None:
            self._set("window", check_count("window", self.window))
        if self.reward_range is not None:
            self._set("reward_range", check_reward_range(self.reward_range))
        if self.window_of_reward is not None:
            self._set("window_of_reward", check_seconds("window_of_reward", self.window_of_reward, above=0.0))
        check_choice("learn", self.learn, (AT_ONCE, AT_CLOSE))
        check_choice("several", self.several, (LAST, SUM))
        check_choice("late", self.late, (CORRECT, KEEP))
        self._check_window()
        if check_share("holdout", self.holdout) == 1:
            raise ValueError("holdout must be below 1, got 1.0: the policy would decide nothing")
        self._set("holdout", float(self.holdout))
        if not isinstance(self.log_context, bool):
            raise TypeError(f"log_context must be True or False, got {self.log_context!r}")
        if self.guardrail is not None:
            self._set("guardrail", check_number("guardrail", self.guardrail))
            if self.guardrail < 0:
                raise ValueError(f"guardrail must not be negative, got {self.guardrail}")
            if self.control is None:
                raise ValueError(f"guardrail needs a control to compare arms with, got guardrail={self.guardrail}")

    def _check_window(self) -> None:
        if self.default is not None:
            self._set("default", check_number("default", self.default))
        if self.window_of_reward is None:
            for name in ("default", "learn", "several", "late"):
                if getattr(self, name) != type(self).__dataclass_fields__[name].default:
                    raise ValueError(f"{name} needs window_of_reward, got {getattr(self, name)!r} without it")

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def seconds(self) -> float | None:
        """How long rewards of a decision are awaited, if there is an end."""
        return cast("float | None", self.window_of_reward)  # a number since it was checked

    def is_late(self, made: float, now: float) -> bool:
        """Whether a reward comes too late to be learned, for a decision that was ``made`` at a time."""
        return self.late == KEEP and self.seconds is not None and made + self.seconds <= now

    @property
    def at_close(self) -> bool:
        """Whether a decision is learned when its window closes, not before."""
        return self.learn == AT_CLOSE

    def combined(self, before: float | None, reward: float) -> float:
        """The reward of a decision when another one comes."""
        return reward if before is None or self.several == LAST else before + reward

    def as_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        plain = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        limits = None if self.reward_range is None else list(self.reward_range)
        return plain | {"control": plain_name(self.control), "reward_range": limits}

    @classmethod
    def from_json(cls, plain: Any) -> Settings:
        """What `as_json` gave; what a file of an earlier version lacks has its default."""
        names = [each.name for each in dataclasses.fields(cls)]
        given = {name: plain[name] for name in names if name in plain}
        if given.get("reward_range") is not None:
            given["reward_range"] = tuple(given["reward_range"])
        return cls(**given | {"control": name_from(given.get("control"))})


def check_share(name: str, value: Any) -> float:
    """Return ``value`` if it is a probability."""
    number = check_number(name, value)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} must be from 0 to 1, got {number}")
    return number


def check_seconds(name: str, value: float | timedelta, above: float | None = None) -> float:
    """A length of time in seconds."""
    seconds = check_number(name, value.total_seconds() if isinstance(value, timedelta) else value)
    if seconds < 0 or (above is not None and seconds <= above):
        raise ValueError(f"{name} must {'not be negative' if above is None else 'be positive'}, got {value}")
    return seconds
