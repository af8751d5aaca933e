"""How things look in a notebook: tables as HTML, for the method ``_repr_html_`` that Jupyter asks for."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


def html_table(
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str = "",
    words: int = 1,
    notes: Iterable[str] = (),
) -> str:
    """Rows under their titles, as HTML; the first ``words`` columns are texts, the others numbers.

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
