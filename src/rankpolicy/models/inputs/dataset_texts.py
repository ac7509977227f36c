"""Pairs of query and item texts, what all text networks read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.texts.text_pairs import TextPairs, TokenTable
from rankpolicy.data.texts.texts import Texts


def texts_of(dataset: RankingDataset) -> Texts:
    """The texts of a dataset that has some."""
    assert dataset.texts_by_query is not None, "checked when the dataset came in"
    return dataset.texts_by_query


def pairs_read_apart(dataset: RankingDataset, table: Callable[[Sequence[str]], TokenTable]) -> TextPairs:
    """One pair per item; ``table`` turns texts into tokens, each distinct item text once."""
    texts = texts_of(dataset)
    used, item_of_pair = np.unique(texts.of_item, return_inverse=True)
    return TextPairs(
        table(texts.queries),
        table([texts.distinct[index] for index in used]),
        torch.from_numpy(dataset.query_numbers),
        torch.from_numpy(item_of_pair),
    )
