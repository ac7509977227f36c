"""Shared values that a worker keeps between tasks."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

_MOST_BYTES = 1 << 30
_LEAST_VALUES = 2  # a function, and what its tasks read
_kept: dict[str, tuple[int, Any]] = {}  # size and value by key, the one used last at the end


def kept(key: str, load: Callable[[], bytes]) -> Any:
    """The value with this key, loaded and unpickled unless it is still there. The ones used longest ago go first."""
    if key in _kept:
        _kept[key] = _kept.pop(key)
        return _kept[key][1]
    content = load()
    _kept[key] = len(content), pickle.loads(content)
    while len(_kept) > _LEAST_VALUES and sum(size for size, _ in _kept.values()) > _MOST_BYTES:
        del _kept[next(iter(_kept))]
    return _kept[key][1]
