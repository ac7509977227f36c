"""Files: bytes of a plain, gzip or zstandard file, and files that appear whole or not at all."""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

GZIP_MAGIC = b"\x1f\x8b"
ZSTANDARD_MAGIC = b"\x28\xb5\x2f\xfd"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_text_bytes(path: str | os.PathLike[str]) -> NDArray[np.uint8]:
    """The text of a file, unpacked if its first bytes say gzip or zstandard; read-only, and ends in a newline."""
    file = checked_file(path)
    text = _read(file)
    head = text[:4].tobytes()
    if head.startswith(GZIP_MAGIC):
        text = np.frombuffer(_unpacked_gzip(file) + b"\n", np.uint8)
    elif head == ZSTANDARD_MAGIC:
        text = np.frombuffer(_unpacked_zstandard(file) + b"\n", np.uint8)
    if text[:3].tobytes() == BYTE_ORDER_MARK:
        text = text[3:]
    if text[-2:].tobytes() == b"\n\n":
        text = text[:-1]
    text.flags.writeable = False
    return text


def checked_file(path: str | os.PathLike[str]) -> Path:
    """The path, if a file is there."""
    file = Path(path)
    if file.is_dir():
        raise RankPolicyError(
            f"{file} must be a file; it is a directory. Name a file in it, or use read_folds for Fold1, Fold2, ..."
        )
    if not file.exists():
        raise RankPolicyError(
            f"{file} must be a file; there is none. Check the path (the working directory is {Path.cwd().name!r})."
        )
    return file


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A stream whose content appears at ``path`` whole or not at all, when the block ends without an error.

    It is written under a unique name in the same folder, flushed to disk and renamed. Names that end in .gz or .zst are compressed.

    Parameters
    ----------
    path
        The file to write; its folder must exist.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise RankPolicyError(
            f"{target} must be in a directory that exists; {target.parent} does not. Create it first."
        )
    if target.is_dir():
        raise RankPolicyError(f"{target} must be a file to write; it is a directory. Name a file in it.")
    target = target.resolve()  # a link is followed: the file it names is replaced, not the link
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".unfinished", dir=target.parent)
    unfinished = Path(name)
    try:
        with open(handle, "wb") as raw:
            with _packing(target.suffix, raw) as stream:
                yield stream
            raw.flush()
            os.fsync(raw.fileno())
        os.chmod(unfinished, _permissions(target))
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)


def _permissions(target: Path) -> int:
    """Those of the file that is replaced, or of a new file."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


@contextmanager
def _packing(suffix: str, raw: BinaryIO) -> Iterator[Any]:
    if suffix == ".gz":
        # Without a name and a time in the header, the same data give the same bytes.
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as stream:
            yield stream
    elif suffix == ".zst":
        with (
            require("zstandard", "A file packed with Zstandard")
            .ZstdCompressor()
            .stream_writer(raw, closefd=False) as stream
        ):
            yield stream
    else:
        yield raw


def _read(file: Path) -> NDArray[np.uint8]:
    """The bytes of a file with room for one more, which spares the copy when a newline has to be added."""
    size = file.stat().st_size
    text = np.empty(size + 1, np.uint8)
    with open(file, "rb", buffering=0) as stream:
        filled = 0
        while filled < size and (count := stream.readinto(text[filled:size].data)):
            filled += count
    text[filled] = ord("\n")
    return text[: filled + 1]


def _unpacked_gzip(file: Path) -> bytes:
    try:
        return gzip.decompress(file.read_bytes())
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _damaged(file, "gzip", error) from None


def _unpacked_zstandard(file: Path) -> bytes:
    zstandard = require("zstandard", "A file packed with Zstandard")
    data, parts = file.read_bytes(), []
    try:
        while data:
            frame = zstandard.ZstdDecompressor().decompressobj()
            parts.append(frame.decompress(data))
            if not frame.eof:
                raise EOFError("the last frame ends early")
            data = frame.unused_data
    except (EOFError, zstandard.ZstdError) as error:
        raise _damaged(file, "zstandard", error) from None
    return b"".join(parts)


def _damaged(file: Path, kind: str, error: Exception) -> RankPolicyError:
    return RankPolicyError(
        f"{file} must be a whole {kind} file; it is truncated or damaged ({error}). Copy or download it again."
    )
