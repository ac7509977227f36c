"""The click log of a dataset whose items were shown to users."""

from __future__ import annotations

import numpy as np

from rankpolicy.clicks.log.click_log import ClickLog, coded, padded_log
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.types import RankPolicyError


@checked_kinds
def click_log_of(dataset: RankingDataset) -> ClickLog:
    """The click log of a dataset whose labels are clicks, such as one of ``read_click_table``.

    Queries are named by their text, or their id where there are no texts, so that sessions with the same text share a query; items
    are named by their id, or their text where there are no ids.

    Parameters
    ----------
    dataset
        Lists that were shown, with the position of every item.

    >>> from rankpolicy.data.click_table.table import from_click_table
    >>> import polars
    >>> rows = {"query_text": ["tea"] * 3, "item_text": ["pot", "cup", "pot"], "position": [2, 1, 1], "clicked": [1, 0, 1]}
    >>> log = click_log_of(from_click_table(polars.DataFrame({**rows, "session": [1, 1, 2]})))
    >>> log.item_names, log.items.tolist(), log.clicks.tolist()
    (('cup', 'pot'), [[0, 1], [1, -1]], [[0, 1], [1, 0]])
    """
    ranks = None if dataset.shown_by_query is None else dataset.shown_by_query.ranks
    if ranks is None:
        raise RankPolicyError(
            "a click log needs the position each item was shown at; the dataset has none. Read it from a table with a position column."
        )
    order = np.lexsort((ranks, dataset.query_numbers))
    expected = np.arange(dataset.num_items) - np.repeat(dataset.query_offsets[:-1], dataset.sizes) + 1
    is_wrong = ranks[order] != expected
    if is_wrong.any():
        item = int(order[np.argmax(is_wrong)])
        query = str(dataset.query_ids[dataset.query_numbers[item]])
        raise RankPolicyError(
            f"the items of a query must have been shown at positions 1, 2, 3, ... without a gap; query {query!r} has position "
            f"{int(ranks[item])} where {int(expected[np.argmax(is_wrong)])} was expected. "
            "Add the rows that are missing, or leave that query out."
        )
    query_names, queries = coded(
        dataset.query_ids.tolist() if dataset.texts_by_query is None else dataset.texts_by_query.queries
    )
    if dataset.item_ids_by_query is not None:
        item_names, items = coded(dataset.item_ids_by_query[order].tolist())
    elif dataset.texts_by_query is not None:
        item_names, items = coded(
            dataset.texts_by_query.distinct[index] for index in dataset.texts_by_query.of_item[order].tolist()
        )
    else:
        raise RankPolicyError("a click log needs names of items; the dataset has neither item ids nor texts.")
    return padded_log(query_names, item_names, queries, dataset.sizes, items, dataset.labels_by_query[order])
