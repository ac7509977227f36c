"""Click models: how users examine a list and click, fitted to a log."""
