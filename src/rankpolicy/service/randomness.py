"""A random generator for every list, made from a secret and the id of the list.

Nothing random is part of the state of a policy: a list can be drawn again from the state, the request and its id, and a restart neither
repeats nor skips random numbers. Who chooses an id cannot choose the list, because the secret is not known.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np


def generator_of(secret: bytes, ranking_id: str) -> np.random.Generator:
    """The generator of a list.

    Parameters
    ----------
    secret
        At most 64 bytes that clients do not know.
    ranking_id
        The id of the list.

    >>> generator_of(b"s", "a").random() == generator_of(b"s", "a").random()
    True
    """
    digest = blake2b(ranking_id.encode("utf-8", "surrogatepass"), digest_size=32, key=secret).digest()
    bits = np.random.PCG64(0)
    bits.state = {
        "bit_generator": "PCG64",
        # The increment of a PCG must be odd.
        "state": {"state": int.from_bytes(digest[:16], "little"), "inc": int.from_bytes(digest[16:], "little") | 1},
        "has_uint32": 0,
        "uinteger": 0,
    }
    return np.random.Generator(bits)
