"""Simulated logs of click models with known parameters.

Simulated logs with a known position bias, from the kinds of traffic that its estimators need.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.click_log import ClickLog
from rankpolicy.clicks.log.log_pairs import PairTable
from rankpolicy.clicks.models.click_model import ClickModel
from rankpolicy.clicks.models.members import CLICK_MODELS
from rankpolicy.declarations.arguments import checked_kinds, seeded, whole_number
from rankpolicy.display import short_repr
from rankpolicy.types import RankPolicyError

RANGE = (0.15, 0.85)
RANGE_OF_CONTINUATION = (0.7, 0.95)  # users who give up at once reveal little about the other parameters


@checked_kinds
def make_click_model(
    name: str, *, num_queries: int = 2, num_items: int = 6, num_positions: int = 5, random_state: int
) -> ClickModel:
    """A click model whose parameters are drawn uniformly from 0.15 to 0.85, continuation from 0.7 to 0.95.

    Parameters
    ----------
    name
        Name of the click model.
    num_queries
        Number of queries, named 0, 1, ...
    num_items
        Number of items of each query, named 0, 1, ...
    num_positions
        Length of the longest list it has parameters for.
    random_state
        Seed; the same seed gives the same model.
    """
    kind = CLICK_MODELS.named(name)
    for what, number in (("num_queries", num_queries), ("num_items", num_items), ("num_positions", num_positions)):
        whole_number(what, number, at_least=1)
    generator = seeded(random_state)
    shapes = kind.shapes(num_queries * num_items, num_positions)
    return kind(
        pairs=PairTable(
            query_names=tuple(map(str, range(num_queries))),
            item_names=tuple(map(str, range(num_items))),
            queries=np.repeat(np.arange(num_queries, dtype=np.int32), num_items),
            items=np.tile(np.arange(num_items, dtype=np.int32), num_queries),
        ),
        parameters={
            parameter: generator.uniform(*(RANGE_OF_CONTINUATION if parameter == "continuation" else RANGE), shape)
            for parameter, shape in shapes.items()
        },
        defaults=dict.fromkeys(kind.axes, 0.5),
    )


@checked_kinds
def make_click_log(model: ClickModel, num_sessions: int, *, num_positions: int = 5, random_state: int) -> ClickLog:
    """Sessions of users who click as the model describes, on lists of the query's items in random order.

    Parameters
    ----------
    model
        The click model.
    num_sessions
        Number of sessions.
    num_positions
        Length of every list.
    random_state
        Seed; the same seed gives the same log.

    >>> log = make_click_log(make_click_model("pbm", random_state=0), 100, random_state=1)
    >>> log.num_sessions, log.num_positions
    (100, 5)
    """
    whole_number("num_positions", num_positions, at_least=1)
    table = model.pairs
    num_queries = len(table.query_names)
    sizes = np.bincount(table.queries, minlength=num_queries)
    if sizes.min() < num_positions:
        raise RankPolicyError(
            f"every query must have {num_positions} items for a list of {num_positions} positions; one has {sizes.min()}."
        )
    whole_number("num_sessions", num_sessions, at_least=1)
    generator = seeded(random_state)
    queries = generator.integers(0, num_queries, num_sessions)
    items = np.empty((num_sessions, num_positions), np.int32)
    for query in range(num_queries):
        rows = np.flatnonzero(queries == query)
        items_of_query = np.broadcast_to(table.items[table.queries == query], (len(rows), sizes[query]))
        items[rows] = generator.permuted(items_of_query, axis=1)[:, :num_positions]
    log = ClickLog(
        query_names=table.query_names,
        item_names=table.item_names,
        queries=queries.astype(np.int32),
        items=items,
        clicks=np.zeros(items.shape, np.int8),
        counts=np.ones(num_sessions, np.int64),
    )
    return log.with_clicks(model.sample_clicks(log, random_state=int(generator.integers(2**31))))


TRAFFIC = ("random", "rankers", "swaps")


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasedLog:
    """A simulated log and the truth behind it.

    Parameters
    ----------
    log
        The log.
    propensities
        P(examined) at each position (position,).
    relevance
        P(click | examined) (query, item).
    swaps
        The two positions that were swapped with probability 1/2 in each session (session, 2), counted from 0; -1 for none.
    """

    log: ClickLog
    propensities: NDArray[np.float64]
    relevance: NDArray[np.float64]
    swaps: NDArray[np.int64]

    __repr__ = short_repr


@checked_kinds
def make_biased_log(
    num_sessions: int,
    *,
    propensities: NDArray[np.float64],
    relevance: NDArray[np.float64],
    traffic: str = "random",
    num_rankers: int = 8,
    random_state: int,
) -> BiasedLog:
    """Sessions of the position-based model: P(click at position k) = propensities[k] x relevance[query, item].

    Queries are drawn uniformly; a list shows as many items as there are propensities.

    Parameters
    ----------
    num_sessions
        Number of sessions.
    propensities
        P(examined) at each position (position,).
    relevance
        P(click | examined) (query, item).
    traffic
        Order of the items. "random": every order is equally likely. "rankers": one of several fixed orders of each query, better items
        mostly on top. "swaps": the first of these orders, where two positions, drawn at random for each session, are swapped with
        probability 1/2.
    num_rankers
        Number of fixed orders, for "rankers".
    random_state
        Seed; the same seed gives the same log.

    >>> made = make_biased_log(1000, propensities=np.array([1.0, 0.5]), relevance=np.full((3, 2), 0.4), random_state=0)
    >>> made.log.num_sessions, made.log.items.shape
    (1000, (1000, 2))
    """
    if relevance.ndim != 2 or propensities.ndim != 1 or relevance.size == 0 or propensities.size == 0:
        raise RankPolicyError(
            "relevance must have the shape (query, item) and propensities (position,), none of them empty; "
            f"got {relevance.shape} and {propensities.shape}."
        )
    if not all(((values >= 0) & (values <= 1)).all() for values in (relevance, propensities)):
        raise RankPolicyError("relevance and propensities must be probabilities, from 0 to 1; got others, or NaN.")
    whole_number("num_sessions", num_sessions, at_least=1)
    whole_number("num_rankers", num_rankers, at_least=1)
    num_queries, num_items = relevance.shape
    num_positions = len(propensities)
    if num_positions > num_items:
        raise RankPolicyError(f"relevance must have an item for each of {num_positions} positions; it has {num_items}.")
    if traffic not in TRAFFIC:
        raise RankPolicyError(f"traffic must be one of {', '.join(TRAFFIC)}; got {traffic!r}.")
    generator = seeded(random_state)
    queries = generator.integers(0, num_queries, num_sessions)
    swaps = np.full((num_sessions, 2), -1)
    if traffic == "random":
        items = np.argsort(generator.random((num_sessions, num_items), np.float32), axis=1)
    else:
        # Noise as large as the spread of relevance: the rankers agree in part, as those of one search engine do.
        noise = generator.normal(0, relevance.std() + 1e-9, (num_rankers, num_queries, num_items))
        orders = np.argsort(-(relevance + noise), axis=2)
        ranker = generator.integers(0, num_rankers if traffic == "rankers" else 1, num_sessions)
        items = orders[ranker, queries]
    items = items[:, :num_positions]
    if traffic == "swaps":
        first = generator.integers(0, num_positions, num_sessions)
        second = (first + generator.integers(1, num_positions, num_sessions)) % num_positions
        swaps = np.column_stack([np.minimum(first, second), np.maximum(first, second)])
        swapped = np.flatnonzero(generator.random(num_sessions) < 0.5)
        a, b = swaps[swapped].T
        items[swapped, a], items[swapped, b] = items[swapped, b], items[swapped, a]
    chance = propensities * relevance[queries[:, None], items]
    log = ClickLog(
        query_names=tuple(map(str, range(num_queries))),
        item_names=tuple(map(str, range(num_items))),
        queries=queries.astype(np.int32),
        items=items.astype(np.int32),
        clicks=(generator.random(items.shape) < chance).astype(np.int8),
        counts=np.ones(num_sessions, np.int64),
    )
    return BiasedLog(log=log, propensities=propensities, relevance=relevance, swaps=swaps)
