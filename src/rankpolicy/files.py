"""Reading files: the bytes of a plain, gzip, bzip2 or zstandard file. How files are written: ``rankpolicy.writing``."""

from __future__ import annotations

import bz2
import gzip
import os
import stat
import tomllib
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rankpolicy.declarations.arguments import checked_path
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError
from rankpolicy.writing import atomic_write as atomic_write, note_input

GZIP_MAGIC = b"\x1f\x8b"
BZIP2_MAGIC = b"BZh"
ZSTANDARD_MAGIC = b"\x28\xb5\x2f\xfd"
_DAMAGED = (EOFError, OSError, zlib.error)  # what gzip and bz2 raise for a damaged file
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_text_bytes(path: str | os.PathLike[str], *, largest: int | None = None) -> NDArray[np.uint8]:
    """The text of a file, unpacked if its first bytes say gzip, bzip2 or zstandard; read-only, and ends in a newline."""
    file = checked_file(path)
    text = _read(file)
    head = text[:4].tobytes()
    if head.startswith(GZIP_MAGIC):
        text = np.frombuffer(_unpacked(file, "gzip", gzip.open, largest) + b"\n", np.uint8)
    elif head.startswith(BZIP2_MAGIC):
        text = np.frombuffer(_unpacked(file, "bzip2", bz2.open, largest) + b"\n", np.uint8)
    elif head == ZSTANDARD_MAGIC:
        text = np.frombuffer(_unpacked_zstandard(file, largest) + b"\n", np.uint8)
    if text[:3].tobytes() == BYTE_ORDER_MARK:
        text = text[3:]
    if text[-2:].tobytes() == b"\n\n":
        text = text[:-1]
    text.flags.writeable = False
    return text


def text_blocks(path: str | os.PathLike[str], *, block_bytes: int = 1 << 25) -> Iterator[NDArray[np.uint8]]:
    """The text of a file in blocks of whole lines, unpacked if its first bytes say gzip, bzip2 or zstandard."""
    file, unread = checked_file(path), b""
    with open(file, "rb") as raw:
        head = raw.read(4)
        raw.seek(0)
        stream, kind, errors = _unpacking(raw, head)
        is_first = True
        while True:
            try:
                read = stream.read(block_bytes)
            except errors as error:
                raise _damaged(file, kind, error) from None
            if is_first:
                read, is_first = read.removeprefix(BYTE_ORDER_MARK), False
            whole_lines, newline, unread = (unread + read).rpartition(b"\n")
            if newline:
                yield np.frombuffer(whole_lines + b"\n", np.uint8)
            if not read:
                if unread:
                    yield np.frombuffer(unread + b"\n", np.uint8)
                return


def checked_file(path: str | os.PathLike[str]) -> Path:
    """The path, if a file is there."""
    file = Path(checked_path(path))
    try:
        mode = os.stat(file).st_mode
    except (OSError, ValueError) as error:
        if not isinstance(error, FileNotFoundError):
            reason = getattr(error, "strerror", None) or error
            raise RankPolicyError(
                f"{str(file)[:200]!r} must be a file; it cannot be read ({reason}). Check the path."
            ) from None
        mode = None
    if mode is not None and stat.S_ISDIR(mode):
        raise RankPolicyError(
            f"{file} must be a file; it is a directory.",
            python="Name a file in it, or use read_folds for Fold1, Fold2, ...",
            command_line="Name a file in it.",
        )
    if mode is not None and stat.S_ISFIFO(mode):
        raise RankPolicyError(
            f"{file} must be a file; it is a pipe, which can be read only once. Save it to a file first."
        )
    if mode is None:
        raise RankPolicyError(
            f"{file} must be a file; there is none. Check the path (the working directory is {Path.cwd().name!r})."
        )
    note_input(file)
    return file


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a TOML file says."""
    file = checked_file(path)
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise RankPolicyError(f"{file} must be a file that can be read; it cannot ({error.strerror}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RankPolicyError(f"{file} must be a TOML file: {error}.") from None


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


def _unpacking(raw: BinaryIO, head: bytes) -> tuple[Any, str, tuple[type[Exception], ...]]:
    """A stream of the unpacked bytes, by the first bytes of the file; how it is packed; and the errors of a damaged file."""
    if head.startswith(GZIP_MAGIC):
        return gzip.GzipFile(fileobj=raw), "gzip", _DAMAGED
    if head.startswith(BZIP2_MAGIC):
        return bz2.BZ2File(raw), "bzip2", _DAMAGED
    if head == ZSTANDARD_MAGIC:
        zstandard = require("zstandard", "A file packed with Zstandard")
        stream = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
        return stream, "zstandard", (zstandard.ZstdError,)
    return raw, "plain", ()


def _unpacked(file: Path, kind: str, opened: Callable[[Path], Any], largest: int | None) -> bytes:
    try:
        with opened(file) as stream:
            content: bytes = stream.read() if largest is None else _at_most(stream, largest, file)
            return content
    except _DAMAGED as error:
        raise _damaged(file, kind, error) from None


def _unpacked_zstandard(file: Path, largest: int | None) -> bytes:
    zstandard = require("zstandard", "A file packed with Zstandard")
    if largest is not None:
        try:
            with open(file, "rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as stream:
                return _at_most(stream, largest, file)
        except zstandard.ZstdError as error:
            raise _damaged(file, "zstandard", error) from None
    data, frames = file.read_bytes(), []
    try:
        while data:
            frame = zstandard.ZstdDecompressor().decompressobj()
            frames.append(frame.decompress(data))
            if not frame.eof:
                raise EOFError("the last frame ends early")
            data = frame.unused_data
    except (EOFError, zstandard.ZstdError) as error:
        raise _damaged(file, "zstandard", error) from None
    return b"".join(frames)


def _at_most(stream: Any, largest: int, file: Path) -> bytes:
    content: bytes = stream.read(largest + 1)
    if len(content) > largest:
        raise RankPolicyError(
            f"{file} must not unpack to more than {largest} bytes; it does. Unpack it first if it is to be trusted."
        )
    return content


def _damaged(file: Path, kind: str, error: Exception) -> RankPolicyError:
    return RankPolicyError(
        f"{file} must be a whole {kind} file; it is truncated or damaged ({error}). Copy or download it again."
    )
