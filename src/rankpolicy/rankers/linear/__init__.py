"""Rankers whose score is a weighted sum of scaled features."""
