"""A small shop to try everything on: judged products, the sessions of its search, and what was clicked."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankpolicy.declarations.arguments import checked_kinds, seeded
from rankpolicy.display import frozen_value
from rankpolicy.types import RankPolicyError

KINDS = ("mug", "teapot", "lamp", "chair", "shelf", "rug", "clock", "vase")
COLOURS = ("red", "blue", "green", "white", "black")
MATERIALS = ("oak", "steel", "glass", "wool", "clay")
BRANDS = ("Alder", "Birch", "Cedar", "Elm")
NUM_POSITIONS = 8
_NUM_RANKERS = 4  # the search has several, so that a product is seen at several positions

Columns = dict[str, list[Any]]


@frozen_value(kw_only=True)
class Shop:
    """Three tables, each as columns by name.

    Parameters
    ----------
    judgements
        One row per query and candidate product, in random order: features, some of them missing or categorical, and a grade from 0 to 3.
    sessions
        One row per product shown: session, query, item, position and clicked, as ``read_click_log`` reads them.
    clicks
        The same rows with texts, time, user and side information, as ``read_click_table`` reads them.
    """

    judgements: Columns
    sessions: Columns
    clicks: Columns


@checked_kinds
def make_shop(
    *, num_products: int = 240, num_queries: int = 60, num_sessions: int = 3000, random_state: int = 0
) -> Shop:
    """A shop whose customers like products that match the words they type, are rated well and cost little.

    Customers look at position k with probability 1 / k^0.8 and click on what they like; the clicks favour what was shown on top.

    Parameters
    ----------
    num_products
        Number of products, 40 or more.
    num_queries
        Number of queries, each of two words, from 2 to 80.
    num_sessions
        How often the search is used, 1 or more.
    random_state
        Seed; the same seed gives the same shop.

    >>> shop = make_shop(num_sessions=10)
    >>> len(shop.clicks["clicked"]), sorted(shop.judgements)[:3]
    (80, ['age_days', 'brand', 'grade'])
    """
    most_queries = (len(COLOURS) + len(MATERIALS)) * len(KINDS)
    if num_products < 40 or not 2 <= num_queries <= most_queries or num_sessions < 1:
        raise RankPolicyError(
            f"a shop must have at least 40 products, 2 to {most_queries} queries and at least 1 session; got {num_products}, "
            f"{num_queries} and {num_sessions}."
        )
    generator = seeded(random_state)
    words = np.column_stack([generator.integers(0, len(names), num_products) for names in (COLOURS, MATERIALS, KINDS)])
    brand = generator.integers(0, len(BRANDS), num_products)
    price = np.round(np.exp(generator.normal(3, 0.6, num_products)), 2)
    rating = np.round(np.clip(generator.normal(3.8, 0.7, num_products), 1, 5), 1)
    age = generator.integers(1, 1000, num_products)
    titles = [f"{BRANDS[b]} {COLOURS[c]} {MATERIALS[m]} {KINDS[k]}" for b, (c, m, k) in zip(brand, words, strict=True)]
    # A query names a colour or a material, and a kind; no two are the same.
    adjectives = (*COLOURS, *MATERIALS)
    pairs = generator.permutation(len(adjectives) * len(KINDS))[:num_queries]
    adjective, kind = pairs // len(KINDS), pairs % len(KINDS)
    queries = [f"{adjectives[a]} {KINDS[k]}" for a, k in zip(adjective, kind, strict=True)]
    has_adjective = (words[:, 0] == adjective[:, None]) | (words[:, 1] + len(COLOURS) == adjective[:, None])
    matched = has_adjective.astype(np.int64) + (words[:, 2] == kind[:, None])  # (query, product)
    liked = 1.4 * matched + 0.8 * (rating - 3.8) - 0.4 * (np.log(price) - 3) + 0.3 * (brand == 1)
    noisy = liked + generator.normal(0, 0.4, liked.shape)
    grades = np.digitize(noisy, [1.2, 2.2, 3.2])
    candidates = np.argsort(-(matched + generator.random(matched.shape)), axis=1)[:, :20]

    def rows(values: Any, shown: Any) -> list[Any]:
        return list(np.asarray(values)[shown].tolist())

    query_of_row = np.repeat(np.arange(num_queries), candidates.shape[1])
    item_of_row = candidates.ravel()
    order = generator.permutation(len(query_of_row))
    query_of_row, item_of_row = query_of_row[order], item_of_row[order]
    is_unrated = generator.random(len(order)) < 0.1
    judgements: Columns = {
        "query": rows(queries, query_of_row),
        "product": [f"p{item}" for item in item_of_row],
        "words_matched": matched[query_of_row, item_of_row].tolist(),
        "price": rows(price, item_of_row),
        "rating": [None if missing else value for missing, value in zip(is_unrated, rating[item_of_row], strict=True)],
        "age_days": rows(age, item_of_row),
        "brand": rows(BRANDS, brand[item_of_row]),
        "grade": grades[query_of_row, item_of_row].tolist(),
    }
    query_of_session = generator.integers(0, num_queries, num_sessions)
    # Each ranker of the search orders the candidates by the words that match, and otherwise in its own way.
    taste = generator.normal(0, 0.7, (_NUM_RANKERS, num_queries, candidates.shape[1]))
    candidate_ranks = np.argsort(-(np.take_along_axis(matched, candidates, 1) + taste), axis=2)[..., :NUM_POSITIONS]
    ranker = generator.integers(0, _NUM_RANKERS, num_sessions)
    shown = candidates[query_of_session[:, None], candidate_ranks[ranker, query_of_session]]  # (session, position)
    examined = generator.random(shown.shape) < np.arange(1, NUM_POSITIONS + 1) ** -0.8
    attraction = 1 / (1 + np.exp(1.5 - 1.2 * (liked - 1.5)))
    clicked = examined & (generator.random(shown.shape) < attraction[query_of_session[:, None], shown])
    session = np.repeat(np.arange(num_sessions), NUM_POSITIONS)
    query, item = query_of_session[session], shown.ravel()
    position = np.tile(np.arange(1, NUM_POSITIONS + 1), num_sessions)
    time = 1_760_000_000 + np.cumsum(generator.integers(20, 200, num_sessions))
    user = generator.integers(0, 400, num_sessions)
    return Shop(
        judgements=judgements,
        sessions={
            "session": session.tolist(),
            "query": rows(queries, query),
            "item": [f"p{number}" for number in item],
            "position": position.tolist(),
            "clicked": clicked.ravel().astype(int).tolist(),
        },
        clicks={
            "query_text": rows(queries, query),
            "item_text": rows(titles, item),
            "position": position.tolist(),
            "clicked": clicked.ravel().astype(int).tolist(),
            "timestamp": rows(time, session),
            "user": [f"u{number}" for number in user[session]],
            "price": rows(price, item),
            "rating": rows(rating, item),
        },
    )
