"""Results: what they say, and that saving, loading and repeating them gives them back."""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

import rightarm as ra
from cases import POLICIES, cautious, cooling, settled
from rightarm.simulation.panels import MeanCurve, band


def simulated(**changes: Any) -> ra.Result:
    policies = [ra.UCB(C=0.5), ra.BoltzmannGumbel(C=0.5), ra.Boltzmann(cooling), cautious(C=0.1)]
    problem = settled([0.2, 0.5, 0.3]).corrupted(1, rounds=10).corrupted(2, pulls=3, reward=0.5)
    settings = {"horizon": 300, "replications": 20, "seed": 2**100 + 1} | changes
    result: ra.Result = ra.simulate(policies, problem, **settings)
    return result


STARTED = {"pulls": [10, 0, 3], "means": [0.25, 0.0, 0.5]}
RESULTS = {
    "plain": {},
    "from statistics": STARTED,
    "one replication": {"replications": 1},
    "one round": {"horizon": 1},
    "own checkpoints": {"checkpoints": [7, 100]},
}
every_result = pytest.mark.parametrize("settings", RESULTS.values(), ids=RESULTS)


def assert_equal(first: ra.Result, second: ra.Result) -> None:
    assert first.labels == second.labels
    assert json.dumps(first.specification) == json.dumps(second.specification)
    for ours, theirs in zip(arrays(first), arrays(second), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


def arrays(result: ra.Result) -> list[Any]:
    return [result.rounds, result.regret, result.pulls]


@every_result
def test_saved_and_loaded(settings: dict[str, Any], tmp_path: Path) -> None:
    result = simulated(**settings)
    path = result.save(tmp_path / "result.parquet")
    loaded = ra.Result.load(path)
    assert_equal(loaded, result)
    assert loaded.policies == result.policies
    assert loaded.problem == result.problem
    assert loaded.seed == result.seed == 2**100 + 1
    assert os.listdir(tmp_path) == ["result.parquet"]


@every_result
def test_repeated(settings: dict[str, Any], tmp_path: Path) -> None:
    """Also from a file, with nothing but what it holds."""
    result = simulated(**settings)
    assert_equal(result.repeat(), result)
    assert_equal(ra.Result.load(result.save(tmp_path / "r.parquet")).repeat(workers=1), result)


def test_repeated_with_changes() -> None:
    result = simulated(replications=5)
    more = result.repeat(replications=20)
    assert more.regret.shape[1] == 20
    np.testing.assert_array_equal(more.regret[:, :5], result.regret)
    assert (result.repeat(seed=1).regret != result.regret).any()


def test_a_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "result.parquet"
    simulated(replications=2).save(path)
    new = simulated(replications=3)
    assert new.save(str(path)) == path
    assert_equal(ra.Result.load(str(path)), new)


def test_the_file_is_for_others_too(tmp_path: Path) -> None:
    """A row for each policy and replication, readable without us."""
    result = simulated()
    frame = pl.read_parquet(result.save(tmp_path / "result.parquet"))
    assert frame["policy"].unique(maintain_order=True).to_list() == list(result.labels)
    assert frame["replication"].to_list() == [*range(20)] * 4
    np.testing.assert_array_equal(frame["regret"].to_numpy()[25], result.regret[1, 5])


def test_files_that_are_no_results(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.parquet"
    pl.DataFrame({"x": [1, 2]}).write_parquet(foreign)
    with pytest.raises(ValueError, match=r"foreign\.parquet is not a result of rightarm"):
        ra.Result.load(foreign)
    later = tmp_path / "later.parquet"
    pl.DataFrame({"x": [1]}).write_parquet(later, metadata={"rightarm": '{"format": 999}'})
    with pytest.raises(ValueError, match=r"later\.parquet was written in another format"):
        ra.Result.load(later)
    with pytest.raises(FileNotFoundError, match=r"nowhere\.parquet"):
        ra.Result.load(tmp_path / "nowhere.parquet")


# Summaries.


def hand_made() -> ra.Result:
    """Two policies, four replications, arms with gaps 0 and 1: every figure can be checked by hand."""
    result = ra.simulate(
        [ra.UCB(1.0), ra.UCB(2.0)], ra.problems.Deterministic([1.0, 0.0]), horizon=10, replications=4, seed=1
    )
    lost = np.array([[1, 2, 3, 6], [5, 5, 5, 5]])
    pulls = np.stack([10 - lost, lost], axis=2)
    regret = np.concatenate([np.zeros((2, 4, len(result.rounds) - 1)), lost[:, :, None].astype(float)], axis=2)
    return ra.Result(result.labels, result.rounds, regret, pulls, result.specification)


def test_summary() -> None:
    first, second = hand_made().summary().to_dicts()
    assert first["policy"] == "UCB(C=1)"
    assert first["regret"] == 3.0
    assert first["standard_error"] == pytest.approx(math.sqrt((4 + 1 + 0 + 9) / 3 / 4))
    assert [first[name] for name in ("quantile_05", "median", "quantile_95")] == pytest.approx([1.15, 2.5, 5.55])
    assert first["best_arm_share"] == pytest.approx(0.7)
    assert (second["regret"], second["standard_error"], second["best_arm_share"]) == (5.0, 0.0, 0.5)


def test_parameters_are_columns_of_the_summary() -> None:
    found = hand_made().summary()
    statistics = ["regret", "standard_error", "quantile_05", "median", "quantile_95", "best_arm_share"]
    assert found.columns == ["policy", *statistics, "family", "C"]
    assert found.select("family", "C").rows() == [("UCB", 1.0), ("UCB", 2.0)]


def test_a_sweep_is_drawn_against_its_parameter(tmp_path: Path) -> None:
    policies = [*map(ra.UCB, (2.0, 0.5, 1.0)), ra.Boltzmann(ra.schedules.inverse_log(0.25)), ra.BoltzmannGumbel(C=0.5)]
    result = ra.simulate(policies, ra.problems.Bernoulli([0.5, 0.4]), horizon=50, replications=2, seed=1)
    curves = result.curves("C")
    assert curves == {"UCB": [(0.5, 1), (1.0, 2), (2.0, 0)], "BoltzmannGumbel (location=0.5772)": [(0.5, 4)]}
    assert result.curves("c") == {"Boltzmann (inverse_log)": [(0.25, 3)]}
    assert result.plot(tmp_path / "sweep.svg", against="C").read_text().count("<svg") == 1
    assert result.summary()["temperature"].to_list() == [None, None, None, "inverse_log", None]
    for unknown in ("Q", "family", "temperature"):
        with pytest.raises(ValueError, match=f"against must be a parameter.* C, c, location, got '{unknown}'"):
            result.plot(tmp_path / "x.svg", against=unknown)


def test_a_sweep_of_linear_models(tmp_path: Path) -> None:
    """Features are no numbers and name a curve only where they differ; a ridge that is not given is no point."""
    models = [
        ra.estimators.Linear(2, ridge=0.1),
        ra.estimators.Linear(2),
        ra.estimators.Linear(["x0", "x1"], intercept=False),
    ]
    policies = [ra.UCB(C=C, estimator=model) for model in models for C in (0.3, 0.1)]
    problem = ra.problems.LinearProblem([[1.0, 0.0], [0.0, 1.0]])
    result = ra.simulate(policies, problem, horizon=20, replications=2, seed=1)
    assert result.curves("C") == {
        "UCB (Linear, estimator_ridge=0.1)": [(0.1, 1), (0.3, 0)],
        "UCB (Linear)": [(0.1, 3), (0.3, 2)],
        "UCB (Linear, estimator_intercept=false)": [(0.1, 5), (0.3, 4)],
    }
    assert "median" in str(result)
    assert "best arm" not in str(result) + result._repr_html_()  # which arm is the best depends on the context
    assert "best arm" in str(hand_made())
    assert result.curves("estimator_ridge")["UCB (C=0.3, Linear)"] == [(0.1, 0)]
    assert result.plot(tmp_path / "sweep.svg", against="C").read_text().count("<svg") == 1
    named = [
        ra.estimators.Linear(2, private=False),
        ra.estimators.Linear(["a", "b"], private=False),
        ra.estimators.Linear(2, private=["x0"]),
    ]
    plain = ra.UCB(C=0.1)
    mixed = ra.simulate(
        [plain, *(ra.UCB(C=0.1, estimator=one) for one in named)], problem, horizon=20, replications=2, seed=1
    )
    assert mixed.summary()["estimator_private"].to_list() == [None, "false", "false", '["x0"]']
    other = ra.simulate(
        [ra.UCB(C=0.1, estimator=one) for one in named[:2]], problem, horizon=20, replications=2, seed=1
    )
    assert list(other.curves("C")) == [
        'UCB (Linear, estimator_features={"numbers": ["x0", "x1"], "required": true})',
        'UCB (Linear, estimator_features={"numbers": ["a", "b"], "required": true})',
    ]


def test_bands_on_a_logarithmic_axis() -> None:
    """An edge that falls below a tenth of the mean stays there; others, and those of plain axes, are what they are."""
    samples = np.array([[0.0, 90.0], [0.0, 100.0], [40.0, 110.0]])
    curve = MeanCurve.of("x", np.array([1, 2]), samples)
    mean, half = samples.mean(axis=0), 1.96 * samples.std(axis=0, ddof=1) / math.sqrt(3)
    assert (mean - half)[0] < 0
    low, high = band(curve, log=True)
    assert low.tolist() == pytest.approx([mean[0] / 10, mean[1] - half[1]])
    assert high.tolist() == pytest.approx((mean + half).tolist())
    result = hand_made()
    result.regret[0, :, :] = np.array([0.0, 0.0, 0.0, 40.0])[:, None]
    drawn = [result.plot(log=log).axes[0].collections[0].get_paths()[0].vertices[:, 1].min() for log in (True, False)]
    assert drawn == pytest.approx([1.0, 0.01])


def test_many_curves_and_equal_names(tmp_path: Path) -> None:
    policies = [ra.UCB(C) for C in range(1, 12)]
    result = ra.simulate(policies, ra.problems.Bernoulli([0.5, 0.4]), horizon=50, replications=2, seed=1)
    result.plot(tmp_path / "many.png")
    result.plot(tmp_path / "log.png", log=True)
    two = ra.simulate([ra.Boltzmann(lambda t: 1 / t), ra.Boltzmann(lambda t: 2 / t)], result.problem, horizon=5, seed=1)
    assert two.labels == ("Boltzmann(<lambda>) #1", "Boltzmann(<lambda>) #2")


def test_saved_as_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"path must end in \.parquet, got .*result\.csv"):
        hand_made().save(tmp_path / "result.csv")


def test_one_replication_has_no_standard_error() -> None:
    result = simulated(replications=1)
    assert all(math.isnan(row["standard_error"]) for row in result.summary().to_dicts())
    assert "nan" not in str(result)
    assert all(row.split()[2] == "–" for row in str(result).splitlines()[-len(result.labels) :])


def test_text() -> None:
    result = hand_made()
    head, titles, *rows = str(result).splitlines()
    assert head == "Deterministic(mean=[1.0, 0.0]): regret after 10 rounds, 4 replications"
    assert titles.split()[:2] == ["policy", "regret"]
    assert [row.split()[:2] for row in rows] == [["UCB(C=1)", "3"], ["UCB(C=2)", "5"]]
    assert len({len(line) for line in (titles, *rows)}) == 1, "columns stand under their titles"
    assert repr(result) == "<Result: UCB(C=1), UCB(C=2); 4 replications, 10 rounds, seed 1>"


def test_what_computed_it_is_told() -> None:
    specification = simulated(replications=1, horizon=1).specification
    assert set(specification["versions"]) >= {"rightarm", "numpy", "numba", "python"}
    assert specification["versions"]["numpy"] == np.__version__


def test_policies_of_ones_own_must_be_found_again(tmp_path: Path) -> None:
    local: Callable[..., Any] = ra.policy(lambda mean: mean)
    result = ra.simulate(local(), ra.problems.Bernoulli([0.5, 0.4]), horizon=5, replications=2, seed=1)
    loaded = ra.Result.load(result.save(tmp_path / "r.parquet"))
    np.testing.assert_array_equal(loaded.regret, result.regret)
    with pytest.raises(ValueError, match="<lambda> cannot be imported here"):
        loaded.repeat()


# Figures.


@pytest.mark.parametrize(
    ("ending", "head"), [("png", b"\x89PNG\r\n\x1a\n"), ("svg", b"<?xml"), ("pdf", b"%PDF-")], ids=["png", "svg", "pdf"]
)
def test_figures(ending: str, head: bytes, tmp_path: Path) -> None:
    path = simulated().plot(tmp_path / f"regret.{ending}")
    assert path.read_bytes().startswith(head)


@pytest.mark.parametrize(
    "settings", [{"replications": 1}, {"horizon": 1}, STARTED], ids=["replication", "round", "start"]
)
@pytest.mark.parametrize("log", [False, True])
def test_figures_of_little(settings: dict[str, Any], log: bool, tmp_path: Path) -> None:
    """One replication, one round, regret that begins with zeros: no warning, and a picture."""
    path = simulated(**settings).plot(tmp_path / "regret.svg", title="Little", log=log)
    assert "<!-- Little -->" in path.read_text()


def test_a_figure_has_a_curve_for_each_policy(tmp_path: Path) -> None:
    many = [case.policy for case in POLICIES.values()]
    result = ra.simulate(many, ra.problems.Bernoulli([0.5, 0.6]), horizon=100, replications=3, seed=1)
    text = result.plot(tmp_path / "regret.svg").read_text()
    assert text.count('id="line2d_') >= len(many)
    with pytest.raises(ValueError, match="xyz"):
        result.plot(tmp_path / "regret.xyz")


def test_a_figure_of_ones_own() -> None:
    result = simulated()
    figure = Figure(figsize=(3, 2))
    axes = figure.add_subplot()
    assert result.plot(ax=axes, labels=list("abcd")) is figure
    assert [line.get_label() for line in axes.lines] == list("abcd")
    assert figure.get_size_inches().tolist() == [3, 2]
    (name, *_) = result.labels
    renamed = result.plot(labels={name: "mine"}, figsize=(4, 3))
    assert [line.get_label() for line in renamed.axes[0].lines] == ["mine", *result.labels[1:]]
    assert renamed.get_size_inches().tolist() == [4, 3]
    with pytest.raises(ValueError, match=r"labels must be one for each of 4 curves, .*, got \['one'\]"):
        result.plot(labels=["one"])


def test_rcparams_hold(tmp_path: Path) -> None:
    usual = simulated().plot()
    assert usual.get_size_inches().tolist() == [8, 5]
    own = {"figure.figsize": (5, 2), "font.size": 7.0, "lines.linewidth": 3.5, "savefig.dpi": 60}
    with matplotlib.rc_context(own):  # type: ignore[arg-type]
        figure = simulated().plot()
        assert figure.get_size_inches().tolist() == [5, 2]
        assert {line.get_linewidth() for line in figure.axes[0].lines} == {3.5}
        assert figure.axes[0].title.get_fontsize() == figure.axes[0].xaxis.label.get_fontsize() == 7.0
        header = simulated().plot(tmp_path / "x.png").read_bytes()[16:24]
        assert struct.unpack(">II", header) == (300, 120)
    assert matplotlib.rcParams["savefig.dpi"] == matplotlib.rcParamsDefault["savefig.dpi"]


def test_fonts_are_truetype(tmp_path: Path) -> None:
    content = simulated().plot(tmp_path / "x.pdf").read_bytes()
    assert b"/Type3" not in content
    assert b"/CIDFontType2" in content


def test_the_legend_of_many_curves_shows_their_dashes() -> None:
    policies = [ra.UCB(C=C / 10) for C in range(1, 21)]
    figure = ra.simulate(policies, ra.problems.Bernoulli([0.5, 0.4]), horizon=50, replications=2, seed=1).plot()
    (legend,) = figure.legends
    looks = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in figure.axes[0].lines}
    assert len(looks) == 20
    for entry, line in zip(legend.legend_handles, figure.axes[0].lines, strict=True):
        dashes = line._dash_pattern[1]  # strokes and gaps in points
        assert entry.get_linestyle() == line.get_linestyle()
        assert dashes is None or sum(dashes) < legend.handlelength * legend._fontsize / 1.4, "more than one stroke"
    figure.draw_without_rendering()
    below = figure.axes[0].get_tightbbox()
    assert legend.get_window_extent().y1 <= below.y0, "it covers nothing"
