"""Rankers whose scores are the sums of boosted trees."""
