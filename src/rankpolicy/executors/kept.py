"""Shared values that a worker keeps between tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_MOST_BYTES = 1 << 30
_LEAST_VALUES = 2  # a function, and what its tasks read
_kept: dict[str, tuple[int, Any]] = {}  # size and value by key, the one used last at the end


def kept(key: str, load: Callable[[], Any], unpack: Callable[[Any], Any]) -> Any:
    """The value with this key, loaded and unpacked unless it is still there. The ones used longest ago go first."""
    if key in _kept:
        _kept[key] = _kept.pop(key)
        return _kept[key][1]
    packed = load()
    size = len(packed[0]) if isinstance(packed, tuple) else len(packed)
    _kept[key] = size, unpack(packed)
    while len(_kept) > _LEAST_VALUES and sum(num_bytes for num_bytes, _ in _kept.values()) > _MOST_BYTES:
        del _kept[next(iter(_kept))]
    return _kept[key][1]
