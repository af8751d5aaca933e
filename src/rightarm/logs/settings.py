"""The settings of a bandit: everything except its arms and its policy."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal, get_args

import msgspec

from rightarm.errors import WrongType, WrongValue
from rightarm.formula import check_choice, check_number
from rightarm.policies.inputs import check_reward_range

Learn = Literal["at once", "at close"]
Repeated = Literal["last", "sum"]
Late = Literal["correct", "keep"]
ONLY_WITH_WINDOW = ("default_reward", "learn", "repeated", "late")


class Settings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The options of a bandit, checked; `rightarm.Bandit` says what each is."""

    floor: float = 0.0
    reward_range: tuple[float, float] | None = None
    reward_window: float | None = None
    default_reward: float | None = None
    learn: Learn = "at once"
    repeated: Repeated = "last"
    control: Any = None
    holdout: float = 0.0
    guardrail: float | None = None
    late: Late = "correct"

    def __post_init__(self) -> None:
        self._set("floor", check_share("floor", self.floor))
        if self.reward_range is not None:
            self._set("reward_range", check_reward_range(self.reward_range))
        self._check_rewards()
        self._set("holdout", check_share("holdout", self.holdout))
        if self.holdout == 1:
            raise WrongValue("holdout", "must be below 1, got 1.0: the policy would decide nothing")
        if self.guardrail is not None:
            self._check_guardrail(self.guardrail)
        for name, default in DEFAULTS.items():
            if getattr(self, name) == default:
                self._set(name, default)  # the same object, so that JSON leaves it out

    def _check_rewards(self) -> None:
        """Check what is said of rewards that come late, several times or never."""
        check_choice("learn", self.learn, get_args(Learn))
        check_choice("repeated", self.repeated, get_args(Repeated))
        check_choice("late", self.late, get_args(Late))
        if self.default_reward is not None:
            self._set("default_reward", check_number("default_reward", self.default_reward))
        if self.reward_window is not None:
            self._set("reward_window", check_seconds("reward_window", self.reward_window, above=0.0))
            return
        for name in ONLY_WITH_WINDOW:
            if getattr(self, name) != DEFAULTS[name]:
                raise WrongValue(name, f"needs reward_window, got {getattr(self, name)!r} without it")

    def _check_guardrail(self, guardrail: float) -> None:
        self._set("guardrail", check_number("guardrail", guardrail))
        if guardrail < 0:
            raise WrongValue("guardrail", f"must not be negative, got {guardrail}")
        if self.control is None:
            raise WrongValue("guardrail", f"needs a control to compare arms with, got guardrail={guardrail}")

    def _set(self, name: str, value: Any) -> None:
        msgspec.structs.force_setattr(self, name, value)

    def changed(self, **settings: Any) -> Settings:
        """Return these settings with some others in their place, checked as a whole."""
        for name in settings:
            if name not in self.__struct_fields__:
                raise WrongType(name, f"is not a setting: these are {', '.join(self.__struct_fields__)}")
        return msgspec.structs.replace(self, **settings)

    def plain(self) -> dict[str, Any]:
        """Return all settings, defaults too, as JSON has them."""
        return {name: msgspec.to_builtins(getattr(self, name)) for name in self.__struct_fields__}

    # Rewards of one decision.

    def is_late(self, made: float, now: float) -> bool:
        """Say whether a reward comes too late to be learned, for a decision that was ``made`` at a time."""
        return self.late == "keep" and self.reward_window is not None and made + self.reward_window <= now

    @property
    def at_close(self) -> bool:
        """Say whether a decision is learned when its window closes, not before."""
        return self.learn == "at close"

    def combined(self, before: float | None, reward: float) -> float:
        """Return the reward of a decision when another one comes."""
        if before is None or self.repeated == "last":
            return reward
        return before + reward


DEFAULTS = dict(zip(Settings.__struct_fields__, Settings.__struct_defaults__, strict=True))


def check_share(name: str, value: Any) -> float:
    """Return ``value`` if it is a probability."""
    number = check_number(name, value)
    if not 0 <= number <= 1:
        raise WrongValue(name, f"must be from 0 to 1, got {number}")
    return number


def check_seconds(name: str, value: float | timedelta, above: float | None = None) -> float:
    """Return a length of time in seconds."""
    seconds = check_number(name, value.total_seconds() if isinstance(value, timedelta) else value)
    if seconds < 0 or (above is not None and seconds <= above):
        raise WrongValue(name, f"must {'not be negative' if above is None else 'be positive'}, got {value}")
    return seconds
