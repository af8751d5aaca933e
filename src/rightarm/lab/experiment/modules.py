"""Users' modules: what an experiment file calls `module:name`, looked for beside the file and in the current folder."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

ADDRESS = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def is_address(text: str) -> bool:
    """Whether ``text`` has the form `module:name`.

    >>> is_address("my.policies:Sloth"), is_address("UCB(C=0.5)")
    (True, False)
    """
    return ADDRESS.fullmatch(text) is not None


def find(address: str, folder: Path | None = None) -> Any:
    """What stands at `module:name`, the module being looked for in ``folder`` and in the current folder first.

    >>> find("rightarm.policies:UCB1", None)()
    UCB1()
    """
    module, _, name = address.partition(":")
    with _first_on_path([*([] if folder is None else [str(folder.resolve())]), os.getcwd()]) as places:
        _check_same(module.partition(".")[0], places)
        found = importlib.import_module(module)
    try:
        return getattr(found, name)
    except AttributeError:
        public = ", ".join(sorted(own for own in vars(found) if not own.startswith("_")))
        raise ValueError(f"the module {module} has no {name}; it has {public}") from None


@contextlib.contextmanager
def _first_on_path(places: list[str]) -> Iterator[list[str]]:
    sys.path[:0] = places
    importlib.invalidate_caches()  # the module may have been written a moment ago
    try:
        yield places
    finally:
        for place in places:
            if place in sys.path:  # what the module itself did to the path is its own business
                sys.path.remove(place)


def _check_same(package: str, places: list[str]) -> None:
    """Say so if a module of that name was imported from elsewhere: Python would give that one, silently."""
    there, loaded = PathFinder.find_spec(package, places), sys.modules.get(package)
    origin = getattr(loaded, "__file__", None)
    if loaded is not None and there is not None and there.origin is not None and there.origin != origin:
        raise ValueError(
            f"{there.origin} cannot be imported: another module {package} is there already, {origin or 'built in'}; "
            "give it another name"
        )
