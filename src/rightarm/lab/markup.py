"""What our pages of HTML have in common: how they look, and their tables."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

STYLE = """
:root { color-scheme: light; --line: #d5d9de; --soft: #57606a; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1f2328; margin: 0 auto; padding: 1rem; max-width: 70rem; }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { font-size: 1.3rem; margin: 0 0 .5rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
section { border-top: 1px solid var(--line); margin-top: 2rem; padding-top: 1.2rem; }
.formula { background: #f6f8fa; padding: .5rem .8rem; border-radius: 6px; overflow-wrap: anywhere; }
.verdict { padding: .5rem .8rem; border-left: 5px solid; border-radius: 3px; overflow-wrap: anywhere; }
.holds { border-color: #1a7f37; background: #eefbf1; } .fails { border-color: #cf222e; background: #fff0ee; }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); gap: 1rem; }
.panels.wide { grid-template-columns: 1fr; } .panels > svg { width: 100%; }
.table { overflow-x: auto; } table { border-collapse: collapse; font-size: .88rem; }
th, td { padding: .2rem .7rem .2rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th { font-weight: 600; } .whole { white-space: nowrap; }
.setting, footer { color: var(--soft); font-size: .92rem; }
"""


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of cells that are HTML already; it scrolls by itself where the page is narrow."""
    titles = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="table"><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>'


Value = tuple[str, float | str | None, str]
"""A cell of a table: its HTML, the value by which it is sorted, and its class."""


def sortable(head: Iterable[str], rows: Iterable[Iterable[Value]], left: int) -> str:
    """A table that a click on a heading sorts, by the page's script; the first ``left`` columns are words."""
    names = list(head)
    sides = ["word" if j < left else "number" for j in range(len(names))]
    # Not a button proper: with one in it Chromium does not print the heading again on every sheet.
    titles = "".join(
        f'<th class="{side}"><span role="button" tabindex="0">{title}</span></th>'
        for title, side in zip(names, sides, strict=True)
    )
    body = "".join(f"<tr>{''.join(map(_cell, row, sides))}</tr>" for row in rows)
    inside = f"<thead><tr>{titles}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="table"><table class="sortable">{inside}</table></div>'


def _cell(cell: Value, side: str) -> str:
    content, value, mark = cell
    known = value is not None and value == value  # a number that is none sorts last
    sort = f' data-value="{escape(str(value))}"' if known else ""
    return f'<td class="{side} {mark}"{sort}>{content}</td>'
