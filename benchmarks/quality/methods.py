"""The methods that are compared, each from training and validation data to scores of test data.

Boosted trees of every library get the same nine pairs of (leaves, items or weight per leaf) and the same early stopping by NDCG@10 on the
validation data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import rankpolicy as rp
from rankpolicy.data import RankingDataset
from rankpolicy.experiments.selection import fit_best, settings_to_try
from rankpolicy.rankers.blending.blend import spread_within_queries
from rankpolicy.rankers.members import ranker_class_named

Scores = NDArray[np.float64]
Method = Callable[[RankingDataset, RankingDataset, RankingDataset, int], Scores]  # train, valid, test, seed -> (items,)

CANDIDATES = tuple((leaves, items) for leaves in (15, 7, 31) for items in (50, 20, 100))
NUM_TREES, PATIENCE, LEARNING_RATE = 1000, 50, 0.05


def _default(method: str, **settings: Any) -> Method:
    def scores(train: RankingDataset, valid: RankingDataset, test: RankingDataset, seed: int) -> Scores:
        ranker = ranker_class_named(method)().set_params(random_state=seed, **settings)
        return ranker.fit(train, valid=valid, progress=False).predict(test)

    return scores


def _best(method: str, **settings: Any) -> Method:
    def scores(train: RankingDataset, valid: RankingDataset, test: RankingDataset, seed: int) -> Scores:
        chosen = fit_best(ranker_class_named(method), {"random_state": seed} | settings, train, valid, progress=False)
        return chosen.ranker.predict(test)

    return scores


def _mean(method: str) -> Method:
    """The mean of all candidates, each divided by its spread on the validation data: as AutoRanker averages."""

    def scores(train: RankingDataset, valid: RankingDataset, test: RankingDataset, seed: int) -> Scores:
        ranker = ranker_class_named(method)
        total = np.zeros(test.num_items)
        for settings in settings_to_try(ranker, {"random_state": seed}):
            fitted = ranker().set_params(**settings).fit(train, valid=valid, progress=False)
            spread = spread_within_queries(valid.in_query_order(fitted.predict(valid)), valid)
            total += fitted.predict(test) / spread if spread > 0 else 0.0
        return total

    return scores


def _xgboost(train: RankingDataset, valid: RankingDataset, test: RankingDataset, seed: int) -> Scores:
    import xgboost

    def matrix(part: RankingDataset) -> Any:
        return xgboost.DMatrix(part.features_by_query, part.labels_by_query, qid=part.query_numbers)

    found = []
    learned, held_out = matrix(train), matrix(valid)
    for leaves, items in CANDIDATES:
        parameters = {
            "objective": "rank:ndcg",
            "eval_metric": "ndcg@10-",
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_depth": 0,
            "max_leaves": leaves,
            "min_child_weight": items / 100,  # Hessians of rank:ndcg are far below 1 per item
            "eta": LEARNING_RATE,
            "subsample": 0.8,
            "colsample_bytree": 0.8,
            "seed": seed,
            "nthread": torch.get_num_threads(),
        }
        booster = xgboost.train(
            parameters,
            learned,
            NUM_TREES,
            evals=[(held_out, "valid")],
            early_stopping_rounds=PATIENCE,
            verbose_eval=False,
        )
        best = booster[: booster.best_iteration + 1]
        found.append((_ndcg(best.predict(held_out), valid), best))
    _, chosen = max(found, key=lambda pair: pair[0])
    return test.in_row_order(chosen.predict(matrix(test)).astype(np.float64))


def _catboost(train: RankingDataset, valid: RankingDataset, test: RankingDataset, seed: int) -> Scores:
    import catboost

    def pool(part: RankingDataset) -> Any:
        return catboost.Pool(part.features_by_query, part.labels_by_query, group_id=part.query_numbers)

    found = []
    learned, held_out = pool(train), pool(valid)
    for leaves, items in CANDIDATES:
        model = catboost.CatBoostRanker(
            loss_function="YetiRank",
            eval_metric="NDCG:top=10;type=Exp",
            iterations=NUM_TREES,
            learning_rate=LEARNING_RATE,
            grow_policy="Lossguide",
            max_leaves=leaves,
            min_data_in_leaf=items,
            random_seed=seed,
            thread_count=torch.get_num_threads(),
            verbose=False,
            allow_writing_files=False,
        )
        model.fit(learned, eval_set=held_out, early_stopping_rounds=PATIENCE, use_best_model=True)
        found.append((_ndcg(model.predict(held_out), valid), model))
    _, chosen = max(found, key=lambda pair: pair[0])
    return test.in_row_order(np.asarray(chosen.predict(pool(test)), np.float64))


def _ndcg(scores: Any, data: RankingDataset) -> float:
    ordered = data.in_row_order(np.asarray(scores, np.float64))
    return float(rp.evaluate(ordered, data, "ndcg@10").means["ndcg@10"])


METHODS: dict[str, Method] = {
    "AutoRanker": _default("auto"),
    "LambdaMART, best of nine": _best("lambdamart"),
    "LambdaMART, mean of nine": _mean("lambdamart"),
    "XGBoost, best of nine": _xgboost,
    "CatBoost, best of nine": _catboost,
    "PGRank": _default("pg-rank"),
    "BoostedPolicy, best of nine": _best("boosted-policy"),
    "BoostedRegression, best of nine": _best("boosted-regression"),
    "Regression networks": _default("regression", num_networks=4),
}
OURS = "AutoRanker"
# Compared by tests of significance: fitted with every seed of a set.
SEEDED = (OURS, "LambdaMART, best of nine", "LambdaMART, mean of nine")
