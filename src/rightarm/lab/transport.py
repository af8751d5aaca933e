"""Blocks as bytes for other processes and machines, which check that they mean the same by them."""

from __future__ import annotations

import functools
import importlib.util
import io
import pickle
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rightarm.formula import Family, Formula
from rightarm.simulation.identity import outcome_code
from rightarm.simulation.jobs import Job
from rightarm.simulation.result import versions


@dataclass(frozen=True)
class Packed:
    """Blocks as bytes, and the code for which they were made: ours, and the formulas' that are not ours."""

    jobs: bytes
    ours: tuple[Any, ...]
    theirs: tuple[str, ...]


def packed(jobs: Sequence[Job]) -> Packed:
    """``jobs`` for another process.

    Our own formulas travel by name. A user's travel as code if cloudpickle is there, so that a formula of a script or
    a notebook, or of a module that a worker cannot import or imported before it was edited, is played all the same;
    without cloudpickle by name too.
    """
    buffer = io.BytesIO()
    pickler: Any = _pickler()(buffer)
    pickler.dump(tuple(jobs))
    return Packed(buffer.getvalue(), _our_code(), _their_code(jobs))


def unpacked(chunk: Packed) -> tuple[Job, ...]:
    """The blocks again, or an error if this process would not play them as the one that sent them."""
    if chunk.ours != _our_code():
        raise ValueError(f"client and worker differ: rightarm and its libraries are {chunk.ours} and {_our_code()}")
    jobs: tuple[Job, ...] = pickle.loads(chunk.jobs)
    if chunk.theirs != _their_code(jobs):
        raise ValueError("a formula is not the same on client and worker: restart workers that imported an older one")
    return jobs


def _our_code() -> tuple[Any, ...]:
    return (outcome_code(), *sorted(versions().items()))


def _their_code(jobs: Sequence[Job]) -> tuple[str, ...]:
    formulas = {id(formula): formula for job in jobs for formula in (job.policy, job.problem)}
    families = {id(family): family for formula in formulas.values() for family in _families(formula)}
    return tuple(sorted({family.identity for family in families.values() if not _is_ours(family)}))


def _families(formula: Formula) -> Iterator[Family]:
    yield formula.family
    for part in formula.parts:
        yield from _families(part)


def _is_ours(family: Family) -> bool:
    return family.function.__module__.partition(".")[0] == "rightarm"


@functools.cache
def _pickler() -> type[Any]:
    if importlib.util.find_spec("cloudpickle") is None:
        return pickle.Pickler
    import cloudpickle

    class ByValue(cloudpickle.Pickler):  # type: ignore[misc]
        """Families that are not ours by their code, not by their name."""

        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, Family) and not _is_ours(value):
                return _family, (_as_code(value),)
            return super().reducer_override(value)

    return ByValue


def _as_code(family: Family) -> bytes:
    """A family with all that stands beside it in its module and that it uses."""
    import cloudpickle

    module = sys.modules.get(family.function.__module__)
    named = module is not None and module.__name__ != "__main__"  # those of __main__ go by value anyway
    if named:
        cloudpickle.register_pickle_by_value(module)
    try:
        code: bytes = cloudpickle.dumps((type(family), family.__getstate__()))
    finally:
        if named:
            cloudpickle.unregister_pickle_by_value(module)
    return code


@functools.lru_cache(maxsize=256)
def _family(code: bytes) -> Family:
    """The family again, and the same one every time, so that what was compiled for it is found again."""
    kind, state = pickle.loads(code)
    family: Family = kind.__new__(kind)
    vars(family).update(state)
    return family
