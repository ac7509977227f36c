"""Bandits with a state per query, served, and the cap on the queries that they remember."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankpolicy.bandits.per_query.keys import keys_of, mixed_keys
from rankpolicy.bandits.per_query.query_bandit import QueryBandit
from rankpolicy.declarations.settings import check_settings, setting, settings_class
from rankpolicy.service.domain.messages import MOST_ITEMS, RankRequest
from rankpolicy.service.domain.records import Lesson, Ordered
from rankpolicy.service.errors import DamagedStoreError
from rankpolicy.service.policies.policy_settings import packed, unpacked
from rankpolicy.service.policies.served_policy import ServedPolicy
from rankpolicy.types import RankPolicyError

_SMALL = 10_000  # keys; a table of so many is copied within a millisecond or two
_MAGIC, _CAPPED = b"query bandit 1\n", b"query bandit with a cap 1\n"
_SHARE_FORGOTTEN = 10  # one in ten queries is forgotten at a time, so that the table is rebuilt rarely
_ENCODER, _DECODER = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(list[tuple[str, list[str]]])


class QueryCap:
    """Queries in the order in which they were last learned from, with the items that something may be known about."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: OrderedDict[str, dict[str, None]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._items)

    def has_room(self, num_queries: int) -> bool:
        """Whether so many new queries can be learned from before any is forgotten."""
        return len(self._items) + num_queries <= self._most

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


@settings_class
class BanditPolicy(ServedPolicy):
    """A ``QueryBandit``: each query learns on its own which of its items are clicked."""

    kind: ClassVar[str] = "bandit"
    learns: ClassVar[bool] = True
    is_quick = True

    bandit: str = setting("dcm-ts", "Name of the bandit of each query, one that counts clicks and observations.")
    settings: Mapping[str, Any] | None = setting(None, "Settings of the bandit by name, such as {'epsilon': 0.1}.")

    max_queries: int | None = setting(
        None,
        "How many queries are remembered; beyond that, the tenth of them that was learned from least recently is forgotten. None: all.",
        at_least=1,
        at_most=100_000_000,
    )

    random_lists: float = setting(
        0.0,
        "Share of lists that are drawn at random as a whole, whatever was learned. Off-policy weights are then at most "
        "1 / random_lists for random lists, however long they are; random items one by one (epsilon) make them grow with every position.",
        at_least=0,
        at_most=1,
    )

    def __post_init__(self) -> None:
        check_settings(self)
        self._bandit = self._made()
        if self.random_lists and not self._bandit.has_propensities:
            raise RankPolicyError(
                f"random_lists must be 0 for {self.bandit}, whose own lists have no propensities in closed form; got "
                f"{self.random_lists:g}. Choose bandit = 'epsilon-greedy'."
            )
        self._cap = None if self.max_queries is None else QueryCap(self.max_queries)

    @property
    def num_keys(self) -> int:
        """Number of queries and of (query, item) pairs about which something is known."""
        return self._bandit.num_keys

    def order(self, request: RankRequest, *, generator: np.random.Generator) -> Ordered:
        """The list that the bandit of this query shows now."""
        names = [item.id for item in request.items]
        if self.random_lists and names and generator.random() < self.random_lists:
            shown = [names[index] for index in generator.permutation(len(names))[: request.cutoff]]
            propensities: list[float] | None = self._bandit.propensities(request.query, shown, names).tolist()
        else:
            indices, propensities = self._bandit._rank_texts(
                request.query, names, cutoff=request.cutoff, generator=generator
            )
            shown = [names[index] for index in indices]
        if propensities is None:
            return Ordered(items=shown, no_propensities=self._why_none())
        return Ordered(items=shown, propensities=self._with_random_lists(propensities, len(names)))

    def frozen(self, request: RankRequest) -> Self:
        """A policy that knows what this one knows about the query and its items."""
        frozen = copy(self)
        frozen._know(*self._bandit._entries_of(request.query, [item.id for item in request.items]))
        return frozen

    def warm_up(self) -> None:
        """Load compiled code, so that the first user does not wait for it; changes nothing."""
        other = self._made()
        other.learn("q", ["a", "b"], [0, 1])
        other.rank("q", ["a", "b"])
        if other.has_propensities:
            other.propensities("q", ["a"], ["a", "b"])

    def takes_long_to_learn(self, lessons: Sequence[Lesson]) -> bool:
        """Whether the table would have to be made anew: because it is full, or because queries are forgotten."""
        if self.num_keys < _SMALL:
            return False
        is_over_cap = self._cap is not None and not self._cap.has_room(len(lessons))
        return is_over_cap or not self._bandit._has_room(sum(1 + len(lesson.items) for lesson in lessons))

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """Learn from lists and their clicks."""
        taught = [lesson for lesson in lessons if lesson.items]
        if self._cap is None:
            self._learn_all(taught)
            return
        for block, forgotten in self._cap.blocks(taught):  # in this order: replay must forget at the same lessons
            self._learn_all(block)
            if forgotten is not None:
                self._forget(forgotten)

    def _learn_all(self, taught: Sequence[Lesson]) -> None:
        if not taught:
            return
        self._bandit._learn_texts(
            [lesson.query for lesson in taught],
            [lesson.items for lesson in taught],
            [lesson.clicks for lesson in taught],
        )

    def copied_state(self) -> Callable[[], bytes]:
        """Keys in ascending order with their counts: the order in which they came leaves no trace."""
        slots, cap = self._bandit._copied_slots(), None if self._cap is None else self._cap.copied()

        def state() -> bytes:
            used = np.flatnonzero(slots.keys)
            used = used[np.argsort(slots.keys[used])]
            keys, counts = slots.keys[used].astype("<u8"), slots.counts[used].astype("<u4")
            table = _MAGIC + keys.tobytes() + counts.tobytes()
            return table if cap is None else packed(_CAPPED, [], [table, cap()])

        return state

    def restore(self, state: bytes) -> None:
        """Forget everything, and know what ``state`` returned."""
        if self._cap is not None:
            _, (state, cap) = unpacked(_CAPPED, 0, 2, state)
            self._cap.restore(cap)
        if not state.startswith(_MAGIC) or (len(state) - len(_MAGIC)) % 16:
            raise DamagedStoreError("the state of a bandit must be what state() returned; got other bytes.")
        num_keys = (len(state) - len(_MAGIC)) // 16
        keys = np.frombuffer(state, "<u8", num_keys, len(_MAGIC)).astype(np.uint64)
        counts = np.frombuffer(state, "<u4", 2 * num_keys, len(_MAGIC) + 8 * num_keys).astype(np.uint32)
        self._know(keys, counts.reshape(-1, 2))

    def report(self) -> dict[str, Any]:
        """Number of queries and of (query, item) pairs about which something is known, and with a cap the number of queries."""
        return {"keys": self.num_keys} | ({} if self._cap is None else {"queries": len(self._cap)})

    def _with_random_lists(self, steps: list[float], num_items: int) -> list[float]:
        """The probability of each item given those above it, where the bandit's own list or a random one is shown."""
        if not self.random_lists:
            return steps
        # How likely the list is one of either kind, given its items so far: plain products of probabilities underflow after 100 items.
        learned, uniform = 1.0 - self.random_lists, self.random_lists
        mixed = []
        for position, step in enumerate(steps):
            learned, uniform = learned * step, uniform / (num_items - position)
            mixed.append(chance := learned + uniform)
            learned, uniform = learned / chance, uniform / chance
        return mixed

    def _forget(self, forgotten: NDArray[np.uint64]) -> None:
        arrays = self._bandit._arrays()
        is_remembered = ~np.isin(arrays["keys"], forgotten)
        self._know(arrays["keys"][is_remembered], arrays["counts"][is_remembered])

    def _know(self, keys: NDArray[np.uint64], counts: NDArray[np.uint32]) -> None:
        self._bandit = self._made()
        arrays = self._bandit._arrays()
        self._bandit._restore({"keys": keys, "counts": counts, "generator": arrays["generator"]})

    def _made(self) -> QueryBandit:
        return QueryBandit(bandit=self.bandit, cutoff=MOST_ITEMS, bandit_settings=self.settings)

    def _why_none(self) -> str:
        if "ts" in self.bandit.split("-"):
            return f"{self.bandit}: the order of draws from posteriors has no closed form"
        return f"{self.bandit}: the list follows from what was learned, only ties are drawn"
