"""Datasets to learn rankers from, made from clicks and corrected for position bias."""
