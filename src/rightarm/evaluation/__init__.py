"""What another policy would have earned, from the log of one that ran."""

from rightarm.evaluation.evaluate import Evaluation, evaluate
from rightarm.evaluation.replay import Replay, replay

__all__ = ["Evaluation", "Replay", "evaluate", "replay"]
