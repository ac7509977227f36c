"""Counts over time in a bounded number of buckets: when the time gets longer, neighbours are merged."""

from __future__ import annotations

import random
from typing import NamedTuple

from rankpolicy.service.dashboard.query_table import ItemCounts, QueryCounts

MOST_BUCKETS = 48
FIRST_WIDTH = 5_000_000  # microseconds
LISTS_PER_BUCKET = 16


class SampledList(NamedTuple):
    """A list that is kept to be judged by what is known later."""

    query: QueryCounts
    candidates: tuple[ItemCounts, ...]
    shown: tuple[ItemCounts, ...]  # best first
    explored: float  # share of the shown items that were not among the best by the estimates of that moment


class Bucket:
    """Lists of a stretch of time, with a random sample of them."""

    __slots__ = ("lists", "sample", "with_click")

    def __init__(self) -> None:
        self.lists = 0
        self.with_click = 0
        self.sample: list[SampledList] = []

    def index_for_next(self, generator: random.Random) -> int | None:
        """Where in the sample the list that was just counted goes, so that all lists are equally likely to stay; None: nowhere."""
        if len(self.sample) < LISTS_PER_BUCKET:
            return len(self.sample)
        index = generator.randrange(self.lists)
        return index if index < LISTS_PER_BUCKET else None

    def put(self, index: int, sampled: SampledList) -> None:
        """Keep a list."""
        self.sample[index : index + 1] = [sampled]

    def merged(self, other: Bucket, generator: random.Random) -> Bucket:
        """Both together."""
        both = Bucket()
        both.lists, both.with_click = self.lists + other.lists, self.with_click + other.with_click
        size = min(LISTS_PER_BUCKET, len(self.sample) + len(other.sample))
        num_own = round(size * self.lists / max(1, both.lists))
        num_own = min(len(self.sample), max(num_own, size - len(other.sample)))
        both.sample = generator.sample(self.sample, num_own) + generator.sample(other.sample, size - num_own)
        return both


class TimeCourse:
    """Buckets of equal width, which all fit into a chart."""

    def __init__(self, generator: random.Random) -> None:
        self._generator = generator
        self.width = FIRST_WIDTH
        self._buckets: dict[int, Bucket] = {}

    def at(self, stamp: int) -> Bucket:
        """The bucket of a time."""
        number = stamp // self.width
        bucket = self._buckets.get(number)
        if bucket is None:
            bucket = self._buckets[number] = Bucket()
            while max(self._buckets) - min(self._buckets) >= MOST_BUCKETS:
                self._merge()
            return self._buckets[stamp // self.width]
        return bucket

    def all(self) -> list[tuple[int, Bucket]]:
        """The buckets with their starts, the oldest first."""
        return [(number * self.width, self._buckets[number]) for number in sorted(self._buckets)]

    def _merge(self) -> None:
        merged: dict[int, Bucket] = {}
        for number in sorted(self._buckets):
            bucket, half = self._buckets[number], number // 2
            merged[half] = merged[half].merged(bucket, self._generator) if half in merged else bucket
        self._buckets = merged
        self.width *= 2
