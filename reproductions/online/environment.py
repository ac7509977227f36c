"""Queries of a set, padded once, with the ranker that serves at first and the one that knows all labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import rankpolicy as rp
from rankpolicy.data import read_folds
from rankpolicy.metrics.ranked import rank_by_score

Floats = NDArray[np.float64]

CUTOFF = 10
YANDEX_GRADES = (0.035, 0.105, 0.275, 0.51)  # between 0, .07, .14, .41 and .61, of which labels are means
LOGGER_QUERIES = 3
LOGGER_SPREAD = 1.0  # standard deviation of its scores within a query: its lists explore


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Queries:
    """Features (query, item, feature), grades (query, item) and the mask of real items."""

    features: Floats
    grades: NDArray[np.int64]
    mask: NDArray[np.bool_]

    def ndcg(self, weights: Floats) -> float:
        """Mean NDCG@10 of the items sorted by features · weights, over queries with a relevant item."""
        rankings = rank_by_score(self.features @ weights, self.mask)
        values = rp.metrics.ndcg(rankings, self.grades.astype(float), self.mask, cutoff=CUTOFF)
        return float(values[(self.grades * self.mask).any(1)].mean())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Environment:
    """A set: queries that users ask, queries to measure on, weights of the logger and of a ranker trained with all labels."""

    train: Queries
    test: Queries
    num_grades: int
    logger: Floats
    labels: Floats


@lru_cache(maxsize=64)
def environment(data: Path, name: str, seed: int) -> Environment:
    """A set by its folder's name; ``seed`` draws the queries of the logger."""
    train, queries, test, labels = _queries(data, name)
    chosen = np.random.default_rng(seed).permutation(np.flatnonzero(_has_preferences(train)))[:LOGGER_QUERIES]
    return Environment(
        train=queries,
        test=test,
        num_grades=5 if name == "yandex_letor" else 3,
        logger=_spread(_fitted(train[np.sort(chosen)]), queries),
        labels=labels,
    )


@lru_cache(maxsize=3)
def _queries(data: Path, name: str) -> tuple[rp.RankingDataset, Queries, Queries, Floats]:
    """The training data, also padded, the test data, and weights that know all training labels."""
    train, test = _yandex(data / name) if name == "yandex_letor" else _letor(data / name)
    return train, _padded(train), _padded(test), _fitted(train)


def _fitted(train: rp.RankingDataset) -> Floats:
    return np.asarray(rp.RankSVM(scaling="none").fit(train, progress=False)._weights)


def _letor(folder: Path) -> tuple[rp.RankingDataset, rp.RankingDataset]:
    fold = next(iter(read_folds(folder)))
    return fold.train, fold.test


def _yandex(folder: Path) -> tuple[rp.RankingDataset, rp.RankingDataset]:
    import polars

    frame = polars.read_csv(folder / "features.txt.gz", separator="\t", has_header=False, infer_schema_length=None)
    values = frame.to_numpy()
    grades = np.digitize(values[:, 1].astype(float), YANDEX_GRADES)
    whole = rp.from_arrays(values[:, 4:].astype(float), grades, qid=values[:, 0].astype(np.int64))
    train, test = rp.split_queries(whole, (0.7, 0.3), random_state=0)
    return train, test


def _has_preferences(dataset: rp.RankingDataset) -> NDArray[np.bool_]:
    lowest, highest = (
        extreme.reduceat(dataset.labels_by_query, dataset.query_offsets[:-1]) for extreme in (np.minimum, np.maximum)
    )
    return np.asarray(lowest < highest)


def _padded(dataset: rp.RankingDataset) -> Queries:
    mask = np.arange(dataset.sizes.max()) < dataset.sizes[:, None]
    features = np.zeros((*mask.shape, dataset.num_features))
    grades = np.full(mask.shape, -1)
    features[mask], grades[mask] = dataset.features_by_query, dataset.labels_by_query
    return Queries(features=features, grades=grades.clip(0) * mask, mask=mask)


def _spread(weights: Floats, queries: Queries) -> Floats:
    scores = np.where(queries.mask, queries.features @ weights, np.nan)
    return weights * LOGGER_SPREAD / float(np.nanstd(scores, axis=1).mean())
