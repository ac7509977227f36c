"""Bandits of single queries in compiled code: keys are mixed, counts are read, a list is ranked or learned in one call.

Counts stand in a hash table: open addressing, linear probing, a power of two of slots.

Numba takes 50 microseconds to unpack a function and 7 to unpack a generator, longer than a list takes to rank. An engine holds the step
functions unpacked, and a source the generator. Without numba they are plain tuples, and the same functions run as Python.
"""

from typing import Any, NamedTuple

import numpy as np

from rankpolicy.kernels import HAS_NUMBA
from rankpolicy.kernels.bandits.memory import Memory, Table
from rankpolicy.kernels.bandits.step import compiled


@compiled
def slot_of(keys, key):
    """The slot of a key, or the free slot where it belongs."""
    last = np.uint64(len(keys) - 1)
    slot = key & last
    while keys[slot] != 0 and keys[slot] != key:
        slot = (slot + np.uint64(1)) & last
    return slot


@compiled
def read_counts(table, keys, counts):
    """Fill counts (key, 2) with those of the keys, 0 for keys that are not in the table."""
    for i in range(len(keys)):
        slot = slot_of(table.keys, keys[i])
        for column in range(2):
            counts[i, column] = table.counts[slot, column]


@compiled
def add_entries(table, new):
    """Put the entries of a table into free slots of another; entries with key 0 are left out."""
    for i in range(len(new.keys)):
        if new.keys[i] != 0:
            slot = slot_of(table.keys, new.keys[i])
            table.keys[slot] = new.keys[i]
            table.counts[slot] = new.counts[i]


# Keys are multiplied modulo 2^64, which numpy would warn of.
_wrapping: Any = compiled if HAS_NUMBA else np.errstate(over="ignore")


class Engine(NamedTuple):
    """Step functions of a bandit and its memory, whose steps and statistics are not used."""

    rank: Any
    learn: Any
    propensities: Any  # no_propensities for bandits that have none in closed form
    memory: Memory


class Source(NamedTuple):
    """A random generator."""

    generator: np.random.Generator


@_wrapping
def _finalised(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return max(z ^ (z >> np.uint64(31)), np.uint64(1))


@_wrapping
def _spread(key):
    return key * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x632BE59BD9B4E019)


@compiled
def _with_statistics(memory, steps, statistics):
    return Memory(
        steps,
        statistics,
        memory.settings,
        memory.features,
        memory.discount,
        memory.feedback,
        memory.positions,
        memory.window_rankings,
        memory.window_clicks,
    )


@compiled
def _room_for(memory, num_items):
    """The memory of a bandit of so many items, to be filled."""
    return _with_statistics(memory, np.empty(1, np.int64), np.empty((1, num_items, 2)))


@compiled
def _read_query(memory, table, query, items):
    """Fill the memory of the bandit of one query with what is known about these items."""
    memory.steps[0] = table.counts[slot_of(table.keys, _finalised(_spread(query))), 0]
    for i in range(len(items)):
        slot = slot_of(table.keys, _finalised(_spread(query) ^ items[i]))
        for column in range(2):
            memory.statistics[0, i, column] = table.counts[slot, column]


def _rank_query(engine, source, table, keys, ranking, propensities):
    """Fill ranking with the places of the items to show, and propensities; keys (1 + item,) are those of the query and the items."""
    memory = _room_for(engine.memory, len(keys) - 1)
    _read_query(memory, table, keys[0], keys[1:])
    numbers = np.arange(len(keys) - 1)
    engine.rank(memory, numbers, source.generator, ranking)
    engine.propensities(memory, numbers, ranking, propensities)


def _rank_queries(engine, source, table, queries, items, lengths, rankings):
    """Rank many lists: items (list, item) up to their lengths, into rankings (list, position), -1 past their end."""
    numbers, memory = np.arange(0), _room_for(engine.memory, 0)
    for row in range(len(queries)):
        length = lengths[row]
        if length != len(numbers):  # most lists are as long as the one before
            numbers, memory = np.arange(length), _room_for(engine.memory, length)
        _read_query(memory, table, queries[row], items[row, :length])
        rankings[row] = -1
        if length > 0:
            engine.rank(memory, numbers, source.generator, rankings[row, : min(length, rankings.shape[1])])


def _learn_queries(engine, table, queries, items, offsets, clicks):
    """Learn from lists, one after the other: the items and clicks of list l stand from offsets[l] on. Returns how many keys are new."""
    keys, counts = table.keys, table.counts
    longest = 0
    for row in range(len(queries)):
        longest = max(longest, offsets[row + 1] - offsets[row])
    positions, slots = np.arange(longest), np.empty(longest, np.int64)
    memory = _with_statistics(engine.memory, np.zeros(1, np.int64), np.empty((1, longest, 2)))
    num_new = 0
    for row in range(len(queries)):
        start, length = offsets[row], offsets[row + 1] - offsets[row]
        if length == 0:
            continue
        key = _finalised(_spread(queries[row]))
        slot = slot_of(keys, key)
        num_new += keys[slot] == 0
        keys[slot] = key
        counts[slot, 0] += np.uint32(1)
        for position in range(length):
            key = _finalised(_spread(queries[row]) ^ items[start + position])
            slot = slot_of(keys, key)
            num_new += keys[slot] == 0
            keys[slot] = key
            slots[position] = slot
            for column in range(2):
                memory.statistics[0, position, column] = counts[slot, column]
        engine.learn(memory, positions[:length], clicks[start : start + length], 1.0)
        for position in range(length):
            for column in range(2):
                counts[slots[position], column] = np.uint32(memory.statistics[0, position, column])
    return num_new


rank_query: Any = _rank_query
rank_queries: Any = _rank_queries
learn_queries: Any = _learn_queries
new_engine: Any = Engine
new_source: Any = Source
if HAS_NUMBA:
    import numba
    from numba import types
    from numba.experimental import structref

    from rankpolicy.kernels.bandits.step import GENERATOR, LEARN, MEMORY, PROPENSITIES, RANK, type_of

    @structref.register
    class EngineType(types.StructRef):
        """Compiled code's type of an engine."""

    @structref.register
    class SourceType(types.StructRef):
        """Compiled code's type of a source."""

    class CompiledEngine(structref.StructRefProxy):
        """An engine, unpacked."""

    class CompiledSource(structref.StructRefProxy):
        """A source, unpacked."""

    _define_boxing: Any = structref.define_boxing
    _define_boxing(EngineType, CompiledEngine)
    _define_boxing(SourceType, CompiledSource)
    _ENGINE = EngineType([("rank", RANK), ("learn", LEARN), ("propensities", PROPENSITIES), ("memory", MEMORY)])
    _SOURCE = SourceType([("generator", GENERATOR)])
    _TABLE = type_of(Table(np.zeros(1, np.uint64), np.zeros((1, 2), np.uint32)))
    # Read-only, so that keys may lie in bytes.
    _KEYS = types.Array(types.uint64, 1, "C", readonly=True)
    _MATRIX = types.Array(types.uint64, 2, "C", readonly=True)
    _MARKS = types.int8[::1]
    _NUMBERS = types.int64[::1]

    _new: Any = structref.new

    @numba.njit(_ENGINE(RANK, LEARN, PROPENSITIES, MEMORY), cache=True)
    def new_engine(rank, learn, propensities, memory):
        engine = _new(_ENGINE)
        engine.rank = rank
        engine.learn = learn
        engine.propensities = propensities
        engine.memory = memory
        return engine

    @numba.njit(_SOURCE(GENERATOR), cache=True)
    def new_source(generator):
        source = _new(_SOURCE)
        source.generator = generator
        return source

    # They hold the GIL: to give it away for microseconds costs a wait for the other thread's time slice, which is a thousand times longer.
    _rank_one = types.void(_ENGINE, _SOURCE, _TABLE, _KEYS, _NUMBERS, types.float64[::1])
    rank_query = numba.njit(_rank_one, cache=True)(_rank_query)
    _rank_many = types.void(_ENGINE, _SOURCE, _TABLE, _KEYS, _MATRIX, _NUMBERS, types.int64[:, ::1])
    rank_queries = numba.njit(_rank_many, cache=True, nogil=True)(_rank_queries)
    _learn_many = types.int64(_ENGINE, _TABLE, _KEYS, _KEYS, _NUMBERS, _MARKS)
    learn_queries = numba.njit(_learn_many, cache=True)(_learn_queries)
