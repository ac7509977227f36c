"""What kernels can hold."""

MOST_LEAVES = 255  # of a tree grown on stored codes: the leaf of an item is one byte
