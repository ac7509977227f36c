"""Users of MQ2007 with a known position bias, after Joachims, Swaminathan & Schnabel (2017): two weak rankers show, users click.

Not ``make_biased_log``: here lists come from rankers of features, the relevance of an item from its label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.click_log import NOT_SHOWN, ClickLog
from rankpolicy.clicks.log.row_counts import distinct_rows, weighted_counts
from rankpolicy.data import read_folds
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.folds import Fold
from rankpolicy.rankers import PGRank
from rankpolicy.rankers.base import Ranker
from reproductions.target import Setup

FOLDER = "letor_mq2007"
NUM_SMOKE_QUERIES = 40
NUM_SHOWN = 40  # of the items of a query; nine queries in ten have no more
NUM_LABELLED = 10  # queries a logging ranker learns from: 1 % of the training queries of a fold
TRAFFIC = (0.8, 0.2)  # of the two logging rankers: items stand at two ranks, so that their bias can be estimated
NOISE = 0.1  # P(click | examined) of an item of label 0
MAX_LABEL = 2
MARGIN = 1.01  # sessions beyond those that give the wanted clicks in the mean: hardly ever are there fewer


def folds(setup: Setup) -> list[Fold]:
    """The five folds of LETOR; a smoke run takes one, of few queries."""
    found = read_folds(setup.folder(FOLDER))
    if not setup.is_smoke:
        return [_with_item_ids(fold) for fold in found]
    first = found[0]
    few = {part: getattr(first, part)[:NUM_SMOKE_QUERIES] for part in ("train", "valid", "test")}
    return [_with_item_ids(replace(first, **few))]


def propensities(eta: float) -> NDArray[np.float64]:
    """(position,) P(examined) = (1 / rank)^eta."""
    return (1.0 / np.arange(1, NUM_SHOWN + 1)) ** eta


def click_chances(labels: NDArray[np.floating]) -> NDArray[np.float64]:
    """P(click | examined) = noise + (1 - noise) (2^label - 1) / (2^max_label - 1).

    >>> click_chances(np.array([0.0, 1.0, 2.0]))
    array([0.1, 0.4, 1. ])
    """
    return np.asarray(NOISE + (1 - NOISE) * (2.0 ** labels.astype(np.float64) - 1) / (2**MAX_LABEL - 1))


def logging_rankers(train: RankingDataset, *, seed: int) -> list[Ranker]:
    """A linear ranker for each share of the traffic, each from the labels of its own few queries."""
    generator = np.random.default_rng(seed)
    candidates = np.flatnonzero(train.has_relevant_items())
    return [
        PGRank(model="linear", num_networks=1, epochs=30, random_state=seed).fit(
            train[np.sort(generator.choice(candidates, NUM_LABELLED, replace=False))], progress=False
        )
        for _ in TRAFFIC
    ]


def draw_clicks(
    dataset: RankingDataset, rankers: Sequence[Ranker], *, num_clicks: float, eta: float, seed: int
) -> ClickLog:
    """Sessions of about ``num_clicks`` clicks, collapsed; each asks a query drawn at random and sees the list of one of the rankers.

    P(click at rank k) = (1 / k)^eta x ``click_chances``, each item on its own: users do not stop at a click.
    """
    generator = np.random.default_rng(seed)
    lists = np.stack([_shown_items(ranker, dataset) for ranker in rankers], axis=1).reshape(-1, NUM_SHOWN)
    chances = np.where(lists == NOT_SHOWN, 0.0, propensities(eta) * click_chances(dataset.labels_by_query)[lists])
    shares = np.tile(TRAFFIC, dataset.num_queries) / dataset.num_queries
    num_sessions = int(np.ceil(MARGIN * num_clicks / (shares @ chances.sum(1))))
    of_session = np.repeat(np.arange(len(lists)), generator.multinomial(num_sessions, shares))
    is_clicked = generator.random((num_sessions, NUM_SHOWN), np.float32) < chances.astype(np.float32)[of_session]
    first, inverse = distinct_rows(np.column_stack([of_session, np.packbits(is_clicked, axis=1)]))
    return ClickLog(
        query_names=tuple(dataset.query_ids.astype(str).tolist()),
        item_names=tuple(np.asarray(dataset.item_ids_by_query).tolist()),
        queries=(of_session[first] // len(TRAFFIC)).astype(np.int32),
        items=lists[of_session[first]].astype(np.int32),
        clicks=is_clicked[first].astype(np.int8),
        counts=weighted_counts(inverse, np.ones(num_sessions), len(first)).astype(np.int64),
    )


def _shown_items(ranker: Ranker, dataset: RankingDataset) -> NDArray[np.int64]:
    """(query, position) rows of the dataset."""
    lists = np.full((dataset.num_queries, NUM_SHOWN), NOT_SHOWN)
    for query, rows in enumerate(ranker.rank(dataset)):
        lists[query, : min(len(rows), NUM_SHOWN)] = rows[:NUM_SHOWN]
    return lists


def _with_item_ids(fold: Fold) -> Fold:
    """Rows as item ids: those of MQ2007 are not all known, and clicks are matched by them."""
    parts = {part: getattr(fold, part) for part in ("train", "valid", "test")}
    return replace(
        fold,
        **{
            name: replace(part, item_ids_by_query=np.arange(part.num_items).astype(str)) for name, part in parts.items()
        },
    )
