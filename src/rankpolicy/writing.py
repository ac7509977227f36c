"""The one way to write a file: it appears whole or not at all, and nothing that is there is harmed."""

from __future__ import annotations

import bz2
import contextlib
import glob
import gzip
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO

from rankpolicy.declarations.arguments import checked_path
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

_UNFINISHED = ".unfinished"
_LONGEST_NAME = 200  # of the 255 bytes that a file name may have
_ABANDONED_SECONDS = 60  # a writer locks its file within this time
_DESCRIPTORS = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")
_INPUTS: ContextVar[dict[tuple[int, int], str] | None] = ContextVar("inputs", default=None)


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A stream whose content appears at ``path`` whole or not at all, when the block ends without an error.

    It is written under a unique name in the same folder, flushed to disk and renamed; a link is followed, and owner and permissions of the
    file that is replaced are kept. Devices and pipes stay what they are: they are written to.
    Names that end in .gz, .bz2 or .zst are compressed.
    """
    target = checked_target(path)
    refuse_input(target)
    try:
        if is_special(target):
            with _special_file(target) as stream:
                yield stream
        else:
            with _replacement(target) as stream:
                yield stream
    except OSError as error:
        raise RankPolicyError(
            f"cannot write {target}: {error.strerror or error}. Free some space or choose another place; what was there is as it was."
        ) from None


def checked_target(path: str | os.PathLike[str]) -> Path:
    """The path, if a file can be written there."""
    if isinstance(path, str) and not path:
        raise RankPolicyError("the name of a file to write must not be empty. Name a file, such as 'model.rp'.")
    target = Path(checked_path(path))
    try:
        if target.is_dir():
            raise RankPolicyError(f"{target} must be a file to write; it is a directory. Name a file in it.")
        if not target.parent.is_dir():
            raise RankPolicyError(
                f"{target} must be in a directory that exists; {target.parent} does not. Create it first."
            )
        kind = os.stat(target).st_mode
    except FileNotFoundError:
        return target
    except (OSError, ValueError) as error:  # a name that is too long, a zero byte in it, links in a circle
        if isinstance(error, RankPolicyError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise RankPolicyError(f"cannot write {str(path)[:200]!r}: {reason}. Choose another name.") from None
    if stat.S_ISBLK(kind) or stat.S_ISSOCK(kind):
        what = "a block device" if stat.S_ISBLK(kind) else "a socket"
        raise RankPolicyError(f"{target} must be a file to write; it is {what}. Name another file.")
    return target


def is_special(path: Path) -> bool:
    """Whether this is a device, a pipe or an open descriptor (/dev/stdout), which are written to and never replaced."""
    if os.path.abspath(path).startswith(_DESCRIPTORS):
        return True
    return path.exists() and not path.is_file()


@contextmanager
def inputs_kept() -> Iterator[None]:
    """Until the block ends, refuse to write a file that was read in it: output never replaces its own input."""
    token = _INPUTS.set({})
    try:
        yield
    finally:
        _INPUTS.reset(token)


def note_input(path: str | os.PathLike[str]) -> None:
    """Remember that a file is read, for ``inputs_kept``."""
    inputs = _INPUTS.get()
    if inputs is not None:
        with contextlib.suppress(OSError):
            at = os.stat(path)
            inputs[at.st_dev, at.st_ino] = os.fspath(path)


def refuse_input(path: Path) -> None:
    """Refuse a file to write that was read before, where ``inputs_kept`` says so."""
    inputs = _INPUTS.get()
    if inputs and path.is_file() and not is_special(path):
        at = path.stat()
        if (at.st_dev, at.st_ino) in inputs:
            raise RankPolicyError(
                f"{path} must not be written: it is read as {inputs[at.st_dev, at.st_ino]}, and output never replaces its own input. "
                "Choose another name."
            )


@contextmanager
def _special_file(target: Path) -> Iterator[BinaryIO]:
    """What is written goes to the device or pipe at the end, so that an error before leaves nothing half-written."""
    with tempfile.TemporaryFile() as unpacked_file:
        with _packing(target.suffix, unpacked_file) as stream:
            yield stream
        unpacked_file.seek(0)
        # Appended: a descriptor may be a file that the shell opened and wrote to before.
        with open(os.open(target, os.O_WRONLY | os.O_APPEND), "wb") as file:
            shutil.copyfileobj(unpacked_file, file)


@contextmanager
def _replacement(target: Path) -> Iterator[BinaryIO]:
    target = target.resolve()
    _remove_abandoned(target)
    unfinished = target.with_name(f".{target.name[:_LONGEST_NAME]}.{secrets.token_hex(8)}{_UNFINISHED}")
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with open(handle, "wb") as raw:
            _lock(handle)
            with _packing(target.suffix, raw) as stream:
                yield stream
            raw.flush()
            _keep_permissions(target, unfinished)
            os.fsync(raw.fileno())
            os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)


def _keep_permissions(target: Path, unfinished: Path) -> None:
    """Owner and permissions of the file that is replaced; only an administrator may give a file to others."""
    try:
        replaced = target.stat()
    except FileNotFoundError:
        return
    if hasattr(os, "chown"):
        with contextlib.suppress(OSError):
            os.chown(unfinished, replaced.st_uid, replaced.st_gid)
    os.chmod(unfinished, replaced.st_mode & 0o777)


def _lock(handle: int) -> bool:
    """Lock a file for as long as it is open in this process; False where another process has it."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _remove_abandoned(target: Path) -> None:
    """Delete what writers of the same file left behind when they were killed: old, and locked by no living process."""
    for abandoned in target.parent.glob(f".{glob.escape(target.name[:_LONGEST_NAME])}.*{_UNFINISHED}"):
        with contextlib.suppress(OSError):
            if time.time() - abandoned.stat().st_mtime < _ABANDONED_SECONDS:
                continue
            handle = os.open(abandoned, os.O_RDONLY)
            try:
                if _lock(handle):
                    abandoned.unlink()
            finally:
                os.close(handle)


@contextmanager
def _packing(suffix: str, raw: BinaryIO) -> Iterator[Any]:
    if suffix == ".gz":
        # Without a name and a time in the header, the same data give the same bytes.
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as stream:
            yield stream
    elif suffix == ".bz2":
        with bz2.BZ2File(raw, "wb") as packed:
            yield packed
    elif suffix == ".zst":
        with (
            require("zstandard", "A file packed with Zstandard")
            .ZstdCompressor()
            .stream_writer(raw, closefd=False) as stream
        ):
            yield stream
    else:
        yield raw
