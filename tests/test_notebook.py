"""What a notebook shows: tables as HTML, figures, and progress without widgets."""

from __future__ import annotations

import sys
import types
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from rightarm.display import html_table
from rightarm.pictures import Picture
from rightarm.simulation import progress

RESULT = ra.simulate([ra.UCB(C=0.5), ra.KLUCB()], ra.problems.Bernoulli([0.6, 0.5]), horizon=50, replications=4, seed=1)
LOG: dict[str, Any] = {"arm": ["<a>", "b"] * 200, "propensity": [0.5] * 400, "reward": [0.0, 1.0] * 200}


def cells(html: str) -> list[list[str]]:
    """The rows of all tables; what is not well formed raises."""
    tree = ElementTree.fromstring(f"<div>{html}</div>")
    return [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]


def test_a_table_has_its_rows_and_escapes_everything() -> None:
    hostile = "<script>&\"'"
    html = html_table(["arm", hostile], [[hostile, 1.5]], title=hostile, notes=[hostile])
    assert "<script" not in html
    assert cells(html) == [["arm", hostile], [hostile, "1.5"]]
    assert html.count("&lt;script&gt;&amp;&quot;&#x27;") == 4
    assert cells(html_table(["", ""], [["a", "b"]])) == [["a", "b"]]


def test_a_row_that_is_too_long_is_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        html_table(["a"], [["b", "c"]])


def test_a_result_shows_what_it_prints() -> None:
    head, *rows = cells(RESULT._repr_html_())
    assert head == ["policy", "regret", "± s.e.", "5%", "median", "95%", "best arm"]
    assert [row[0] for row in rows] == ["UCB(C=0.5)", "KLUCB()"]
    assert all(cell in str(RESULT) for row in rows for cell in row)
    several = ra.simulate(
        ra.UCB(C=0.5),
        {"one": ra.problems.Bernoulli([0.5]), "two": ra.problems.Bernoulli([0.5, 0.4])},
        horizon=9,
        seed=1,
    )
    assert len(cells(several._repr_html_())) == 4


def test_problems_show_their_arms() -> None:
    assert cells(ra.problems.Gaussian([0.5, 1.0], sigma=2.0)._repr_html_()) == [
        ["arm", "sigma", "mean", "gap"],
        ["0", "2", "0.5", "0.5"],
        ["1", "2", "1", "0"],
    ]
    many = ra.problems.Bernoulli(np.linspace(0, 1, 70)).corrupted(arm=0, rounds=5)._repr_html_()
    assert len(cells(many)) == 51
    assert "and 20 more arms" in many
    assert "corrupted(arm=0, rounds=5, reward=0.0)" in many
    drawn = ra.problems.RandomProblem(
        ra.problems.Gaussian, mean=ra.problems.Uniform(low=[0.0, 0.5], high=1.0), sigma=0.5
    )
    assert cells(drawn._repr_html_())[1:] == [["mean", "~ Uniform(low=[0, 0.5], high=1)"], ["sigma", "0.5"]]


def test_policies_show_parameters_and_what_they_are() -> None:
    html = ra.KLUCB(c=3.0)._repr_html_()
    assert cells(html) == [["c", "3.0"], ["rewards", "from 0 to 1"]]
    assert "the largest mean that it may have" in html
    assert "arg max" in html
    assert cells(ra.Boltzmann(ra.schedules.inverse_log(0.5))._repr_html_()) == [["temperature", "inverse_log(c=0.5)"]]

    @ra.policy
    def nameless(mean):  # type: ignore[no-untyped-def]
        return mean

    assert cells(nameless()._repr_html_()) == []


@pytest.mark.filterwarnings("ignore:.*effective sample size")
def test_evaluations_show_what_they_print() -> None:
    for made in (ra.evaluate(LOG, "uniform"), ra.evaluation.replay(LOG, ra.UCB(C=0.5)), ra.evaluate(LOG, {"b": 1.0})):
        pairs = cells(made._repr_html_())
        assert ["rows", "400"] in pairs
        assert all(value in str(made) for _, value in pairs)
    short = {name: column[:20] for name, column in LOG.items()}
    assert "warning: the effective sample size is" in ra.evaluate(short, "uniform")._repr_html_()


def test_a_plot_without_a_path_is_a_figure_that_shows_itself() -> None:
    figure = RESULT.plot()
    assert isinstance(figure, Picture)
    assert figure._repr_png_().startswith(b"\x89PNG")


# Progress.


class Shell:
    kernel = object()


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """A process that looks like a kernel of Jupyter; what it has written on standard error."""
    python: Any = types.ModuleType("IPython")
    python.get_ipython = Shell
    monkeypatch.setitem(sys.modules, "IPython", python)
    return lambda: capsys.readouterr().err


def test_progress_in_a_notebook_is_one_line_without_widgets(notebook: Callable[[], str], recwarn: Any) -> None:
    ra.simulate(ra.UCB(C=0.5), ra.problems.Bernoulli([0.6, 0.5]), horizon=2_000, replications=64, seed=1, progress=True)
    text = notebook()
    assert text.startswith("\rsimulating: compiling")
    assert "100%" in text.rpartition("\r")[2]
    assert text.endswith("\n")
    assert text.count("\n") == 1
    assert "ipywidgets" not in text
    assert not recwarn.list
    assert "ipywidgets" not in sys.modules


def test_a_shorter_text_covers_a_longer_one(notebook: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "OFTEN", 0.0)
    with progress.watched("work") as show:
        show(0.1, "a long text")
        show(0.9, "short")
    assert notebook() == "\rwork: a long text\rwork: short      \n"


def test_progress_elsewhere_is_a_line_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    ra.simulate(ra.UCB(C=0.5), ra.problems.Bernoulli([0.6, 0.5]), horizon=2_000, replications=64, seed=1, progress=True)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("simulating: 100%")
    assert "\r" not in line
