"""Counts of all queries by key, in one sparse table, with the compiled steps that rank and learn from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.bandits.bandit import Bandit
from rankpolicy.bandits.per_query.keys import Keys, mixed_keys
from rankpolicy.kernels.bandits.memory import Memory, Table

FULLEST = 0.7  # largest share of slots in use; above it probes get long
_FEWEST_SLOTS = 1024


class KeyCounts:
    """Counts of (query, item) pairs and of lists per query. Keys that come in are those of names; pairs of them are mixed here.

    ``keys`` (1 + item,) are those of a query and of its items.
    """

    def __init__(self, bandit: Bandit) -> None:
        self._bandit = bandit
        self._entries = _empty(_FEWEST_SLOTS)
        self._engine: Any = None
        self._source: Any = None
        self._source_of: np.random.Generator | None = None
        self.num_keys = 0

    @property
    def num_bytes(self) -> int:
        """Size of the table in bytes."""
        return self._entries.keys.nbytes + self._entries.counts.nbytes

    def rank(
        self, keys: Keys, generator: np.random.Generator, length: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Indices of the items to show among those of the query, and their propensities where the bandit has any."""
        ranking, propensities = np.empty(length, np.int64), np.empty(length)
        if length > 0:
            engine, source = self._unpacked(), self._unpacked_source(generator)
            self._rank_query(engine, source, self._entries, keys, ranking, propensities)
        return ranking, propensities

    def rank_many(
        self,
        queries: Keys,
        items: Keys,
        lengths: NDArray[np.int64],
        generator: np.random.Generator,
        longest: int,
    ) -> NDArray[np.int64]:
        """Indices of the items to show (list, position), -1 past the end of a list; ``items`` is (list, item), up to the lengths."""
        from rankpolicy.kernels.bandits.per_query import rank_queries

        rankings = np.empty((len(queries), longest), np.int64)
        source = self._unpacked_source(generator)
        rank_queries(self._unpacked(), source, self._entries, queries, items, lengths, rankings)
        return rankings

    def learn(self, queries: Keys, items: Keys, offsets: NDArray[np.int64], clicks: NDArray[np.int8]) -> None:
        """Learn from lists, one after the other: items and clicks of list l stand from offsets[l] to offsets[l + 1]."""
        from rankpolicy.kernels.bandits.per_query import learn_queries

        self._make_room(len(items) + len(queries))
        self.num_keys += learn_queries(self._unpacked(), self._entries, queries, items, offsets, clicks)

    def memory_of(self, keys: Keys) -> Memory:
        """The memory that the bandit of a query has about these items."""
        counts = self.counts(keys)
        steps = self._read(mixed_keys(keys[:1]))[0, :1]
        return self._bandit.memory._replace(
            steps=steps.astype(np.int64), statistics=counts[None].astype(np.float64, order="C")
        )

    def counts(self, keys: Keys) -> NDArray[np.uint32]:
        """Clicks and observations (item, 2)."""
        return self._read(mixed_keys(keys[:1], keys[1:]))

    def entries(self) -> Table:
        """All keys in use, mixed, with their counts."""
        used = self._entries.keys != 0
        return Table(self._entries.keys[used], self._entries.counts[used])

    def copied_slots(self) -> Table:
        """A copy of all slots, with key 0 where they are free."""
        return Table(self._entries.keys.copy(), self._entries.counts.copy())

    def entries_of(self, keys: Keys) -> Table:
        """The entries of a query and some items that are in use, mixed."""
        mixed = np.concatenate([mixed_keys(keys[:1]), mixed_keys(keys[:1], keys[1:])])
        counts = self._read(mixed)
        used = counts.any(1)
        return Table(mixed[used], counts[used])

    def replace(self, entries: Table) -> None:
        """Forget everything, and know these entries."""
        from rankpolicy.kernels.bandits.per_query import add_entries

        self._entries, self.num_keys = _empty(_FEWEST_SLOTS), 0
        self._make_room(len(entries.keys))
        add_entries(self._entries, entries)
        self.num_keys = len(entries.keys)

    def _read(self, keys: Keys) -> NDArray[np.uint32]:
        from rankpolicy.kernels.bandits.per_query import read_counts

        counts = np.zeros((len(keys), 2), np.uint32)
        read_counts(self._entries, keys, counts)
        return counts

    def _unpacked(self) -> Any:
        if self._engine is None:
            from rankpolicy.kernels.bandits.per_query import new_engine, rank_query
            from rankpolicy.kernels.bandits.uniform import no_propensities

            self._rank_query = rank_query
            # Kept, because the engine has only the addresses of their code.
            self._steps = (*self._bandit.program(), self._bandit.propensity_step() or no_propensities)
            self._engine = new_engine(*self._steps, self._bandit.memory)
        return self._engine

    def _unpacked_source(self, generator: np.random.Generator) -> Any:
        if self._source_of is not generator:
            from rankpolicy.kernels.bandits.per_query import new_source

            self._source, self._source_of = new_source(generator), generator
        return self._source

    def has_room(self, num_new: int) -> bool:
        """Whether so many new keys need no larger table."""
        return self.num_keys + num_new <= FULLEST * len(self._entries.keys)

    def _make_room(self, num_new: int) -> None:
        from rankpolicy.kernels.bandits.per_query import add_entries

        if self.has_room(num_new):
            return
        capacity = len(self._entries.keys)
        while self.num_keys + num_new > FULLEST * capacity:
            capacity *= 2
        old, self._entries = self._entries, _empty(capacity)
        add_entries(self._entries, old)


def _empty(capacity: int) -> Table:
    return Table(np.zeros(capacity, np.uint64), np.zeros((capacity, 2), np.uint32))
