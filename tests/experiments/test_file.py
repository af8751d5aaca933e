"""Experiment files: what they mean, and what is refused, hostile ones included."""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from rightarm.experiments.document import ExperimentError
from rightarm.experiments.file import Experiment, read_experiment, read_text
from rightarm.simulation.simulate import check_checkpoints

HEAD = "horizon = 1000\nreplications = 32\nseed = 1\n"
PROBLEM = '[problems.p]\nuse = "Bernoulli"\nmean = [0.6, 0.5]\n'
POLICY = '[policies.bge]\nuse = "BoltzmannGumbel"\nC = 0.5\n'


def file(policy: str = POLICY, problem: str = PROBLEM, head: str = HEAD) -> str:
    return head + problem + policy


def policies(lines: str) -> list[Any]:
    return [cell.policy for cell in read_text(file("[policies.x]\n" + lines)).cells]


def problems(lines: str) -> list[Any]:
    return [cell.problem for cell in read_text(file(problem=f"[problems.x]\n{lines}\n")).cells]


def test_a_cell_has_all_that_the_file_says() -> None:
    (cell,) = read_text(file(head="title = 'T'\ncheckpoints = [10, 500]\n" + HEAD)).cells
    assert cell.policy == ra.BoltzmannGumbel(C=0.5)
    assert cell.problem == ra.problems.Bernoulli([0.6, 0.5])
    assert (cell.horizon, cell.replications, cell.seed, cell.checkpoints) == (1000, 32, 1, (10, 500, 1000))
    assert cell.names == (("problem", "p"), ("policy", "bge"))


def test_what_is_not_given_is_as_in_simulate() -> None:
    (cell,) = read_text(file(head="horizon = 1e3\n")).cells
    assert (cell.horizon, cell.replications, cell.seed) == (1000, 64, 0)
    assert cell.checkpoints == check_checkpoints(100, 0, 1000)


POLICIES = {
    'use = "UCB"\nC = 1': [ra.UCB(C=1.0)],
    'use = "UCB(C=1/2)"': [ra.UCB(C=0.5)],
    'use = "UCB"\nC = [1, 2.5]': [ra.UCB(C=1.0), ra.UCB(C=2.5)],
    'use = "UCB"\ngrid = { C = [1, 2.5] }': [ra.UCB(C=1.0), ra.UCB(C=2.5)],
    'use = "UCB"\nC = ["sqrt(4)", "2**-1"]': [ra.UCB(C=2.0), ra.UCB(C=0.5)],
    'use = "MOSS"\nhorizon = "horizon / 2"': [ra.MOSS(horizon=500)],
    'use = "UCB"\nC = 1\nestimator = ["Mean(window=50)", "Catoni(C=2, discount=0.9)", "Mean"]': [
        ra.UCB(C=1.0, estimator=ra.estimators.Mean(window=50)),
        ra.UCB(C=1.0, estimator=ra.estimators.Catoni(C=2.0, discount=0.9)),
        ra.UCB(C=1.0),
    ],
    'use = "BoltzmannGumbel"\nC = 1\nestimator = ["mean", "catoni"]': [
        ra.BoltzmannGumbel(C=1.0),
        ra.BoltzmannGumbel(C=1.0, estimator="catoni"),
    ],
    'use = "BoltzmannGumbel"\nzip = { C = [1, 2], location = [0, 3] }': [
        ra.BoltzmannGumbel(C=1.0, location=0.0),
        ra.BoltzmannGumbel(C=2.0, location=3.0),
    ],
    'use = "BoltzmannGumbel"\nC = [1, 2]\nlocation = [0, 3]': [
        ra.BoltzmannGumbel(C=C, location=location) for C in (1.0, 2.0) for location in (0.0, 3.0)
    ],
    'use = "Boltzmann"\ntemperature = [0.5, "glie", "inverse_log(0.25)", { use = "inverse_sqrt", c = [1, 2] }]': [
        ra.Boltzmann(0.5),
        ra.Boltzmann(ra.schedules.glie()),
        ra.Boltzmann(ra.schedules.inverse_log(0.25)),
        ra.Boltzmann(ra.schedules.inverse_sqrt(1.0)),
        ra.Boltzmann(ra.schedules.inverse_sqrt(2.0)),
    ],
    'use = "PerturbedMean"\nnoise = ["Gumbel", "Exponential()", { use = "Gaussian" }]': [
        ra.PerturbedMean(law) for law in (ra.noise.Gumbel(), ra.noise.Exponential(), ra.noise.Gaussian())
    ],
}


@pytest.mark.parametrize("lines", POLICIES)
def test_policies(lines: str) -> None:
    assert policies(lines) == POLICIES[lines]


PROBLEMS: dict[str, list[Any]] = {
    'use = "Gaussian"\nmean = [1, 2]\nsigma = [3, 4]': [ra.problems.Gaussian([1.0, 2.0], [3.0, 4.0])],
    'use = "Gaussian"\nmean = [[1, 2], [1, 2, 3]]': [
        ra.problems.Gaussian([1.0, 2.0]),
        ra.problems.Gaussian([1.0, 2.0, 3.0]),
    ],
    'use = "Gaussian"\nmean = "[1] + [0] * 2"\ngrid = { sigma = [3, [4, 5, 6]] }': [
        ra.problems.Gaussian([1.0, 0.0, 0.0], 3.0),
        ra.problems.Gaussian([1.0, 0.0, 0.0], [4.0, 5.0, 6.0]),
    ],
    'use = "Bernoulli"\nmean = [0.5, 0.6]\ncorrupted = { arm = 0, rounds = [5, 9] }': [
        ra.problems.Bernoulli([0.5, 0.6]).corrupted(0, rounds=rounds) for rounds in (5, 9)
    ],
    'use = "Bernoulli([0.5, 0.6])"\ncorrupted = [{ arm = 0, rounds = 5 }, { arm = 1, pulls = 3, reward = 1 }]': [
        ra.problems.Bernoulli([0.5, 0.6]).corrupted(0, rounds=5).corrupted(1, pulls=3, reward=1.0)
    ],
    'use = "RandomProblem(Bernoulli, mean=Uniform(low=[0.0] * 3, high=1.0))"': [
        ra.problems.RandomProblem(ra.problems.Bernoulli, mean=ra.problems.Uniform([0.0] * 3, 1.0))
    ],
    'use = "RandomProblem"\nfamily = "Gaussian"\nmean = { use = "Uniform", low = [0, 0], high = 1 }\nsigma = 2': [
        ra.problems.RandomProblem(ra.problems.Gaussian, mean=ra.problems.Uniform([0.0, 0.0], 1.0), sigma=2.0)
    ],
}


@pytest.mark.parametrize("lines", PROBLEMS)
def test_problems(lines: str) -> None:
    assert problems(lines) == PROBLEMS[lines]


def test_settings_are_swept_zipped_and_named() -> None:
    cells = read_text(file(head="seed = [1, 2]\nzip = { horizon = [10, 20], replications = [8, 4] }\n")).cells
    assert [(c.horizon, c.replications, c.seed) for c in cells] == [(10, 8, 1), (20, 4, 1), (10, 8, 2), (20, 4, 2)]
    assert cells[0].names[2:] == (("horizon", 10), ("replications", 8), ("seed", 1))


def test_let_sweeps_where_it_is_mentioned_and_nowhere_else() -> None:
    text = file('[policies]\na = "UCB(C=x)"\nb = "UCB1"\n[let]\nx = [0.5, 1.0]\n')
    assert [cell.names[1:] for cell in read_text(text).cells] == [
        (("policy", "a"), ("x", 0.5)),
        (("policy", "a"), ("x", 1.0)),
        (("policy", "b"),),
    ]


def test_let_joins_a_policy_and_a_problem() -> None:
    text = HEAD + 'problems.p = "Gaussian([1, 0], sigma=s)"\npolicies.g = "GaussianThompson(sigma=s)"\nlet.s = [1, 2]'
    cells = read_text(text).cells
    assert [(c.problem, c.policy) for c in cells] == [
        (ra.problems.Gaussian([1.0, 0.0], s), ra.GaussianThompson(sigma=s)) for s in (1.0, 2.0)
    ]


def test_a_name_swept_on_both_sides_says_which() -> None:
    problem = '[problems.p]\nuse = "Gaussian"\nmean = [1, 0]\ngrid = { sigma = [1, 2] }\n'
    cell = read_text(file('[policies.g]\nuse = "GaussianThompson"\nsigma = [1, 2]\n', problem)).cells[1]
    assert cell.names[2:] == (("policy.sigma", 2), ("problem.sigma", 1))


def test_runs_say_who_plays_what() -> None:
    text = (
        file('[policies]\na = "UCB1"\nb = "KLUCB"\n')
        + '[[runs]]\npolicies = ["a"]\n[[runs]]\npolicies = ["b"]\nhorizon = [10, 20]\n'
    )
    assert [(str(dict(c.names)["policy"]), c.horizon) for c in read_text(text).cells] == [
        ("a", 1000),
        ("b", 10),
        ("b", 20),
    ]


def test_settings_and_let_may_be_calculated() -> None:
    cells = read_text(file(head="horizon = 'decades(10, 1e3, 1)'\ncheckpoints = 1\n")).cells
    assert [cell.horizon for cell in cells] == [10, 100, 1000]
    (cell,) = read_text(file(head="horizon = '10**3'\ncheckpoints = 'decades(1, 1e3, 2)'\n")).cells
    assert cell.checkpoints == (1, 3, 10, 32, 100, 316, 1000)
    text = file('[policies]\na = "UCB(C=x)"\n[let]\nx = "decades(0.01, 1, 2)"\n')
    assert [cell.policy.values["C"] for cell in read_text(text).cells] == pytest.approx(
        [0.01, 0.1**1.5, 0.1, 0.1**0.5, 1]
    )


def test_policies_may_mention_their_problem() -> None:
    text = (
        HEAD
        + """
        problems.p = { use = "Gaussian", mean = [[1.0, 0.5], [3.0, 0.0, 1.0]], sigma = 2.0 }
        policies.a = "UCB(C=sqrt(V))"
        policies.b = { use = "UCB", C = ["gap / 8", "arms + 0.125"] }
    """
    )
    assert [cell.policy.values["C"] for cell in read_text(text).cells] == pytest.approx(
        [np.sqrt(5), np.sqrt(13), 0.0625, 2.125, 0.25, 3.125]
    )
    taken = HEAD + 'problems.p = "Bernoulli([gap, 0.5])"\npolicies.a = "UCB(C=gap)"\nlet.gap = 0.75'
    assert [cell.policy for cell in read_text(taken).cells] == [ra.UCB(C=0.75)]  # let comes first
    drawn = HEAD + 'problems.p = "RandomProblem(Bernoulli, mean=Uniform([0.0, 0.0], 1.0))"\npolicies.a = "UCB(C=arms)"'
    assert [cell.policy for cell in read_text(drawn).cells] == [ra.UCB(C=2.0)]
    with pytest.raises(ExperimentError, match=r"policies.a: V is not known: every replication draws problems.p anew"):
        read_text(drawn.replace("arms", "V"))
    with pytest.raises(ExperimentError, match=r"policies.a: gap is not known: all arms of .* are equally good"):
        read_text(HEAD + 'problems.p = "Bernoulli([0.5, 0.5])"\npolicies.a = "UCB(C=gap)"')


def test_quick_replaces_what_it_names() -> None:
    text = (
        file('[policies]\na = "UCB(C=x)"\n[let]\nx = [0.5, 1.0]\n')
        + "[quick]\nhorizon = 50\nlet.x = [2.0]\nproblems.p.mean = [0.9, 0.1]\n"
    )
    full, quick = read_text(text).cells, read_text(text, quick=True).cells
    assert [(c.horizon, c.policy, c.replications) for c in full] == [(1000, ra.UCB(C=C), 32) for C in (0.5, 1.0)]
    assert [(c.horizon, c.policy, c.problem, c.replications) for c in quick] == [
        (50, ra.UCB(C=2.0), ra.problems.Bernoulli([0.9, 0.1]), 32)
    ]
    with pytest.raises(ExperimentError, match=r"^quick: is missing; a file that can be run quickly has a table"):
        read_text(file(), quick=True)


def test_known_statistics_are_where_it_starts() -> None:
    (cell,) = read_text(file(problem=PROBLEM + "known = { pulls = [3, 2], means = [0.5, 0.25] }\n")).cells
    assert (cell.start.pulls, cell.start.means) == ((3, 2), (0.5, 0.25))
    assert cell.checkpoints[-1] == 1000
    assert cell.checkpoints[0] == 6
    assert {job.start for job in cell.blocks()} == {cell.start}


OWN = """
import numpy as np, rightarm as ra

@ra.policy
def Sloth(pulls, mean, *, c: ra.policies.Positive = 1.0):
    return mean + c / np.cbrt(pulls)

@ra.problems.problem
def Triangular(u, *, high):
    return high * np.sqrt(u)

@ra.schedules.schedule
def cooling(t, *, rate: float):
    return 1 / (1 + rate * t)

def plain(t):
    return 1 / t

MEANS = np.array([0.5, 0.25])
ready = Sloth(c=2.0)
"""


def own(tmp_path: Path, module: str, text: str, source: str = OWN) -> Experiment:
    (tmp_path / f"{module}.py").write_text(source)
    (tmp_path / "experiment.toml").write_text(text)
    return read_experiment(tmp_path / "experiment.toml")


def test_own_policies_and_problems_beside_the_file(tmp_path: Path) -> None:
    before = list(sys.path)
    text = HEAD + (
        '[problems]\nt = { use = "own_one:Triangular", high = [3, 1.5] }\n'
        'b = { use = "Bernoulli", mean = "own_one:MEANS" }\n'
        '[policies]\ns = { use = "own_one:Sloth", c = [1, 2.5] }\nready = "own_one:ready"\n'
        'c = { use = "Boltzmann", temperature = { use = "own_one:cooling", rate = 0.5 } }\n'
        'p = { use = "Boltzmann", temperature = "own_one:plain" }\n'
        'called = "own_one:Sloth(c=1 / 4)"\n'
        'part = { use = "Boltzmann", temperature = ["own_one:cooling(rate=0.75)", "own_one:cooling(2)"] }\n'
    )
    cells = own(tmp_path, "own_one", text).cells
    assert len(cells) == 16
    made = [str(cell.policy) for cell in cells]
    assert {"Sloth(c=0.25)", "Boltzmann(cooling(rate=0.75))", "Boltzmann(cooling(rate=2))"} <= set(made)
    assert str(cells[2].policy) == "Sloth(c=2)"
    assert np.allclose(cells[0].problem.means, [2.0, 1.0], atol=1e-5)  # type: ignore[union-attr]
    assert sys.path == before


def test_own_modules_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_two.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    assert len(read_text(file('[policies]\ns = "own_two:Sloth"')).cells) == 1


BROKEN = {
    "raise RuntimeError('no')": "RuntimeError: no",
    "import sys; sys.exit(3)": "SystemExit: 3",
    "1 / 0": "ZeroDivisionError",
    "def (": "SyntaxError",
    "import there_is_no_such_module": "No module named 'there_is_no_such_module'",
    "x = 1": "the module own_broken has no Sloth; it has x",
    "Sloth = 7": "a policy such as .* is expected, got 'own_broken:Sloth', which is 7",
    "def Sloth(mean): return mean": "decorate it with @rightarm.policy",
    "import rightarm\nSloth = rightarm.problems.Bernoulli": "a policy such as",
    "import rightarm as ra\n@ra.policy\ndef Sloth(mean, *, c: Nothing = 1): return mean": "NameError.*Nothing",
}


@pytest.mark.parametrize("source", BROKEN)
def test_errors_of_own_modules_say_key_and_cause(source: str, tmp_path: Path) -> None:
    sys.modules.pop("own_broken", None)
    text = file(
        '[policies.s]\nuse = "own_broken:Sloth"\nc = 2\n'
        if "Nothing" in source
        else '[policies]\ns = "own_broken:Sloth"\n'
    )
    with pytest.raises(ExperimentError, match=rf"^policies\.s(\.use|\.c)?: .*{BROKEN[source]}"):
        own(tmp_path, "own_broken", text, source)
    assert str(tmp_path) not in sys.path


def test_two_modules_of_one_name_are_not_confused(tmp_path: Path) -> None:
    text = file('[policies]\ns = "own_twice:Sloth"\n')
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    own(tmp_path / "a", "own_twice", text)
    with pytest.raises(ExperimentError, match=r"policies.s.use: .*another module own_twice is there already"):
        own(tmp_path / "b", "own_twice", text)


HUGE = "0x" + "f" * 9000
WRONG = {
    "": "problems: is missing",
    file("[policies.bge]\nuse = 'BoltzmannGumbel'\nC = -1.0"): r"policies.bge.C: must be positive, got -1.0; allowed",
    file("[policies.bge]\nuse = 'BoltzmannGumbel'\nC = [1, -1.0]"): r"policies.bge.C\[1\]: must be positive, got -1.0",
    file(POLICY + "Cc = 1"): r"policies.bge.Cc: unknown parameter, got 1; BoltzmannGumbel has C, location, est",
    file(POLICY + "location = true"): "policies.bge.location: must be a number, got True",
    file(POLICY + "location = nan"): "policies.bge.location: must be finite, got nan",
    file(POLICY + "location = -inf"): "policies.bge.location: must be finite, got -inf",
    file(POLICY + "location = 2020-01-01"): r"policies.bge.location: must be a number, got datetime.date",
    file(POLICY + "location = []"): r"policies.bge.location: must be a list of values to sweep, got \[\]",
    file(POLICY + "location = {}"): "policies.bge.location: must be a table such as",
    file(POLICY + "location = [[1]]"): r"policies.bge.location\[0\]: must be a number, got \[1\]",
    file(POLICY + f"location = {HUGE}"): "policies.bge.location: must be finite, got a whole number of 10,838 digits",
    file(POLICY + f"location = [[{HUGE}]]"): "policies.bge.location",
    file(
        POLICY + "location = 'sqrt(y)'"
    ): "bge.location: unknown name y in .*; there are horizon, arms, gap, V, columns, sqrt",
    file(POLICY + "location = '1 +'"): "policies.bge.location: .* cannot be read",
    file(POLICY + "location = '__import__(\"os\")'"): "policies.bge.location: unknown name __import__",
    file(POLICY + "location = '1/0'"): "policies.bge.location: 1/0: division by zero",
    file(POLICY + "estimator = 'mode'"): "policies.bge.estimator: unknown name mode in 'mode'; there are .*",
    file(POLICY + "grid = { C = [1, 2] }"): "policies.bge.grid.C: is given twice, also in policies.bge",
    file(POLICY + "grid = { location = 1 }"): "policies.bge.grid.location: must be a list",
    file(POLICY + "grid = 1"): "policies.bge.grid: must be a table",
    file(POLICY + "zip = { location = [1, 2], estimator = ['mean'] }"): "policies.bge.zip: .* location has 2",
    file(POLICY + "zip = { locatoin = [1, 2] }"): "policies.bge.zip.locatoin: unknown param.* did you mean location",
    file("[policies.bge]\nC = 1"): "policies.bge.use: is missing",
    file("[policies.bge]\nuse = 3"): "policies.bge.use: must be a name, module:name or an expression, as text, got 3",
    file("[policies.bge]\nuse = 'BoltzmanGumbel'"): "unknown policy 'BoltzmanGumbel'; there are .* mean Boltz",
    file("[policies.bge]\nuse = 'a b:c'"): "policies.bge.use: must be module:name",
    file("[policies.bge]\nuse = 'no_such_module_at_all:c'"): "policies.bge.use: .* cannot be imported: No module named",
    file("[policies.bge]\nuse = 'UCB(C=1)'\nC = 2"): "policies.bge.C: has no place beside an expression in use, got 2",
    file("[policies.bge]\nuse = 'UCB'"): "policies.bge.C: is missing; UCB has C",
    file("[policies.bge]\nuse = 'Bernoulli([0.5, 0.4])'"): "policies.bge.use: unknown name Bernoulli",
    file("[policies.bge]\nuse = 'inverse_log(1)'"): "policies.bge.use: a policy such as",
    file("[policies]\n'' = 'UCB1'"): 'policies."": must have a name',
    file('[policies]\n"a\\u0000b" = "UCB1"'): 'policies."a.b": must have a name of up to 100 printable',
    file("[policies]"): "policies: must be a table such as",
    file("[policies]\na = 3"): "policies.a: must be a table",
    file("[policies]\na = 'UCB1'\nb = 'UCB1'"): r"policies.b: gives a cell twice: \(problem p, policy a\)",
    file("[policies.s]\nuse = 'UCB'\nC = [1, 1.0]"): "policies.s: gives a cell twice",
    file("[policies.s]\nuse = 'Boltzmann'\ntemperature = { use = 'inverse_lag', c = 1 }"): "did you mean inverse_log",
    file("[policies.s]\nuse = 'Boltzmann'\ntemperature = { use = 'inverse_log', c = -1 }"): (
        "policies.s.temperature.c: must be positive, got -1"
    ),
    file("[policies.s]\nuse = 'Boltzmann'\ntemperature = { use = 'inverse_log', d = 1 }"): (
        "policies.s.temperature.d: unknown parameter, got 1; inverse_log has c"
    ),
    file("[policies.s]\nuse = 'UCB'\nC = " + "{ use = 'constant', c = " * 60 + "1" + " }" * 60): "nested too deeply",
    file("[policies.s]\nuse = 'UCB'\nC = " + "[" * 5000 + "]" * 5000): "nested too deeply",
    file("[policies.s]\nuse = 'UCB(C=x - 1)'\n[let]\nx = [2, 1]"): "policies.s.use: .*C must be positive, got .*x = 1",
    file(POLICY + "[let]\nx = 1"): "let.x: is mentioned in no problem and no policy",
    file(POLICY + "[let]\nsqrt = 1"): "let.sqrt: cannot be mentioned, that name means something already",
    file(POLICY + "[let]\n'a b' = 1"): 'let."a b": cannot be mentioned, a name is letters',
    file(POLICY + "[let]\nx = 'y'"): "let.x: unknown name y in 'y'",
    file(problem="[problems.p]\nuse = 'Bernoulli'\nmean = [0.5, 1.5]\n"): (
        r"problems.p.mean\[1\]: must be between 0 and 1, got 1.5; allowed is a number that is between 0 and 1, for all"
    ),
    file(problem="[problems.p]\nuse = 'Bernoulli'\nmean = [0.5, true]\n"): r"problems.p.mean\[1\]: must be a num",
    file(problem="[problems.p]\nuse = 'Bernoulli'\nmean = [0.5, [0.5]]\n"): "problems.p.mean: ",
    file(problem="[problems.p]\nuse = 'Bernoulli'\nmean = []\n"): r"problems.p.mean: must be a list",
    file(problem="[problems.p]\nuse = 'Bernoulli'\nmean = '[0.5] * 10**9'\n"): "problems.p.mean: .*repeated up to",
    file(problem="[problems.p]\nuse = 'Bernoulli'\nmean = '[[0.5] * 99999] * 99999'\n"): "problems.p.mean: .*repeated",
    file(problem="[problems.p]\nuse = 'Gaussian'\nmean = [1, 2]\nsigma = [1, 2, 3]\n"): "problems.p: .*lengths.*grid",
    file(problem="[problems.p]\nuse = 'Uniform'\nlow = [1, 2]\nhigh = 0\n"): "problems.p: Uniform needs low ≤ high",
    file(problem=PROBLEM + "corupted = {}\n"): "problems.p.corupted: unknown .* did you mean corrupted",
    file(problem=PROBLEM + "corrupted = {}\n"): "problems.p.corrupted: must be a table",
    file(problem=PROBLEM + "corrupted = []\n"): r"problems.p.corrupted\[0\]: must be a table",
    file(problem=PROBLEM + "corrupted = { rounds = 5 }\n"): "problems.p.corrupted.arm: is missing",
    file(problem=PROBLEM + "corrupted = { arm = 7, rounds = 5 }\n"): "problems.p.corrupted: arm must be below",
    file(problem=PROBLEM + "corrupted = { arm = 0, rouns = 5 }\n"): "problems.p.corrupted.rouns: unknown key.* rounds?",
    file(problem=PROBLEM + "corrupted = { arm = 0 }\n"): "problems.p.corrupted: corrupted takes either rounds or pulls",
    file(problem=PROBLEM + "known = { pulls = [1, 1] }\n"): "problems.p.known.means: is missing",
    file(problem=PROBLEM + "known = { pulls = [1], means = [1] }\n"): "problems.p.known: pulls must have one value",
    file(problem=PROBLEM + "known = { pulls = [1, 'a'], means = [1, 1] }\n"): "problems.p.known.pulls: must be a list",
    file(problem=PROBLEM + "known = { pulls = [900, 900], means = [1, 1] }\n"): "horizon: must be more than the 1800",
    file(problem="[problems.p]\nuse = 'RandomProblem'\nfamily = 'Bernouli'\n"): "problems.p.family: .*mean Bernoulli",
    file(
        problem="[problems.p]\nuse = 'RandomProblem'\nfamily = 'Bernoulli'\nmean = [0.5, 0.4]\n"
    ): "problems.p: a random problem needs a problem such as",
    file(problem="[problems.p]\nuse = 'RandomProblem(Bernoulli, mean=Gaussian([9, 9]))'\n"): "problems.p: .*drawn in",
    file(problem=""): "problems: is missing",
    file(head=""): "horizon: is missing",
    file(head="horizon = 0\n"): "horizon: must be a whole number of at least 1, got 0; allowed",
    file(head="horizon = 1.5\n"): "horizon: must be a whole number",
    file(head="horizon = 10000000000000000\n"): "horizon: must be at most 9,007,199,254,740,992",
    file(head=f"horizon = {HUGE}\n"): "horizon: must be finite",
    file(head="horizon = 'x'\n"): "horizon: unknown name x in 'x'; there are sqrt, log, exp, decades",
    file(head="horizon = 'decades(10, 1, 2)'\n"): "horizon: decades.* needs 0 < first < last .* got 10, 1, 2",
    file(head="horizon = '[9, -9]'\n"): r"horizon\[1\]: must be a whole number of at least 1, got -9",
    file(POLICY + "[quick]\nhorizn = 3"): "quick.horizn: unknown key, got 3; it has title.* did you mean horizon",
    file(POLICY + "[quick]"): "quick: must be a table such as",
    file(POLICY + "quick = 3\n").replace("[policies.bge]", "[policies.bge]"): "policies.bge.quick: unknown parameter",
    file(head="horizon = false\n"): "horizon: must be a number, got False",
    file(head="horizon = []\n"): "horizon: must be a list",
    file(head="horizon = [9, {}]\n"): r"horizon\[1\]: must be a number",
    file(head="horizon = 9\nreplications = 1000000000000\n"): "replications: must be at most 268,435,456",
    file(head="horizon = 9\nseed = -1\n"): "seed: must be a whole number of at least 0, got -1; allowed",
    file(head="horizon = 9\ncheckpoints = 1000000000\n"): "checkpoints: must be at most 100,000",
    file(head="horizon = 9\ncheckpoints = [3, 2]\n"): r"checkpoints: must rise from 1 to 9 at most, got \[3, 2\]",
    file(head="horizon = 9\ncheckpoints = [3, 20]\n"): "checkpoints: must rise from 1 to 9 at most",
    file(head="horizon = 9\ncheckpoints = [3, 'a']\n"): r"checkpoints\[1\]: must be a number",
    file(head="horizn = 9\n"): "horizn: unknown key, got 9; a file has title, horizon,.* did you mean horizon?",
    file(head="title = 3\nhorizon = 9\n"): "title: must be a line of text, got 3",
    file(head="zip = { horizon = [1, 2], seed = [1] }\n"): "zip: the lists must be equally long, got horizon has",
    file(head="zip = { horizon = [1, 2] }\nhorizon = 3\n"): "zip.horizon: is given twice, also in the file",
    file(head="runs = 3\nhorizon = 3\n"): "runs: must be tables",
    file(POLICY + "[[runs]]\npolicies = ['bgee']"): r"runs\[0\].policies: there is no 'bgee'; there are bge; did",
    file(POLICY + "[[runs]]\npolicy = ['bge']"): r"runs\[0\].policy: unknown key.* did you mean policies",
    file("[policies.a]\nuse = 'BoltzmannGumbel'\nC = [" + "1," * 999 + "]\nlocation = [" + "1," * 999 + "]"): (
        "policies.a: would be 998,001 cells; at most 100,000 are allowed"
    ),
    "horizon = 3\nx = \n": "line 2, column 5: Invalid value",
    "horizon = 3\nhorizon = 4\n": "line 2, column 12: Cannot overwrite a value",
    "horizon = [1,\n": r"line 1, column 14: ",
    "horizon = " + "9" * 5000: "line 1, column 11: .*4300",
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: re.sub(r"\W+", " ", text[-60:]))
def test_what_is_wrong_is_said_with_its_key(text: str) -> None:
    with pytest.raises(ExperimentError, match=f"(?s){WRONG[text]}") as caught:
        read_text(text)
    assert len(str(caught.value)) < 2_100


def test_too_many_cells_are_refused_before_they_are_made() -> None:
    many = "[" + ",".join(map(str, range(1, 1001))) + "]"
    head = f"horizon = {many}\nseed = {many}\n"
    policy = f"[policies.a]\nuse = 'BoltzmannGumbel'\nC = {many}\n"
    with pytest.raises(ExperimentError, match="the file: would be 1,000,000,000 cells"):
        read_text(file(policy, head=head))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="cannot be read"):
        read_experiment(tmp_path)
    with pytest.raises(ExperimentError, match="cannot be read"):
        read_experiment(tmp_path / "nothing.toml")
    with pytest.raises(ExperimentError, match="cannot be read"):
        read_experiment("a\0b")
    (tmp_path / "latin.toml").write_bytes(b"title = '\xe9'")
    with pytest.raises(ExperimentError, match="must be text in UTF-8"):
        read_experiment(tmp_path / "latin.toml")
    (tmp_path / "marked.toml").write_bytes(b"\xef\xbb\xbf" + file().replace("\n", "\r\n").encode())
    assert len(read_experiment(tmp_path / "marked.toml").cells) == 1


GOOD = """
title = "all of it"
horizon = [100, 1_000]
replications = 32
seed = 2017
checkpoints = 10
[let]
c2 = [0.25, 1.0]
[problems.honest]
use = "Bernoulli"
mean = [0.51, 0.5, 0.5]
corrupted = { arm = 0, rounds = 50, reward = 0.0 }
[problems.wide]
use = "Gaussian"
mean = "[0.5] + [0.0] * 4"
grid = { sigma = [1.0, 2.0] }
[policies.bge]
use = "BoltzmannGumbel"
C = "sqrt(c2)"
zip = { location = [0.0, 0.5], estimator = ["mean", "catoni"] }
[policies.softmax]
use = "Boltzmann"
temperature = { use = "inverse_log", c = [0.1, 0.25] }
[policies]
moss = "MOSS(horizon=horizon)"
[[runs]]
policies = ["bge", "moss"]
[[runs]]
policies = ["softmax"]
problems = ["honest"]
horizon = 500
"""
SPLICED = (
    *("true", "nan", "-inf", "0", "-1", "1e308", "1e999", "[]", "{}", "[[]]", "[{}]", '""', "''", "'x'", "1979-05-27"),
    *("07:32:00", '"horizon"', '"c2"', '"1/0"', '"a:b"', '"("', '"[0.5]*3"', '"UCB"', '"Gumbel"', "use", "zip", "grid"),
    *("let", "[", "]", "{", "}", "=", ",", ".", "\n", '"', "#", "\0", "é", "\u202e", "0x" + "f" * 5000, "9" * 5000),
    *('{ use = "glie" }', '{ use = "UCB", C = 1 }', "[1, [2, [3]]]", "99999999999999999999", '"' + "(" * 500 + '"'),
)


def tokens(text: str) -> list[str]:
    return re.findall(r'"[^"\n]*"|[\w.-]+|\s+|.', text)


def test_the_good_file_is_good() -> None:
    assert len(read_text(GOOD).cells) == 2 * (2 * 2) * 3 + 2 * 3 + 2


@pytest.mark.parametrize("seed", range(20))
def test_a_file_changed_at_random_is_read_or_refused(seed: int) -> None:
    """Whatever stands in the file, no other error comes out."""
    chance, words = random.Random(seed), tokens(GOOD)
    for _ in range(100):
        changed = list(words)
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            place = chance.randrange(len(changed))
            match chance.randrange(5):
                case 0:
                    del changed[place]
                case 1:
                    changed[place] = chance.choice(SPLICED)
                case 2:
                    changed.insert(place, chance.choice(SPLICED))
                case 3:
                    changed[place] = chance.choice(words)
                case 4:
                    other = chance.randrange(len(changed))
                    changed[place], changed[other] = changed[other], changed[place]
        try:
            assert isinstance(read_text("".join(changed)), Experiment)
        except ExperimentError as error:
            assert 0 < len(str(error)) < 2_100  # noqa: PT017


@pytest.mark.parametrize("seed", range(10))
def test_values_changed_at_random_are_read_or_refused(seed: int) -> None:
    """The same where the syntax stays whole, so that what is behind it is reached."""
    chance, lines = random.Random(seed), GOOD.splitlines()
    values = [value for value in SPLICED if re.match(r"""["'\[{\d-]|nan|true""", value) and "\n" not in value]
    for _ in range(60):
        changed = list(lines)
        place = chance.choice([i for i, line in enumerate(lines) if "=" in line])
        value = chance.choice(values)
        whole = re.sub(r"= .*", lambda _, v=value: f"= {v}", lines[place], count=1)  # type: ignore[misc]
        numbers = list(re.finditer(r"(?<=[ \[])[\d._]+|\"[^\"]*\"", lines[place]))
        one = chance.choice(numbers) if numbers else None
        inner = lines[place] if one is None else lines[place][: one.start()] + value + lines[place][one.end() :]
        changed[place] = chance.choice((whole, inner))
        try:
            assert isinstance(read_text("\n".join(changed)), Experiment)
        except ExperimentError as error:
            assert 0 < len(str(error)) < 2_100  # noqa: PT017


def test_a_problem_whose_means_change_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tides.py").write_text(
        "import numpy as np\nimport rightarm as ra\n\n\n@ra.problems.problem(mean=lambda level: level)\n"
        "def Tides(t, *, level: float):\n    return level + np.sin(t)\n"
    )
    path = tmp_path / "file.toml"
    path.write_text(
        'horizon = 9\npolicies.a = "UCB1()"\nproblems.sea = { use = "tides:Tides", level = [[0.0, 1.0]] }\n'
    )
    with pytest.raises(ExperimentError, match=r"problems\.sea: Tides asks for t: its means change"):
        read_experiment(path)
