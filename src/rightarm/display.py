"""Numbers and tables as text, and tables as HTML for notebooks."""

from __future__ import annotations

import html
import json
import math
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

GAP = "  "  # between columns
NARROW = 16  # characters that a column of words keeps while other columns can go,
NARROWEST = 8  # and after that


def terminal_width() -> int:
    """Return the columns of the terminal; 80 where there is none, unless the environment's COLUMNS says otherwise."""
    return shutil.get_terminal_size().columns


def wrapped(text: str, indent: str = "", hanging: str = "") -> str:
    """Return a text in lines that fit into the terminal; all but the first are indented by ``hanging`` besides."""
    return textwrap.fill(text, terminal_width(), initial_indent=indent, subsequent_indent=indent + hanging)


def number(value: float | None, digits: int = 4) -> str:
    """Write a number in a few digits, thousands apart, without a power of ten where that can be avoided.

    >>> number(12345.678), number(0.00123456), number(99.996), number(None)
    ('12,346', '0.001235', '100', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{digits - 1}e}".replace("-", "−")
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    plain = f"{value:,.{places}f}"
    return (plain.rstrip("0").rstrip(".") if "." in plain else plain).replace("-", "−")


def signed(value: float, digits: int = 4) -> str:
    """Write a number with its sign, `+2.5`."""
    return f"+{number(value, digits)}" if value > 0 else number(value, digits)


def counted(count: int, what: str) -> str:
    """Write how many there are of something.

    >>> counted(1, "cell"), counted(2_000, "cell")
    ('1 cell', '2,000 cells')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def percent(share: float | None) -> str:
    """Write a share, `12.5%`."""
    return "–" if share is None or not math.isfinite(share) else f"{share:.1%}"


def short(value: Any) -> str:
    """Write a parameter's value for a table or a label: a list as JSON, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    words: int = 1,
    spare: Sequence[str] = (),
    width: int | None = None,
) -> str:
    """Lay out rows under their titles, no wider than the terminal, or than ``width``.

    The first ``words`` columns are texts: they stand to the left, and are broken into several lines where room is
    short. The others are numbers, to the right and always whole. Columns named in ``spare`` are left out, one after the
    other, where that is not enough, and a last line says so.

    >>> print(table(["policy", "regret"], [["UCB", "12.5"], ["BoltzmannGumbel(C=0.5, location=0)", "7"]], width=26))
    policy              regret
    UCB                   12.5
    BoltzmannGumbel(         7
    C=0.5, location=0)
    """
    width = terminal_width() if width is None else width
    natural = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    shown = list(range(len(head)))
    hidden = list[str]()
    for name in spare:
        if _total([min(natural[j], NARROW) if j < words else natural[j] for j in shown]) <= width:
            break
        shown.remove(head.index(name))
        hidden.append(name)
    widths = _narrowed([natural[j] for j in shown], sum(j < words for j in shown), width)
    lines = [
        line
        for row in (head, *rows)
        for line in _lines([row[j] for j in shown], widths, sum(j < words for j in shown))
        if any(head) or row is not head
    ]
    return "\n".join([*lines, *([wrapped(f"(a wider terminal also shows {', '.join(hidden)})")] if hidden else [])])


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _narrowed(widths: list[int], words: int, width: int) -> list[int]:
    """Return widths that fit, taken from the widest columns of words."""
    while _total(widths) > width and any(wide > NARROWEST for wide in widths[:words]):
        widths[max(range(words), key=widths.__getitem__)] -= 1
    return widths


def _lines(row: Sequence[str], widths: Sequence[int], words: int) -> list[str]:
    """Return the lines of one row: more than one where words are broken."""
    cells = [_broken(row[j], widths[j]) if j < words else [row[j]] for j in range(len(row))]
    height = max(map(len, cells))
    sides = ["<" if j < words else ">" for j in range(len(row))]
    return [
        GAP.join(
            f"{cell[i] if i < len(cell) else '':{side}{wide}}"
            for cell, side, wide in zip(cells, sides, widths, strict=True)
        ).rstrip()
        for i in range(height)
    ]


def _broken(text: str, width: int) -> list[str]:
    """Break words into lines; a call such as `UCB(C=0.5)` may also be broken after its parenthesis."""
    if len(text) <= width:
        return [text]
    parts = textwrap.wrap(text.replace("(", "( "), width, break_on_hyphens=False)
    return [part.replace("( ", "(") for part in parts]


def html_table(
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str = "",
    words: int = 1,
    notes: Iterable[str] = (),
) -> str:
    """Lay out rows under their titles, as HTML; the first ``words`` columns are texts, the others numbers.

    ``title`` stands above the table, and each of the ``notes`` is a line below it. Everything is escaped: names of arms
    and policies may contain anything. Without any titles the table has no head.

    >>> html_table(["arm", "pulls"], [["<b>", 3]], words=1).count("&lt;b&gt;")
    1
    """
    sides = ["left" if place < words else "right" for place in range(len(head))]
    body = "".join(_row("td", row, sides) for row in rows)
    titles = f"<thead>{_row('th', head, sides)}</thead>" if any(head) else ""
    above = f"<p><strong>{_text(title)}</strong></p>" if title else ""
    below = "".join(f"<p>{_text(note)}</p>" for note in notes)
    return f"<div>{above}<table>{titles}<tbody>{body}</tbody></table>{below}</div>"


def _row(cell: str, values: Sequence[object], sides: Sequence[str]) -> str:
    marked = zip(values, sides, strict=True)
    cells = [f'<{cell} style="text-align: {side}">{_text(value)}</{cell}>' for value, side in marked]
    return f"<tr>{''.join(cells)}</tr>"


def _text(value: object) -> str:
    return html.escape(str(value)).replace("\n", "<br>")
