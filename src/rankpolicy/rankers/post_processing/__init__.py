"""Rankers that turn the scores of another into a fair policy."""
