"""What another policy would have earned, from the log of one that ran."""

from rightarm.evaluation.evaluate import Evaluation, evaluate
from rightarm.evaluation.replay import Replay, replay
from rightarm.evaluation.sample_ratio import SampleRatio, sample_ratio

__all__ = ["Evaluation", "Replay", "SampleRatio", "evaluate", "replay", "sample_ratio"]
