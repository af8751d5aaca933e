"""Files that outlive crashes: written whole or not at all, and by one writer at a time."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path

NEW = ".new"  # ends the name of a file that is being written


def exclusive(path: Path, what: str, shown: Path) -> int:
    """Open a file for appending that no other writer has; the lock ends with the process, however that ends.

    Errors speak of ``shown``, which is the ``what`` that the file guards.
    """
    try:
        import fcntl
    except ImportError as error:
        text = f"a {what} is guarded by flock, which this system does not have"
        raise OSError(errno.ENOSYS, text, str(shown)) from error
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(file)
        if error.errno not in (errno.EAGAIN, errno.EACCES):  # this disk has no locks
            raise OSError(error.errno, error.strerror, str(shown)) from None
        text = f"another writer has this {what} open, in this process or another; close that first"
        raise BlockingIOError(error.errno, text, str(shown)) from None
    return file


def write_whole(path: Path, content: bytes) -> None:
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
        _write(new, content)
        os.replace(new, path)
        sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):  # the error that is reported is the first one
            new.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from error


def _write(path: Path, content: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
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
