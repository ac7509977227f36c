"""``python -m benchmarks.quality.judgments [--json]``: judgments of every click model on CLARA 2 against grades made apart from the clicks.

Judgments: each model is fitted on the whole log; its relevances, 0 for urls without a click as 'rankpolicy clicks judgments' writes them,
rank the graded urls of each query that has clicks and two different grades.
Rankers: regression trees learn these relevances on four fifths of the queries and rank the graded urls of the others, by features that any
engine has and no grade: where the url was shown for the query and how often, and ranks, impressions and clicks of the url elsewhere.
NDCG is over all ranks, equal values in random order; intervals are over queries, paired where methods are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rankpolicy as rp
from benchmarks.circumstances import circumstances
from benchmarks.timing import use_two_threads
from rankpolicy.clicks import CLICK_MODELS, fit_click_model
from rankpolicy.clicks.log.row_counts import ratio, weighted_counts
from reproductions.clicks.clara2_log import DATASET, GradedLog, read_graded_log
from reproductions.clicks.graded_ndcg import graded_queries, mean_ndcg
from reproductions.paired import t_interval

Array = NDArray[np.float64]
COEC, RANDOM, LOGGED, RAW = "coec, no prior (OpenSearch)", "random order", "logging order", "click-through, raw"
NUM_FOLDS, SEED = 5, 0
FEATURES = ("mean rank", "impressions", "queries of the url", "its mean rank elsewhere", "its impressions elsewhere",
            "its click-through elsewhere")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="Print the result as JSON instead of a table.")
    data = os.environ.get("RANKPOLICY_DATA")
    arguments = parser.parse_args()
    if data is None:
        sys.exit("Set RANKPOLICY_DATA to the folder of the datasets.")
    use_two_threads()
    result = measured(Path(data) / DATASET) | circumstances()
    print(json.dumps(result, indent=1) if arguments.json else markdown(result))


def measured(folder: Path) -> dict[str, Any]:
    """NDCG on grades of the judgments of each method and of a ranker that learned them, with differences to COEC."""
    graded = read_graded_log(folder)
    queries = graded_queries(graded.pairs.queries, graded.grades, graded.counts.clicks.sum(1))
    values = relevances(graded)
    features, fold_of_query = features_of(graded), np.random.default_rng(SEED).integers(NUM_FOLDS, size=2**16)
    folds = fold_of_query[graded.pairs.queries]
    ndcg = {name: mean_ndcg(relevance, queries) for name, relevance in values.items()}
    learned = {
        name: mean_ndcg(held_out_scores(graded, features, relevance, folds), queries)
        for name, relevance in values.items()
        if name not in (RANDOM, LOGGED)
    }
    return {
        "queries": len(queries),
        "urls": sum(len(query.pairs) for query in queries.values()),
        "judgments": {name: _facts(ndcg, name) for name in ndcg},
        "rankers": {name: _facts(learned, name) for name in learned},
    }


def relevances(graded: GradedLog) -> dict[str, Array]:
    """The relevance of each pair (pair,) by every method; grades are not read."""
    shown, clicks = graded.counts.shown, graded.counts.clicks
    values = {
        RANDOM: np.zeros(len(shown)),
        LOGGED: -_mean_rank(shown),
        RAW: clicks.sum(1) / shown.sum(1),
        COEC: fit_click_model("coec", graded.log, prior=None).relevance(),
    }
    names = [name for name, kind in CLICK_MODELS.items() if "attraction" in kind.axes]
    is_clicked = clicks.sum(1) > 0
    return values | {
        name: fit_click_model(name, graded.log, prior="empirical").relevance() * is_clicked for name in names
    }


def features_of(graded: GradedLog) -> Array:
    """Features of each pair (pair, feature), as FEATURES names them; clicks on the pair itself are not among them."""
    shown, clicks, urls = graded.counts.shown, graded.counts.clicks, graded.pairs.items
    size = len(graded.pairs.item_names)
    times, rank_sum = shown.sum(1), shown @ np.arange(1, shown.shape[1] + 1)

    def elsewhere(of_pairs: Array) -> Array:
        return weighted_counts(urls, of_pairs, size)[urls] - of_pairs

    other_times = elsewhere(times)
    smoothed = (elsewhere(clicks.sum(1)) + clicks.sum() / shown.sum() * 10) / (other_times + 10)
    return np.column_stack(
        [
            _mean_rank(shown),
            times,
            elsewhere(np.ones(len(urls))),
            ratio(elsewhere(rank_sum), other_times),
            other_times,
            smoothed,
        ]
    )


def held_out_scores(graded: GradedLog, features: Array, relevance: Array, folds: NDArray[np.int64]) -> Array:
    """The score of each pair (pair,) by a ranker that learned the judgments of the other queries."""
    scores = np.empty(len(features))
    for fold in range(NUM_FOLDS):
        train, test = folds != fold, folds == fold
        ranker = rp.BoostedRegression(random_state=SEED, num_trees=60, num_leaves=15)
        ranker.fit(features[train], relevance[train], qid=graded.pairs.queries[train], progress=False)
        scores[test] = ranker.predict(features[test])
    return scores


def _mean_rank(shown: Array) -> Array:
    return (shown @ np.arange(1, shown.shape[1] + 1)) / shown.sum(1)


def _facts(ndcg: dict[str, Array], name: str) -> dict[str, list[float]]:
    """Mean and interval of the NDCG, and of its paired difference to COEC."""
    return {
        "ndcg": [round(number, 4) for number in t_interval(ndcg[name])[:3]],
        "minus_coec": [round(number, 4) for number in t_interval(ndcg[name] - ndcg[COEC])[:3]],
    }


def markdown(result: dict[str, Any]) -> str:
    """The table: a row per method."""
    lines = [
        f"| {result['queries']:,} queries, {result['urls']:,} graded urls | NDCG of the judgments | minus COEC "
        "| NDCG of a ranker that learned them | minus COEC |",
        "|---" * 5 + "|",
    ]
    for name, facts in result["judgments"].items():
        ranker = result["rankers"].get(name)
        cells = [*_cells(facts, name), *(_cells(ranker, name) if ranker else ("", ""))]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cells(facts: dict[str, list[float]], name: str) -> tuple[str, str]:
    (mean, low, high), (difference, least, most) = facts["ndcg"], facts["minus_coec"]
    return (
        f"{mean:.4f} [{low:.4f}, {high:.4f}]",
        "" if name == COEC else f"{difference:+.4f} [{least:+.4f}, {most:+.4f}]",
    )


if __name__ == "__main__":
    main()
