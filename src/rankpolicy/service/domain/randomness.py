"""A random generator for every list, made from a secret and the id of the list.

Nothing random is part of the state of a policy: a list can be drawn again from the state, the request and its id, and a restart neither
repeats nor skips random numbers. Who chooses an id cannot choose the list, because the secret is not known.
"""

from __future__ import annotations

import ctypes
import sys
from hashlib import blake2b
from typing import Any

import numpy as np


def generator_of(secret: bytes, ranking_id: str) -> np.random.Generator:
    """The generator of a list.

    >>> generator_of(b"s", "a").random() == generator_of(b"s", "a").random()
    True
    """
    generator = np.random.Generator(np.random.PCG64(0))
    generator.bit_generator.state = _state_of(_digest(secret, ranking_id))
    return generator


class GeneratorOfLists:
    """The generators of all lists, one after the other, in a tenth of the time that it takes to make one each."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._generator = np.random.Generator(np.random.PCG64(0))
        self._places = _places_of_state(self._generator)

    def at(self, ranking_id: str) -> np.random.Generator:
        """What ``generator_of`` returns for a list, until this is called again.

        >>> lists = GeneratorOfLists(b"s")
        >>> [lists.at(name).random() == generator_of(b"s", name).random() for name in "aba"]
        [True, True, True]
        """
        digest = _digest(self._secret, ranking_id)
        if self._places is None:
            self._generator.bit_generator.state = _state_of(digest)
        else:
            _write_state(self._places, digest)
        return self._generator


def _digest(secret: bytes, ranking_id: str) -> bytes:
    return blake2b(ranking_id.encode("utf-8", "surrogatepass"), digest_size=32, key=secret).digest()


def _state_of(digest: bytes) -> dict[str, Any]:
    """The state of a PCG64 generator. Its increment must be odd."""
    return {
        "bit_generator": "PCG64",
        "state": {"state": int.from_bytes(digest[:16], "little"), "inc": int.from_bytes(digest[16:], "little") | 1},
        "has_uint32": 0,
        "uinteger": 0,
    }


def _places_of_state(generator: np.random.Generator) -> tuple[int, int] | None:
    """Where numpy keeps the numbers of a PCG64 generator: setting its ``state`` goes through Python integers and takes 4 microseconds.

    None where they are elsewhere, in another version of numpy or another kind of machine.
    """
    if sys.byteorder != "little" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    generator.integers(2, dtype=np.uint32)  # leaves half of a number behind, which must be gone afterwards
    outer = int(generator.bit_generator.ctypes.state_address)
    places = ctypes.c_uint64.from_address(outer).value, outer + 8
    digest = bytes(range(32))
    before = bytes((ctypes.c_char * 32).from_address(places[0]))
    state: Any = generator.bit_generator.state
    if before[:16] != state["state"]["state"].to_bytes(16, "little"):
        return None
    _write_state(places, digest)
    return places if generator.bit_generator.state == _state_of(digest) else None


def _write_state(places: tuple[int, int], digest: bytes) -> None:
    numbers, spare = places
    ctypes.memmove(numbers, digest[:16] + bytes([digest[16] | 1]) + digest[17:], 32)
    ctypes.memset(spare, 0, 8)  # half of a number that was drawn before
