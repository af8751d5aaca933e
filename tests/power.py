"""Power losses: what SQLite leaves on the disk if everything that was not synced is forgotten.

kill -9 cannot tell synchronous=FULL from NORMAL, because the operating system keeps what a killed process wrote. So
`Shim` stands between SQLite and the files: it writes every write, sync, creation and deletion to a tape, beside doing
it. `Disk` plays a tape up to any place and says what the files would be if the power failed there.

The shim is a VFS of SQLite (https://sqlite.org/vfs.html) that takes over all functions of the default one, and of the
methods of its files (sqlite3_io_methods) all but three; no compiler is needed.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import os
import random
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

SECTOR = 512  # a disk writes so many bytes wholly or not at all
OPEN_CREATE, SYNCS_FOLDER, FULL = 0x4, 0x4800 | 0x80000, 13  # SYNCS_FOLDER: journals and the log of WAL

Pointer, Int, Long, Text = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_char_p
OPEN = ctypes.CFUNCTYPE(Int, Pointer, Pointer, Pointer, Int, Pointer)  # the path as it is: SQLite keeps the pointer
DELETE = ctypes.CFUNCTYPE(Int, Pointer, Pointer, Int)
WRITE = ctypes.CFUNCTYPE(Int, Pointer, Pointer, Int, Long)
TRUNCATE = ctypes.CFUNCTYPE(Int, Pointer, Long)
SYNC = ctypes.CFUNCTYPE(Int, Pointer, Int)


class Methods(ctypes.Structure):
    """sqlite3_io_methods."""

    _fields_ = (
        ("version", Int),
        ("close", Pointer),
        ("read", Pointer),
        ("write", WRITE),
        ("truncate", TRUNCATE),
        ("sync", SYNC),
        ("others", Pointer * 13),
    )


class File(ctypes.Structure):
    """sqlite3_file."""

    _fields_ = (("methods", ctypes.POINTER(Methods)),)


class Vfs(ctypes.Structure):
    """sqlite3_vfs."""

    _fields_ = (
        ("version", Int),
        ("size_of_file", Int),
        ("longest_path", Int),
        ("next", Pointer),
        ("name", Text),
        ("data", Pointer),
        ("open", OPEN),
        ("delete", DELETE),
        ("others", Pointer * 14),
    )


def library() -> Any:
    """The very SQLite that Python uses, or None if its functions cannot be reached."""
    found = ctypes.CDLL(getattr(_sqlite3, "__file__", None))  # a library also finds what it is linked with
    if not hasattr(found, "sqlite3_vfs_register"):
        return None
    found.sqlite3_vfs_find.restype = ctypes.POINTER(Vfs)
    return found


class Record(NamedTuple):
    """What was done to a file, or a mark."""

    kind: str  # "create", "write", "truncate", "sync", "delete", or "mark"
    file: str = ""
    at: int = 0  # where it was written, how long the file is now, or whether the folder was synced, too
    data: bytes = b""


HEAD = struct.Struct("<cHqI")
KINDS = {b"c": "create", b"w": "write", b"t": "truncate", b"s": "sync", b"d": "delete", b"m": "mark"}
LETTERS = {kind: letter for letter, kind in KINDS.items()}


class Shim:
    """Stands under every connection that this process opens from now on, and writes a tape.

    While there is a file ``full``, the disk is full: every write fails.
    """

    def __init__(self, tape: Path, full: Path | None = None) -> None:
        self._tape = os.open(tape, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        self._full = full
        self._open: dict[int, tuple[str, bool]] = {}  # of each open file the name, and whether it syncs its folder
        self._taken: dict[int, Methods] = {}
        sqlite: Any = library()
        self._real: Vfs = sqlite.sqlite3_vfs_find(None).contents
        self._vfs = Vfs.from_buffer_copy(self._real)
        self._vfs.name, self._vfs.open, self._vfs.delete = b"power", OPEN(self._opens), DELETE(self._deletes)
        if sqlite.sqlite3_vfs_register(ctypes.byref(self._vfs), 1):
            raise RuntimeError("SQLite refuses the shim")
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))  # SQLite calls it for as long as the process lives

    def record(self, record: Record) -> None:
        name = record.file.encode()
        head = HEAD.pack(LETTERS[record.kind], len(name), record.at, len(record.data))
        os.write(self._tape, head + name + record.data)  # one write: threads do not mix theirs

    def mark(self, data: bytes) -> None:
        """Leave a mark on the tape: what was acknowledged by now, say."""
        self.record(Record("mark", data=data))

    def _opens(self, vfs: int, path: int | None, file: int, flags: int, out: int) -> int:
        new = path is not None and flags & OPEN_CREATE and not os.path.exists(ctypes.string_at(path))
        code: int = self._real.open(vfs, path, file, flags, out)
        if code == 0 and path is not None:  # a file without a name is temporary
            name = name_at(path)
            self._open[file] = name, bool(new and flags & SYNCS_FOLDER)
            if new:
                self.record(Record("create", name))
            self._take_over(File.from_address(file))
        return code

    def _take_over(self, file: File) -> None:
        """Give a file our methods, which call those that it had: the file itself stays as it is."""
        address = ctypes.addressof(file.methods.contents)
        if address not in self._taken:
            real = file.methods.contents
            ours = self._taken[address] = Methods.from_buffer_copy(real)

            def write(pointer: int, data: int, size: int, at: int) -> int:
                if self._full is not None and self._full.exists():
                    return FULL
                code: int = real.write(pointer, data, size, at)
                self.record(Record("write", self._open[pointer][0], at, ctypes.string_at(data, size)))
                return code

            def truncate(pointer: int, size: int) -> int:
                code: int = real.truncate(pointer, size)
                self.record(Record("truncate", self._open[pointer][0], size))
                return code

            def sync(pointer: int, flags: int) -> int:
                code: int = real.sync(pointer, flags)
                name, folder = self._open[pointer]
                self._open[pointer] = name, False
                if code == 0:
                    self.record(Record("sync", name, folder))
                return code

            ours.write, ours.truncate, ours.sync = WRITE(write), TRUNCATE(truncate), SYNC(sync)
        file.methods = ctypes.pointer(self._taken[address])

    def _deletes(self, vfs: int, path: int, folder: int) -> int:
        code: int = self._real.delete(vfs, path, folder)
        if code == 0:
            self.record(Record("delete", name_at(path), folder))
        return code


def name_at(path: int) -> str:
    """The name of a file whose path is at an address."""
    return os.path.basename(os.fsdecode(ctypes.string_at(path)))


def records(tape: Path) -> Iterator[Record]:
    """What a tape has; the last one may be incomplete, and is left out then."""
    data, at = tape.read_bytes(), 0
    while at + HEAD.size <= len(data):
        letter, name, where, size = HEAD.unpack_from(data, at)
        start = at + HEAD.size
        at = start + name + size
        if at <= len(data):
            yield Record(KINDS[letter], data[start : start + name].decode(), where, data[start + name : at])


class Content:
    """A file: what of it is synced, and what was done since."""

    def __init__(self, synced: bytes = b"") -> None:
        self.synced = bytearray(synced)
        self.since: list[Record] = []

    def sync(self) -> None:
        for record in self.since:
            perform(self.synced, record)
        self.since = []

    def left(self, luck: random.Random | None) -> bytes:
        """What a power loss leaves: without luck what is synced, else that and some sectors of what is not."""
        data = bytearray(self.synced)
        for record in self.since if luck is not None else ():
            for part in sectors(record):
                if luck is not None and luck.random() < 0.5:
                    perform(data, part)
        return bytes(data)


def sectors(record: Record) -> Iterator[Record]:
    """A write as writes of single sectors; others as they are."""
    if record.kind != "write":
        yield record
        return
    start, end = record.at, record.at + len(record.data)
    while start < end:
        stop = min(end, (start // SECTOR + 1) * SECTOR)
        yield record._replace(at=start, data=record.data[start - record.at : stop - record.at])
        start = stop


def perform(data: bytearray, record: Record) -> None:
    if record.kind == "truncate":
        del data[record.at :]
    data.extend(bytes(max(0, record.at - len(data))))  # what lies between is zero
    if record.kind == "write":
        data[record.at : record.at + len(record.data)] = record.data


class Disk:
    """The files of a folder, as a tape makes them, and what a power loss would leave of them."""

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self._now = {name: Content(data) for name, data in (files or {}).items()}
        self._synced = dict(self._now)  # the folder, as it was last synced
        self._since: list[tuple[str, Content | None]] = []  # names that came or went since

    def play(self, tape: Iterable[Record]) -> Disk:
        for record in tape:
            match record.kind:
                case "create":
                    self._now[record.file] = Content()
                    self._since.append((record.file, self._now[record.file]))
                case "write" | "truncate":
                    self._now[record.file].since.append(record)
                case "sync":
                    self._now[record.file].sync()
                case "delete":
                    del self._now[record.file]
                    self._since.append((record.file, None))
            if record.kind in ("sync", "delete") and record.at:
                self._synced, self._since = dict(self._now), []
        return self

    def left(self, luck: random.Random | None = None) -> dict[str, bytes]:
        """The files after a power loss now; without luck, nothing that was not synced is there."""
        names = dict(self._synced)
        for name, content in self._since[: luck.randint(0, len(self._since)) if luck is not None else 0]:
            if content is None:
                names.pop(name, None)
            else:
                names[name] = content
        return {name: content.left(luck) for name, content in names.items()}


def put(files: dict[str, bytes], folder: Path) -> None:
    """Make these the files of a folder; nothing else is left in it."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)
