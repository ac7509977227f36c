"""The state of a random generator as plain numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankpolicy.types import RankPolicyError

LOW = (1 << 64) - 1


def generator_words(generator: np.random.Generator) -> NDArray[np.uint64]:
    """The state (6,) of a PCG64 generator: its two 128-bit numbers, high word first, and the unused half of the last 64-bit draw."""
    state = generator.bit_generator.state
    numbers = state["state"]["state"], state["state"]["inc"]
    words = [word for number in numbers for word in (number >> 64, number & LOW)]
    return np.array([*words, state["has_uint32"], state["uinteger"]], np.uint64)


def generator_from_words(words: NDArray[np.uint64]) -> np.random.Generator:
    """The generator that continues from the state in ``words``.

    >>> generator = np.random.default_rng(0)
    >>> copy = generator_from_words(generator_words(generator))
    >>> generator.random() == copy.random()
    True
    """
    high, low, high_step, low_step, has_half, half = (int(word) for word in words)
    if has_half > 1 or half >= 1 << 32:
        raise RankPolicyError("the state of the generator must end with 0 or 1 and a 32-bit number; got others.")
    bits = np.random.PCG64()
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": high << 64 | low, "inc": high_step << 64 | low_step},
        "has_uint32": has_half,
        "uinteger": half,
    }
    return np.random.Generator(bits)
