"""Ids that sort by the time at which they were made: a database appends them, where random ids would land all over its index."""

from __future__ import annotations

import os
import time


def time_ordered_id() -> str:
    """32 hexadecimal digits: 12 of milliseconds since 1970, then 20 random ones (80 bits), so nobody can guess another's.

    >>> len(time_ordered_id())
    32
    """
    return f"{time.time_ns() // 1_000_000:012x}{os.urandom(10).hex()}"
