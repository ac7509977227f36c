"""The cache of scanned files: a folder per content, which appears whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.fingerprints import sha256_of_file
from rankpolicy.types import RankPolicyError

VERSION = 2
_MANIFEST, _CODES, _ROWS, _VALUES = "manifest.json", "codes.bin", "rows.npz", "values.npy"
_MAPPED = {"labels": "labels.npy", "source_rows": "source_rows.npy"}  # one number per row: read when they are needed


def default_folder() -> Path:
    """Where caches are kept unless the user names a folder: ``$XDG_CACHE_HOME/rankpolicy``, else ``~/.cache/rankpolicy``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rankpolicy"


def cache_key(files: Sequence[Path], reading: dict[str, Any]) -> str:
    """The name of the cache of these files, from their content and from how they are read."""
    description = {"version": VERSION, "files": [sha256_of_file(file) for file in files], **reading}
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()[:32]


@contextmanager
def new_cache(folder: Path, key: str) -> Iterator[Path]:
    """A folder to fill, which becomes the cache with this key when the block ends without an error, and is removed otherwise."""
    unfinished = folder / f".unfinished-{key[:8]}-{secrets.token_hex(4)}"
    try:
        unfinished.mkdir(parents=True)
        yield unfinished
        if not (folder / key / _MANIFEST).exists():
            shutil.rmtree(folder / key, ignore_errors=True)  # what is left of one that somebody removed in part
        try:
            os.replace(unfinished, folder / key)
        except OSError:
            if not (folder / key / _MANIFEST).exists():  # else another process was first
                raise
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        advice = "Free some space, or name another folder with cache=." if is_full else ""
        raise RankPolicyError(
            f"cannot write the cache in {folder}: {error.strerror or error}. {advice}".rstrip()
        ) from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def room_for_codes(unfinished: Path, shape: tuple[int, int], dtype: Any) -> NDArray[Any]:
    """A writable, memory-mapped array on disk; a full disk is an error here, not a crash at the first write."""
    file = unfinished / _CODES
    with open(file, "wb") as stream:
        _fill(stream, max(1, int(np.prod(shape)) * np.dtype(dtype).itemsize))
    return np.memmap(file, dtype, "r+", shape=shape)


def room_for_rows(unfinished: Path, num_rows: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Writable, memory-mapped arrays on disk for labels and source rows (rows,), all 0."""
    labels = _room_for_numbers(unfinished / _MAPPED["labels"], num_rows, np.float32)
    return labels, _room_for_numbers(unfinished / _MAPPED["source_rows"], num_rows, np.int64)


def _room_for_numbers(file: Path, length: int, dtype: Any) -> NDArray[Any]:
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": (length,)}
    with open(file, "wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        _fill(stream, length * np.dtype(dtype).itemsize)
    numbers: NDArray[Any] = np.load(file, mmap_mode="r+", allow_pickle=False)
    return numbers


def _fill(stream: BinaryIO, num_bytes: int) -> None:
    """Add so many bytes of 0 to a file."""
    if hasattr(os, "posix_fallocate"):
        stream.flush()
        os.posix_fallocate(stream.fileno(), stream.tell(), num_bytes)
        return
    for start in range(0, num_bytes, 1 << 24):
        stream.write(bytes(min(1 << 24, num_bytes - start)))


def finish(
    unfinished: Path, codes: NDArray[Any], values: NDArray[np.float32] | None, rows: dict[str, NDArray[Any]]
) -> None:
    """Write what is kept beside the codes."""
    assert isinstance(codes, np.memmap)
    codes.flush()
    if values is not None:
        _save(unfinished / _VALUES, values)
    np.savez(unfinished / _ROWS, allow_pickle=False, **rows)
    manifest = {"version": VERSION, "shape": list(codes.shape), "dtype": codes.dtype.name}
    manifest["sha256"] = {name: sha256_of_file(unfinished / name) for name in _files_beside_codes(codes.dtype)}
    (unfinished / _MANIFEST).write_text(json.dumps(manifest))


def open_cache(
    folder: Path, key: str
) -> tuple[NDArray[Any], NDArray[np.float32] | None, dict[str, NDArray[Any]]] | None:
    """Codes (memory-mapped), values of the codes and arrays of the rows (those of one number per row mapped); None: no such cache."""
    cache = folder / key
    try:
        if not (cache / _MANIFEST).exists():
            return None
        manifest = json.loads((cache / _MANIFEST).read_text())
        shape, dtype = tuple(manifest["shape"]), np.dtype(manifest["dtype"])
        if (cache / _CODES).stat().st_size != max(1, int(np.prod(shape)) * dtype.itemsize):
            raise ValueError("a file is cut short")
        for name in _files_beside_codes(dtype):
            if sha256_of_file(cache / name) != manifest["sha256"][name]:
                raise ValueError(f"{name} is not what was written")
        values = None if dtype == np.float32 else np.load(cache / _VALUES, allow_pickle=False)
        with np.load(cache / _ROWS, allow_pickle=False) as stored:
            rows = {name: stored[name] for name in stored.files}
        for name, file in _MAPPED.items():
            rows[name] = np.load(cache / file, mmap_mode="r", allow_pickle=False)
        return np.memmap(cache / _CODES, dtype, "r", shape=shape), values, rows
    except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile, RankPolicyError) as error:
        raise RankPolicyError(
            f"the cache {cache} is damaged ({error}). Remove this folder and scan again; the data it was made from is elsewhere."
        ) from None


class _Written:
    """A file as numpy writes to anything that is not one: with an error where the disk is full, which it does not notice in files."""

    def __init__(self, stream: BinaryIO) -> None:
        self.write = stream.write


def _save(path: Path, array: NDArray[Any]) -> None:
    with open(path, "wb") as stream:
        np.lib.format.write_array(_Written(stream), array, allow_pickle=False)


def _files_beside_codes(dtype: np.dtype[Any]) -> tuple[str, ...]:
    return (_ROWS, *_MAPPED.values()) if dtype == np.float32 else (_ROWS, _VALUES, *_MAPPED.values())
