"""Readers of datasets used in papers, and synthetic datasets."""
