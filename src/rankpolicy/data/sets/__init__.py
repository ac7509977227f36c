"""Datasets of the papers and synthetic ones."""
