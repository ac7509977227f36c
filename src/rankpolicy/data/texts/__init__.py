"""Texts of queries and items: vocabularies, word vectors and token features of language models."""
