"""Click logs: what was shown and clicked, and the files they are read from."""
