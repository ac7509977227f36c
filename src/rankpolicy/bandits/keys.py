"""Names as 64-bit numbers: the same in every process, spread evenly, never 0."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.types import RankPolicyError


def keys_of(names: ArrayLike) -> NDArray[np.uint64]:
    """A key for each text or whole number, in the shape that came.

    >>> bool(keys_of(["7"])[0] == keys_of([7])[0])  # not the same name
    False
    """
    values = np.asarray(names)
    if values.dtype.kind in "iu":
        return mixed_keys(values.astype(np.uint64))
    if values.dtype.kind != "U":
        raise RankPolicyError(f"queries and items must be texts or whole numbers; got {values.dtype}.")
    digests = b"".join(blake2b(name.encode(), digest_size=8).digest() for name in values.ravel().tolist())
    return np.frombuffer(digests, np.uint64).reshape(values.shape)


def mixed_keys(keys: NDArray[np.uint64], others: NDArray[np.uint64] | None = None) -> NDArray[np.uint64]:
    """Keys made into others, or pairs of keys into one each: the finaliser of SplitMix64 (Steele, Lea & Flood 2014), 0 made 1."""
    z = keys * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x632BE59BD9B4E019)
    if others is not None:
        z = z ^ others
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.maximum(z ^ (z >> np.uint64(31)), np.uint64(1))
