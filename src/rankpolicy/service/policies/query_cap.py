"""A cap on the queries that a bandit remembers: those learned from least recently are forgotten."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankpolicy.bandits.per_query.keys import keys_of, mixed_keys
from rankpolicy.service.domain.records import Lesson
from rankpolicy.service.errors import DamagedStoreError

_SHARE_FORGOTTEN = 10  # one in ten queries is forgotten at a time, so that the table is rebuilt rarely
_ENCODER, _DECODER = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(list[tuple[str, list[str]]])


class QueryCap:
    """Queries in the order in which they were last learned from, with the items that something may be known about."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: OrderedDict[str, dict[str, None]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._items)

    def blocks(self, lessons: Sequence[Lesson]) -> Iterator[tuple[list[Lesson], NDArray[np.uint64] | None]]:
        """Lessons in blocks, and the keys to forget after each block; the same however lessons are cut into calls."""
        block: list[Lesson] = []
        for lesson in lessons:
            block.append(lesson)
            # A new dict: a copy of the table still has the old one.
            self._items[lesson.query] = self._items.get(lesson.query, {}) | dict.fromkeys(lesson.items)
            self._items.move_to_end(lesson.query)
            if len(self._items) > self._most:
                yield block, self._forgotten()
                block = []
        if block:
            yield block, None

    def copied(self) -> Callable[[], bytes]:
        """What makes bytes of everything that is known now, later and in any thread; items in sorted order."""
        remembered = list(self._items.items())
        return lambda: _ENCODER.encode([(query, sorted(items)) for query, items in remembered])

    def restore(self, content: bytes) -> None:
        """Know what ``copied`` made bytes of."""
        try:
            remembered = _DECODER.decode(content)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise DamagedStoreError("the state of a bandit must be what state() returned; got other bytes.") from None
        self._items = OrderedDict((query, dict.fromkeys(items)) for query, items in remembered)

    def _forgotten(self) -> NDArray[np.uint64]:
        keys = []
        for _ in range(max(1, self._most // _SHARE_FORGOTTEN)):
            query, items = self._items.popitem(last=False)
            of_query = keys_of([query])
            keys.append(mixed_keys(of_query))
            keys.append(mixed_keys(of_query[:, None], keys_of(list(items))[None])[0])
        return np.concatenate(keys)
