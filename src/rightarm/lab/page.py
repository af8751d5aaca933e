"""One page of HTML with everything in it: figures, verdicts, settings, fits and versions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from rightarm.lab.experiment import Cell
from rightarm.lab.markup import STYLE, table
from rightarm.lab.paper.finding import AGREES, CERTAIN, Claim, Finding, Study
from rightarm.lab.paper.growth import LATER, Fit, short
from rightarm.simulation.result import versions

PAPER = "https://arxiv.org/abs/1705.10257"

READING = (
    "Curves are means with 95% confidence bands, dotted lines are computed. A bound is taken to be broken where the "
    f"mean is beyond it by more than {CERTAIN:g} standard errors; a measured value equals an exact one if they differ "
    f"by less than {AGREES:g}. “Holds” means that nothing measured here contradicts the claim. Growth is the "
    f"least-squares fit of a + b g(T) to the later part of a curve ({LATER:.0%} of its logarithmic range), weighted by "
    "standard errors; the residual is the root mean square distance in standard errors."
)


@dataclass(frozen=True)
class Section:
    """A study with what it found, its cells (for the settings) and its pictures."""

    study: Study
    finding: Finding
    cells: Sequence[Cell]
    pictures: Sequence[str]


def page(title: str, sections: Sequence[Section], made: str) -> str:
    """The whole page, as HTML that is also well-formed XML."""
    packages = ", ".join(f"{name} {version}" for name, version in versions().items())
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8" />',
            '<meta name="viewport" content="width=device-width, initial-scale=1" />',
            f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>",
            f"<h1>{escape(title)}</h1>",
            f'<p>The claims of Cesa-Bianchi, Gentile, Lugosi, Neu: <a href="{PAPER}">Boltzmann Exploration Done '
            "Right</a>, NeurIPS 2017, each simulated in its own setting and compared with its bound.</p>",
            _overview(sections),
            f'<p class="setting">{READING}</p>',
            *map(_section, sections),
            f"<footer><p>Made by <code>{escape(made)}</code> with {escape(packages)}.</p></footer>",
            "</body></html>\n",
        ]
    )


def mathematics(text: str) -> str:
    """Text with a_b, a_{bc}, a^b and a^{bc} as subscripts and superscripts."""
    for sign, tag in (("_", "sub"), ("^", "sup")):
        pattern = rf"\{sign}(?:\{{([^}}]*)\}}|(\w|\+))"
        text = re.sub(pattern, lambda found, tag=tag: f"<{tag}>{found[1] or found[2]}</{tag}>", text)  # type: ignore[misc]
    return text


def _text(text: str) -> str:
    powers = re.sub(r"(\d)e([+-])0*(\d+)", lambda f: f"{f[1]}·10^{{{'−' * (f[2] == '-')}{f[3]}}}", text)  # 2e-10
    return mathematics(escape(powers, quote=False))


def _overview(sections: Sequence[Section]) -> str:
    rows = [[f'<a href="#{s.study.name}">{_text(s.study.title)}</a>', _word(s.finding.holds)] for s in sections]
    return table(["claim", "verdict"], rows) if len(rows) > 1 else ""


def _word(holds: bool) -> str:
    return "holds" if holds else "<strong>does not hold as printed</strong>"


def _section(section: Section) -> str:
    study, finding = section.study, section.finding
    return "\n".join(
        [
            f'<section id="{study.name}"><h2>{_text(study.title)}</h2>',
            f'<p>{_text(study.claim)}</p><p class="formula">{_text(study.formula)}</p>',
            f'<p class="verdict {"holds" if finding.holds else "fails"}">{_text(finding.verdict)}.</p>',
            f'<div class="panels">{"".join(section.pictures)}</div>',
            "<h3>What was compared</h3>",
            _claims(finding.claims),
            *(
                ["<h3>Also seen, without weight in the verdict</h3>", _claims(finding.remarks, "yes")]
                if finding.remarks
                else []
            ),
            *(
                f"<h3>{_text(t.title)}</h3>{table(map(_text, t.head), (map(_text, r) for r in t.rows))}"
                for t in finding.tables
            ),
            *(["<h3>Growth</h3>", _fits(finding.fits)] if finding.fits else []),
            f'<h3>Setting</h3><p class="setting">{_text(f"{study.setting} {_settings(section.cells)}")}</p></section>',
        ]
    )


def _claims(claims: Sequence[Claim], word: str = "holds") -> str:
    rows = [[_text(c.statement), word if c.holds else "<strong>no</strong>", _text(c.evidence)] for c in claims]
    return table(["statement", "", "measured"], rows)


def _fits(fits: dict[str, list[Fit]]) -> str:
    rows = []
    for label, found in fits.items():
        best, *others = found
        rest = ", ".join(f"{other.law} ({short(other)})" for other in others)
        law = f"{best.a:.4g} {'+' if best.b >= 0 else '−'} {abs(best.b):.4g} {best.law}".replace("-", "−")
        rows.append([_text(label), _whole(law), _whole(f"± {best.b_error:.2g}"), _text(short(best)), _text(rest)])
    return table(["curve", "best fit a + b g(T)", "error of b", "residual", "others (residual)"], rows)


def _whole(text: str) -> str:
    """Text that is not broken into lines."""
    return f'<span class="whole">{_text(text)}</span>'


def _settings(cells: Sequence[Cell]) -> str:
    """The sizes, read off the cells."""
    arms = sorted({cell.problem.arms for cell in cells})
    horizons = [cell.checkpoints[0] for cell in cells] + [cell.horizon for cell in cells]
    replications = sorted({cell.replications for cell in cells})
    rounds = sum(cell.replications * (cell.horizon - cell.start.rounds) for cell in cells)
    span = f"from {min(horizons):,} to {max(horizons):,}" if min(horizons) < max(horizons) else f"= {max(horizons):,}"
    return (
        f"K = {', '.join(map(str, arms))}; T {span}; "
        f"{', '.join(map(str, replications))} replications; {len(cells)} simulations, {rounds:.2g} rounds in all."
    )
