import json

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.data import Fold
from rankpolicy.experiments import compare_rankers

DATA = rp.make_web_search(60, items_per_query=(3, 8), num_features=8, random_state=2)
FOLDS = [
    Fold(name="Fold1", train=DATA[:30], valid=DATA[30:40], test=DATA[40:50]),
    Fold(name="Fold2", train=DATA[:30], valid=DATA[30:40], test=DATA[50:60]),
]
METHODS = {"listnet": {"epochs": 2, "model__hidden": (4,)}, "lambdamart": {"num_trees": 4}}


@pytest.fixture(scope="module")
def comparison():
    return compare_rankers(FOLDS, METHODS, "ndcg@10,map", tune=False)


def test_means_are_over_folds(comparison):
    by_hand = []
    for fold in FOLDS:
        ranker = rp.LambdaMART(num_trees=4).fit(fold.train, valid=fold.valid)
        by_hand.append(rp.evaluate(ranker, fold.test, ["map"]).means["map"])
    assert comparison.per_fold("lambdamart", "map") == pytest.approx(by_hand)
    assert comparison.means["lambdamart"]["map"] == pytest.approx(np.mean(by_hand))
    assert comparison.best_method("map") == max(comparison.methods, key=lambda method: comparison.means[method]["map"])


def test_significance_is_over_the_queries_of_all_folds(comparison):
    pooled = comparison.pooled
    assert len(pooled["listnet"]) == 20
    assert list(comparison.significance) == rp.evaluation.compare_tables(pooled)


def test_json_holds_plain_values_in_the_agreed_shape(comparison):
    document = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    assert list(document["methods"]) == ["listnet", "lambdamart"]
    assert len(document["methods"]["listnet"]["ndcg@10"]["per_fold"]) == 2
    assert {case["test"] for case in document["significance"]} == {"t-test", "wilcoxon", "fisher-randomization"}
    assert document["settings"]["listnet"] == [{"random_state": 0, "epochs": 2, "model__hidden": [4]}] * 2
    assert document["queries"] == [10, 10]


def test_one_method_is_measured_without_significance():
    comparison = compare_rankers(FOLDS[:1], ["lambdamart"], ["map"], tune=False)
    assert comparison.significance == ()


def test_a_metric_without_a_value_is_none_in_json():
    irrelevant = rp.from_arrays(np.zeros((3, 8)), [0, 0, 0], group=[3])
    fold = Fold(name="Fold1", train=DATA[:30], valid=DATA[30:40], test=irrelevant)
    methods = {"lambdamart": {"num_trees": 2}}
    comparison = compare_rankers([fold], methods, ["map"], conventions=rp.Conventions(empty="skip"), tune=False)
    assert comparison.to_dict()["methods"]["lambdamart"]["map"] == {"mean": None, "per_fold": [None]}


@pytest.mark.parametrize(
    ("methods", "metrics", "message"),
    [
        (["listnt"], "map", "Unknown method 'listnt'. Did you mean 'listnet'?"),
        ([], "map", "at least one method"),
        (["listnet"], "mop", "Unknown metric 'mop'"),
        ({"listnet": {"epoch": 1}}, "map", "no setting 'epoch'"),
    ],
)
def test_mistakes_are_found_before_training(monkeypatch, methods, metrics, message):
    monkeypatch.setattr("rankpolicy.experiments.comparison.fit_best", lambda *_, **__: pytest.fail("training began"))
    with pytest.raises(rp.RankPolicyError, match=message.replace("?", r"\?")):
        compare_rankers(FOLDS, methods, metrics)


def test_a_metric_the_labels_do_not_allow_is_found_before_training(monkeypatch):
    monkeypatch.setattr("rankpolicy.experiments.comparison.fit_best", lambda *_, **__: pytest.fail("training began"))
    with pytest.raises(rp.RankPolicyError, match="err needs labels up to max_label, 1"):
        compare_rankers(FOLDS, ["listnet"], "err", conventions=rp.Conventions(max_label=1))


def test_no_fold_is_refused():
    with pytest.raises(rp.RankPolicyError, match="at least one fold"):
        compare_rankers([], ["listnet"])


def test_the_best_average_rank_is_the_lowest():
    comparison = compare_rankers(FOLDS[:1], METHODS, ["avg_rank"], tune=False)
    means = {method: comparison.means[method]["avg_rank"] for method in comparison.methods}
    assert comparison.best_method("avg_rank") == min(means, key=means.get)
