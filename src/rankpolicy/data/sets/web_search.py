"""Synthetic data that resembles web search, for demos, tests and benchmarks that run without a download."""

from __future__ import annotations

import numpy as np

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.arguments import checked_kinds, seeded, whole_number
from rankpolicy.types import RankPolicyError

FEWEST_FEATURES = 8
SHARE_UP_TO_LABEL = (0.72, 0.86, 0.95, 0.985)  # share of items with a label of at most 0, 1, 2 and 3


@checked_kinds
def make_web_search(
    num_queries: int = 500,
    *,
    items_per_query: tuple[int, int] = (5, 60),
    num_features: int = 30,
    random_state: int | None = 0,
) -> RankingDataset:
    """Queries whose items have labels 0 to 4, most of them 0; about one query in eight has no relevant item.

    Relevance depends smoothly on the first eight features (linear terms, products, a soft threshold, a feature with an optimum in the
    middle of its range), on the difficulty of the query, and on noise. The other features are uninformative. Every third feature is
    long-tailed, like counts, and level and scale of every second feature differ from query to query.

    Parameters
    ----------
    num_queries
        Number of queries.
    items_per_query
        The lowest and the highest number of items of a query; each is drawn uniformly from this range.
    num_features
        Number of features, at least 8.
    random_state
        Seed; None draws a new one each time.

    >>> make_web_search(100)
    RankingDataset(queries=100, items=3304, features=30, labels 0..4)
    """
    whole_number("num_queries", num_queries, at_least=1, at_most=10**9)
    whole_number("num_features", num_features, at_least=0, at_most=1_000_000)
    if not isinstance(items_per_query, tuple | list) or len(items_per_query) != 2:
        raise RankPolicyError(
            f"items_per_query must be two whole numbers, (fewest, most); got {items_per_query!r:.80}."
        )
    fewest, most = (whole_number("items_per_query", bound, at_least=1, at_most=1_000_000) for bound in items_per_query)
    if num_queries < 1 or not 1 <= fewest <= most:
        raise RankPolicyError(
            f"num_queries must be 1 or more and items_per_query (fewest, most) with 1 <= fewest <= most; "
            f"got {num_queries} and {items_per_query}."
        )
    if num_features < FEWEST_FEATURES:
        raise RankPolicyError(
            f"num_features must be {FEWEST_FEATURES} or more, as relevance depends on that many; got {num_features}."
        )
    generator = seeded(random_state)
    sizes = generator.integers(fewest, most, size=num_queries, endpoint=True)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    query_of_item = np.repeat(np.arange(num_queries), sizes)
    hidden = generator.standard_normal((len(query_of_item), num_features), dtype=np.float32)

    linear = 0.8 * hidden[:, 0] + 0.5 * hidden[:, 1]
    products = 0.9 * np.tanh(hidden[:, 2]) * hidden[:, 3] + 0.6 * hidden[:, 0] * np.tanh(hidden[:, 4])
    threshold = 1.2 / (1 + np.exp(-3 * (hidden[:, 5] - 0.5)))
    optimum_inside = -0.5 * hidden[:, 6] ** 2 + 0.3 * hidden[:, 7]
    difficulty = 1.5 * generator.standard_normal(num_queries)[query_of_item]
    noise = 1.0 * generator.standard_normal(len(query_of_item))
    relevance = linear + products + threshold + optimum_inside + difficulty + noise
    labels = np.searchsorted(np.quantile(relevance, SHARE_UP_TO_LABEL), relevance)

    observed = hidden.astype(np.float64)
    observed[:, ::3] = np.exp(observed[:, ::3])
    scales = np.exp(0.2 * generator.standard_normal((num_queries, num_features)))
    levels = 0.3 * generator.standard_normal((num_queries, num_features))
    scales[:, 1::2], levels[:, 1::2] = 1, 0
    observed = observed * scales[query_of_item] + levels[query_of_item]
    rank_in_file = np.arange(len(query_of_item)) - offsets[query_of_item]
    return RankingDataset(
        features_by_query=observed.astype(np.float32),
        labels_by_query=labels.astype(np.float32),
        query_offsets=offsets,
        query_ids=np.arange(num_queries).astype(str),
        source_rows_by_query=np.arange(len(query_of_item)),
        item_ids_by_query=np.char.add(np.char.add(query_of_item.astype(str), "-"), rank_in_file.astype(str)),
    )
