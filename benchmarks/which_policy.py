"""Which policy, which C? `python -m benchmarks.which_policy` prints the tables of docs/which-policy.md; some minutes.

Every policy plays 54 problems, and its regret is divided by that of the best of some 20 policies that are tuned with
hindsight for each problem and horizon. Means of these ratios are geometric. Every second problem was used to choose
between rules without a parameter; those reported are the others.

Averages hide the run that goes wrong. `--safety` has problems with one noisy arm beside arms that pay about the same
each time, and counts the runs that stay with a worse arm (ten minutes on two cores); `--sure` shows how often a sure
worse arm is tried at all.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rightarm as ra
from benchmarks.common import table

HORIZONS = [300, 3_000, 30_000]
F64 = NDArray[np.float64]


@ra.problems.problem(
    mean=lambda share, mu, sigma: share * np.exp(mu + sigma**2 / 2),
    second_moment=lambda share, mu, sigma: share * np.exp(2 * mu + 2 * sigma**2),
)
def Revenue(u, w, *, share: ra.policies.Probability, mu: float, sigma: float = 1.0):  # type: ignore[no-untyped-def]
    """Most visitors buy nothing; what the others spend is log-normal."""
    return np.where(u < share, np.exp(mu + sigma * w), 0.0)


@ra.problems.problem(
    mean=lambda share, size, noise: share * size,
    second_moment=lambda share, size, noise: share * size**2 + noise**2,
    support=lambda share, size, noise: (np.where(noise > 0, -np.inf, 0.0), np.where(noise > 0, np.inf, size)),
)
def Jackpot(u, w, *, share: ra.policies.Probability, size: float, noise: float = 0.0):  # type: ignore[no-untyped-def]
    """One size of reward with some probability, and Gaussian noise on top: a coin, a sure arm or a quiet one."""
    return np.where(u < share, size, 0.0) + noise * w


# The problems.


@dataclass(frozen=True)
class Case:
    """A problem, and what sort of problem it is."""

    kind: str
    problem: ra.problems.Problem

    @cached_property
    def sigma(self) -> float:
        """The largest standard deviation of an arm."""
        return float(np.sqrt((self.problem.second_moments - self.problem.means**2).max()))


def one_good(arms: int, low: float, high: float) -> list[float]:
    """All arms but the first are alike."""
    return [high, *[low] * (arms - 1)]


def spread(arms: int, low: float, high: float) -> list[float]:
    """Arms at equal distances."""
    return [float(mean) for mean in np.linspace(high, low, arms)]


def suite() -> list[Case]:
    """All problems, in an order in which every second one is of about the same kinds."""
    found: list[Case] = []
    for low, high in ((0.005, 0.0075), (0.02, 0.03), (0.1, 0.13), (0.5, 0.6), (0.85, 0.9), (0.97, 0.99)):
        kind = "clicks, at most 3%" if high <= 0.03 else "0 or 1, others"
        for arms, means in ((2, one_good), (10, spread), (50, one_good)):
            found.append(Case(kind, ra.problems.Bernoulli(means(arms, low, high))))
    for sigma, offset in ((0.01, 0.0), (0.2, 0.5), (1.0, 0.0), (1.0, 1_000.0), (100.0, -50.0)):
        for arms, gap, means in ((2, 0.1, one_good), (10, 1.0, spread), (50, 0.5, one_good)):
            values = [offset + sigma * mean for mean in means(arms, 0.0, gap)]
            found.append(Case("Gaussian", ra.problems.Gaussian(values, sigma=sigma)))
    for arms, shift in ((3, 0.05), (10, 0.2)):
        for width in (1.0, 30.0):
            low_ends = [width * low for low in spread(arms, 0.0, shift)]
            found.append(Case("uniform", ra.problems.Uniform(low=low_ends, high=[low + width for low in low_ends])))
    for share, arms in ((0.02, 3), (0.02, 10), (0.2, 3), (0.2, 20)):
        for rise in (0.15, 0.4):
            shares = one_good(arms, share, share * (1 + rise))
            found.append(Case("revenue", Revenue(share=shares, mu=3.0, sigma=0.8)))
    for arms, df in ((2, 3.0), (10, 4.0), (20, 3.0)):
        found.append(Case("heavy tails", ra.problems.StudentT(mean=one_good(arms, 0.0, 0.4), df=df)))
    for arms, rise in ((3, 0.3), (10, 0.2), (20, 0.3)):
        found.append(Case("heavy tails", ra.problems.LogNormal(mu=one_good(arms, 0.0, rise), sigma=1.0)))
    for arms, alpha in ((2, 2.5), (5, 3.0), (10, 4.0)):
        found.append(Case("heavy tails", ra.problems.Pareto(alpha=alpha, scale=one_good(arms, 1.0, 1.15))))
    return found


# The problems of the safety table: one coin beside sure arms, or beside quiet ones, which are Gaussian.


def beside(coin: float, quiet: Sequence[float], noise: float = 0.0) -> Case:
    """A coin, and arms that pay about the same each time."""
    others = len(quiet)
    arms = Jackpot(share=[coin, *[1.0] * others], size=[1.0, *quiet], noise=[0.0, *[noise] * others])
    return Case("safety", arms)


def safety_suite() -> dict[str, Case]:
    """The coin is good or bad; the others are sure or quiet, one or nine of them."""
    found: dict[str, Case] = {}
    for coin, level in ((0.95, 0.9), (0.75, 0.5), (0.6, 0.5), (0.3, 0.2), (0.2, 0.1), (0.1, 0.05), (0.05, 0.03)):
        found[f"{coin:g}, sure {level:g}"] = beside(coin, [level])
        found |= {f"{coin:g}, N({level:g}, {s:g}²)": beside(coin, [level], s) for s in (0.02, 0.05) if coin <= 0.3}
    for coin, level in ((0.95, 0.9), (0.75, 0.5), (0.3, 0.2), (0.1, 0.05), (0.05, 0.03)):
        found[f"{coin:g}, 9 sure {level:g}"] = beside(coin, [level] * 9)
    for coin, level in ((0.3, 0.2), (0.1, 0.05)):
        found[f"{coin:g}, 9 N({level:g}, 0.02²)"] = beside(coin, [level] * 9, 0.02)
    found["0.3, 9 sure from 0.02 to 0.2"] = beside(0.3, spread(9, 0.02, 0.2))
    for coin, level in ((0.9, 0.95), (0.5, 0.6), (0.05, 0.1)):
        found[f"bad: {coin:g}, sure {level:g}"] = beside(coin, [level])
        found[f"bad: {coin:g}, N({level:g}, 0.02²)"] = beside(coin, [level], 0.02)
    found["bad: 0.5, sure 0.6 and 8 of 0.5"] = beside(0.5, one_good(9, 0.5, 0.6))
    return found


# Rules without a parameter. All but the first ones estimate one deviation for all arms.


def shown(pulls, variance):  # type: ignore[no-untyped-def]
    """The variance that an arm has shown."""
    return variance * pulls / (pulls + 2)


def deviation(pulls: Any, best: Any, worst: Any, best_shown: Any) -> Any:
    """One deviation for all arms, and a part of the width of the means, which vanishes with pulls."""
    return np.sqrt(best_shown + ((best - worst) / 2) ** 2 / pulls)


KEPT = {"shown": shown}


@ra.policy(noise=ra.noise.Gumbel(), keep=KEPT)
def scaled(pulls, mean, best, best_shown, arms, z, *, a: ra.policies.Positive, b: ra.policies.Positive):  # type: ignore[no-untyped-def]
    """`ra.ScaledGumbel` with other constants: its own are a = b = 6."""
    gap = (best - mean) ** 2
    doubt = a * gap * (gap / np.maximum(gap + b * best_shown, 5e-324))
    return mean + np.sqrt((best_shown + doubt) / pulls) / (2 * arms ** (1 / 6)) * z


@ra.policy(noise=ra.noise.Gumbel(), keep=KEPT)
def gumbel(pulls, mean, best, worst, best_shown, z, *, c: ra.policies.Positive):  # type: ignore[no-untyped-def]
    """One factor for all numbers of arms."""
    return mean + c * deviation(pulls, best, worst, best_shown) / np.sqrt(pulls) * z


@ra.policy(noise=ra.noise.Gumbel(), keep=KEPT)
def by_arms(pulls, mean, best, worst, best_shown, arms, z, *, c: ra.policies.Positive, power: float):  # type: ignore[no-untyped-def]
    """A factor that falls with the number of arms, as the best C does."""
    factor = c * (2 / arms) ** power
    return mean + factor * deviation(pulls, best, worst, best_shown) / np.sqrt(pulls) * z


@ra.policy(noise=ra.noise.Gaussian(), keep=KEPT)
def thompson(pulls, mean, best, worst, best_shown, z, *, c: ra.policies.Positive):  # type: ignore[no-untyped-def]
    """Gaussian noise in place of Gumbel noise."""
    return mean + c * deviation(pulls, best, worst, best_shown) / np.sqrt(pulls) * z


@ra.policy(noise=ra.noise.Gumbel(), keep=KEPT)
def maillard(pulls, mean, best, worst, best_shown, z, *, c: ra.policies.Positive):  # type: ignore[no-untyped-def]
    """Maillard sampling."""
    sigma = c * deviation(pulls, best, worst, best_shown)
    return -pulls * (best - mean) ** 2 / np.maximum(2 * sigma**2, 1e-300) + z


@ra.policy(keep=KEPT)
def moss(t, pulls, mean, best, worst, best_shown, arms, *, c: ra.policies.Positive):  # type: ignore[no-untyped-def]
    """Anytime MOSS; it draws nothing, so that its propensities are 0 and 1."""
    bonus = np.sqrt(np.maximum(0.0, np.log(t / (arms * pulls))) / pulls)
    return mean + c * deviation(pulls, best, worst, best_shown) * bonus


@ra.policy(noise=ra.noise.Gumbel(), keep=KEPT)
def shrinking(t, pulls, mean, best, worst, best_shown, arms, z, *, c: ra.policies.Positive, least: float):  # type: ignore[no-untyped-def]
    """Noise that shrinks, as the bonus of MOSS does, once an arm has had its share of the rounds."""
    size = np.sqrt(np.maximum(least, np.log(t / (arms * pulls))) / pulls)
    return mean + c * deviation(pulls, best, worst, best_shown) * size * z


@ra.policy
def tuned(t, pulls, mean, best, worst, variance):  # type: ignore[no-untyped-def]
    """UCB-tuned, with the width of the means in place of the width of the range."""
    log = np.log(t) / pulls
    return mean + np.sqrt(log * (variance + np.sqrt(2 * log) * ((best - worst) / 2) ** 2))


CONSTANTS = ((3.0, 3.0), (4.0, 4.0), (8.0, 8.0), (6.0, 2.0), (8.0, 2.0), (6.0, 1.0))
ONE_DEVIATION = by_arms(c=0.445, power=1 / 6)
RULES: dict[str, ra.Policy] = {
    "ScaledGumbel": ra.ScaledGumbel(),
    **{f"scaled {a:g}, {b:g}": scaled(a=a, b=b) for a, b in CONSTANTS},
    **{f"gumbel {c:.3g}": gumbel(c=c) for c in (0.25, 1 / 3, 0.42)},
    **{
        f"by arms {c:.3g}, {power:.3g}": by_arms(c=c, power=power)
        for c, power in ((0.5, 1 / 3), (0.42, 1 / 4), (0.445, 1 / 6))
    },
    **{f"thompson {c}": thompson(c=c) for c in (0.5, 0.75, 1.0)},
    **{f"maillard {c}": maillard(c=c) for c in (0.6, 1.0)},
    **{f"moss {c}": moss(c=c) for c in (0.7, 1.0)},
    **{f"shrinking {c}, {least}": shrinking(c=c, least=least) for c, least in ((0.25, 0.5), (0.2, 1.0), (0.3, 0.25))},
    "UCB-tuned": tuned(),
}


@ra.policy
def scaled_moss(t, pulls, mean, arms, *, sigma: ra.policies.Positive):  # type: ignore[no-untyped-def]
    """Anytime MOSS, told the deviation."""
    return mean + sigma * np.sqrt(np.maximum(0.0, np.log(t / (arms * pulls))) / pulls)


def policies_of(case: Case) -> dict[str, ra.Policy]:
    """What is compared on a problem besides the rules; those that are told σ, the deviation, say so."""
    sigma, factors = case.sigma, (1 / 16, 1 / 8, 1 / 6, 1 / 4, 1 / 3, 1 / 2, 0.71, 1.0, 2.0)
    named: dict[str, ra.Policy] = {f"BGE, C = {c:.3g} σ": ra.BoltzmannGumbel(C=c * sigma) for c in factors}
    named |= {f"Gaussian Thompson, {c:g} σ": ra.GaussianThompson(sigma=c * sigma) for c in (0.25, 0.5, 1.0)}
    named |= {f"UCB, C = {c:g} σ": ra.UCB(C=c * sigma) for c in (0.25, 0.5, 1.0)}
    named |= {f"MOSS, {c:g} σ": scaled_moss(sigma=c * sigma) for c in (0.5, 1.0)}
    named |= {f"Maillard, {c:g} σ": ra.Maillard(sigma=c * sigma) for c in (0.5, 1.0)}
    named |= {"BGE, C = 1/2": ra.BoltzmannGumbel(C=0.5), "UCB1": ra.UCB(C=math.sqrt(2))}
    if case.problem.stays_within(0.0, 1.0):
        named |= {"Beta-Thompson": ra.BetaThompson(), "KL-UCB": ra.KLUCB(), "KL-MS": ra.KLMS()}
    return named


# What is measured.


@dataclass(frozen=True)
class Played:
    """The regret of all policies on one problem: a row for each, a column for each horizon."""

    case: Case
    regret: dict[str, F64]

    @cached_property
    def ratios(self) -> dict[str, F64]:
        """Over that of the best of the policies that are tuned with hindsight."""
        best = np.min([row for name, row in self.regret.items() if name not in RULES], axis=0)
        return {name: np.maximum(row, 1e-300) / best for name, row in self.regret.items()}


def play(case: Case, policies: dict[str, ra.Policy], replications: int) -> Played:
    """Mean regret of each policy at each horizon."""
    result = ra.simulate(
        list(dict.fromkeys(policies.values())),
        case.problem,
        horizon=HORIZONS[-1],
        replications=replications,
        seed=1,
        checkpoints=HORIZONS,
        workers=1,
    )
    rows = dict(zip(result.policies, result.regret.mean(axis=1), strict=True))
    return Played(case, {name: rows[policy] for name, policy in policies.items()})


def geometric(values: Iterable[F64]) -> float:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(np.concatenate(list(values))))))


Selection = Callable[[Played], F64]


def by_column(played: Sequence[Played], names: Sequence[str], columns: dict[str, tuple[object, slice]]) -> str:
    """A table with a row for each policy; a column is a test of cases and some horizons."""
    rows = []
    for name in names:
        cells = []
        for wanted, horizons in columns.values():
            own = [each.ratios[name][horizons] for each in played if name in each.ratios and _is(each.case, wanted)]
            cells.append(f"{geometric(own):.2f}" if own else "–")
        rows.append([name, *cells])
    return table(["policy", *columns], rows)


def _is(case: Case, wanted: object) -> bool:
    if isinstance(wanted, str):
        return case.kind == wanted
    return wanted is None or (isinstance(wanted, range) and case.problem.arms in wanted)


ALL = slice(None)
NAMES = ["ScaledGumbel", "Beta-Thompson", "KL-UCB", "BGE, C = 1/2", "UCB1"]
TOLD = ["BGE, C = 1 σ", "BGE, C = 0.333 σ", "BGE, C = 0.25 σ", "Gaussian Thompson, 0.5 σ", "MOSS, 1 σ"]


def choose(played: Sequence[Played]) -> str:
    """The rules on the half that chooses, and on the other."""
    halves = played[::2], played[1::2]
    rows = []
    for name in RULES:
        means = [geometric(each.ratios[name] for each in half) for half in halves]
        worst = [max(each.ratios[name][-1] for each in half) for half in halves]
        rows.append([name, *(f"{mean:.2f}" for mean in means), *(f"{value:.1f}" for value in worst)])
    titles = ["rule", "chosen by: mean", "held out: mean", "chosen by: worst at 30,000", "held out: worst"]
    return table(titles, rows)


def report(played: Sequence[Played]) -> None:
    """The tables by case, from the problems that chose nothing."""
    held = played[1::2]
    kinds = list(dict.fromkeys(each.case.kind for each in held))
    columns: dict[str, tuple[object, slice]] = {"all": (None, ALL), **{kind: (kind, ALL) for kind in kinds}}
    print(f"\nBy kind of rewards, {len(held)} problems\n\n{by_column(held, [*NAMES, *TOLD], columns)}")
    sizes = {"2 or 3 arms": range(2, 4), "5 to 10": range(4, 11), "20 to 50": range(11, 51)}
    columns = {name: (size, ALL) for name, size in sizes.items()}
    columns |= {f"{horizon:,} rounds": (None, slice(i, i + 1)) for i, horizon in enumerate(HORIZONS)}
    print(f"\nBy arms and by horizon\n\n{by_column(held, [*NAMES, *TOLD], columns)}")


def failures(replications: int) -> None:
    """Where rewards that matter are too rare to be seen, or only the best arm is noisy."""
    cases = {
        "100 with probability 1%, or a sure 1/2": Jackpot(share=[0.01, 1.0], size=[100.0, 0.5]),
        "20 with probability 5%, or a sure 1/2": Jackpot(share=[0.05, 1.0], size=[20.0, 0.5]),
        "one noisy good arm among 9 quiet ones": ra.problems.Gaussian([0.5] + [0.0] * 9, sigma=[3.0] + [0.05] * 9),
        "one noisy bad arm among 9 quiet ones": ra.problems.Gaussian([0.0, 0.1] + [0.0] * 8, sigma=[3.0] + [0.05] * 9),
    }
    rows = []
    for name, problem in cases.items():
        case = Case("failure", problem)
        policies = {"ScaledGumbel": ra.ScaledGumbel(), **policies_of(case)}
        played = play(case, policies, replications)
        best = min(played.regret, key=lambda policy: float(played.regret[policy][-1]))
        cells = [f"{played.regret[policy][-1]:,.0f}" for policy in ("ScaledGumbel", "BGE, C = 0.333 σ", "BGE, C = 1 σ")]
        rows.append([name, *cells, f"{played.regret[best][-1]:,.0f} ({best})"])
    print("\nWhere it fails: regret after 30,000 rounds\n")
    print(table(["problem", "ScaledGumbel", "BGE, C = σ/3", "BGE, C = σ", "best"], rows))


def which_c(replications: int) -> None:
    """BGE on Gaussian rewards with one good arm: regret over that of the best C, by C/σ."""
    factors = [1 / 16, 1 / 8, 1 / 4, 1 / 3, 1 / 2, 0.71, 1.0, 2.0]
    rows = []
    for arms in (2, 10, 50):
        shares = []
        for gap in (0.05, 0.15, 0.5):
            case = Case("Gaussian", ra.problems.Gaussian(one_good(arms, 0.0, gap)))
            regret = play(case, {f"{c}": ra.BoltzmannGumbel(C=c) for c in factors}, replications).regret
            last = np.array([regret[f"{c}"][-1] for c in factors])
            shares.append(last / last.min())
        means = np.exp(np.mean(np.log(shares), axis=0))
        rows.append([f"{arms} arms", *(f"{mean / means.min():.2f}" for mean in means)])
    print("\nBGE with C known: regret over that of the best C, 30,000 rounds\n")
    print(table(["C/σ", *(f"{c:.3g}" for c in factors)], rows))


def costs(replications: int) -> None:
    """What safety costs: arms so far apart that a few pulls of each would do."""
    cases = {
        "10 arms, 9 of them 5 σ behind": ra.problems.Gaussian(one_good(10, 0.0, 5.0)),
        "10 arms from 0 to 3 σ behind": ra.problems.Gaussian(spread(10, 0.0, 3.0)),
        "2 arms, 1 σ apart": ra.problems.Gaussian([1.0, 0.0]),
        "coins 0.9 and 0.1": ra.problems.Bernoulli([0.9, 0.1]),
        "5 sure arms, 0.2 to 1": ra.problems.Deterministic(spread(5, 0.2, 1.0)),
    }
    rows = []
    for name, problem in cases.items():
        case = Case("cost", problem)
        policies: dict[str, ra.Policy] = {"ScaledGumbel": ra.ScaledGumbel(), "one deviation": ONE_DEVIATION}
        if case.sigma > 0:
            policies["BGE, C = σ/3"] = ra.BoltzmannGumbel(C=case.sigma / 3)
            policies["BGE, C = σ"] = ra.BoltzmannGumbel(C=case.sigma)
        regret = play(case, policies, replications).regret
        rows.append([name, *(f"{row[-1]:,.0f}" for row in regret.values()), *["–"] * (4 - len(regret))])
    print("\nWhat safety costs: regret after 30,000 rounds\n")
    print(table(["problem", "ScaledGumbel", "one deviation", "BGE, C = σ/3", "BGE, C = σ"], rows))


RARE_RUNS = 500  # where a few runs make most of the mean
SAFETY_HORIZONS = [10_000, 100_000]
SAFETY_RUNS = 2_000


def stuck(regret: F64, gap: float, horizon: int) -> float:
    """The share of runs that hardly ever pulled the best arm."""
    return float((regret > 0.9 * gap * horizon).mean())


def safety() -> None:
    """One noisy arm beside sure or quiet ones: how many runs stay with a worse arm."""
    ours, others = [], []
    for name, case in safety_suite().items():
        policies: dict[str, ra.Policy] = {
            "ScaledGumbel": ra.ScaledGumbel(),
            "a = 4": scaled(a=4.0, b=4.0),
            "one deviation": ONE_DEVIATION,
            "BGE, C = σ/3": ra.BoltzmannGumbel(C=case.sigma / 3),
            "BGE, C = σ": ra.BoltzmannGumbel(C=case.sigma),
        }
        if case.problem.stays_within(0.0, 1.0):
            policies["Beta-Thompson"] = ra.BetaThompson()
        result = ra.simulate(
            list(policies.values()),
            case.problem,
            horizon=SAFETY_HORIZONS[-1],
            replications=SAFETY_RUNS,
            seed=2,
            checkpoints=SAFETY_HORIZONS,
        )
        gap = float(case.problem.gaps[case.problem.gaps > 0].min())
        last = result.regret[:, :, -1]
        shares = [f"{stuck(result.regret[0, :, i], gap, t):.2%}" for i, t in enumerate(SAFETY_HORIZONS)]
        median = float(np.median(last[0]))
        far = float((last[0] > 10 * median).mean())
        ours.append([name, f"{last[0].mean():,.0f}", f"{median:,.0f}", *shares, f"{far:.2%}"])
        cells = [f"{row.mean():,.0f} / {stuck(row, gap, SAFETY_HORIZONS[-1]):.2%}" for row in last]
        others.append([name, *cells, *["–"] * (6 - len(cells))])
    titles = [f"stuck at {horizon:,}" for horizon in SAFETY_HORIZONS]
    print(f"A coin beside sure or quiet arms, {SAFETY_RUNS:,} runs of {SAFETY_HORIZONS[-1]:,} rounds: ScaledGumbel\n")
    print(table(["coin, others", "mean regret", "median", *titles, "above 10 medians"], ours))
    print("\nBeside others: mean regret / share stuck\n")
    names = ["ScaledGumbel", "a = 4", "one deviation", "BGE, C = σ/3", "BGE, C = σ", "Beta-Thompson"]
    print(table(["coin, others", *names], others))


def sure() -> None:
    """How often an arm that pays 0 each time is pulled beside one that pays 1/2 each time."""
    horizons = [10**power for power in range(2, 7)]
    problem = ra.problems.Deterministic([0.5, 0.0])
    policies: dict[str, ra.Policy] = {
        "ScaledGumbel": ra.ScaledGumbel(),
        "a = 4": scaled(a=4.0, b=4.0),
        "one deviation": ONE_DEVIATION,
        "BGE, C = 1/6": ra.BoltzmannGumbel(C=1 / 6),
        "BGE, C = 1/2": ra.BoltzmannGumbel(C=0.5),
        "UCB1": ra.UCB1(),
        "KL-UCB": ra.KLUCB(),
        "Beta-Thompson": ra.BetaThompson(),
    }
    result = ra.simulate(
        list(policies.values()), problem, horizon=horizons[-1], replications=100, seed=3, checkpoints=horizons
    )
    pulls = result.regret.mean(axis=1) / 0.5
    rows = [[name, *(f"{count:.1f}" for count in row)] for name, row in zip(policies, pulls, strict=True)]
    print("Pulls of an arm that always pays 0 beside one that always pays 1/2, 100 runs\n")
    print(table(["policy", *(f"{horizon:,} rounds" for horizon in horizons)], rows))


def long_runs() -> None:
    """The paper's Figure 1, a million rounds: regret, and how often the best arm has next to no pulls."""
    plain = ra.problems.Bernoulli([0.51] + [0.5] * 9)
    rules: dict[str, ra.Policy] = {
        "ScaledGumbel": ra.ScaledGumbel(),
        **{f"scaled {a:g}, {b:g}": scaled(a=a, b=b) for a, b in ((4.0, 4.0), (6.0, 2.0))},
        "one deviation": ONE_DEVIATION,
        "gumbel 0.333": gumbel(c=1 / 3),
        "by arms 0.42, 0.25": by_arms(c=0.42, power=0.25),
    }
    rows = []
    for name, problem in (("(a)", plain), ("(b)", plain.corrupted(arm=0, rounds=5_000, reward=0.0))):
        result = ra.simulate(list(rules.values()), problem, horizon=10**6, replications=400, seed=5)
        lost = (result.pulls[:, :, 0] < 0.05 * result.horizon).mean(axis=1)
        cells = [f"{row['regret']:,.0f} ({row['standard_error']:,.0f})" for row in result.summary().to_dicts()]
        rows.append([name, *(f"{cell}, lost {share:.1%}" for cell, share in zip(cells, lost, strict=True))])
    print(f"\nFigure 1, 10⁶ rounds, 400 runs\n\n{table(['scenario', *rules], rows)}")


def main() -> None:
    """Play everything and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=64)
    parser.add_argument("--rules", action="store_true", help="also the rules that were tried and not chosen")
    parser.add_argument("--long", action="store_true", help="only Figure 1 over a million rounds")
    parser.add_argument("--safety", action="store_true", help="only a coin beside sure or quiet arms")
    parser.add_argument("--sure", action="store_true", help="only the pulls of a sure worse arm")
    options = parser.parse_args()
    if options.long:
        return long_runs()
    if options.safety:
        return safety()
    if options.sure:
        return sure()
    rules = RULES if options.rules else {"ScaledGumbel": ra.ScaledGumbel()}
    cases = suite()
    played = [play(case, {**policies_of(case), **rules}, options.replications) for case in cases]
    if options.rules:
        print(f"Rules without a parameter\n\n{choose(played)}")
    report(played)
    which_c(options.replications)
    failures(RARE_RUNS)
    costs(RARE_RUNS)


if __name__ == "__main__":
    main()
