"""The results of an experiment: a folder that is safe to interrupt, resume and merge, and in which damage is detected.

- ``cells-<n>-<hash>.parquet``: what every key is, which cells the experiment has now, in their order, and the text of
  its file. Each change writes the next n and removes the one before;
- ``experiment.toml``: a copy of that text, to be read by people;
- ``parts/<hash>.parquet``: what was computed, a row for each replication of a cell, under the cell's key;
- ``lock``: locked by the run that writes.

Files are written whole or not at all. The hash in a name is that of the file's bytes and is checked before anything
reads them; what is damaged does not count, and the next run makes it anew. Parts of several runs or machines can be put
together.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import itertools
import json
import os
import re
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rightarm.errors import polars_for
from rightarm.experiments.cell import Cell
from rightarm.files import locked, remove_leftovers, sync_folder, write_whole
from rightarm.problems import Problem, RandomProblem
from rightarm.simulation.jobs import Job, Outcome, padded
from rightarm.types import F64, I64

if TYPE_CHECKING:
    import polars
    from filelock import BaseFileLock

FORMAT = 1
EXPERIMENT = "experiment.toml"
PARTS = "parts"
LOCK = "lock"
PARQUET = ".parquet"
DAMAGED = ".damaged"
Flags = NDArray[np.bool_]
NONE: Flags = np.zeros(0, bool)


@dataclass(frozen=True)
class CellDescription:
    """A cell as plain data, which can be read where the policy itself cannot be imported."""

    key: str
    names: dict[str, Any]
    """Its names in the experiment: problem, policy, and every swept value."""
    policy_text: str
    problem_text: str
    horizon: int
    arms: int
    replications: int
    """The number that the experiment asks for."""
    fixed_means: tuple[float, ...] | None
    """The mean reward of every arm; None where every replication draws its own."""
    specification: dict[str, Any]
    """All that determines its outcome, code and versions included."""

    @property
    def seed(self) -> int:
        """The seed."""
        return int(self.specification["seed"])

    @property
    def rounds(self) -> I64:
        """The rounds at which regret is recorded, shape (checkpoints,)."""
        return np.array(self.specification["checkpoints"], dtype=np.int64)

    @property
    def has_contexts(self) -> bool:
        """Return whether its problem has contexts, so that no arm has one mean."""
        return "contexts" in self.specification["problem"]


@dataclass(frozen=True, eq=False)
class Measurements:
    """The measurements of one cell, in the order of its replications."""

    replications: I64
    """The numbers of the replications."""
    regret: F64
    """The pseudo-regret, replications × checkpoints."""
    pulls: I64
    """The final pulls, replications × arms."""
    means: F64 | None = None
    """The means of each replication's own problem, replications × arms, where the problem is a random one."""

    @classmethod
    def empty(cls, checkpoints: int, arms: int) -> Measurements:
        """Return the measurements of a cell of which nothing is there."""
        return cls(np.zeros(0, np.int64), np.zeros((0, checkpoints)), np.zeros((0, arms), np.int64))

    def below(self, replications: int) -> Measurements:
        """Return the replications below a number: an experiment may ask for fewer than it once did."""
        first = slice(0, int(np.searchsorted(self.replications, replications)))
        means = None if self.means is None else self.means[first]
        return Measurements(self.replications[first], self.regret[first], self.pulls[first], means)


class ResultFolder:
    """A folder of results, opened for reading, or for writing by one run at a time.

    >>> import tempfile
    >>> import rightarm as ra
    >>> from rightarm.simulation.jobs import play_jobs
    >>> cell = Cell(ra.UCB(C=0.5), ra.problems.Bernoulli([0.9, 0.1]), 100, 16, seed=1, checkpoints=(10, 100))
    >>> with tempfile.TemporaryDirectory() as folder, ResultFolder.open(folder, write=True) as results:
    ...     results.begin([cell])
    ...     work = {job: cell for cell, job in results.missing([cell])}
    ...     for job, outcome in play_jobs(work, workers=1):
    ...         results.put([(work[job], job, outcome)])
    ...     results.missing([cell]), results.measurements([cell.key])[cell.key].regret.shape
    ([], (16, 2))
    """

    def __init__(self, folder: Path, lock: BaseFileLock | None) -> None:
        self.folder = folder
        self._lock = lock
        self._threads = threading.Lock()
        self._cells, self.title, self.experiment = _read_cells(folder, rename=lock is not None)
        _compare_copy(folder / EXPERIMENT, self.experiment)
        self._done: dict[str, Flags] = {}
        self._parts: dict[str, dict[Path, None]] = {}
        for path, key, replications in _scan(folder / PARTS, rename=lock is not None):
            self._count(path, key, replications)

    @classmethod
    def open(cls, folder: str | os.PathLike[str], write: bool = False) -> ResultFolder:
        """Open a folder; to write, it is made if need be, and a second writer is refused."""
        folder = Path(folder)
        _polars()
        if not write:
            if not folder.is_dir():
                raise FileNotFoundError(f"there is no folder {folder}")
            if not _cell_files(folder):
                raise ValueError(f"{folder} is not a folder of results: it has no cells-*.parquet")
            return cls(folder, None)
        (folder / PARTS).mkdir(parents=True, exist_ok=True)
        lock = locked(folder / LOCK, "folder of results", folder)
        try:
            for place in (folder, folder / PARTS):
                remove_leftovers(place)
                sync_folder(place.parent)
            return cls(folder, lock)
        except BaseException:
            lock.release()
            raise

    def close(self) -> None:
        """Let the next writer in."""
        with self._threads:
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> ResultFolder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def descriptions(self) -> list[CellDescription]:
        """The cells of the experiment as it is now, in its order."""
        current = self._cells.filter(self._cells["place"].is_not_null()).sort("place")
        return [_description(row) for row in current.iter_rows(named=True)]

    def begin(self, cells: Sequence[Cell], experiment: str = "", title: str = "") -> None:
        """Store which cells the experiment has from now on, and the text of its file; cells of before stay."""
        pl = _polars()
        now = pl.DataFrame([_row(place, cell) for place, cell in enumerate(cells)], schema=_cell_types())
        before = self._cells.filter(~pl.col("key").is_in(now["key"].to_list())).unique("key", maintain_order=True)
        frame = pl.concat([now, before.with_columns(place=pl.lit(None, pl.Int64))])
        note = {"format": FORMAT, "title": title, "experiment": experiment}
        with self._threads:
            self._check_writing()
            _write_cells(self.folder, _parquet(frame, metadata={"rightarm": json.dumps(note)}))
            write_whole(self.folder / EXPERIMENT, experiment.encode())
            self._cells = frame
            self.title = title
            self.experiment = experiment

    def missing(self, cells: Iterable[Cell]) -> list[tuple[Cell, Job]]:
        """Return what is still to be computed, block by block, each with its cell; nothing twice.

        Of a block that is there in part, because blocks were cut otherwise when there were fewer replications, only
        the rest is given: what a replication gives does not depend on its block.
        """
        planned: dict[str, Flags] = {}
        jobs = []
        for cell in cells:
            there = planned.get(cell.key, self._done.get(cell.key, NONE))
            if there.size >= cell.replications and there[: cell.replications].all():
                continue
            there = _longer(there, cell.replications)
            jobs += [(cell, job) for block in cell.blocks() for job in _rest(block, there)]
            there[: cell.replications] = True
            planned[cell.key] = there
        return jobs

    def put(self, pieces: Sequence[tuple[Cell, Job, Outcome]]) -> None:
        """Store some outcomes, all of them or none; they are on the disk when this returns."""
        pl = _polars()
        if not pieces:
            return
        keys = set(self._cells["key"])
        for cell, job, outcome in pieces:
            _check(cell, job, outcome, keys)
        content = _parquet(pl.concat([_rows(*piece) for piece in pieces]))
        path = self.folder / PARTS / f"{_name(content)}{PARQUET}"
        with self._threads:
            self._check_writing()
            write_whole(path, content)
            for cell, job, _ in pieces:
                self._count(path, cell.key, np.arange(job.first, job.first + job.replications))

    def measurements(self, keys: Sequence[str]) -> dict[str, Measurements]:
        """Return what is there of several cells, by their keys; those of which nothing is there are left out."""
        pl = _polars()
        paths = list(dict.fromkeys(path for key in keys for path in self._parts.get(key, ())))
        if not paths:
            return {}
        found = _scanned(paths).filter(pl.col("key").is_in(list(keys))).collect().sort("key", "replication")
        return {key: _measurements(rows) for (key,), rows in _single(found).partition_by("key", as_dict=True).items()}

    def finished(self, key: str, replications: int) -> int:
        """Count the replications of a cell that are there, of the first so many."""
        return int(self._done.get(key, NONE)[:replications].sum())

    def _count(self, path: Path, key: str, replications: I64) -> None:
        """Remember that a part has these replications of a cell."""
        done = _longer(self._done.get(key, NONE), int(replications.max()) + 1)
        done[replications] = True
        self._done[key] = done
        self._parts.setdefault(key, {})[path] = None

    def _check_writing(self) -> None:
        if self._lock is None or not self._lock.is_locked:
            raise ValueError(f"the results {self.folder} are not open for writing")


# Cells.


def _polars() -> Any:
    return polars_for("a folder of results")


def _cell_types() -> dict[str, Any]:
    pl = _polars()
    texts = dict.fromkeys(("key", "names", "policy", "problem", "specification"), pl.String)
    numbers = dict.fromkeys(("horizon", "arms", "replications"), pl.Int64)
    return {"place": pl.Int64, **texts, **numbers, "means": pl.List(pl.Float64)}


def _row(place: int, cell: Cell) -> dict[str, object]:
    names = {"problem": str(cell.problem), "policy": str(cell.policy)} | dict(cell.names)
    return {
        "place": place,
        "key": cell.key,
        "names": json.dumps(names),
        "policy": str(cell.policy),
        "problem": str(cell.problem),
        "specification": json.dumps(cell.specification()),
        "horizon": cell.horizon,
        "arms": cell.problem.arms,
        "replications": cell.replications,
        "means": cell.problem.means.tolist() if isinstance(cell.problem, Problem) else None,
    }


def _description(row: dict[str, Any]) -> CellDescription:
    return CellDescription(
        key=row["key"],
        names=json.loads(row["names"]),
        policy_text=row["policy"],
        problem_text=row["problem"],
        horizon=row["horizon"],
        arms=row["arms"],
        replications=row["replications"],
        fixed_means=None if row["means"] is None else tuple(row["means"]),
        specification=json.loads(row["specification"]),
    )


def _cell_files(folder: Path) -> list[Path]:
    """Return the files with the cells, the latest last; there are two only if a run was killed between them."""
    numbered = {_number(path): path for path in folder.glob(f"cells-*{PARQUET}")}
    return [numbered[n] for n in sorted(numbered)]


def _number(path: Path) -> int:
    """Return n of ``cells-<n>-<hash>.parquet``; 0 of any other name."""
    found = re.fullmatch(r"cells-([0-9]{1,9})-[0-9a-f]{32}", path.stem)
    return int(found[1]) if found else 0


def _write_cells(folder: Path, content: bytes) -> None:
    """Write the next file of cells, unless the latest is the same, and remove those before it."""
    before = _cell_files(folder)
    if before and before[-1].stem.endswith(f"-{_name(content)}"):
        return
    number = 1 + max((_number(path) for path in before), default=0)
    write_whole(folder / f"cells-{number}-{_name(content)}{PARQUET}", content)
    for path in before:
        path.unlink()


def _read_cells(folder: Path, rename: bool) -> tuple[polars.DataFrame, str, str]:
    """Return the cells, and the experiment's title and text."""
    pl = _polars()
    nothing = pl.DataFrame(schema=_cell_types()), "", ""
    if not (files := _cell_files(folder)):
        return nothing
    path = files[-1]
    try:
        content = path.read_bytes()
    except FileNotFoundError:  # a run has just replaced it
        return _read_cells(folder, rename)
    try:
        if not path.stem.endswith(f"-{_name(content)}"):
            raise ValueError("its bytes are not those that were written")
        note = json.loads(pl.read_parquet_metadata(io.BytesIO(content))["rightarm"])
        frame = pl.read_parquet(io.BytesIO(content))
    except (pl.exceptions.PolarsError, KeyError, OSError, ValueError) as error:
        if not rename:
            raise ValueError(f"{path} is damaged; the experiment, run again, makes it anew: {error}") from None
        _set_aside(path)  # whoever writes says anew what the cells are
        return nothing
    if note["format"] != FORMAT:
        raise ValueError(f"{path} was written in another format than {FORMAT}; read it with the version that wrote it")
    return frame, note["title"], note["experiment"]


def _compare_copy(path: Path, text: str) -> None:
    """Warn if the copy of the experiment's file for people is another than what was run."""
    if text and path.exists() and path.read_bytes() != text.encode():
        warnings.warn(f"{path} is not the file that was run: damaged, or edited since; it does not count", stacklevel=5)


# Parts.


def _name(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _set_aside(path: Path) -> None:
    """Rename a damaged file, so that it is in nobody's way and can be looked at."""
    names = (f"{path.name}{DAMAGED}{number or ''}" for number in itertools.count())
    aside = next(place for place in map(path.with_name, names) if not place.exists())
    os.replace(path, aside)
    warnings.warn(f"{path} is damaged, was renamed to {aside.name}, and does not count", stacklevel=6)


def _scan(folder: Path, rename: bool) -> Iterator[tuple[Path, str, I64]]:
    """Yield which replications of which cell each part has; parts that are not what their names say do not count."""
    pl = _polars()
    intact = []
    for path in sorted(folder.glob(f"*{PARQUET}")):
        if _name(path.read_bytes()) == path.stem:
            intact.append(path)
        elif rename:
            _set_aside(path)
        else:
            warnings.warn(f"{path} is damaged and does not count", stacklevel=5)
    if intact:
        found = _scanned(intact, include_file_paths="part").select("part", "key", "replication").collect()
        for part, key, replications in found.group_by("part", "key").agg(pl.col("replication")).iter_rows():
            yield Path(part), key, np.array(replications)


def _scanned(paths: list[Path], **options: Any) -> polars.LazyFrame:
    """Return parts to be read; brackets and equality signs in the folder's name mean nothing."""
    scanned: polars.LazyFrame = _polars().scan_parquet(paths, glob=False, hive_partitioning=False, **options)
    return scanned


def _parquet(frame: polars.DataFrame, metadata: dict[str, str] | None = None) -> bytes:
    """Return a frame as a file, made in memory, so that only one place writes and says what is wrong with the disk."""
    content = io.BytesIO()
    frame.write_parquet(content, metadata=metadata)
    return content.getvalue()


def _check(cell: Cell, job: Job, outcome: Outcome, keys: set[str]) -> None:
    """Refuse what would not be found again, or would be found wrong."""
    if cell.key not in keys:
        raise ValueError(f"cell must be one that was given to begin(), got {cell.policy} on {cell.problem}")
    for name, array, width in (
        ("regret", outcome.regret, len(cell.checkpoints)),
        ("pulls", outcome.pulls, cell.problem.arms),
    ):
        if array.shape != (job.replications, width):
            raise ValueError(f"{name} must have shape {(job.replications, width)}, got {array.shape}")


def _rows(cell: Cell, job: Job, outcome: Outcome) -> polars.DataFrame:
    pl = _polars()
    replications = np.arange(job.first, job.first + job.replications)
    means = None
    if isinstance(cell.problem, RandomProblem):
        means = [cell.problem.draw(cell.seed, int(replication)).means.tolist() for replication in replications]
    frame: polars.DataFrame = pl.DataFrame(
        [
            pl.Series("key", [cell.key] * job.replications, dtype=pl.String),
            pl.Series("replication", replications, dtype=pl.Int64),
            pl.Series("regret", outcome.regret.astype(np.float64)).arr.to_list(),
            pl.Series("pulls", outcome.pulls.astype(np.int64)).arr.to_list(),
            pl.Series("means", means or [None] * job.replications, dtype=pl.List(pl.Float64)),
        ]
    )
    return frame


def _single(frame: polars.DataFrame) -> polars.DataFrame:
    """Remove rows that are there twice, as when parts of two machines were put together; they must be equal."""
    pl = _polars()
    again = ~frame.select(pl.struct("key", "replication").is_first_distinct()).to_series()
    if not again.any():
        return frame
    single = frame.filter(~again)
    both = frame.filter(again).join(single, on=["key", "replication"], suffix="_first")
    for row in both.iter_rows(named=True):
        if row["regret"] != row["regret_first"] or row["pulls"] != row["pulls_first"]:
            raise ValueError(
                f"replication {row['replication']} of the cell {row['key']} is there twice, with different outcomes"
            )
    return single


def _measurements(rows: polars.DataFrame) -> Measurements:
    arrays = {
        name: rows[name].explode().to_numpy().reshape(len(rows), -1)
        for name in ("regret", "pulls", "means")
        if rows[name].null_count() == 0
    }
    return Measurements(rows["replication"].to_numpy(), arrays["regret"], arrays["pulls"], arrays.get("means"))


# What is there.


def _longer(flags: Flags, size: int) -> Flags:
    """Return a copy with room for so many."""
    longer = np.zeros(max(size, flags.size), bool)
    longer[: flags.size] = flags
    return longer


def _rest(block: Job, there: Flags) -> Iterator[Job]:
    """Yield a block without the replications that are there."""
    absent = ~there[block.first : block.first + block.replications]
    if absent.all():
        yield block
        return
    edges = np.flatnonzero(np.diff(absent.astype(np.int8), prepend=0, append=0))
    for begin, end in edges.reshape(-1, 2).tolist():
        size = end - begin
        yield dataclasses.replace(block, first=block.first + begin, replications=size, lanes=padded(size))
