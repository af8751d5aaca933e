"""Live bandits: decisions one by one, and what is known of the arms."""

from rightarm.live.arms import Decision
from rightarm.live.bandit import Bandit

__all__ = ["Bandit", "Decision"]
