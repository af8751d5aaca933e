"""The templates of our pages, all with one shell, one style and one script."""

from __future__ import annotations

import functools
import re
from html import escape
from pathlib import Path
from typing import Any

from rightarm.extras import needed_for

with needed_for("a page of HTML"):
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

HERE = Path(__file__).parent


def render(template: str, **values: Any) -> str:
    """A whole page; style, script and plotly.js stand in it."""
    own = {name: Markup((HERE / f"{name}.{kind}").read_text(encoding="utf-8")) for name, kind in PARTS.items()}
    text: str = _environment().get_template(template).render(**values, **own, plotly=Markup(get_plotlyjs()))
    return text


PARTS = {"style": "css", "script": "js"}


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["mathematics"] = mathematics
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":"), "allow_nan": False}
    return environment


def mathematics(text: str) -> Markup:
    """Text as HTML, with a_b, a_{bc}, a^b and a^{bc} as subscripts and superscripts, and 2e-10 as a power of ten.

    >>> mathematics("R_T < 2e-10")
    Markup('R<sub>T</sub> &lt; 2·10<sup>−10</sup>')
    """
    text = re.sub(r"(\d)e([+-])0*(\d+)", lambda f: f"{f[1]}·10^{{{'−' * (f[2] == '-')}{f[3]}}}", text)
    text = escape(text, quote=False)
    for sign, tag in (("_", "sub"), ("^", "sup")):
        text = re.sub(rf"\{sign}(?:\{{([^}}]*)\}}|(\w|\+))", rf"<{tag}>\1\2</{tag}>", text)
    return Markup(text)
