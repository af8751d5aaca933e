"""GLIE: a schedule that explores for ever and is greedy in the limit has sublinear regret, but T to a power near 1."""

from __future__ import annotations

from rightarm.lab.paper.evidence import any_of, power
from rightarm.lab.paper.finding import Claim, Finding, Study, Table, panel
from rightarm.lab.results import Loaded
from rightarm.theory import glie_exponent

ALPHAS = (0.5, 0.2, 0.1)  # regret of at least T^{1−α} is looked for


def judge(results: Loaded) -> Finding:
    """For each α some gap has a power above 1 − α, and all are below 1."""
    curves = {float(cell.value("gap")): cell.curve(f"Δ = {cell.value('gap'):g}") for cell in results}
    powers = {gap: power(curve) for gap, curve in curves.items()}
    top = max(powers, key=lambda gap: powers[gap].value)
    return Finding(
        margin="power of T in the last decade "
        + ", ".join(
            f"{found.value:.3f} (Δ = {gap:g}, derived {glie_exponent(gap):.3f})" for gap, found in powers.items()
        ),
        claims=[
            Claim(
                f"α = {alpha:g}: on some of these problems regret grows at least like T^{{1−α}}",
                any_of(found.above(1 - alpha) for found in powers.values()),
                f"the largest power is {powers[top]}, at Δ = {top:g}",
                large=True,
            )
            for alpha in ALPHAS
        ]
        + [
            Claim(f"Δ = {gap:g}: regret is sublinear", found.below(1.0), f"power {found}", large=True)
            for gap, found in powers.items()
        ],
        panels=[
            panel("Regret", list(curves.values())),
            panel(
                "Regret over its derived power of T",
                [c.over(c.x ** glie_exponent(g)) for g, c in curves.items()],
                y="regret over T to that power",
            ),
        ],
        tables=[
            Table(
                "The power of T in the last decade",
                ["Δ", "measured", "derived, up to logarithms: √(1 − 4Δ²)"],
                [[f"{gap:g}", str(found), f"{glie_exponent(gap):.3f}"] for gap, found in powers.items()],
            )
        ],
    )


STUDY = Study(
    name="glie",
    claim="The schedule of Singh, Jaakkola, Littman and Szepesvári, which keeps every arm's probability above 1/(Kt), "
    "has sublinear regret, but for any small α > 0 there are problems with a regret of at least Ω(T^{1−α}).",
    formula="η_t = log t / (best − worst mean);  R_T = Ω(T^{1−α})",
    setting="Theorem 2's problem: a coin with mean 1/2 + Δ against 1/2 always. Derived: T^{√(1−4Δ²)} up to logarithms, "
    "which make the measured power smaller, so that the claim is shown here for α of 0.1 and more.",
    criteria=(
        "The power of T is the slope of log regret against log T in the last decade, with a 99% bootstrap interval "
        "over replications. Regret is at least of order T^{1−α} if the interval lies above 1 − α for some Δ, and is "
        "not if it lies below for all; it is sublinear if the interval lies below 1. A quick run cannot tell.",
    ),
    judge=judge,
)
