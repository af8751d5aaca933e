"""The examples run, in a small size, and do what they say."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def test_subject_lines() -> None:
    bandit = example("subject_lines")["main"](mails=2_000)
    assert bandit.summary()["pulls"].sum() == 2_000


def test_model_router() -> None:
    """The best model is 0.05 ahead, a quarter of a deviation: after 2,000 questions nobody is in doubt."""
    bandit = example("model_router")["main"]()
    pulls = dict(bandit.summary()["arm", "pulls"].iter_rows())
    assert pulls["medium"] > 1_000
