"""Files that outlive crashes: written whole or not at all, and by one writer at a time."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import BaseFileLock

NEW = ".new"  # ends the name of a file that is being written


def locked(path: Path, what: str, shown: Path) -> BaseFileLock:
    """Lock a file for one writer, in any thread; the lock ends with `release`, or with the process, however that ends.

    A process that is forked does not hold it.

    Parameters
    ----------
    path : Path
        The file, which is made if it is not there.
    what : str
        The kind of thing that the file guards, for errors.
    shown : Path
        The thing itself, for errors.

    Raises
    ------
    BlockingIOError
        If another writer has it, in this process or another.
    OSError
        If the disk has no locks: a file that merely exists would outlive a process that is killed.
    """
    import filelock  # here, because it takes a tenth of the time of `import rightarm`

    lock = filelock.FileLock(path, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire(blocking=False)
    except filelock.Timeout:
        text = f"another writer has this {what} open, in this process or another; close that first"
        raise BlockingIOError(errno.EAGAIN, text, str(shown)) from None
    return lock


class Held:
    """The descriptors that one writer holds, and with them its lock; closed together.

    A process that is forked closes its copies at once: it would hold the lock after its parent was gone.
    """

    def __init__(self) -> None:
        self.files: list[int] = []
        _ALL.add(self)
        weakref.finalize(self, _close_all, self.files)  # a writer that was dropped lets the next one in

    def exclusive(self, path: Path, what: str, shown: Path) -> int:
        """Open a file for appending that no other writer has; the lock ends with the process, however that ends.

        Errors speak of ``shown``, which is the ``what`` that the file guards.
        """
        try:
            import fcntl
        except ImportError as error:
            text = f"a {what} is guarded by flock, which this system does not have"
            raise OSError(errno.ENOSYS, text, str(shown)) from error
        while True:
            file = self.open(path)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                self.close()
                if error.errno not in (errno.EAGAIN, errno.EACCES):  # this disk has no locks
                    raise OSError(error.errno, error.strerror, str(shown)) from None
                text = f"another writer has this {what} open, in this process or another; close that first"
                raise BlockingIOError(error.errno, text, str(shown)) from None
            if _is_at(file, path):
                return file
            self.close_one(file)  # somebody removed it before we had the lock: what we would write goes nowhere

    def open(self, path: Path) -> int:
        """Open one file more for appending."""
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self.files.append(file)
        return file

    def close_one(self, file: int) -> None:
        """Close one of the files."""
        self.files.remove(file)
        os.close(file)

    def close(self) -> None:
        """Close all files, and so let the next writer in."""
        _close_all(self.files)


def _is_at(file: int, path: Path) -> bool:
    """Return whether an open file is the one of that path."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _close_all(files: list[int]) -> None:
    while files:
        os.close(files.pop())


_ALL: weakref.WeakSet[Held] = weakref.WeakSet()
PROCESS = [os.getpid()]  # this process; asking the system each time takes a third of a microsecond


def _leave_to_parent() -> None:
    PROCESS[0] = os.getpid()
    for held in _ALL:
        held.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def write_whole(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a file so that it is there whole or not at all, and on the disk when this returns.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "a", b"some")
    ...     write_whole(Path(folder) / "a", b"other")
    ...     (Path(folder) / "a").read_bytes(), len(list(Path(folder).iterdir()))
    (b'other', 1)
    """
    new = path.with_name(f"{path.name}.{secrets.token_hex(4)}{NEW}")  # a name that no one else chooses, on any machine
    try:
        _write(new, content, mode)
        os.replace(new, path)
        sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):  # the error that is reported is the first one
            new.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from error


def _write(path: Path, content: bytes, mode: int) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(file, rest) :]
        os.fsync(file)
    finally:
        os.close(file)


def sync_folder(folder: Path) -> None:
    """Have the names of new files on the disk: they are written with their folder, not with the files."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def remove_leftovers(folder: Path) -> None:
    """Remove files that a killed writer left half written; to be called by the only writer of the folder."""
    for leftover in folder.glob(f"*{NEW}"):
        leftover.unlink()
