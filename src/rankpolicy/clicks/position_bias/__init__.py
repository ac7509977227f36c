"""Position bias: how likely each rank is to be examined, estimated from a log."""
