"""The log of a live bandit: every decision with its propensity, and the rewards as they come.

An event is a line of JSON, so that a log can be read by anything, and whoever is killed in the middle of a line loses
that line alone. A log whose path ends in ``.parquet`` is a folder: events go to a tail of lines, ``000001.jsonl``, and
every so many of them are packed into ``000001.parquet``. A part takes the place of its tail in one step (a rename), and
where both are there the part counts, so a crash at any moment loses nothing and doubles nothing.
"""

from __future__ import annotations

import io
import json
import math
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rightarm.extras import polars_for
from rightarm.files import exclusive, remove_leftovers, sync_folder, write_whole
from rightarm.formula import check_count, check_number

if TYPE_CHECKING:
    import polars

Arm = str | int | float | bool
Event = dict[str, Any]
PathLike = str | os.PathLike[str]

WIDEST = 2**63 - 1  # of whole numbers, in Parquet and in Polars
LATEST = 253_402_300_800.0  # seconds since 1970, at the end of the year 9999
JSON = ("arm", "among", "arms")  # columns of a part that are JSON: names of several types
ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
PART, TAIL, LOCK = ".parquet", ".jsonl", "lock"


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= WIDEST:
        raise ValueError(f"{name} must be a whole number from 0 to {WIDEST}, got {value!r}")
    return value


def check_arm_name(name: str, value: Any) -> Arm:
    """``value`` as an arm's name that a log can keep."""
    if not isinstance(value, str | int | float | bool):
        raise TypeError(f"{name} must be a text, a number, true or false, got {value!r}")
    if (isinstance(value, int) and abs(value) > WIDEST) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"{name} must be a finite number of at most 64 bits, got {value}")
    return value


def _among(name: str, value: Any) -> list[Arm]:
    if not isinstance(value, list | tuple) or not value:
        raise TypeError(f"{name} must be a list of arms, got {value!r}")
    return [check_arm_name(f"{name}[{i}]", arm) for i, arm in enumerate(value)]


def check_propensity(name: str, value: Any) -> float:
    """``value`` as a probability that an arm that was chosen can have."""
    number = check_number(name, value)
    if not 0 < number <= 1:
        raise ValueError(f"{name} must be above 0 and at most 1, got {number}")
    return number


def _time(name: str, value: Any) -> float:
    number = check_number(name, value)
    if not 0 <= number < LATEST:
        raise ValueError(f"{name} must be in seconds since 1970, before the year 10000, got {number}")
    return number


CHECKS: dict[str, dict[str, Callable[[str, Any], Any]]] = {
    "decision": {
        "id": _whole,
        "arm": check_arm_name,
        "propensity": check_propensity,
        "round": _whole,
        "version": _whole,
        "time": _time,
        "among": _among,
    },
    "reward": {"id": _whole, "reward": check_number, "time": _time},
    "cancel": {"id": _whole, "time": _time},
    "observation": {"arm": check_arm_name, "reward": check_number, "time": _time},
    "arms": {"arms": _among, "time": _time},
}


def _checked(event: Any) -> Event:
    """The event, if it is one."""
    if not isinstance(event, dict) or event.get("event") not in CHECKS:
        raise ValueError(f"an event must be one of {', '.join(CHECKS)}, got {event!r:.200}")
    checks = CHECKS[event["event"]]
    missing = checks.keys() - event.keys() - {"among"}
    if missing:
        raise ValueError(f"the {event['event']} lacks {', '.join(sorted(missing))}, got {event!r:.200}")
    read = {name: check(name, event[name]) for name, check in checks.items() if name in event}
    if "among" in read and not any(_same(read["arm"], arm) for arm in read["among"]):
        raise ValueError(f"arm must be among {read['among']}, got {read['arm']!r}")
    return {"event": event["event"], **read}


def _same(one: Arm, other: Arm) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)  # True is 1, but not as a name


class _Numbers:
    """A set of whole numbers that needs no memory for those that follow each other."""

    def __init__(self) -> None:
        self.low = self.high = 0  # all of low ≤ n < high
        self.others: set[int] = set()

    def __contains__(self, number: int) -> bool:
        return self.low <= number < self.high or number in self.others

    def add(self, number: int) -> None:
        if self.low == self.high and not self.others:
            self.low = self.high = number
        self.others.add(number)
        while self.high in self.others:
            self.others.remove(self.high)
            self.high += 1
        while self.low - 1 in self.others:
            self.low -= 1
            self.others.remove(self.low)


class _Book:
    """Which decisions there are, and which of them wait for a reward: what makes an event right or wrong."""

    def __init__(self) -> None:
        self.decided, self.waiting = _Numbers(), set[int]()
        self.last_id: int | None = None
        self.events = 0

    def check(self, event: Event) -> None:
        if "id" not in event:
            return
        number = event["id"]
        if event["event"] == "decision":
            if number in self.decided:
                raise ValueError(f"id must be a new one for every decision, got {number} again")
        elif number not in self.decided:
            raise ValueError(f"id must be that of a decision for a {event['event']}, got the unknown {number}")
        elif number not in self.waiting:
            raise ValueError(f"id must be that of a decision without a reward, got {number}, which is answered")

    def take(self, event: Event) -> None:
        self.check(event)
        self.events += 1
        if "id" not in event:
            return
        number = event["id"]
        if event["event"] == "decision":
            self.decided.add(number)
            self.waiting.add(number)
            self.last_id = number if self.last_id is None else max(number, self.last_id)
        else:
            self.waiting.remove(number)


def answer_event(id: int, reward: float | None, time: float) -> Event:
    """The event that closes a decision: its reward, or none."""
    if reward is None:
        return {"event": "cancel", "id": id, "time": time}
    return {"event": "reward", "id": id, "reward": reward, "time": time}


# Writing.


class LogWriter:
    """Appends events to a log: JSON lines, or a folder of Parquet parts where the path ends in ``.parquet``.

    - ``sync``: an event is on the disk when the call returns, not only with the operating system.
    - ``pack_every``: how many events a part of a Parquet log has.

    An existing log is continued: all of it is read and checked, and a line that a crash left torn is cut off. A second
    writer is refused for as long as this one is open. An event that is refused, or that could not be written, leaves
    the log as it was. All methods may be called from several threads.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with LogWriter(folder.name + "/log.jsonl") as log:
    ...     log.decision(1, "red", 0.5, round=1, version=0, time=1_700_000_000.0)
    ...     log.decision(2, "blue", 0.25, round=1, version=0, time=1_700_000_001.5)
    ...     log.reward(1, 1.0, time=1_700_000_002.0)
    >>> read_log(folder.name + "/log.jsonl")["arm", "propensity", "reward"].rows()
    [('red', 0.5, 1.0), ('blue', 0.25, None)]
    >>> folder.cleanup()
    """

    def __init__(self, path: PathLike, *, sync: bool = False, pack_every: int = 100_000) -> None:
        self.path, self.sync = Path(path), sync
        self.pack_every = check_count("pack_every", pack_every)
        self._packs = self.path.suffix == PART
        self._threads, self._process, self._closed = threading.Lock(), os.getpid(), False
        self._book, self._files = _Book(), list[int]()
        weakref.finalize(self, _close_all, self._files)  # a writer that was dropped lets the next one in
        if self.path.suffix not in (PART, TAIL):
            raise ValueError(f"path must end in {TAIL} or {PART}, got {self.path}")
        try:
            self._open()
        except BaseException:
            self._release()
            raise

    def _open(self) -> None:
        if self._packs:
            polars_for("a log in Parquet")
            if self.path.is_file():
                raise ValueError(f"path must be a folder or a new one if it ends in {PART}, got the file {self.path}")
            self.path.mkdir(parents=True, exist_ok=True)
            self._files.append(exclusive(self.path / LOCK, "log", self.path))
            self._part = _tidy(self.path)
        self._start_tail()
        for place, event in _events(self.path):
            _at(place, self._book.take, event)

    def _start_tail(self) -> None:
        """Open the tail, without what a crash left of its last line."""
        path = _numbered(self.path, self._part, TAIL) if self._packs else self.path
        self._tail = exclusive(path, "log", self.path)
        self._files.append(self._tail)
        self._size, self._lines, self._full = 0, 0, self.pack_every
        for line in _whole_lines(path):
            self._size += len(line)
            self._lines += 1
        os.ftruncate(self._tail, self._size)
        os.fsync(self._tail)
        sync_folder(path.parent)

    def decision(
        self,
        id: int,
        arm: Arm,
        propensity: float,
        round: int,
        version: int,
        time: float,
        among: Sequence[Arm] | None = None,
    ) -> None:
        """An arm was chosen with probability ``propensity``, ``among`` these, at ``time`` in seconds since 1970."""
        event = {"event": "decision", "id": id, "arm": arm, "propensity": propensity, "round": round}
        event |= {"version": version, "time": time} | ({} if among is None else {"among": among})
        self.write([event])

    def reward(self, id: int, reward: float, time: float) -> None:
        """The reward of a decision came."""
        self.write([answer_event(id, reward, time)])

    def cancel(self, id: int, time: float) -> None:
        """The decision will have no reward."""
        self.write([answer_event(id, None, time)])

    def observation(self, arm: Arm, reward: float, time: float) -> None:
        """A reward of an arm came that belongs to no decision; `read_log` leaves it out."""
        self.write([{"event": "observation", "arm": arm, "reward": reward, "time": time}])

    def arms(self, arms: Sequence[Arm], time: float) -> None:
        """From now on, decisions are made among these arms, if they do not say otherwise."""
        self.write([{"event": "arms", "arms": arms, "time": time}])

    @property
    def last_id(self) -> int | None:
        """The largest id of a decision in the log, so that a bandit that comes back does not use it again."""
        return self._book.last_id

    @property
    def events(self) -> int:
        """How many events the log has."""
        return self._book.events

    def __iter__(self) -> Iterator[Event]:
        """The events, from the first on."""
        return (event for _, event in _events(self.path))

    def write(self, events: Sequence[Event]) -> None:
        """Append several events, as they stand in a log, none of them if one is wrong or cannot be written."""
        checked = [_checked(event) for event in events]
        numbers = [event["id"] for event in checked if "id" in event]
        if len(set(numbers)) < len(numbers):
            raise ValueError(f"events written together must be about different decisions, got {numbers}")
        lines = "".join(ENCODER.encode(event) + "\n" for event in checked)
        with self._threads:
            self._check_open()
            for event in checked:
                self._book.check(event)
            if self._packs and self._lines >= self._full:  # before, or what fails in it would seem to have failed here
                self._pack_or_warn()
            self._append(lines.encode(), len(checked))
            for event in checked:
                self._book.take(event)

    def _pack_or_warn(self) -> None:
        try:
            self._pack()
        except (OSError, polars_for("a log in Parquet").exceptions.PolarsError) as error:  # the events are safe
            self._full += self.pack_every
            warnings.warn(f"{self.path} could not be packed, and goes on in lines: {error}", stacklevel=4)

    def _append(self, lines: bytes, count: int) -> None:
        """Write lines whole or not at all: half a line would spoil the next one too."""
        try:
            rest = memoryview(lines)
            while rest:
                rest = rest[os.write(self._tail, rest) :]
            if self.sync:
                os.fsync(self._tail)
        except BaseException:
            self._closed = True  # unless the log can be made what it was
            os.ftruncate(self._tail, self._size)
            self._closed = False
            raise
        self._size += len(lines)
        self._lines += count

    def pack(self) -> None:
        """Make the tail of a Parquet log a part now; nothing else changes."""
        with self._threads:
            self._check_open()
            if self._packs and self._lines:
                self._pack()

    def _pack(self) -> None:
        tail = _numbered(self.path, self._part, TAIL)
        _write_part([event for _, event in _lines_of(tail)], _numbered(self.path, self._part, PART))
        self._files.remove(self._tail)
        os.close(self._tail)
        self._part += 1
        self._closed = True  # unless there is a new tail
        self._start_tail()
        self._closed = False
        tail.unlink()

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError(f"the log {self.path} is closed")
        if os.getpid() != self._process:
            raise ValueError(f"the log {self.path} was opened by process {self._process}; open it after forking")

    def close(self) -> None:
        """Hand everything to the disk and let the next writer in."""
        with self._threads:
            if not self._closed:
                os.fsync(self._tail)
            self._release()

    def _release(self) -> None:
        self._closed = True
        _close_all(self._files)  # the locks go with them

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _close_all(files: list[int]) -> None:
    while files:
        os.close(files.pop())


def _numbered(folder: Path, number: int, ending: str) -> Path:
    return folder / f"{number:06}{ending}"


def _numbers(folder: Path) -> list[int]:
    """The numbers of parts and tails, in order."""
    files = (file for file in folder.iterdir() if file.suffix in (PART, TAIL) and file.stem.isdigit())
    return sorted({int(file.stem) for file in files})


def _tidy(folder: Path) -> int:
    """Remove what a crash while packing left over; the number of the tail."""
    remove_leftovers(folder)
    numbers = _numbers(folder)
    packed = [number for number in numbers if _numbered(folder, number, PART).exists()]
    for number in packed:
        _numbered(folder, number, TAIL).unlink(missing_ok=True)
    return max([number for number in numbers if number not in packed] + [max(packed, default=0) + 1])


def _write_part(events: list[Event], path: Path) -> None:
    """Write events as Parquet."""
    pl = polars_for("a log in Parquet")
    rows = [
        event | {name: json.dumps(event[name]) for name in JSON if name in event}  # of any type each
        for event in events
    ]
    types = {"event": pl.String, "id": pl.Int64, "arm": pl.String, "propensity": pl.Float64, "reward": pl.Float64}
    types |= {"round": pl.Int64, "version": pl.Int64, "time": pl.Float64, "among": pl.String, "arms": pl.String}
    content = io.BytesIO()
    pl.DataFrame(rows, schema=types).write_parquet(content)
    write_whole(path, content.getvalue())


# Reading.


def _whole_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file but one that is torn; a line is whole when it ends."""
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield line


def _at(place: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function; its error says where."""
    try:
        return function(*arguments)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{place}: {error}") from None


def _parsed(line: bytes) -> Event:
    try:
        event = json.loads(line)
    except ValueError:
        raise ValueError(f"not a line of JSON, got {line[:80]!r}") from None
    return _checked(event)


def _lines_of(path: Path) -> Iterator[tuple[str, Event]]:
    for i, line in enumerate(_whole_lines(path), start=1):
        place = f"{path}, line {i}"
        yield place, _at(place, _parsed, line)


def _rows_of(path: Path) -> Iterator[tuple[str, Event]]:
    """The events of a part."""
    for i, row in enumerate(polars_for("a log in Parquet").read_parquet(path).iter_rows(named=True), start=1):
        event = {name: value for name, value in row.items() if value is not None}
        event |= {name: json.loads(event[name]) for name in JSON if name in event}
        yield f"{path}, row {i}", _at(f"{path}, row {i}", _checked, event)


def _events(path: Path) -> Iterator[tuple[str, Event]]:
    """All events of a log, each with its place."""
    if not path.is_dir():
        yield from _lines_of(path)
        return
    numbers = _numbers(path)
    if not numbers and not (path / LOCK).exists():
        raise ValueError(f"{path} is not a log of rightarm: it has neither parts nor a tail")
    for number in numbers:
        part, tail = _numbered(path, number, PART), _numbered(path, number, TAIL)
        try:
            yield from _rows_of(part) if part.exists() else _lines_of(tail)
        except FileNotFoundError:  # its writer packed it just now
            yield from _rows_of(part)


def read_log(path: PathLike) -> polars.DataFrame:
    """The decisions of a log, a row for each in the order in which they were made, as a Polars frame.

    Columns: ``id``, ``arm``, ``propensity``, ``reward`` (null if none came), ``round``, ``version``, ``asked``,
    ``told`` (both in UTC), ``cancelled``, and ``among``, the arms there were to choose among, null if not said. Arms
    of several types are given as JSON. Everything is checked; an error names the line. A log may be read while it is
    written: a last line that is torn does not count.
    """
    if Path(path).suffix not in (PART, TAIL):
        raise ValueError(f"path must end in {TAIL} or {PART} (read_table reads tables of others), got {path}")
    book, rows, arms = _Book(), dict[int, Event](), dict[str, list[Arm]]()
    for place, event in _events(Path(path)):
        _at(place, book.take, event)
        if event["event"] == "arms":
            arms = {"among": event["arms"]}
        elif event["event"] == "decision":
            rows[event["id"]] = arms | event
        elif event["event"] == "reward":
            rows[event["id"]] |= {"reward": event["reward"], "told": event["time"]}
        elif event["event"] == "cancel":
            rows[event["id"]] |= {"cancelled": True, "told": event["time"]}
    return _frame(rows.values())


def _frame(rows: Iterable[Event]) -> polars.DataFrame:
    pl = polars_for("read_log()")
    rows = list(rows)
    name = _namer([arm for row in rows for arm in (row["arm"], *row.get("among", ()))])
    moment = pl.Datetime("us", "UTC")
    times = {to: [None if row.get(of) is None else round(row[of] * 1e6) for row in rows] for to, of in TIMES.items()}
    among = [None if "among" not in row else [name(arm) for arm in row["among"]] for row in rows]
    arms = pl.Series("arm", [name(row["arm"]) for row in rows], dtype=None if rows else pl.String)
    frame: polars.DataFrame = pl.DataFrame(
        [
            pl.Series("id", [row["id"] for row in rows], dtype=pl.Int64),
            arms,
            pl.Series("propensity", [row["propensity"] for row in rows], dtype=pl.Float64),
            pl.Series("reward", [row.get("reward") for row in rows], dtype=pl.Float64),
            pl.Series("round", [row["round"] for row in rows], dtype=pl.Int64),
            pl.Series("version", [row["version"] for row in rows], dtype=pl.Int64),
            *(pl.Series(to, column, dtype=pl.Int64).cast(moment) for to, column in times.items()),
            pl.Series("cancelled", [row.get("cancelled", False) for row in rows], dtype=pl.Boolean),
            pl.Series("among", among, dtype=pl.List(arms.dtype)),
        ]
    )
    return frame


TIMES = {"asked": "time", "told": "told"}


def _namer(arms: Iterable[Arm]) -> Callable[[Arm], Arm]:
    """How arms are called in a column, which has one type: by their names, or all by their JSON."""
    types = {type(arm) for arm in arms}
    if len(types) <= 1:
        return lambda arm: arm
    return float if types == {int, float} else json.dumps


def read_table(
    path: PathLike,
    *,
    arm: str = "arm",
    propensity: str = "propensity",
    reward: str = "reward",
) -> polars.DataFrame:
    """A log that others wrote, as CSV or as one Parquet file: a row for each decision, in the order of decisions.

    The columns that hold arm, propensity and reward are given by name. The frame has them as `read_log` gives them,
    with rows counted by ``id`` and ``round``; an empty reward is one that never came.
    """
    pl, path = polars_for("read_table()"), Path(path)
    if path.suffix not in (".csv", PART):
        raise ValueError(f"path must end in .csv or {PART}, got {path}")
    try:
        table = pl.read_csv(path, infer_schema_length=None) if path.suffix == ".csv" else pl.read_parquet(path)
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{path} cannot be read as a table: {error}") from None
    for option, column in {"arm": arm, "propensity": propensity, "reward": reward}.items():
        if column not in table.columns:
            raise ValueError(f"{option} must be a column of {path}, {', '.join(table.columns)}, got {column!r}")
    first = 2 if path.suffix == ".csv" else 1  # the heading is a line
    _check_column(table[arm], check_arm_name, path, first)
    _check_column(table[propensity], check_propensity, path, first)
    if table[reward].dtype == pl.Boolean:
        table = table.with_columns(pl.col(reward).cast(pl.Float64))
    _check_column(table[reward], lambda name, value: value is None or check_number(name, value), path, first)
    count = pl.int_range(1, pl.len() + 1, dtype=pl.Int64)
    frame: polars.DataFrame = table.select(
        count.alias("id"),
        pl.col(arm).alias("arm"),
        pl.col(propensity).cast(pl.Float64).alias("propensity"),
        pl.col(reward).cast(pl.Float64).alias("reward"),
        count.alias("round"),
    )
    return frame


def _check_column(column: polars.Series, check: Callable[[str, Any], Any], path: Path, first: int) -> None:
    for i, value in enumerate(column):
        _at(f"{path}, line {i + first}", check, column.name, value)
