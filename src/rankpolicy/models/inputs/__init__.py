"""What networks read: each kind of input is prepared from the training data, saved with the ranker and restored."""
