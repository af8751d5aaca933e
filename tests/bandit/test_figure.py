"""Figures of a bandit's arms."""

from __future__ import annotations

from pathlib import Path

import rightarm as ra

ARMS = ["a", "b", "c"]


def test_plot_draws_every_arm(tmp_path: Path) -> None:
    bandit = ra.Bandit([*ARMS, "d" * 60, 17, ("t", 1)], ra.BoltzmannGumbel(C=0.5), seed=5)
    for arm in ARMS:
        bandit.tell(arm=arm, reward=0.5)
        bandit.tell(arm=arm, reward=0.7)
    bandit.retire_arm("b")
    for ending in ("png", "svg"):
        path = bandit.plot(tmp_path / "new" / f"arms.{ending}")
        assert path.stat().st_size > 5_000
    assert "b (retired)" in path.read_text() or "<!-- b (retired) -->" in path.read_text()
    many = ra.Bandit(range(200), ra.UCB(C=0.5))
    assert many.plot(tmp_path / "many.png", title="two hundred").stat().st_size > 5_000
