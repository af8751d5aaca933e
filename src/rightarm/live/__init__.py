"""Live bandits: decisions one by one, and what is known of the arms."""

from rightarm.live.bandit import Bandit
from rightarm.logs.events import Decision

__all__ = ["Bandit", "Decision"]
