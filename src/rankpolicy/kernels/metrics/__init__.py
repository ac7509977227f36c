"""Compiled metrics of rankings."""
