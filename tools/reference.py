"""Write docs/reference.md, the list of all public names, from the package itself: ``python tools/reference.py``.

A new policy, problem, noise law, estimator, function or command appears there by itself. A test compares the page with
what this program writes.
"""

from __future__ import annotations

import importlib
import inspect
import types
from collections.abc import Iterator
from pathlib import Path

import typer.main

import rightarm as ra
from rightarm.cli import app
from rightarm.formula import Family

PAGE = Path(__file__).parents[1] / "docs" / "reference.md"
HEAD = """# Everything there is

Written by `python tools/reference.py` from the docstrings. `help(ra.UCB)` says more of each name.
"""
TITLES = {
    "policies": "Policies: `ra.UCB(C=0.5)`, all also in `ra.policies`",
    "schedules": "Schedules: `ra.schedules`",
    "problems": "Problems: `ra.problems`",
    "noise": "Noise laws: `ra.noise`",
    "estimators": "Estimators: `ra.estimators`",
    "simulation": "Simulations: `rightarm.simulation`",
    "evaluation": "Evaluations of logs: `ra.evaluation`",
    "logs": "Logs: `ra.logs`",
    "inference": "What rewards prove: `ra.inference`",
    "experiments": "Experiments: `ra.experiments`",
    "reports": "Pages: `ra.reports`",
    "theory": "Bounds: `ra.theory`",
    "testing": "Checks for code of your own: `ra.testing`",
    "client": "Clients of a service: `rightarm.client`",
}


def summary(value: object) -> str:
    """Return the first sentence of what an object says of itself."""
    text = inspect.getdoc(value.function if isinstance(value, Family) else value) or ""
    paragraph = " ".join(text.split("\n\n")[0].split())
    return paragraph.replace("|", "\\|")


def called(name: str, value: object) -> str:
    """Return how a name is called: a formula with its parameters, anything else by its name alone."""
    if not isinstance(value, Family):
        return f"`{name}`"
    parameters = ", ".join(parameter.name for parameter in value.parameters if parameter.name != "estimator")
    return f"`{name}({parameters})`"


def names_of(module: types.ModuleType) -> list[str]:
    """Return the public names of a module."""
    listed = getattr(module, "__all__", None)
    if listed is None:
        own = vars(module).items()
        listed = [name for name, value in own if getattr(value, "__module__", "") == module.__name__]
    return sorted(name for name in listed if name[0] != "_")


def rows(module: types.ModuleType) -> Iterator[str]:
    """Yield a line of the table for each public function, class and formula of a module."""
    for name in names_of(module):
        value = getattr(module, name)
        if callable(value) and summary(value) and getattr(value, "__module__", "").startswith("rightarm"):
            yield f"| {called(name, value)} | {summary(value)} |"


def table(title: str, lines: list[str]) -> str:
    """Return a section of the page."""
    return "\n".join([f"## {title}", "", "| | |", "| --- | --- |", *lines, ""])


def top() -> list[str]:
    """Return the lines of the names at the top that are no policies."""
    names = [name for name in sorted(ra.__all__) if not isinstance(getattr(ra, name), types.ModuleType | Family)]
    return [f"| `ra.{name}` | {summary(getattr(ra, name))} |" for name in names]


def commands() -> list[str]:
    """Return the lines of the commands."""
    group = typer.main.get_command(app)
    found = getattr(group, "commands", {})
    return [f"| `rightarm {name}` | {found[name].get_short_help_str(200)} |" for name in sorted(found)]


def page() -> str:
    """Return the text of the page."""
    sections = [HEAD, table("The main names", top())]
    for name, title in TITLES.items():
        module = importlib.import_module("rightarm.policies.schedules" if name == "schedules" else f"rightarm.{name}")
        sections.append(table(title, list(rows(module))))
    sections.append(table("The command line", commands()))
    return "\n".join(sections)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
