"""A hash table of counts: open addressing, linear probing, a power of two of slots."""

from typing import Any

import numpy as np

from rankpolicy.kernels import HAS_NUMBA
from rankpolicy.kernels.bandits.memory import ShownLists, Table
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
def read_counts(table, wanted, found):
    """Fill found (key, 2) with the counts of the wanted keys, 0 for keys that are not in the table."""
    for place in range(len(wanted)):
        slot = slot_of(table.keys, wanted[place])
        for column in range(2):
            found[place, column] = table.counts[slot, column]


@compiled
def add_entries(table, new):
    """Put the entries of a table into free slots of another; entries with key 0 are left out."""
    for place in range(len(new.keys)):
        if new.keys[place] != 0:
            slot = slot_of(table.keys, new.keys[place])
            table.keys[slot] = new.keys[place]
            table.counts[slot] = new.counts[place]


def _learn_lists(learn, memory, table, lists):
    """Learn from lists; returns how many keys are new.

    memory holds one list: its statistics (1, position, 2) are read from the table, given to learn and written back.
    """
    keys, counts = table.keys, table.counts
    positions = np.arange(lists.pairs.shape[1])
    slots = np.empty(lists.pairs.shape[1], np.int64)
    num_new = 0
    for row in range(len(lists.queries)):
        length = lists.lengths[row]
        if length == 0:
            continue
        slot = slot_of(keys, lists.queries[row])
        num_new += keys[slot] == 0
        keys[slot] = lists.queries[row]
        counts[slot, 0] += np.uint32(1)
        for position in range(length):
            slot = slot_of(keys, lists.pairs[row, position])
            num_new += keys[slot] == 0
            keys[slot] = lists.pairs[row, position]
            slots[position] = slot
            for column in range(2):
                memory.statistics[0, position, column] = counts[slot, column]
        learn(memory, positions[:length], lists.clicks[row, :length], 1.0)
        for position in range(length):
            for column in range(2):
                counts[slots[position], column] = np.uint32(memory.statistics[0, position, column])
    return num_new


learn_lists: Any = _learn_lists
if HAS_NUMBA:
    import numba
    from numba import types

    from rankpolicy.kernels.bandits.step import LEARN, MEMORY, type_of

    _KEYS = np.zeros(1, np.uint64)
    _TABLE = type_of(Table(_KEYS, np.zeros((1, 2), np.uint32)))
    _LISTS = type_of(ShownLists(_KEYS, np.zeros((1, 1), np.uint64), np.zeros((1, 1), np.int8), np.zeros(1, np.int64)))
    _SIGNATURE = types.int64(LEARN, MEMORY, _TABLE, _LISTS)
    learn_lists = numba.njit(_SIGNATURE, cache=True, nogil=True)(_learn_lists)
