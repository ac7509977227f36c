"""Compiled click models and off-policy weights."""
