"""What another policy would have earned, from the log of one that ran."""

from rightarm.evaluation.evaluate import Evaluation, evaluate
from rightarm.evaluation.lift import Lift, lift
from rightarm.evaluation.replay import Replay, replay
from rightarm.evaluation.sample_ratio import SampleRatio, sample_ratio

__all__ = ["Evaluation", "Lift", "Replay", "SampleRatio", "evaluate", "lift", "replay", "sample_ratio"]
