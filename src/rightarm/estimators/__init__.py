"""Estimators make what formulas see of an arm, `mean` and `pulls`, from its rewards.

An estimator that stands in any file of this package is public by itself: here, in experiment files, on the command line
and in the service. If it has a `NAME`, policies take that text too: ``estimator="mean"``.
"""

from typing import Any

from rightarm.discovery import defined_in
from rightarm.estimators.estimator import Estimator
from rightarm.estimators.features import Features


def _is_estimator(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Estimator) and value is not Estimator


ESTIMATORS: dict[str, type[Estimator]] = defined_in(__name__, _is_estimator)
NAMED: dict[str, type[Estimator]] = {kind.NAME: kind for kind in ESTIMATORS.values() if kind.NAME}
globals().update(ESTIMATORS)

__all__ = ["Estimator", "Features", *ESTIMATORS]
