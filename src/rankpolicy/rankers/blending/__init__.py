"""Rankers made of other rankers: their scores on one scale, weighted by what they are worth on validation data."""
