"""`rightarm policies` and `rightarm compare`, and the policies and problems that are written as text."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rightarm as ra
from rightarm.cli import app
from rightarm.policies.policy import PolicyFamily
from rightarm.policies.text import families, read_policy, read_problem
from rightarm.problems import ProblemFamily
from rightarm.problems.random import AnyProblem

POLICIES = {
    "UCB(C=0.5)": ra.UCB(C=0.5),
    "UCB(1/2)": ra.UCB(C=0.5),
    " KLUCB ": ra.KLUCB(),
    "BoltzmannGumbel(2**-1, location=-0.25)": ra.BoltzmannGumbel(C=0.5, location=-0.25),
    "BoltzmannGumbel(C=1, estimator='catoni')": ra.BoltzmannGumbel(C=1.0, estimator="catoni"),
    "Boltzmann(inverse_log(c=0.25))": ra.Boltzmann(ra.schedules.inverse_log(0.25)),
    "Boltzmann(0.1)": ra.Boltzmann(0.1),
    "PerturbedMean(Exponential(), scale=0.5)": ra.PerturbedMean(ra.noise.Exponential(), 0.5),
}
PROBLEMS: dict[str, AnyProblem] = {
    "Bernoulli([0.51] + [0.5] * 3)": ra.problems.Bernoulli([0.51, 0.5, 0.5, 0.5]),
    "Bernoulli(2 * [0.25])": ra.problems.Bernoulli([0.25, 0.25]),
    "Bernoulli([0.6, 0.5]).corrupted(arm=0, rounds=9)": ra.problems.Bernoulli([0.6, 0.5]).corrupted(arm=0, rounds=9),
    "RandomProblem(Bernoulli, mean=Uniform(low=[0.0] * 2, high=1.0))": ra.problems.RandomProblem(
        ra.problems.Bernoulli, mean=ra.problems.Uniform(low=[0.0, 0.0], high=1.0)
    ),
    "Gaussian((0, 1), sigma=0.5)": ra.problems.Gaussian([0.0, 1.0], sigma=0.5),
    "Pareto(alpha=[2.1, 3.0])": ra.problems.Pareto(alpha=[2.1, 3.0]),
    "LinearProblem([[1.0, 0.0], [0.5] * 2] + [[0, 1]], UniformContext(2), noise=0.5)": ra.problems.LinearProblem(
        [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], ra.problems.UniformContext(2), noise=0.5
    ),
    "Classification(X=[[1.0, 2.0], [3.0, 4.0]], y=['cat', 'dog'])": ra.problems.Classification(
        [[1.0, 2.0], [3.0, 4.0]], ["cat", "dog"]
    ),
}


@pytest.mark.parametrize("text", POLICIES)
def test_policies_are_read(text: str) -> None:
    assert read_policy(text) == POLICIES[text]


@pytest.mark.parametrize("text", PROBLEMS)
def test_problems_are_read(text: str) -> None:
    assert read_problem(text) == PROBLEMS[text]


WRONG = {
    "UCB(D=1)": "no parameter 'D'",
    "UCB(C=-1)": "C must be positive, got -1",
    "UCB(C=1e999)": "C must be finite, got inf",
    "Nobody()": "unknown policy Nobody",
    "UCB(C=": "cannot be read",
    "UCB(C=1).family": "only names, numbers",
    "__import__('os').system('true')": "unknown policy __import__",
    "UCB(C=1).system('true')": "only names, numbers",
    "UCB(C=1, C=2)": "C is given twice",
    "UCB(C=" + "(" * 5000 + ")" * 5000 + ")": "characters, more than 10,000",
    "UCB(C=" + "-" * 9000 + "1)": "cannot be read|too deeply",
    "UCB(C=" + "1+" * 4900 + "1)": "cannot be read|too deeply",
    "UCB(C='\\d')": "C must be a number",
    "UCB(C=1\0)": "cannot be read",
    "UCB(C=[[[0]]])": "must not contain lists",
    "UCB(C=[[1.0, 2.0]])": "C must be a number",
    "UCB(C=[[0] * 90_000] * 90_000)": "can be repeated up to 100,000 items",
    "UCB(C=[[]] * 10_000_000)": "can be repeated up to 100,000 items",
    "UCB(C=[[0] * 90_000, [0] * 90_000])": "up to 100,000 items",
    "UCB(C=[0] * 90_000 + [0] * 90_000)": "up to 100,000 items",
    "UCB(C=log(-1))": "C must be finite, got nan",
    "UCB(C=(lambda: 1)())": "only names, numbers",
    "UCB(C=[x for x in (1, 2)])": "only names, numbers",
    "UCB(**{'C': 1})": "only names, numbers",
    "UCB(C=[0] * 10**9)": "cannot be put together|can be repeated",
    "UCB(C=9**9**9**9)": "out of range",
    "UCB(C='a' * 1000000)": "cannot be put together",
    "inverse_log(c=1)": "a policy such as",
    "0.5": "a policy such as",
    "Bernoulli([0.5])": "unknown policy Bernoulli",
    "PerturbedMean(noise=0.5)": "noise must be a noise law such as Gumbel",
    "BoltzmannGumbel(C=1, estimator='mode')": "estimator must be one of 'catoni', 'mean', 'median', got 'mode'",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_text_is_refused_and_nothing_is_run(text: str) -> None:
    with pytest.raises(ValueError, match=WRONG[text]):
        read_policy(text)


def test_every_policy_is_listed_with_formula_and_reference() -> None:
    output = CliRunner().invoke(app, ["policies"], env={"COLUMNS": "200"}).output
    public = {name for name in ra.__all__ if isinstance(getattr(ra, name), PolicyFamily)}
    assert set(families(PolicyFamily)) == public
    for name in public:
        signature, sentence, formula, *rest = (inspect.getdoc(getattr(ra, name)) or "").split("\n\n")
        reference = " ".join(paragraph for paragraph in rest if not paragraph.startswith(">>>"))
        assert signature.startswith(f"{name}(")
        assert sentence.endswith(".")
        assert "\n" not in sentence
        assert any(sign in formula for sign in ("=", "∝", "eliminated"))
        assert any(character.isdigit() for character in reference) or "paper" in reference, name  # a year
        assert f"{name}(" in output
        assert formula.splitlines()[0] in output
        assert " ".join(reference.split()) in " ".join(output.split())
    assert ">>>" not in output


@pytest.mark.parametrize("command", ["policies", "problems"])
def test_lists_fit_into_the_terminal(command: str) -> None:
    output = CliRunner().invoke(app, [command], env={"COLUMNS": "70"}).output
    long = [line for line in output.splitlines() if len(line) > 70 and line.startswith(" ")]
    assert long == []


def test_every_problem_is_listed() -> None:
    output = CliRunner().invoke(app, ["problems"]).output
    public = {name for name in ra.__all__ if isinstance(getattr(ra, name), ProblemFamily)}
    for name in {*public, "RandomProblem"}:
        assert f"\n{name}(" in f"\n{output}"
    assert ">>> Gaussian(" in CliRunner().invoke(app, ["problems", "Gaussian"]).output


@pytest.mark.parametrize(
    ("command", "right", "wrong"), [("policies", "KLUCB", "KLUBC"), ("problems", "Pareto", "Parteo")]
)
def test_one_is_shown_in_full(command: str, right: str, wrong: str) -> None:
    assert f"{right}(" in CliRunner().invoke(app, [command, right]).output
    assert ">>>" in CliRunner().invoke(app, [command, right]).output
    done = CliRunner().invoke(app, [command, wrong])
    assert done.exit_code == 2
    assert wrong in done.output
    assert "Traceback" not in done.output


def test_compare_runs_and_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    picture = tmp_path / "regret.svg"
    few = ["--horizon", "5e2", "--replications", "3", "--seed", "7", "--output", str(picture)]
    done = CliRunner().invoke(app, ["compare", "UCB(C=0.5)", "KLUCB", "--problem", "Bernoulli([0.9, 0.5])", *few])
    assert done.exit_code == 0, done.output
    result = ra.simulate(
        [ra.UCB(C=0.5), ra.KLUCB()], ra.problems.Bernoulli([0.9, 0.5]), horizon=500, replications=3, seed=7
    )
    assert str(result) in done.output
    assert f"{0.4 / float(ra.theory.bernoulli_divergence(0.5, 0.9)):.4g} log T" in " ".join(done.output.split())
    assert "Lai" in picture.read_text()
    assert max(map(len, done.stdout.splitlines())) <= max(80, len(f"wrote {picture}"))


def test_policies_and_problems_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_formulas.py").write_text(
        "import rightarm as ra\n\n"
        "@ra.policy\ndef Eager(pulls, mean, *, bonus=1.0):\n    return mean + bonus / pulls\n\n"
        "calm = Eager(bonus=0.25)\n\n"
        "world = ra.problems.Bernoulli([0.9, 0.5])\n"
    )
    try:
        assert str(read_policy("my_formulas:Eager(bonus=2)")) == "Eager(bonus=2)"
        assert str(read_policy("my_formulas:calm")) == "Eager(bonus=0.25)"
        assert str(read_policy("my_formulas:Eager")) == "Eager()"
        assert read_problem("my_formulas:world") == ra.problems.Bernoulli([0.9, 0.5])
        few = ["--horizon", "50", "--replications", "2"]
        done = CliRunner().invoke(app, ["compare", "my_formulas:calm", "--problem", "my_formulas:world", *few])
        assert done.exit_code == 0, done.output
        assert "Eager(bonus=0.25)" in done.output
        lost = CliRunner().invoke(app, ["compare", "my_formulas:Nobody", *few])
        assert lost.exit_code == 2
        assert "the module my_formulas has no Nobody" in lost.output
    finally:
        sys.modules.pop("my_formulas", None)
    missing = CliRunner().invoke(app, ["compare", "no_such_module:Nobody"])
    assert missing.exit_code == 1
    assert missing.output == "rightarm: No module named 'no_such_module'\n"


def test_ctrl_c_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ra, "simulate", interrupt)
    done = CliRunner().invoke(app, ["compare", "UCB1", "--output", str(tmp_path / "x.png")])
    assert (done.exit_code, done.output) == (130, "rightarm: stopped\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["UCB(C=-1)"], "C must be positive, got -1.0"),
        (["UCB1", "--problem", "Bernoulli([1.5])"], "must be between 0 and 1, got 1.5"),
        (["UCB1", "--horizon", "0"], "horizon must be a whole number of at least 1, got 0"),
        (["UCB1", "--horizon", "1.5"], "horizon must be a whole number of at least 1, got 1.5"),
        (["UCB1", "--horizon", "ten"], "horizon must be a whole number of at least 1, got ten"),
        (["UCB1", "UCB1"], "policies must differ"),
        (["UCB1", "--output", "regret.bmp"], "output must end in"),
    ],
)
def test_compare_says_what_is_wrong(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["compare", *arguments], env={"COLUMNS": "400"})
    assert done.exit_code == 2
    assert said in done.output
