"""What another policy would have earned on a log."""

from rightarm.evaluation.evaluate import Evaluation, Replay, evaluate, replay
from rightarm.evaluation.exports import to_obp, to_vw

__all__ = ["Evaluation", "Replay", "evaluate", "replay", "to_obp", "to_vw"]
