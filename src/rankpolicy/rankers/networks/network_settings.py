"""Settings that say which network scores the items, and what it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkSettings:
    """Of the settings for texts, each text model reads those that concern it; networks over features read none of them."""

    model: Any = "mlp"  # a key of MODELS or TEXT_MODELS, or a torch module (or a function of the number of features that makes one)
    hidden: tuple[int, ...] = (64, 64)
    dropout: float = 0.3
    max_tokens: int = 200  # of a text; what follows is not read
    recurrent: int = 300  # width of an LSTM
    embeddings: str | None = None  # a file of word vectors (GloVe); None: random ones
    embedding_size: int = 100  # of random word vectors
    min_count: int = 1  # how often a word must occur in the training texts to have a vector of its own
    compression: str = "sum"  # of mcan's attention: sum, neural or factorization
    encoder: str | None = None  # folder of a Hugging Face model, for bilstm, encoder and initial word vectors
    encoding: str = "apart"  # whether that model reads query and item apart, together or (encoder only) both
    feature_layers: int = 4  # how many of its last layers bilstm reads, side by side
    feature_cache: str | None = None  # folder that keeps bilstm's token features between runs
    ngrams: tuple[int, ...] = (3,)  # lengths of the letter n-grams read beside words
    min_users: int = 1  # how many users must have seen a word, n-gram or category for it to be kept
    num_buckets: int = 65536  # how many vectors words and n-grams share by their hash
    category_size: int = 8  # width of the vector of a category
