"""Which policy, which C? `python -m benchmarks.which_policy` prints the tables of docs/which-policy.md; some minutes.

Every policy plays 54 problems, and its regret is divided by that of the best of some 20 policies that are tuned with
hindsight for each problem and horizon. Means of these ratios are geometric. Every second problem was used to choose
between rules without a parameter; those reported are the others.
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


@ra.problem(
    mean=lambda share, mu, sigma: share * np.exp(mu + sigma**2 / 2),
    second_moment=lambda share, mu, sigma: share * np.exp(2 * mu + 2 * sigma**2),
)
def Revenue(u, w, *, share: ra.Probability, mu: float, sigma: float = 1.0):  # type: ignore[no-untyped-def]
    """Most visitors buy nothing; what the others spend is log-normal."""
    return np.where(u < share, np.exp(mu + sigma * w), 0.0)


@ra.problem(mean=lambda share, size: share * size, second_moment=lambda share, size: share * size**2)
def Jackpot(u, *, share: ra.Probability, size: float):  # type: ignore[no-untyped-def]
    """One size of reward, with some probability."""
    return np.where(u < share, size, 0.0)


# The problems.


@dataclass(frozen=True)
class Case:
    """A problem, and what sort of problem it is."""

    kind: str
    problem: ra.Problem

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
            found.append(Case(kind, ra.Bernoulli(means(arms, low, high))))
    for sigma, offset in ((0.01, 0.0), (0.2, 0.5), (1.0, 0.0), (1.0, 1_000.0), (100.0, -50.0)):
        for arms, gap, means in ((2, 0.1, one_good), (10, 1.0, spread), (50, 0.5, one_good)):
            values = [offset + sigma * mean for mean in means(arms, 0.0, gap)]
            found.append(Case("Gaussian", ra.Gaussian(values, sigma=sigma)))
    for arms, shift in ((3, 0.05), (10, 0.2)):
        for width in (1.0, 30.0):
            low_ends = [width * low for low in spread(arms, 0.0, shift)]
            found.append(Case("uniform", ra.Uniform(low=low_ends, high=[low + width for low in low_ends])))
    for share, arms in ((0.02, 3), (0.02, 10), (0.2, 3), (0.2, 20)):
        for rise in (0.15, 0.4):
            shares = one_good(arms, share, share * (1 + rise))
            found.append(Case("revenue", Revenue(share=shares, mu=3.0, sigma=0.8)))
    for arms, df in ((2, 3.0), (10, 4.0), (20, 3.0)):
        found.append(Case("heavy tails", ra.StudentT(mean=one_good(arms, 0.0, 0.4), df=df)))
    for arms, rise in ((3, 0.3), (10, 0.2), (20, 0.3)):
        found.append(Case("heavy tails", ra.LogNormal(mu=one_good(arms, 0.0, rise), sigma=1.0)))
    for arms, alpha in ((2, 2.5), (5, 3.0), (10, 4.0)):
        found.append(Case("heavy tails", ra.Pareto(alpha=alpha, scale=one_good(arms, 1.0, 1.15))))
    return found


# Rules without a parameter. All estimate one deviation for all arms; the first is `ra.ScaledGumbel`.


def shown(pulls, variance):  # type: ignore[no-untyped-def]
    """The variance that an arm has shown."""
    return variance * pulls / (pulls + 2)


def deviation(pulls: Any, best: Any, worst: Any, best_shown: Any) -> Any:
    """One deviation for all arms, and a part of the width of the means, which vanishes with pulls."""
    return np.sqrt(best_shown + ((best - worst) / 2) ** 2 / pulls)


KEPT = {"shown": shown}


@ra.policy(noise=ra.noise.Gumbel(), keep=KEPT)
def gumbel(pulls, mean, best, worst, best_shown, z, *, c: ra.Positive):  # type: ignore[no-untyped-def]
    """One factor for all numbers of arms."""
    return mean + c * deviation(pulls, best, worst, best_shown) / np.sqrt(pulls) * z


@ra.policy(noise=ra.noise.Gumbel(), keep=KEPT)
def by_arms(pulls, mean, best, worst, best_shown, arms, z, *, c: ra.Positive, power: float):  # type: ignore[no-untyped-def]
    """A factor that falls with the number of arms, as the best C does."""
    factor = c * (2 / arms) ** power
    return mean + factor * deviation(pulls, best, worst, best_shown) / np.sqrt(pulls) * z


@ra.policy(noise=ra.noise.Gaussian(), keep=KEPT)
def thompson(pulls, mean, best, worst, best_shown, z, *, c: ra.Positive):  # type: ignore[no-untyped-def]
    """Gaussian noise in place of Gumbel noise."""
    return mean + c * deviation(pulls, best, worst, best_shown) / np.sqrt(pulls) * z


@ra.policy(noise=ra.noise.Gumbel(), keep=KEPT)
def maillard(pulls, mean, best, worst, best_shown, z, *, c: ra.Positive):  # type: ignore[no-untyped-def]
    """Maillard sampling."""
    sigma = c * deviation(pulls, best, worst, best_shown)
    return -pulls * (best - mean) ** 2 / np.maximum(2 * sigma**2, 1e-300) + z


@ra.policy(keep=KEPT)
def moss(t, pulls, mean, best, worst, best_shown, arms, *, c: ra.Positive):  # type: ignore[no-untyped-def]
    """Anytime MOSS; it draws nothing, so that its propensities are 0 and 1."""
    bonus = np.sqrt(np.maximum(0.0, np.log(t / (arms * pulls))) / pulls)
    return mean + c * deviation(pulls, best, worst, best_shown) * bonus


@ra.policy(noise=ra.noise.Gumbel(), keep=KEPT)
def shrinking(t, pulls, mean, best, worst, best_shown, arms, z, *, c: ra.Positive, least: float):  # type: ignore[no-untyped-def]
    """Noise that shrinks, as the bonus of MOSS does, once an arm has had its share of the rounds."""
    size = np.sqrt(np.maximum(least, np.log(t / (arms * pulls))) / pulls)
    return mean + c * deviation(pulls, best, worst, best_shown) * size * z


@ra.policy
def tuned(t, pulls, mean, best, worst, variance):  # type: ignore[no-untyped-def]
    """UCB-tuned, with the width of the means in place of the width of the range."""
    log = np.log(t) / pulls
    return mean + np.sqrt(log * (variance + np.sqrt(2 * log) * ((best - worst) / 2) ** 2))


RULES: dict[str, ra.Policy] = {
    "ScaledGumbel": ra.ScaledGumbel(),
    **{f"gumbel {c:.3g}": gumbel(c=c) for c in (0.25, 1 / 3, 0.42)},
    **{
        f"by arms {c:.3g}, {power:.3g}": by_arms(c=c, power=power)
        for c, power in ((0.5, 1 / 3), (0.42, 1 / 4), (0.4, 1 / 6))
    },
    **{f"thompson {c}": thompson(c=c) for c in (0.5, 0.75, 1.0)},
    **{f"maillard {c}": maillard(c=c) for c in (0.6, 1.0)},
    **{f"moss {c}": moss(c=c) for c in (0.7, 1.0)},
    **{f"shrinking {c}, {least}": shrinking(c=c, least=least) for c, least in ((0.25, 0.5), (0.2, 1.0), (0.3, 0.25))},
    "UCB-tuned": tuned(),
}


@ra.policy
def scaled_moss(t, pulls, mean, arms, *, sigma: ra.Positive):  # type: ignore[no-untyped-def]
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
        "one noisy good arm among 9 quiet ones": ra.Gaussian([0.5] + [0.0] * 9, sigma=[3.0] + [0.05] * 9),
        "one noisy bad arm among 9 quiet ones": ra.Gaussian([0.0, 0.1] + [0.0] * 8, sigma=[3.0] + [0.05] * 9),
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
            case = Case("Gaussian", ra.Gaussian(one_good(arms, 0.0, gap)))
            regret = play(case, {f"{c}": ra.BoltzmannGumbel(C=c) for c in factors}, replications).regret
            last = np.array([regret[f"{c}"][-1] for c in factors])
            shares.append(last / last.min())
        means = np.exp(np.mean(np.log(shares), axis=0))
        rows.append([f"{arms} arms", *(f"{mean / means.min():.2f}" for mean in means)])
    print("\nBGE with C known: regret over that of the best C, 30,000 rounds\n")
    print(table(["C/σ", *(f"{c:.3g}" for c in factors)], rows))


def long_runs() -> None:
    """The paper's Figure 1, a million rounds: regret, and how often the best arm has next to no pulls."""
    plain = ra.Bernoulli([0.51] + [0.5] * 9)
    rules = {"ScaledGumbel": ra.ScaledGumbel(), "gumbel 0.333": gumbel(c=1 / 3), "by arms": by_arms(c=0.42, power=0.25)}
    rows = []
    for name, problem in (("(a)", plain), ("(b)", plain.corrupted(arm=0, rounds=5_000, reward=0.0))):
        result = ra.simulate(list(rules.values()), problem, horizon=10**6, replications=64, seed=5, workers=1)
        lost = (result.pulls[:, :, 0] < 0.05 * result.horizon).mean(axis=1)
        cells = [f"{row['regret']:,.0f} ({row['standard_error']:,.0f})" for row in result.table()]
        rows.append([name, *(f"{cell}, lost {share:.0%}" for cell, share in zip(cells, lost, strict=True))])
    print(f"\nFigure 1, 10⁶ rounds\n\n{table(['scenario', *rules], rows)}")


def main() -> None:
    """Play everything and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=64)
    parser.add_argument("--rules", action="store_true", help="also the rules that were tried and not chosen")
    parser.add_argument("--long", action="store_true", help="only Figure 1 over a million rounds")
    options = parser.parse_args()
    if options.long:
        return long_runs()
    rules = RULES if options.rules else {"ScaledGumbel": ra.ScaledGumbel()}
    cases = suite()
    played = [play(case, {**policies_of(case), **rules}, options.replications) for case in cases]
    if options.rules:
        print(f"Rules without a parameter\n\n{choose(played)}")
    report(played)
    which_c(options.replications)
    failures(options.replications)


if __name__ == "__main__":
    main()
