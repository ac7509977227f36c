"""A hash table of counts: open addressing, linear probing, a power of two of slots. Key 0 marks a free slot.

keys (slot,) uint64; counts (slot, 2) uint32. What holds a query's own key counts its lists in column 0.
"""

import numpy as np

from rankpolicy.kernels import has_numba
from rankpolicy.kernels.bandits.step import compiled

if has_numba():
    import numba
    from numba import types

    from rankpolicy.kernels.bandits.step import LEARN, MEMORY

    _KEYS, _COUNTS = types.uint64[::1], types.uint32[:, ::1]
    _LEARN_LISTS = types.int64(
        LEARN, MEMORY, _KEYS, _COUNTS, _KEYS, types.uint64[:, ::1], types.int8[:, ::1], types.int64[::1]
    )


@compiled
def slot_of(keys, key):
    """Where a key is, or the free slot where it belongs."""
    last = np.uint64(len(keys) - 1)
    slot = key & last
    while keys[slot] != 0 and keys[slot] != key:
        slot = (slot + np.uint64(1)) & last
    return slot


@compiled
def read_counts(keys, counts, wanted, found):
    """Fill found (key, 2) with the counts of wanted keys, 0 where there are none."""
    for place in range(len(wanted)):
        slot = slot_of(keys, wanted[place])
        for column in range(2):
            found[place, column] = counts[slot, column]


@compiled
def add_entries(keys, counts, new_keys, new_counts):
    """Put entries of new keys into free slots; entries with key 0 are left out."""
    for place in range(len(new_keys)):
        if new_keys[place] != 0:
            slot = slot_of(keys, new_keys[place])
            keys[slot] = new_keys[place]
            counts[slot] = new_counts[place]


def _learn_lists(learn, memory, keys, counts, queries, pairs, clicks, lengths):
    """Learn from lists: their queries' keys (list,), keys of their items (list, position) and clicks; how many keys are new.

    memory is of one list: its statistics (1, position, 2) are read from the table, given to learn and written back.
    """
    positions = np.arange(pairs.shape[1])
    slots = np.empty(pairs.shape[1], np.int64)
    num_new = 0
    for row in range(len(queries)):
        if lengths[row] == 0:
            continue
        slot = slot_of(keys, queries[row])
        num_new += keys[slot] == 0
        keys[slot] = queries[row]
        counts[slot, 0] += np.uint32(1)
        for position in range(lengths[row]):
            slot = slot_of(keys, pairs[row, position])
            num_new += keys[slot] == 0
            keys[slot] = pairs[row, position]
            slots[position] = slot
            for column in range(2):
                memory.statistics[0, position, column] = counts[slot, column]
        learn(memory, positions[: lengths[row]], clicks[row, : lengths[row]], 1.0)
        for position in range(lengths[row]):
            for column in range(2):
                counts[slots[position], column] = np.uint32(memory.statistics[0, position, column])
    return num_new


learn_lists = numba.njit(_LEARN_LISTS, cache=True, nogil=True)(_learn_lists) if has_numba() else _learn_lists
