"""Names of queries and items as 64-bit keys: the same in every process, evenly distributed, never 0."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.declarations.arguments import as_array
from rankpolicy.types import RankPolicyError

Keys = NDArray[np.uint64]


def keys_of(names: ArrayLike) -> NDArray[np.uint64]:
    """The key of each text or whole number, in the shape of ``names``.

    >>> bool(keys_of(["7"])[0] == keys_of([7])[0])  # different names
    False
    """
    values = as_names(names)
    if values.dtype.kind in "iu":
        return mixed_keys(values.astype(np.uint64))
    digests = b"".join(text_key(name) for name in values.ravel().tolist())
    return np.frombuffer(digests, np.uint64).reshape(values.shape)


def as_names(names: ArrayLike) -> NDArray[Any]:
    """Texts or whole numbers as an array; the column of a data frame holds texts as objects."""
    values = as_array("queries and items", names)
    if values.dtype.kind == "O" and all(isinstance(name, str) for name in values.flat):
        values = values.astype(str)
    if values.size == 0:
        return values.astype(np.int64)
    if values.dtype.kind not in "iuU":
        raise RankPolicyError(f"queries and items must be texts or whole numbers; got {values.dtype}.")
    return values


def mixed_keys(keys: NDArray[np.uint64], partners: NDArray[np.uint64] | None = None) -> NDArray[np.uint64]:
    """Keys hashed once more, or one key for each pair of keys, by the finaliser of SplitMix64 (Steele, Lea & Flood 2014); 0 becomes 1."""
    z = keys * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x632BE59BD9B4E019)
    if partners is not None:
        z = z ^ partners
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.maximum(z ^ (z >> np.uint64(31)), np.uint64(1))


class KnownTexts(dict[str, bytes]):
    """Keys of texts that were seen lately: looking one up takes a tenth of the time of hashing it."""

    def __init__(self, most: int = 1 << 16) -> None:
        super().__init__()
        self._most = most

    def __missing__(self, name: str) -> bytes:
        # numpy drops U+0000 at the end of a text; such names, and what is no text, are left to as_names.
        if type(name) is not str or not name or name[-1] == "\0":
            raise KeyError
        if len(self) >= self._most:
            self.clear()
        self[name] = key = text_key(name)
        return key

    def keys_of(self, names: Iterable[Any]) -> bytes | None:
        """The keys of texts, 8 bytes each; None where one of them is no text or cannot be a name."""
        try:
            return b"".join(map(self.__getitem__, names))
        except (KeyError, TypeError):
            return None


def text_key(name: str) -> bytes:
    """The key of a text, as 8 bytes."""
    return blake2b(name.encode(), digest_size=8).digest()
