"""A hash in every row: a byte that changes on disk is noticed when the row is read."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec

from rankpolicy.service.errors import DamagedStoreError

_ENCODER = msgspec.msgpack.Encoder()


def row_hash(*columns: Any) -> bytes:
    """Eight bytes that depend on every column, in order.

    >>> row_hash(1, "a") != row_hash("1", "a")
    True
    """
    return blake2b(_ENCODER.encode(columns), digest_size=8).digest()


def check_row(table: str, columns: tuple[Any, ...]) -> None:
    """Refuse a row, its hash last, that is not as it was written."""
    if row_hash(*columns[:-1]) != columns[-1]:
        raise DamagedStoreError(
            f"row {columns[0]} of {table} is damaged: its content does not agree with its hash. Restore the database from a backup."
        )
