"""Rankers of boosted trees."""
