"""Texts of queries and items: vocabularies, word vectors, token features of language models."""
