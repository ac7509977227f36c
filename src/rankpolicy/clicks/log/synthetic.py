"""Simulated logs of click models with known parameters."""

from __future__ import annotations

import numpy as np

from rankpolicy.clicks.log.click_log import ClickLog
from rankpolicy.clicks.log.log_pairs import PairTable
from rankpolicy.clicks.models.click_model import ClickModel
from rankpolicy.clicks.models.members import CLICK_MODELS
from rankpolicy.declarations.arguments import checked_kinds, seeded, whole_number
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
