"""The cache of machine code on disk: a folder for each version of our compiled code, removed when long unused."""

from __future__ import annotations

import atexit
import contextlib
import errno
import functools
import hashlib
import operator
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import platformdirs

from rightarm.formula.syntax import sources_hash

KEPT_DAYS = 30  # since a process last began to use a folder
KEPT_FOLDERS = 3  # however old: the versions between which somebody goes back and forth
USED = ".writable"  # in each folder: touched by every process that uses it, and locked as long as the process lives
NOTED = ".sources"  # ends the name of a note on which folder belongs to the sources as they are written
REMOVED = ".removed"  # ends the name of a folder that nobody uses any more


@functools.cache
def cache_directory() -> Path:
    """Return the folder of machine code: in ``RIGHTARM_CACHE_DIR`` or the user's cache, one for each version.

    Numba's cache does not notice an edit in another file than the compiled function's own, so the folder's name is the
    hash of all our sources that have something compiled.
    """
    root = _root()
    folder = root / compiled_hash()
    try:
        _use(folder)
        remove_unused(root)
    except OSError:  # a home that cannot be written to: compile anew in every process rather than fail
        temporary = Path(tempfile.mkdtemp(prefix="rightarm-"))
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        return temporary
    return folder


def _root() -> Path:
    if "RIGHTARM_CACHE_DIR" in os.environ:
        return Path(os.environ["RIGHTARM_CACHE_DIR"])
    return platformdirs.user_cache_path("rightarm", appauthor=False)


@functools.cache
def compiled_hash() -> str:
    """Return a name for what our modules say that have something compiled, the same on every Python."""
    here = Path(__file__).parent
    importing = b"from rightarm.formula.compile import"
    sources = {path: path.read_bytes() for path in sorted(here.parent.rglob("*.py"))}
    users = [path for path, source in sources.items() if importing in source or path == here / "compile.py"]
    note = _root() / f"{_hash_as_written(sources[path] for path in users)}{NOTED}"
    with contextlib.suppress(OSError):
        return note.read_text()
    name = sources_hash(users)
    with contextlib.suppress(OSError):  # a home that cannot be written to
        note.parent.mkdir(parents=True, exist_ok=True)
        new = note.with_suffix(f".{secrets.token_hex(4)}.new")
        new.write_text(name)
        new.replace(note)
    return name


def _hash_as_written(sources: Iterable[bytes]) -> str:
    """Return a name for the files as they are, which takes a hundredth of the time that reading what they say does."""
    digest = hashlib.sha256()
    for source in sources:
        digest.update(hashlib.sha256(source).digest())
    return digest.hexdigest()[:24]


def kept_on_disk() -> bool:
    """Return whether machine code outlives the process: its folder can be written to."""
    return cache_directory().parent == _root()


def _use(folder: Path) -> None:
    """Make the folder if it is not there, and hold it as long as this process lives."""
    while True:  # once, unless another process removes the folder at this very moment
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(folder / USED, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        with contextlib.suppress(OSError):  # a disk that has no locks: nobody will remove the folder then
            _lock(file, "LOCK_SH")
        try:
            if os.path.samestat(os.fstat(file), os.stat(folder / USED)):
                os.utime(folder / USED)
                return
        except FileNotFoundError:
            pass
        os.close(file)


def remove_unused(root: Path) -> None:
    """Remove folders of machine code that no process has begun to use for some time and none uses now."""
    versions = [folder for folder in root.iterdir() if (folder / USED).is_file() and folder.suffix != REMOVED]
    for folder in sorted(versions, key=_last_use, reverse=True)[KEPT_FOLDERS:]:
        with contextlib.suppress(OSError):  # in use, or another process was faster
            _give_up(folder)
    for note in root.glob(f"*{NOTED}"):
        with contextlib.suppress(OSError):
            if not (root / note.read_text()).is_dir():
                note.unlink()
    for folder in root.glob(f"*{REMOVED}"):
        shutil.rmtree(folder, ignore_errors=True)


def _last_use(folder: Path) -> float:
    with contextlib.suppress(OSError):
        return (folder / USED).stat().st_mtime
    return 0.0


def _give_up(folder: Path) -> None:
    """Rename the folder to be removed, unless it is young or a process holds it."""
    file = os.open(folder / USED, os.O_RDWR | os.O_CLOEXEC)
    try:
        _lock(file, "LOCK_EX", "LOCK_NB")
        if time.time() - os.fstat(file).st_mtime > KEPT_DAYS * 86_400:
            folder.rename(folder.with_name(f"{folder.name}.{secrets.token_hex(4)}{REMOVED}"))
    finally:
        os.close(file)


def _lock(file: int, *flags: str) -> None:
    """Lock a file as long as it is open; an error if another process has it, or if there are no locks here."""
    try:
        import fcntl
    except ImportError as error:
        raise OSError(errno.ENOSYS, "this system does not have flock") from error
    fcntl.flock(file, functools.reduce(operator.or_, (getattr(fcntl, flag) for flag in flags)))
