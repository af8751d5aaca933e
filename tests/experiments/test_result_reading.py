"""What a folder of results holds, as tables, arrays and pictures."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import rightarm as ra
from rightarm.cli import app
from rightarm.experiments.cell import Cell
from rightarm.experiments.result_folder import ResultFolder
from rightarm.simulation.jobs import Outcome
from rightarm.simulation.result import QUANTILES

CHECKPOINTS = (1, 10, 100)
PROBLEMS = {"honest": ra.problems.Bernoulli([0.4, 0.6]), "hard": ra.problems.Bernoulli([0.5, 0.51])}


def named(policy: str, problem: str, **swept: Any) -> tuple[tuple[str, Any], ...]:
    return (("problem", problem), ("policy", policy), *swept.items())


def sweep() -> list[Cell]:
    cells = []
    for name, problem in PROBLEMS.items():
        settings = (problem, 100, 4, 1, CHECKPOINTS)
        cells += [Cell(ra.UCB(C=C), *settings, named("ucb", name, C=C)) for C in (2.0, 0.5, 1.0)]
        cells.append(Cell(ra.BetaThompson(), *settings, named("thompson", name)))
    return cells


def fill(folder: Path, cells: Sequence[Cell], blocks: int | None = None, title: str = "Gaps") -> ra.experiments.Results:
    with ResultFolder.open(folder, write=True) as results:
        results.begin(cells, title=title)
        for place, (cell, job) in enumerate(results.missing(cells)[:blocks]):
            luck = np.random.default_rng([place, job.first])
            regret = np.cumsum(luck.random((job.replications, len(cell.checkpoints))), axis=1)
            pulls = luck.multinomial(cell.horizon, [1 / cell.problem.arms] * cell.problem.arms, job.replications)
            results.put([(cell, job, Outcome(regret, pulls))])
    return ra.experiments.load(folder)


def test_the_frame_by_hand(tmp_path: Path) -> None:
    cell = Cell(ra.UCB(C=0.5), PROBLEMS["honest"], 10, 4, 1, (1, 10), named("ucb", "honest", C=0.5))
    lost = np.array([1, 2, 3, 6])
    with ResultFolder.open(tmp_path, write=True) as results:
        results.begin([cell])
        regret = np.column_stack([np.zeros(4), lost])
        results.put([(cell, cell.blocks()[0], Outcome(regret, np.column_stack([lost, 10 - lost])))])
    loaded = ra.experiments.load(tmp_path)
    (row,) = loaded.frame.to_dicts()
    assert {name: row[name] for name in ("cell", "problem", "policy", "C", "horizon", "seed")} == {
        "cell": 0,
        "problem": "honest",
        "policy": "ucb",
        "C": 0.5,
        "horizon": 10,
        "seed": 1,
    }
    assert (row["replications"], row["finished"], row["complete"], row["regret"]) == (4, 4, True, 3.0)
    assert row["standard_error"] == pytest.approx(np.sqrt((4 + 1 + 0 + 9) / 3 / 4))
    assert [row[name] for name in ("quantile_05", "median", "quantile_95")] == pytest.approx([1.15, 2.5, 5.55])
    assert row["best_arm_share"] == pytest.approx(0.7)
    curve = loaded.curves()
    assert curve.columns == ["cell", "problem", "policy", "C", "round", "mean", "standard_error", *QUANTILES]
    assert curve["round"].to_list() == [1, 10]
    assert curve["mean"].to_list() == [0.0, 3.0]
    assert curve["standard_error"][1] == row["standard_error"]
    assert curve["median"].to_list() == [0.0, 2.5]


def test_cells_are_plain_data(tmp_path: Path) -> None:
    local: Callable[..., Any] = ra.policy(lambda mean, *, bias=0.5: mean + bias)
    cell = Cell(local(bias=0.25), PROBLEMS["hard"], 100, 4, 7, CHECKPOINTS)
    loaded = fill(tmp_path, [cell], title="")
    code = "import sys, rightarm as ra; it = ra.experiments.load(sys.argv[1])"
    code += "; print(it[0].policy_text, it[0].regret.sum())"
    told = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True).stdout
    assert told == f"{cell.policy} {loaded[0].regret.sum()}\n"
    (record,) = loaded
    assert record.names == {"problem": str(cell.problem), "policy": str(cell.policy)}  # where it was given none
    assert (record.key, record.seed, record.horizon, record.fixed_means) == (cell.key, 7, 100, (0.5, 0.51))
    assert record.rounds.tolist() == [1, 10, 100]
    assert record.specification == json.loads(json.dumps(cell.specification()))
    loaded.plot(tmp_path / "bias.svg", against="bias")


def test_cells_are_read_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fill(tmp_path, sweep())
    monkeypatch.setattr("rightarm.experiments.result_reading.BATCH", 50)
    parts = ra.experiments.load(tmp_path)
    assert len(parts._batches) > 2
    assert parts.frame.equals(whole.frame)
    assert parts.curves().equals(whole.curves())
    np.testing.assert_array_equal(parts[-1].regret, whole[7].regret)
    with pytest.raises(IndexError):
        _ = parts[8]


def test_unfinished_results_say_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    cells = [replace(cell, replications=40) for cell in sweep()]
    empty = fill(tmp_path, cells, blocks=0)
    assert empty.frame["regret"].dtype == pl.Float64
    assert empty.curves().shape == (0, 10)
    with pytest.raises(ValueError, match="has nothing to draw yet"):
        empty.plot(tmp_path / "x.svg")
    loaded = fill(tmp_path, cells, blocks=3)
    assert [cell.finished for cell in loaded] == [40, 32, 0, 0, 0, 0, 0, 0]
    assert not loaded.is_complete
    assert loaded.frame["regret"].null_count() == 6
    assert loaded[2].regret.shape == (0, 3)
    assert loaded[2].means.shape == loaded[2].pulls.shape == (0, 2)
    head, titles, first, second, third, *_ = str(loaded).splitlines()
    assert head == "Gaps: 8 cells, 320 replications; 7 cells not complete, 248 replications missing"
    assert titles.split()[:5] == ["problem", "policy", "C", "runs", "regret"]
    assert first.split()[:4] == ["honest", "ucb", "2", "40"]
    assert second.split()[3:6] == ["32", "of", "40"]
    assert third.split() == ["honest", "ucb", "1", "0", "of", "40", *["–"] * 6]
    assert repr(loaded) == f"<Results: {tmp_path}, 8 cells, not complete>"
    loaded.plot(tmp_path / "some.svg")


def test_random_problems_have_their_own_best_arms(tmp_path: Path) -> None:
    problem = ra.problems.RandomProblem(ra.problems.Bernoulli, mean=ra.problems.Uniform(low=[0.0] * 3, high=1.0))
    cell = Cell(ra.UCB(C=0.5), problem, 100, 40, 5, CHECKPOINTS)
    loaded = fill(tmp_path, [cell])
    means = np.array([problem.draw(5, replication).means for replication in range(40)])
    np.testing.assert_array_equal(loaded[0].means, means)
    share = loaded[0].pulls[np.arange(40), means.argmax(axis=1)].mean() / 100
    assert loaded.frame["best_arm_share"][0] == pytest.approx(share)
    assert loaded[0].fixed_means is None


def test_names_of_any_kind_are_columns(tmp_path: Path) -> None:
    base = sweep()[0]
    swept: list[dict[str, Any]] = [
        {"x": 1, "y": 1, "mean": [0.5, 0.4], "regret": 2, "horizon": 100, "flag": True},
        {"x": 0.5, "y": "some", "mean": [0.3, 0.4], "regret": 3, "horizon": 100},
    ]
    cells = [replace(base, seed=i, names=named("ucb", "honest", **names)) for i, names in enumerate(swept)]
    loaded = fill(tmp_path, cells)
    frame = loaded.frame
    assert frame["x"].to_list() == [1.0, 0.5]
    assert frame["y"].to_list() == ["1", "some"]
    assert frame["mean"].to_list() == ["[0.5, 0.4]", "[0.3, 0.4]"]
    assert frame["flag"].to_list() == [True, None]
    assert frame["regret (swept)"].to_list() == [2, 3]
    assert frame["regret"].dtype == pl.Float64
    assert "horizon (swept)" not in frame.columns
    assert loaded.curves()["mean (swept)"][0] == "[0.5, 0.4]"
    assert "seed" in str(loaded).splitlines()[1].split()
    loaded.plot(tmp_path / "seed.svg", against="seed")


def test_cells_by_their_names(tmp_path: Path) -> None:
    loaded = fill(tmp_path, sweep())
    one = loaded.one(policy="ucb", problem="hard", C=0.5)
    assert one.index == 5
    np.testing.assert_array_equal(one.regret, loaded[5].regret)
    np.testing.assert_array_equal(one.pulls, loaded[5].pulls)
    np.testing.assert_array_equal(one.means, loaded[5].means)
    assert one.rounds.tolist() == loaded[5].rounds.tolist() == [1, 10, 100]
    assert (one.policy, one.problem, one.horizon) == (ra.UCB(C=0.5), PROBLEMS["hard"], 100)
    np.testing.assert_array_equal(one.curve("x").mean, one.regret.mean(axis=0))
    assert [cell.value("C") for cell in loaded.where(problem="honest")] == [2.0, 0.5, 1.0, None]
    assert len(loaded.where(horizon=100, seed=1)) == 8
    assert [cell.index for cell in loaded] == list(range(8))
    assert loaded[-1].index == 7
    with pytest.raises(ValueError, match=r"one\(policy='ucb'\) must name one cell, got 6 of 8"):
        loaded.one(policy="ucb")
    with pytest.raises(ValueError, match="the cells have no D; they have problem, policy, C, horizon"):
        loaded.where(D=1)
    with pytest.raises(IndexError):
        loaded[8]


def test_curves_say_what_differs(tmp_path: Path) -> None:
    base = sweep()[0]
    cells = [replace(base, horizon=T, checkpoints=(1, T), names=(*base.names, ("horizon", T))) for T in (50, 100)]
    curves = fill(tmp_path, cells).curves()
    assert curves["horizon"].to_list() == [50, 50, 100, 100]
    assert curves["round"].to_list() == [1, 50, 1, 100]
    assert "seed" not in curves.columns


def test_pandas_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = fill(tmp_path, sweep())
    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=dict))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert loaded.to_pandas()["C"] == loaded.frame["C"].to_list()


def test_one_replication_has_no_standard_error(tmp_path: Path) -> None:
    loaded = fill(tmp_path, [replace(sweep()[0], replications=1)])
    row = str(loaded).splitlines()[2].split()
    assert row[5] == "–"
    assert "nan" not in str(loaded)


def drawn(path: Path) -> str:
    """The texts of a picture, which Matplotlib puts into remarks."""
    return "\n".join(line for line in path.read_text().splitlines() if "<!--" in line)


@pytest.mark.parametrize("log", [False, True])
def test_a_panel_for_each_problem(tmp_path: Path, log: bool) -> None:
    texts = drawn(fill(tmp_path, sweep()).plot(tmp_path / "regret.svg", log=log))
    for text in ("Gaps", "honest: Bernoulli(mean=[0.4, 0.6])", "hard: Bernoulli(mean=[0.5, 0.51])", "ucb, C=0.5"):
        assert texts.count(f"<!-- {text} -->") == 1, text
    assert "<!-- thompson -->" in texts


def test_against_a_parameter(tmp_path: Path) -> None:
    loaded = fill(tmp_path, sweep())
    texts = drawn(loaded.plot(tmp_path / "C.svg", against="C", title="Mine"))
    for text in ("Mine", "honest", "hard", "ucb", "thompson"):
        assert texts.count(f"<!-- {text} -->") == 1, text
    assert texts.count("<!-- C -->") == 2
    loaded.plot(tmp_path / "horizon.svg", against="horizon")
    with pytest.raises(ValueError, match=r"against must be a number that cells have, C, .*, got 'Q'"):
        loaded.plot(tmp_path / "Q.svg", against="Q")


def test_of_too_many_curves_the_lowest_are_drawn(tmp_path: Path) -> None:
    cells = [
        Cell(ra.UCB(C=1.0 + C), PROBLEMS["hard"], 100, 2, 1, CHECKPOINTS, named("ucb", "hard", C=C)) for C in range(50)
    ]
    loaded = fill(tmp_path, cells)
    texts = drawn(loaded.plot(tmp_path / "many.svg"))
    assert "(the 14 lowest of 50 curves)" in texts
    shown = {i for i in range(50) if f"<!-- ucb, C={i} -->" in texts}
    assert shown == set(loaded.frame.sort("regret")["cell"][:14])


def test_of_too_many_problems_the_first_are_drawn(tmp_path: Path) -> None:
    cells = [
        Cell(ra.UCB(C=1.0), ra.problems.Bernoulli([0.5, i / 20]), 100, 2, 1, CHECKPOINTS, named("ucb", f"p{i}"))
        for i in range(14)
    ]
    assert "<!-- Gaps, the first 12 of 14 problems -->" in drawn(fill(tmp_path, cells).plot(tmp_path / "many.svg"))


def test_import_stays_light() -> None:
    code = "import sys, rightarm; print({'polars', 'matplotlib', 'typer'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


# The command line.


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "400"})


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    loaded = fill(tmp_path, sweep())
    assert run("results", tmp_path).output == str(loaded) + "\n"
    assert run("results", tmp_path, "--csv").output == loaded.frame.write_csv()
    assert run("plot", tmp_path).output == f"wrote {tmp_path / 'regret.png'}\n"
    assert run("plot", tmp_path, "--against", "C", "--log").output == f"wrote {tmp_path / 'regret-C.png'}\n"
    output = tmp_path / "new" / "x.svg"
    assert run("plot", tmp_path, "--output", output).exit_code == 0
    assert output.exists()


def test_a_table_fits_into_80_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "a policy with quite a long name, as people give them"
    cells = [
        Cell(ra.UCB(C=C), PROBLEMS["hard"], 100, 4, 1, CHECKPOINTS, named(name, "a hard problem", C=C, gap=0.01))
        for C in (0.5, 1.0)
    ]
    loaded = fill(tmp_path, cells)
    monkeypatch.setenv("COLUMNS", "80")
    done = CliRunner().invoke(app, ["results", str(tmp_path)])
    assert done.output == f"{loaded}\n"
    assert max(map(len, done.output.splitlines())) <= 80
    words = set(done.output.replace("(", " ").split())
    assert set(name.split()) <= words, "all of the name is there"
    assert {"regret", "best", "runs"} <= words


def test_where_chooses_cells(tmp_path: Path) -> None:
    loaded = fill(tmp_path, sweep())
    plot = partial(run, "plot", tmp_path, "--output", tmp_path / "some.svg")
    assert plot("--where", "C=0.5", "--where", "C=1.0", "--where", "problem=hard", "--size", "7x4").exit_code == 0
    texts = drawn(tmp_path / "some.svg")
    assert "<!-- ucb, C=0.5 -->" in texts
    assert "<!-- ucb, C=1 -->" in texts
    for absent in ("C=2", "thompson", "honest"):
        assert absent not in texts
    assert 'width="504pt" height="288pt"' in (tmp_path / "some.svg").read_text()
    figure = loaded.plot(where={"policy": ["thompson"]}, figsize=(3, 2))
    assert figure.get_size_inches().tolist() == [3, 2]
    assert [line.get_label() for axes in figure.axes for line in axes.lines] == ["thompson", "thompson"]
    for wrong, said in (
        ("D=1", "where must name something that cells have, C, family, horizon"),
        ("C=3", "where: no cell has C = 3; there are 2, 0.5, 1"),
        ("C", "where must be a name and a value such as C=0.5, got 'C'"),
    ):
        done = plot("--where", wrong)
        assert (done.exit_code, said in done.output) == (2, True), done.output
    both = plot("--where", "C=1", "--where", "policy=thompson")
    assert 'where: no cell has all of C = ["1"], policy = ["thompson"]' in both.output
    assert "size must be width and height in inches, from 1 to 100, such as 7x4, got '7'" in plot("--size", "7").output


def test_the_commands_say_what_is_wrong(tmp_path: Path) -> None:
    fill(tmp_path / "some", sweep())
    for arguments, said in (
        (["results", tmp_path / "nowhere"], "there is no folder"),
        (["plot", tmp_path], "is not a folder of results"),
        (["plot", tmp_path / "some", "--against", "Q"], "got 'Q'"),
        (["plot", tmp_path / "some", "--output", "x.txt"], "output must end in .png, .svg or .pdf, got x.txt"),
    ):
        done = run(*arguments)
        assert done.exit_code == 2
        assert said in done.output
    part = next((tmp_path / "some" / "parts").iterdir())
    part.write_bytes(part.read_bytes()[:-1])
    done = run("results", tmp_path / "some")
    assert done.exit_code == 0
    assert f"warning: {part} is damaged and does not count" in done.output
