"""Blocks as bytes for other processes and machines: whatever a user has written travels as code, not by name."""

from __future__ import annotations

import contextlib
import functools
import io
import pickle
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from rightarm.extras import needed_for
from rightarm.formula import Family, Formula
from rightarm.simulation.identity import outcome_code
from rightarm.simulation.jobs import Job
from rightarm.simulation.result import versions


@dataclass(frozen=True)
class Packed:
    """Blocks as bytes, and the versions of rightarm and its libraries for which they were made."""

    jobs: bytes
    code: tuple[Any, ...]


def packed(jobs: Sequence[Job]) -> Packed:
    """``jobs`` for another process.

    Our own formulas travel by name. A user's travel as code, with all that they use: so a formula of a script or of a
    notebook, or of a module that a worker cannot import or imported before it was edited, is played all the same.
    """
    with _users_modules_by_value():
        return Packed(_pickled(tuple(jobs)), _our_code())


def unpacked(chunk: Packed) -> tuple[Job, ...]:
    """The blocks again, or an error if this process has other versions than the one that sent them."""
    if chunk.code != _our_code():
        raise ValueError(f"client and worker differ: rightarm and its libraries are {chunk.code} and {_our_code()}")
    jobs: tuple[Job, ...] = pickle.loads(chunk.jobs)
    return jobs


def _our_code() -> tuple[Any, ...]:
    return (outcome_code(), *sorted(versions().items()))


def _cloudpickle() -> Any:
    with needed_for("Dask", "cluster"):
        import cloudpickle
    return cloudpickle


def _pickled(value: Any) -> bytes:
    buffer = io.BytesIO()
    _pickler()(buffer).dump(value)
    return buffer.getvalue()


@functools.cache
def _pickler() -> type[Any]:
    cloudpickle = _cloudpickle()

    class ByValue(cloudpickle.Pickler):  # type: ignore[misc,name-defined]
        """Pickles families that are not ours as code."""

        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, Family) and not _is_importable(value):
                _register(sys.modules.get(value.function.__module__))
                state: Any = value.__getstate__()
                state = {**state, "annotations": value.annotations}
                return _family, (_pickled((type(value), state)),)
            if isinstance(value, Formula) and value.family.bare:
                return value.family, ()
            return super().reducer_override(value)

    return ByValue


def _is_importable(family: Family) -> bool:
    """Whether a worker finds this very family by its name, because it is one of ours."""
    module = family.function.__module__
    found = getattr(sys.modules.get(module), family.function.__name__, None)
    return module.partition(".")[0] == "rightarm" and found is family


@functools.lru_cache(maxsize=256)
def _family(code: bytes) -> Family:
    """The family again, and the same one every time, so that what was compiled for it is found again."""
    kind, state = pickle.loads(code)
    family: Family = kind.__new__(kind)
    vars(family).update(state)
    return family


# Modules that only the client may have.


@contextlib.contextmanager
def _users_modules_by_value() -> Iterator[None]:
    """Let cloudpickle send functions and classes of users' modules as code for a while."""
    cloudpickle = _cloudpickle()
    before = set(cloudpickle.list_registry_pickle_by_value())
    for module in [module for module in list(sys.modules.values()) if _is_users(getattr(module, "__file__", None))]:
        _register(module)
    try:
        yield
    finally:
        for name in set(cloudpickle.list_registry_pickle_by_value()) - before:
            cloudpickle.unregister_pickle_by_value(sys.modules[name])


def _register(module: ModuleType | None) -> None:
    # Those of __main__ go as code anyway, and ours are everywhere.
    if module is not None and module.__name__ != "__main__" and module.__name__.partition(".")[0] != "rightarm":
        _cloudpickle().register_pickle_by_value(module)


@functools.cache
def _is_users(file: str | None) -> bool:
    """Whether a module's file belongs neither to Python nor to an installed package."""
    if file is None:
        return False
    installed = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return not any(Path(file).is_relative_to(folder) for folder in installed)
