"""Estimates, from the log of a policy that ran, of what another one would have earned."""

from rightarm.evaluation.evaluate import Evaluation, evaluate
from rightarm.evaluation.lift import Lift, lift
from rightarm.evaluation.replay import Replay, replay
from rightarm.evaluation.sample_ratio import SampleRatio, sample_ratio

__all__ = ["Evaluation", "Lift", "Replay", "SampleRatio", "evaluate", "lift", "replay", "sample_ratio"]
