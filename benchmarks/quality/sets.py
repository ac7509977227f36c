"""The sets of data: real ones, texts turned into features, and generated families.

A set is asked for a stage. "dev" is for choosing defaults: it never shows a test query of a real set, and draws generated sets with other
seeds. "test" is the frozen run.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import rankpolicy as rp
from benchmarks.quality.text_features import NAMES, text_features
from rankpolicy.data import RankingDataset, read_folds, read_glove, read_letor, read_wikiqa
from rankpolicy.data.arrays import concatenate
from rankpolicy.data.folds import Fold

STAGES = ("dev", "test")
SHARES_TEST_DATA = ("lightgbm example", "home depot")  # their splits differ in training and validation data only
SEEDS = {"mq2007": 2, "mq2008": 2}  # seeds of the methods that are tested against each other; elsewhere one
_FIRST_SEED = {"dev": 10, "test": 1000}
_MOST_HOME_DEPOT = 1500  # queries to learn from


def folds_of(name: str, data: Path, stage: str) -> list[Fold]:
    """The splits of a set at a stage."""
    return [*SETS[name](data, stage)]


def _without_test(folds: Iterator[Fold] | list[Fold], stage: str) -> Iterator[Fold]:
    """At the stage "dev", training and validation data cut anew into three parts; the test data is left alone."""
    for number, fold in enumerate(folds):
        if stage == "test":
            yield fold
            continue
        train, valid, test = rp.split_queries(
            concatenate([fold.train, fold.valid]), (0.6, 0.2, 0.2), random_state=number
        )
        yield Fold(name=fold.name, train=train, valid=valid, test=test)


def _letor(folder: str) -> Callable[[Path, str], Iterator[Fold]]:
    return lambda data, stage: _without_test(read_folds(data / folder), stage)


def _lightgbm_example(data: Path, stage: str) -> Iterator[Fold]:
    folder = data / "lightgbm_lambdarank"
    train, test = (read_letor(folder / f"rank.{part}.gz", num_features=300) for part in ("train", "test"))
    folds = []
    for seed in range(3):
        learned, valid = rp.split_queries(train, (0.75, 0.25), random_state=seed)
        folds.append(Fold(name=f"split {seed}", train=learned, valid=valid, test=test))
    return _without_test(folds, stage)


def _wikiqa(data: Path, stage: str) -> Iterator[Fold]:
    parts = [read_wikiqa(data / "wikiqa" / f"WikiQA-{part}.tsv.gz") for part in ("train", "dev", "test")]
    texts = [_texts_of(part) for part in parts]
    features = text_features(
        [q for queries, _ in texts for q in queries], [i for _, items in texts for i in items], _vectors(data)
    )
    cuts = np.cumsum([part.num_items for part in parts])[:-1]
    train, valid, test = (
        rp.from_arrays(rows, part.labels_by_query, group=part.sizes, feature_names=NAMES)
        for rows, part in zip(np.split(features, cuts), parts, strict=True)
    )
    return _without_test([Fold(name="given split", train=train, valid=valid, test=test)], stage)


def _texts_of(part: RankingDataset) -> tuple[list[str], list[str]]:
    assert part.texts_by_query is not None
    queries = [part.texts_by_query.queries[number] for number in part.query_numbers]
    return queries, [part.texts_by_query.distinct[number] for number in part.texts_by_query.of_item]


def _home_depot(data: Path, stage: str) -> Iterator[Fold]:
    pool = _home_depot_pool(data)
    rest, test = rp.split_queries(pool, (0.8, 0.2), random_state=0)
    folds = []
    for seed in range(2):
        train, valid, _ = rp.split_queries(
            rest,
            (
                _MOST_HOME_DEPOT / rest.num_queries,
                500 / rest.num_queries,
                1 - (_MOST_HOME_DEPOT + 500) / rest.num_queries,
            ),
            random_state=seed,
        )
        folds.append(Fold(name=f"split {seed}", train=train, valid=valid, test=test))
    return _without_test(folds, stage)


@cache
def _home_depot_pool(data: Path) -> RankingDataset:
    """Queries with five products or more; grades 1 to 3, means of raters, become 0 to 4."""
    import polars
    import zstandard

    packed = (data / "home_depot_train" / "train.csv.zst").read_bytes()
    with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed)) as stream:
        text = stream.read().decode("latin-1")
    frame = polars.read_csv(io.StringIO(text))
    frame = frame.filter(polars.len().over("search_term") >= 5).sort("search_term", maintain_order=True)
    queries, items = frame["search_term"].to_list(), frame["product_title"].to_list()
    labels = np.round((frame["relevance"].to_numpy() - 1) * 2)
    sizes = frame.group_by("search_term", maintain_order=True).len()["len"].to_numpy()
    return rp.from_arrays(text_features(queries, items, _vectors(data)), labels, group=sizes, feature_names=NAMES)


@cache
def _vectors(data: Path) -> dict[str, Any]:
    [file] = (data / "glove_6b_50d_subset").glob("*.txt.gz")
    vectors = read_glove(file)
    return dict(zip(vectors.words, vectors.vectors, strict=True))


def _generated(**knobs: Any) -> Callable[[Path, str], Iterator[Fold]]:
    """A family: as many validation as a third of the training queries, 500 test queries, two draws."""
    return partial(_draws, **knobs)


def _draws(data: Path, stage: str, *, num_queries: int, **knobs: Any) -> Iterator[Fold]:
    num_valid = max(20, num_queries // 3)
    for draw in range(2):
        seed = _FIRST_SEED[stage] + draw
        whole = rp.data.make_ranking(num_queries + num_valid + 500, **knobs, random_state=seed)
        places = np.split(np.arange(whole.num_queries), [num_queries, num_queries + num_valid])
        yield Fold(name=f"draw {seed}", train=whole[places[0]], valid=whole[places[1]], test=whole[places[2]])


def group_of(name: str) -> str:
    """Whether a set is real, or how features act in the family it is generated from."""
    effects = SETS[name].keywords.get("effects") if isinstance(SETS[name], partial) else None
    return f"generated, {effects}" if effects else "real"


SETS: dict[str, Callable[[Path, str], Iterator[Fold]]] = {
    "mq2008": _letor("letor_mq2008"),
    "mq2007": _letor("letor_mq2007"),
    "lightgbm example": _lightgbm_example,
    "wikiqa": _wikiqa,
    "home depot": _home_depot,
    "generated: few queries": _generated(
        num_queries=60, items_per_query=10, num_features=10, num_informative=5, effects="additive"
    ),
    "generated: small": _generated(
        num_queries=150, items_per_query=(5, 30), num_features=20, num_informative=10, effects="interacting"
    ),
    "generated: few of many features": _generated(
        num_queries=600, items_per_query=40, num_features=136, num_informative=9, effects="interacting"
    ),
    "generated: wide": _generated(
        num_queries=300, items_per_query=20, num_features=400, num_informative=20, effects="additive"
    ),
    "generated: long lists": _generated(
        num_queries=150, items_per_query=(80, 200), num_features=30, num_informative=15, effects="interacting"
    ),
    "generated: binary": _generated(
        num_queries=400,
        items_per_query=15,
        num_features=25,
        num_informative=25,
        num_grades=2,
        effects="additive",
        noise=1.5,
    ),
    "generated: many queries": _generated(
        num_queries=3000, items_per_query=12, num_features=30, num_informative=10, effects="interacting"
    ),
    "generated: few features": _generated(
        num_queries=500, items_per_query=20, num_features=5, num_informative=5, effects="interacting"
    ),
}

NUM_FOLDS = {name: 2 if name.startswith("generated") else 1 for name in SETS} | {
    "mq2007": 5,
    "mq2008": 5,
    "lightgbm example": 3,
    "home depot": 2,
}
