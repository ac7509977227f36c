"""A hash table of counts: open addressing, linear probing, a power of two of slots."""

import numpy as np

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
