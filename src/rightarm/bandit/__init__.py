"""Live bandits: decide arm by arm, learn from rewards, and say what they prove."""

from rightarm.bandit.bandit import Bandit
from rightarm.logs.events import Decision

__all__ = ["Bandit", "Decision"]
