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
    return set_to_list(np.random.Generator(np.random.PCG64(0)), secret, ranking_id)


def set_to_list(generator: np.random.Generator, secret: bytes, ranking_id: str) -> np.random.Generator:
    """A generator that exists already becomes that of a list, in a fifth of the time that it takes to make one.

    Parameters
    ----------
    generator
        A PCG64 generator that nobody else uses at the moment; it is changed and returned.
    secret, ranking_id
        As in ``generator_of``.

    >>> mine = generator_of(b"s", "a")
    >>> set_to_list(mine, b"s", "b").random() == generator_of(b"s", "b").random()
    True
    """
    digest = blake2b(ranking_id.encode("utf-8", "surrogatepass"), digest_size=32, key=secret).digest()
    generator.bit_generator.state = {
        "bit_generator": "PCG64",
        # The increment of a PCG must be odd.
        "state": {"state": int.from_bytes(digest[:16], "little"), "inc": int.from_bytes(digest[16:], "little") | 1},
        "has_uint32": 0,
        "uinteger": 0,
    }
    return generator
