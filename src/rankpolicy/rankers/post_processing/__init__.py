"""Rankers that turn the scores of another ranker into a fair policy."""
