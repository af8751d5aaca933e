"""`simulate` as a user meets it: the same whatever the machinery does, right at the extremes, clear when misused."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rightarm as ra
from cases import POLICIES, PROBLEMS, cautious, restless, thompson
from naive import I64
from rightarm.simulation.engine import Run, Start
from rightarm.simulation.jobs import Job, available_cores, lanes_for, play_jobs

BERNOULLI = ra.problems.Bernoulli([0.5, 0.6, 0.4])


def assert_same(first: ra.Result, second: ra.Result) -> None:
    """Bit for bit."""
    assert first.labels == second.labels
    np.testing.assert_array_equal(first.rounds, second.rounds)
    np.testing.assert_array_equal(first.regret, second.regret)
    np.testing.assert_array_equal(first.pulls, second.pulls)


# The same result, whatever the machinery does.

MIX = [
    ra.BoltzmannGumbel(C=0.5),
    ra.UCB(C=0.5),
    ra.Boltzmann(ra.schedules.glie()),
    ra.Boltzmann(0.1),
    thompson(),
    cautious(),
    ra.EXP3(gamma=0.1),
    ra.EXP3PlusPlus(),
    ra.EpsilonGreedy(0.1),
    ra.KLUCB(),
    ra.UCBImproved(horizon=700),
    ra.BetaThompson(),
    ra.BoltzmannGumbel(C=1.0, estimator="catoni"),
]


def run_mix(**changes: Any) -> ra.Result:
    settings = {"horizon": 700, "replications": 50, "seed": 3} | changes
    with pytest.warns(UserWarning, match="policies got rewards that they are not for"):
        return ra.simulate(MIX, PROBLEMS["settled"].problem, **settings)


@pytest.fixture(scope="module")
def reference() -> ra.Result:
    return run_mix()


@pytest.mark.parametrize("lanes", [32, 64, 96, 128])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_lanes_and_workers_change_nothing(reference: ra.Result, lanes: int, workers: int) -> None:
    assert_same(run_mix(lanes=lanes, workers=workers), reference)


def test_a_second_call_is_the_same(reference: ra.Result) -> None:
    assert_same(run_mix(), reference)


def test_another_seed_is_not(reference: ra.Result) -> None:
    other = run_mix(seed=4)
    assert (other.pulls != reference.pulls).any(axis=(1, 2)).all()


def test_fewer_replications_are_the_first_ones(reference: ra.Result) -> None:
    few = run_mix(replications=10)
    np.testing.assert_array_equal(few.regret, reference.regret[:, :10])
    np.testing.assert_array_equal(few.pulls, reference.pulls[:, :10])


def test_a_shorter_horizon_is_the_beginning(reference: ra.Result) -> None:
    short = run_mix(horizon=300, checkpoints=[100, 300])
    long = run_mix(checkpoints=[100, 300, 700])
    np.testing.assert_array_equal(short.regret, long.regret[:, :, :2])
    np.testing.assert_array_equal(long.regret[:, :, -1], reference.regret[:, :, -1])


@pytest.mark.filterwarnings("ignore:policies got rewards that they are not for")
def test_a_policy_does_not_depend_on_its_company(reference: ra.Result) -> None:
    for index, policy in enumerate(MIX):
        alone = ra.simulate(policy, PROBLEMS["settled"].problem, horizon=700, replications=50, seed=3)
        np.testing.assert_array_equal(alone.regret[0], reference.regret[index])
        np.testing.assert_array_equal(alone.pulls[0], reference.pulls[index])


def test_policies_meet_the_same_luck() -> None:
    """Two that choose alike are paid alike: greedy from equal statistics is greedy at any tiny temperature."""
    cold = [ra.Boltzmann(1e-300), ra.Boltzmann(1e-301)]
    result = ra.simulate(cold, ra.problems.Gaussian([0.0, 0.1]), horizon=1_000, replications=20, seed=1)
    np.testing.assert_array_equal(result.pulls[0], result.pulls[1])


@pytest.mark.parametrize("policy", MIX, ids=str)
@given(cuts=st.sets(st.integers(1, 699)))
@settings(max_examples=10)
def test_slices_change_nothing(policy: ra.Policy, cuts: set[int]) -> None:
    """A run that stops anywhere and goes on is the run that did not stop."""

    def after(*ends: int) -> Run:
        problem, checkpoints = PROBLEMS["settled"].problem, np.array([10, 350, 700])
        run = Run(policy, problem, Start((0,) * 3, (0.0,) * 3), 3, 0, 32, checkpoints)
        for end in ends:
            run.advance(end)
        return run

    def arrays(run: Run) -> list[Any]:
        return [*run.statistics, *run.lanes.streams]

    whole, sliced = after(700), after(*sorted(cuts), 700)
    np.testing.assert_array_equal(sliced.regret, whole.regret)
    for ours, theirs in zip(arrays(sliced), arrays(whole), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_fresh_seed_is_drawn_and_told() -> None:
    first, second = (ra.simulate(ra.UCB(0.5), BERNOULLI, horizon=300, replications=8) for _ in range(2))
    assert first.seed != second.seed
    assert_same(ra.simulate(ra.UCB(0.5), BERNOULLI, horizon=300, replications=8, seed=first.seed), first)


def test_progress_changes_nothing(reference: ra.Result, capfd: pytest.CaptureFixture[str]) -> None:
    assert_same(run_mix(progress=True), reference)
    captured = capfd.readouterr()
    assert "simulating" in captured.err
    assert captured.out == ""


def test_whole_numbers_may_be_floats() -> None:
    kwargs: dict[str, Any] = {
        "horizon": 300,
        "replications": 40,
        "seed": 1,
        "workers": 1,
        "lanes": 32,
        "checkpoints": 5,
    }
    result = ra.simulate(ra.UCB(0.5), BERNOULLI, **kwargs)
    for name, value in kwargs.items():
        assert_same(ra.simulate(ra.UCB(0.5), BERNOULLI, **kwargs | {name: float(value)}), result)
        assert_same(ra.simulate(ra.UCB(0.5), BERNOULLI, **kwargs | {name: np.int32(value)}), result)


# What always holds.


@pytest.mark.parametrize(
    ("checkpoints", "horizon", "rounds"),
    [
        (1, 1, [1]),
        (1, 50, [50]),
        (3, 10_000, [1, 100, 10_000]),
        (100, 4, [1, 2, 3, 4]),
        ([5, 7], 9, [5, 7, 9]),
        ([5, 9], 9, [5, 9]),
        (range(2, 5), 4, [2, 3, 4]),
        (np.array([3.0]), 3, [3]),
    ],
)
def test_checkpoints(checkpoints: Any, horizon: int, rounds: list[int]) -> None:
    result = ra.simulate(ra.UCB(1.0), BERNOULLI, horizon=horizon, replications=1, seed=1, checkpoints=checkpoints)
    assert result.rounds.tolist() == rounds


def test_one_arm_has_no_regret() -> None:
    result = ra.simulate(
        [ra.UCB(1.0), ra.Boltzmann(ra.schedules.glie())],
        ra.problems.Gaussian([3.0]),
        horizon=100,
        replications=3,
        seed=1,
    )
    assert (result.regret == 0).all()
    assert (result.pulls == 100).all()


# Right where single precision is not.


@pytest.mark.parametrize("policy", [ra.UCB(C=1.0), ra.BoltzmannGumbel(C=1.0), thompson(), cautious()], ids=str)
@pytest.mark.parametrize("shift", [2.0**20, -(2.0**20), 1e6])
def test_large_rewards_lose_no_digits(policy: ra.Policy, shift: float) -> None:
    """Rewards of 10⁶ ± 1 are told apart as those of 0 ± 1 are: pull for pull the same."""
    here, there = (
        ra.simulate(policy, ra.problems.Gaussian([by, by + 1, by - 1]), horizon=2_000, replications=16, seed=1)
        for by in (0.0, shift)
    )
    np.testing.assert_array_equal(there.pulls, here.pulls)
    assert (here.pulls[0, :, 1] > 1_500).all()


HUGE = [
    ra.UCB(C=1.0),
    ra.BoltzmannGumbel(C=1.0),
    ra.BoltzmannGumbel(C=1.0, estimator="catoni"),
    ra.BoltzmannGumbel(C=1e12, estimator="catoni"),
    ra.RobustUCB(u=1e24),
    ra.EXP3(gamma=0.1),
]


@pytest.mark.parametrize("policy", HUGE, ids=repr)
@pytest.mark.parametrize(
    "problem", [ra.problems.Gaussian([1e12, 2e12], sigma=1e11), ra.problems.Deterministic([-1e12, 1e12])], ids=str
)
def test_huge_rewards(policy: ra.Policy, problem: ra.problems.Problem) -> None:
    """Sums, estimates and what is remembered stay finite; and it is seen which arm is better.

    Not by Catoni's estimate with a C that is far too small, for which such rewards are all outliers.
    """
    run = Run(policy, problem, Start((0, 0), (0.0, 0.0)), 1, 0, 32, np.array([2_000]))
    run.advance(2_000)
    assert all(np.isfinite(values).all() for values in run.statistics)
    assert (run.statistics.pulls.sum(axis=0) == 2_000).all()
    assert run.statistics.pulls[1].mean() > 1_800 or policy.estimator == ra.estimators.Catoni(C=1.0)


@pytest.mark.parametrize("policy", HUGE, ids=repr)
def test_rewards_whose_sum_is_no_number_are_an_error(policy: ra.Policy) -> None:
    with pytest.raises(ValueError, match="a reward was not a finite number by round"):
        ra.simulate(policy, ra.problems.Deterministic([1e307, 1e307]), horizon=200, replications=2, seed=1)


def test_a_billion_pulls_go_on_counting() -> None:
    """Single precision would stop at 2²⁴ = 1.7·10⁷."""
    start: dict[str, Any] = {"pulls": [10**9, 10**9 + 1, 10], "means": [0.5, 0.5, 0.2]}
    result = ra.simulate(
        ra.UCB(C=0.1), ra.problems.Bernoulli([0.5, 0.5, 0.2]), horizon=1_000, replications=8, seed=1, **start
    )
    assert (result.pulls.sum(axis=2) == 2 * 10**9 + 11 + 1_000).all()
    assert (result.pulls >= start["pulls"]).all()
    assert result.rounds[-1] == 2 * 10**9 + 11 + 1_000


@pytest.mark.parametrize("policy", [ra.UCB(C=0.5), ra.Boltzmann(1.0)], ids=str)
def test_regret_counts_the_rounds_simulated(policy: ra.Policy) -> None:
    """To the last digit, however much was played before."""
    problem = ra.problems.Bernoulli([0.3, 0.7, 0.6, 0.1])
    start: dict[str, Any] = {"pulls": [333_333_333, 10**9 + 7, 10**8 + 3, 10**9], "means": problem.means}
    result = ra.simulate(policy, problem, horizon=500, replications=16, seed=1, **start)
    assert (np.diff(result.regret, axis=2, prepend=0.0) >= 0).all()
    np.testing.assert_allclose(result.regret[:, :, -1], (result.pulls - start["pulls"]) @ problem.gaps, rtol=1e-12)


def test_means_far_apart_from_a_start_with_many_pulls() -> None:
    """10⁹ pulls of mean 0.5 outweigh a few more of any reward."""
    result = ra.simulate(
        ra.Boltzmann(1e-9),
        ra.problems.Deterministic([0.0, 1.0]),
        horizon=1_000,
        replications=4,
        seed=1,
        pulls=[10**9, 10],
        means=[0.5, 0.4],
    )
    assert (result.pulls[0] == [10**9 + 1_000, 10]).all()


def test_cold_boltzmann_is_greedy() -> None:
    """A growing learning rate must never end on the worst arm."""
    result = ra.simulate(
        ra.Boltzmann(1e-9), ra.problems.Deterministic([0.2, 0.9, 0.5]), horizon=1_000, replications=8, seed=1
    )
    assert (result.pulls[0] == [1, 998, 1]).all()


def test_hot_boltzmann_is_uniform() -> None:
    result = ra.simulate(
        ra.Boltzmann(1e9), ra.problems.Bernoulli([0.0, 1.0, 0.5]), horizon=10_003, replications=64, seed=1
    )
    check_uniform(result.pulls[0].sum(axis=0) - 64)


def check_uniform(counts: I64) -> None:
    expected = counts.sum() / counts.size
    chi_square = float(((counts - expected) ** 2).sum() / expected)
    assert abs(chi_square - (counts.size - 1)) / math.sqrt(2 * (counts.size - 1)) < 4.5


@pytest.mark.parametrize(
    "policy",
    [ra.UCB(C=1.0), ra.Boltzmann(1e-300), ra.Boltzmann(ra.schedules.glie()), POLICIES["curious"].policy],
    ids=str,
)
def test_ties_are_fair(policy: ra.Policy) -> None:
    """The first choice among arms that all have paid the same."""
    result = ra.simulate(policy, ra.problems.Deterministic([0.5] * 5), horizon=6, replications=4_000, seed=1)
    check_uniform((result.pulls[0] - 1).sum(axis=0))


def test_replications_differ() -> None:
    """No noise is used twice: distinct replications of a long noisy run are distinct."""
    result = ra.simulate(
        ra.BoltzmannGumbel(C=1.0), ra.problems.Gaussian([0.0, 0.0, 0.0]), horizon=3_000, replications=200, seed=1
    )
    assert len({row.tobytes() for row in result.pulls[0]}) > 195


# Threads.


def test_lanes_fill_the_workers() -> None:
    for replications in (1, 10, 64, 1_000):
        for workers in (1, 2, 8):
            lanes = lanes_for(replications, 3, workers)
            assert lanes % 32 == 0
            assert lanes > 0
    assert available_cores() >= 1


def test_an_interrupt_ends_all_jobs() -> None:
    """Ctrl-C after a few slices, while the main thread waits: it comes out, and most rounds are never played.

    Also with polars imported, whose own handler of the signal lets a wait without a time limit go on.
    """
    import polars  # noqa: F401

    played: list[int] = []
    main = threading.main_thread().ident
    assert main is not None

    def on_rounds(rounds: int) -> None:
        played.append(rounds)
        if len(played) == 10:
            signal.pthread_kill(main, signal.SIGINT)

    horizon = 20_000_000
    jobs = [Job(ra.UCB(0.5), BERNOULLI, Start((0,) * 3, (0.0,) * 3), 1, i * 32, 32, (horizon,), 32) for i in range(3)]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            list(play_jobs(jobs, 2, on_rounds))
    finally:
        signal.signal(signal.SIGINT, before)
    assert 0 < sum(played) < 32 * horizon
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("rightarm")]


def test_an_error_in_one_job_ends_all() -> None:
    def on_rounds(rounds: int) -> None:
        raise RuntimeError("no more")

    jobs = [Job(ra.UCB(0.5), BERNOULLI, Start((0,) * 3, (0.0,) * 3), 1, i * 32, 32, (10**9,), 32) for i in range(3)]
    with pytest.raises(RuntimeError, match="no more"):
        list(play_jobs(jobs, 2, on_rounds))


# What is refused.


def call(**changes: Any) -> Callable[[], ra.Result]:
    settings: dict[str, Any] = {
        "policies": ra.UCB(1.0),
        "problem": BERNOULLI,
        "horizon": 10,
        "replications": 2,
        "seed": 1,
    }
    return lambda: ra.simulate(**(settings | changes))


START = {"pulls": [1, 2, 3], "means": [0.1, 0.2, 0.3]}
WHOLE = "must be a whole number of at least"

REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no policies": ({"policies": []}, ValueError, "policies must name at least one policy, got none"),
    "policy not called": ({"policies": ra.UCB}, TypeError, "got UCB; call it with its parameters first"),
    "policy text": ({"policies": "UCB"}, TypeError, "policies must be policies.*got 'UCB'"),
    "policy number": ({"policies": 3}, TypeError, "policies must be policies.*got 3"),
    "policy is a problem": ({"policies": [BERNOULLI]}, TypeError, "policies must be policies.*got Bernoulli"),
    "policy twice": (
        {"policies": [ra.UCB(1), ra.UCB(1.0)]},
        ValueError,
        r"policies must differ.*got UCB\(C=1\), UCB\(C=1\)",
    ),
    "problem not called": ({"problem": ra.problems.Bernoulli}, TypeError, "problem must be a problem.*got Bernoulli"),
    "problem is a list": ({"problem": [0.5, 0.4]}, TypeError, r"problem must be a problem.*got \[0.5, 0.4\]"),
    "horizon 0": ({"horizon": 0}, ValueError, f"horizon {WHOLE} 1, got 0"),
    "horizon 1.5": ({"horizon": 1.5}, ValueError, f"horizon {WHOLE} 1, got 1.5"),
    "horizon text": ({"horizon": "10"}, TypeError, "horizon must be a number, got '10'"),
    "horizon nan": ({"horizon": math.nan}, ValueError, "horizon must be finite, got nan"),
    "horizon of 2⁶⁰": ({"horizon": 2**60}, ValueError, "horizon must be at most 9,007,199,254,740,992, got 1152"),
    "replications without end": ({"replications": 10**12}, ValueError, "replications must be at most .*, got 1000000"),
    "workers without end": ({"workers": 10**6}, ValueError, "workers must be at most 1,024, got 1000000"),
    "lanes without end": ({"lanes": 2**50}, ValueError, "lanes must be at most 1,073,741,824, got 112589"),
    "checkpoints without end": ({"checkpoints": 10**9}, ValueError, "checkpoints must be at most 1,000,000, got 1000"),
    "more outcomes than memory": (
        {"replications": 10**6, "horizon": 10**8, "checkpoints": 10**5},
        ValueError,
        r"times checkpoints must be at most 1,073,741,824, got 1,000,000 times [\d,]+",
    ),
    "more arms than memory": (
        {"replications": 10**9, "checkpoints": [10]},
        ValueError,
        "arms times replications .* must be at most 1,073,741,824, got 3 times 1,000,000,000",
    ),
    "pulls of 2⁶⁰": (START | {"pulls": [2**60, 1, 1]}, ValueError, "pulls must be at most 9,007,.* in all, got"),
    "pulls of 1e300": (START | {"pulls": [1e300, 1, 1]}, ValueError, r"pulls must be at most .* got \[1e\+300"),
    "pulls and horizon": (
        START | {"pulls": [2**53 - 9, 1, 1]},
        ValueError,
        "horizon must be at most 7 after 9,007,199,254,740,985 rounds, got 10",
    ),
    "a window without end": (
        {"policies": ra.UCB(1.0, estimator=ra.estimators.Mean(window=10**9)), "horizon": 10**9},
        ValueError,
        "window=1000000000 must keep at most 8,388,608 rewards one by one, got 1,000,000,000",
    ),
    "replications 0": ({"replications": 0}, ValueError, f"replications {WHOLE} 1, got 0"),
    "replications -3": ({"replications": -3}, ValueError, f"replications {WHOLE} 1, got -3"),
    "seed -1": ({"seed": -1}, ValueError, f"seed {WHOLE} 0, got -1"),
    "seed 0.5": ({"seed": 0.5}, ValueError, f"seed {WHOLE} 0, got 0.5"),
    "seed text": ({"seed": "x"}, TypeError, "seed must be a number, got 'x'"),
    "workers 0": ({"workers": 0}, ValueError, f"workers {WHOLE} 1, got 0"),
    "lanes 0": ({"lanes": 0}, ValueError, f"lanes {WHOLE} 1, got 0"),
    "lanes 10": ({"lanes": 10}, ValueError, r"lanes must be a multiple of \d+, got 10"),
    "checkpoints 0": ({"checkpoints": 0}, ValueError, f"checkpoints {WHOLE} 1, got 0"),
    "checkpoints at 0": ({"checkpoints": [0, 5]}, ValueError, f"checkpoints {WHOLE} 1, got 0"),
    "checkpoints fall": ({"checkpoints": [5, 3]}, ValueError, r"checkpoints must rise from 1 to 10.*got \[5, 3\]"),
    "checkpoints repeat": ({"checkpoints": [5, 5]}, ValueError, r"checkpoints must rise.*got \[5, 5\]"),
    "checkpoints too late": ({"checkpoints": [5, 11]}, ValueError, r"checkpoints must rise.*got \[5, 11\]"),
    "checkpoints none": ({"checkpoints": []}, ValueError, r"checkpoints must rise.*got \[\]"),
    "checkpoints in rows": ({"checkpoints": [[1, 2]]}, TypeError, r"checkpoints must be a number, got \[1, 2\]"),
    "checkpoints before the start": (
        START | {"checkpoints": [5]},
        ValueError,
        r"checkpoints must rise from 7 to 16 at most, got \[5\]",
    ),
    "pulls alone": (
        {"pulls": [1, 2, 3]},
        TypeError,
        r"pulls and means go together, got pulls=\[1, 2, 3\] and means=None",
    ),
    "means alone": ({"means": [1, 2, 3]}, TypeError, "pulls and means go together, got pulls=None"),
    "pulls of 2": (
        {"pulls": [1, 2], "means": [0, 0]},
        ValueError,
        "pulls must have one value for each of the 3 arms, got 2",
    ),
    "pulls -1": (
        START | {"pulls": [1, -1, 1]},
        ValueError,
        r"pulls must be whole numbers from 0 on, got \[1.0, -1.0, 1.0\]",
    ),
    "pulls inf": (
        START | {"pulls": [1, math.inf, 1]},
        ValueError,
        r"pulls must be whole numbers from 0 on, got \[1.0, inf",
    ),
    "means nan": (START | {"means": [0.1, math.nan, 0]}, ValueError, r"means must be finite.*got \[0.1, nan, 0.0\]"),
    "means of 2": (START | {"means": [0.1, 0.2]}, ValueError, r"one length, got shapes \(3,\) and \(2,\)"),
}


@pytest.mark.parametrize(("changes", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(**changes)()


NOT_NUMBERS = {
    "a score, in the end": (
        "ra.policy(lambda t, mean: mean + np.sqrt(50.0 - t))()",
        "ra.problems.Bernoulli([0.5, 0.6])",
        "a score was not a number",
    ),
    "a score, at first": (
        "ra.policy(lambda t, mean: mean + np.sqrt(t - 50.0))()",
        "ra.problems.Bernoulli([0.5, 0.6])",
        "a score was not a number",
    ),
    "one arm's score, at first": (
        "ra.policy(lambda t, mean: mean + np.sqrt(np.where(mean > 0.5, t - 50.0, t)))()",
        "ra.problems.Deterministic([0.2, 0.6])",
        "a score was not a number",
    ),
    "a noisy score": (
        "ra.policy(noise=ra.noise.Gumbel())(lambda pulls, mean, z: mean + np.sqrt(mean) * z)()",
        "ra.problems.Deterministic([-0.2, -0.6])",
        "a score was not a number",
    ),
    "a reward": (
        "ra.UCB(1.0)",
        "ra.problems.problem(mean=lambda c: c)(lambda u, *, c: c * np.sqrt(u - 0.5))([0.5, 0.6])",
        "a reward was not a finite number",
    ),
    "an infinite reward": (
        "ra.UCB(1.0)",
        "ra.problems.problem(mean=lambda c: c)(lambda u, *, c: c / np.floor(2 * u))([0.5, 0.6])",
        "a reward was not a finite number",
    ),
}


def test_what_is_not_a_number_is_an_error() -> None:
    """In a process of its own: a choice among scores that are not numbers has no arm."""
    lines = ["import numpy as np, rightarm as ra"]
    for policy, problem, _ in NOT_NUMBERS.values():
        call = f"ra.simulate({policy}, {problem}, horizon=1_000, replications=4, seed=1)"
        lines += ["try:", f"    {call}", "except ValueError as error:", "    print(error, flush=True)"]
        lines += ["else:", "    print('no error')"]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2_000:]
    said = done.stdout.splitlines()
    for (name, (_, _, message)), line in zip(NOT_NUMBERS.items(), said, strict=True):
        assert message in line, name


# Section 6 of the paper: mean regret and its standard error of an independent simulation with 32 replications, T = 10⁶.

PAPER = ra.problems.Bernoulli([0.51] + [0.5] * 9)
SCENARIOS = {"a": PAPER, "b": PAPER.corrupted(arm=0, rounds=5_000, reward=0.0)}
TABLE = {
    ("a", 0.1): [(8904, 4), (7560, 621), (8750, 594), (2040, 494), (2430, 87)],
    ("a", 1.0): [(8990, 1), (8877, 4), (6523, 807), (5262, 88), (6621, 86)],
    ("b", 0.1): [(8915, 4), (10_000, 0), (10_000, 0), (4673, 688), (2388, 82)],
    ("b", 1.0): [(9001, 1), (8890, 5), (10_000, 0), (5244, 87), (6687, 82)],
}


@pytest.mark.full
@pytest.mark.parametrize(("scenario", "square"), TABLE)
def test_the_papers_experiment(scenario: str, square: float) -> None:
    C = math.sqrt(square)
    policies = [
        *(
            ra.Boltzmann(schedule(square))
            for schedule in (ra.schedules.constant, ra.schedules.inverse_log, ra.schedules.inverse_sqrt)
        ),
        ra.UCB(C=C),
        ra.BoltzmannGumbel(C=C),
    ]
    result = ra.simulate(policies, SCENARIOS[scenario], horizon=1_000_000, replications=128, seed=2017, checkpoints=1)
    for policy, final, (mean, error) in zip(policies, result.regret[:, :, -1], TABLE[scenario, square], strict=True):
        ours = final.std(ddof=1) / math.sqrt(final.size)
        rounding = 0.5 + 4.5 * 0.5  # of the printed mean, and of the printed standard error
        assert abs(final.mean() - mean) < 4.5 * math.hypot(ours, error) + rounding, (
            f"{policy}: {final.mean()}, not {mean}"
        )


def test_several_problems_at_once_are_each_as_alone() -> None:
    policies = [ra.UCB(C=0.5), ra.BoltzmannGumbel(C=0.5)]
    drawn = ra.problems.RandomProblem(ra.problems.Bernoulli, mean=ra.problems.Uniform([0.0] * 4, 1.0))
    two, noisy = ra.problems.Bernoulli([0.6, 0.5]), ra.problems.Gaussian([0.0, 0.5, 1.0])
    problems: dict[str, ra.problems.Problem | ra.problems.RandomProblem] = {"two": two, "drawn": drawn, "noisy": noisy}
    several = ra.simulate(policies, problems, horizon=300, replications=70, seed=3, workers=2)
    assert list(several) == ["two", "drawn", "noisy"]
    for name, problem in problems.items():
        alone = ra.simulate(policies, problem, horizon=300, replications=70, seed=3)
        assert several[name].regret.tobytes() == alone.regret.tobytes()
        assert several[name].pulls.tobytes() == alone.pulls.tobytes()
        assert np.array_equal(several[name].means, alone.means)
        assert several[name].problem == problem
        assert str(alone) in str(several)
    summary = several.summary()
    assert summary["problem"].to_list() == ["two", "two", "drawn", "drawn", "noisy", "noisy"]
    assert summary["regret"].to_list() == [
        row["regret"] for result in several.values() for row in result.summary().to_dicts()
    ]
    listed = ra.simulate(policies, [problems["two"]], horizon=300, replications=70, seed=3)
    assert list(listed) == ["Bernoulli(mean=[0.6, 0.5])"]
    with pytest.raises(KeyError, match="there is no problem 'three'; there are two, drawn, noisy"):
        several["three"]


@pytest.mark.parametrize(
    ("problems", "said"),
    [
        ([], "problem must name at least one problem, got none"),
        (
            [ra.problems.Bernoulli([0.5, 0.4]), 3],
            r"problem must be a problem such as .*, or several, got .*, 3\]",
        ),
        ([ra.problems.Bernoulli([0.5, 0.4])] * 2, "problems must differ from each other, got Bern"),
        ("Bernoulli", "problem must be a problem such as .*, got 'Bernoulli'"),
    ],
)
def test_wrong_lists_of_problems(problems: Any, said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        ra.simulate(ra.UCB1(), problems, horizon=10)


def test_a_problem_whose_means_change_is_refused() -> None:
    """Two arms that swap at half time: regret against fixed means would be 0 for every policy."""
    problem, message = (
        restless([0.1, 0.2]),
        "restless asks for t: its means change, and regret is against fixed ones, got",
    )
    drawn = ra.problems.RandomProblem(restless, level=ra.problems.Uniform(low=[0.0, 0.0], high=1.0))
    for asked in (problem, [problem], {"a": problem}, drawn):
        with pytest.raises(ValueError, match=message):
            ra.simulate(ra.UCB(C=0.5), asked, horizon=10)
