"""The judges on samples made up to agree and to disagree, and the simulations against plain ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import naive
from rightarm import theory
from rightarm.lab.archive import Archive
from rightarm.lab.paper.curve import Curve
from rightarm.lab.driver import compute
from rightarm.lab.studies import STUDIES, proposition1, theorem2
from rightarm.lab.paper.finding import Cell, Finding, Key, Sample, Study, above, below
from rightarm.types import F64, I64

Regret = Callable[[Key, Cell, F64], F64]
Pulls = Callable[[Key, Cell], I64]


def no_pulls(key: Key, cell: Cell) -> I64:
    return np.zeros((cell.replications, cell.problem.arms), np.int64)


def made_up(study: Study, regret: Regret, pulls: Pulls = no_pulls, noise: float = 0.01) -> dict[Key, Sample]:
    """Every quick cell of ``study`` with the mean regret ``regret(key, cell, T)`` and a little noise."""
    random = np.random.default_rng(1)
    samples = {}
    for key, cell in study.cells(True).items():
        mean = regret(key, cell, np.array(cell.checkpoints, dtype=float))
        drawn = mean * (1 + noise * random.standard_normal((cell.replications, mean.size)))
        samples[key] = Sample(cell, drawn, pulls(key, cell))
    return samples


BY_NAME = {study.name: study for study in STUDIES}


def exact(key: Key, cell: Cell, T: F64) -> F64:
    return proposition1.exact(key[0], T)


def stuck_as_computed(key: Key, cell: Cell) -> I64:
    share = theorem2.stuck_share(key[0], cell.horizon)
    stuck = np.arange(cell.replications) < share * cell.replications
    return np.where(stuck, 1, 100)[:, None] * np.ones((1, 2), np.int64)


def unit(key: Key, T: F64) -> F64:
    scale: F64 = np.sqrt(key[0] * T) * np.log(key[0])
    return scale


TRUE: dict[str, tuple[Regret, Pulls]] = {
    "proposition1": (exact, no_pulls),
    "theorem2": (lambda key, cell, T: 0.07 * T, stuck_as_computed),
    "theorem3": (lambda key, cell, T: 100 * np.log(T), no_pulls),
    "theorem4": (lambda key, cell, T: 5 * np.log(T) ** 2, no_pulls),
    "corollary1": (lambda key, cell, T: 2 * unit(key, T), no_pulls),
    "theorem5": (lambda key, cell, T: 0.7 * unit(key, T), no_pulls),
    "theorem6": (lambda key, cell, T: 5 * np.log(T) ** 2, no_pulls),
    "heavy-tails": (lambda key, cell, T: 100 + 0 * T, no_pulls),
}

FALSE: list[tuple[str, str, Regret, Pulls]] = [
    ("proposition1", "exact sum", lambda key, cell, T: 1.1 * exact(key, cell, T), no_pulls),
    ("proposition1", "grows faster", lambda key, cell, T: np.log(T), no_pulls),
    ("theorem2", "above the bound", lambda key, cell, T: 0.001 * T, stuck_as_computed),
    ("theorem2", "linear growth", lambda key, cell, T: 1000 * np.log(T), stuck_as_computed),
    ("theorem2", "stuck", TRUE["theorem2"][0], no_pulls),
    ("theorem3", "below the bound", lambda key, cell, T: 0.55 * theory.theorem3(0.5, key[0], T), no_pulls),
    ("theorem3", "logarithmic growth", lambda key, cell, T: 0.01 * T, no_pulls),
    ("theorem4", "below the bound", lambda key, cell, T: 100 * np.log(T) ** 2, no_pulls),
    ("corollary1", "below the bound", lambda key, cell, T: 201 * unit(key, T), no_pulls),
    ("theorem5", "some problem reaches", lambda key, cell, T: 0.49 * unit(key, T), no_pulls),
    ("theorem6", "below the bound", lambda key, cell, T: 300 * np.log(T) ** 2, no_pulls),
    ("heavy-tails", "below Theorem 6's bound", lambda key, cell, T: 0.45 * T, no_pulls),
]  # fmt: skip


def test_every_study_is_judged_both_ways() -> None:
    assert set(TRUE) == set(BY_NAME) == {name for name, *_ in FALSE}


@pytest.mark.parametrize("name", TRUE)
def test_what_agrees_holds(name: str) -> None:
    finding = BY_NAME[name].judge(made_up(BY_NAME[name], *TRUE[name]))
    assert finding.holds, finding.verdict
    assert finding.claims
    assert finding.verdict.startswith("holds: ")
    assert "\n" not in finding.verdict


@pytest.mark.parametrize(("name", "part", "regret", "pulls"), FALSE)
def test_what_disagrees_does_not_hold(name: str, part: str, regret: Regret, pulls: Pulls) -> None:
    finding = BY_NAME[name].judge(made_up(BY_NAME[name], regret, pulls))
    broken = [claim.statement for claim in finding.claims if not claim.holds]
    assert any(part in statement for statement in broken), broken
    assert not finding.holds
    assert finding.verdict.startswith("does not hold as printed: ")
    assert broken[0] in finding.verdict


def test_theorem5_tells_of_the_proofs_own_problem() -> None:
    def only_twice_the_gap(key: Key, cell: Cell, T: F64) -> F64:
        return (0.4 if key[2] == 1.0 else 0.8) * unit(key, T)

    finding = BY_NAME["theorem5"].judge(made_up(BY_NAME["theorem5"], only_twice_the_gap))
    assert finding.holds
    assert not any(remark.holds for remark in finding.remarks)
    assert "½ is not reached for every K there" in finding.verdict


def test_theorem4_says_which_bounds_say_nothing() -> None:
    finding = BY_NAME["theorem4"].judge(made_up(BY_NAME["theorem4"], *TRUE["theorem4"]))
    judged = {claim.statement.partition(":")[0] for claim in finding.claims}
    assert {"C = σ", "C = σ/2"} <= judged
    assert "C = σ/8" not in judged  # any regret whatever is below that one
    assert [r.holds for r in finding.remarks if r.statement.startswith("C = σ/8: the bound")] == [False]


def test_heavy_tails_tell_where_the_plain_mean_breaks() -> None:
    def breaks_at_one(key: Key, cell: Cell, T: F64) -> F64:
        return 200 + 0 * T if key == ("contaminated", "BGE, mean", 1.0) else 100 + 0 * T

    finding = BY_NAME["heavy-tails"].judge(made_up(BY_NAME["heavy-tails"], breaks_at_one))
    assert finding.holds
    assert [r.statement.partition(":")[0] for r in finding.remarks if not r.holds] == ["contaminated"]
    assert "times its regret with contaminated (C = 1)" in finding.verdict


@pytest.mark.parametrize(("check", "sign"), [(below, 1.0), (above, -1.0)])
def test_a_bound_is_broken_by_three_standard_errors(check: Callable[..., Finding], sign: float) -> None:
    samples = np.array([[9.0, 9.0], [11.0, 11.0], [9.0, 9.0], [11.0, 11.0]])
    curve = Curve("x", np.array([10.0, 100.0]), samples)
    error = curve.error[0]
    near, far = (np.array([10.0, 10.0 - sign * distance * error]) for distance in (2.9, 3.1))
    assert check("", curve, near).holds
    assert not check("", curve, far).holds


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_cells_differ_and_have_enough_points(study: Study) -> None:
    for quick in (True, False):
        cells = study.cells(quick)
        assert len({(c.policy, c.problem, c.checkpoints, c.start) for c in cells.values()}) == len(cells)
    full = study.cells(False).values()
    assert max(cell.horizon for cell in full) >= 10**5
    # at the measured 25 ns for ten arms and two cores: two minutes at most
    assert sum(c.replications * c.horizon * (c.problem.arms + 3) * 2e-9 for c in full) / 2 < 120


def simulated(study: Study, folder: Path, T: int, replications: int) -> dict[Key, Sample]:
    cells = {k: replace(c, checkpoints=(T,), replications=replications) for k, c in study.cells(True).items()}
    return compute(cells, 11, Archive(folder), 2, lambda rounds: None)


def test_proposition1_against_plain_draws(tmp_path: Path) -> None:
    samples = simulated(proposition1.STUDY, tmp_path, 2_000, 256)
    random = np.random.default_rng(5)
    t = np.arange(3, 2_001)
    rates = {"η = 1/Δ": 4 + 0 * t, "η = √(log t)/Δ": 4 * np.sqrt(np.log(t)), "η = (log t)/Δ": 4 * np.log(t)}
    for name, eta in rates.items():
        plain = 0.25 * (random.random((500, t.size)) < np.exp(0.5 * eta) / (np.exp(0.5 * eta) + np.exp(0.75 * eta)))
        assert z(samples[name,].regret[:, -1], plain.sum(axis=1)) < 4.5


def test_theorem2_against_plain_boltzmann_exploration(tmp_path: Path) -> None:
    T = 1_000
    samples = simulated(theorem2.STUDY, tmp_path, T, 1024)

    def reward(t: int, arm: I64, random: np.random.Generator) -> F64:
        return np.where(arm == 0, random.random(arm.size) < 0.75, 0.5)

    for c in theorem2.RATES:
        choose = naive.softmax(naive.inverse_log(1 / c))
        plain = naive.regret_of_many(choose, reward, [0.0, 0.25], T, 2_000, np.random.default_rng(5))
        never_back = plain == 0.25 * (T - 1)
        assert z(samples[c,].pulls[:, 0] == 1, never_back) < 4.5
        assert z(samples[c,].regret[:, -1], plain) < 4.5
        expected = theorem2.stuck_share(c, T)
        assert abs(never_back.mean() - expected) < 4.5 * np.sqrt(expected * (1 - expected) / never_back.size)


def z(x: NDArray[Any], y: NDArray[Any]) -> float:
    """How far two samples' means are apart, in standard errors."""
    x, y = x.astype(float), y.astype(float)
    return float(abs(x.mean() - y.mean()) / np.sqrt(x.var(ddof=1) / x.size + y.var(ddof=1) / y.size))
