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


def run_of(dataset, scores):
    """A run as ``read_run`` returns it."""
    run = {}
    for query, item, score in zip(dataset.query_ids[dataset.query_of_item], dataset.item_ids, scores, strict=True):
        run.setdefault(str(query), {})[str(item)] = float(score)
    return run


@pytest.fixture(scope="module")
def outside():
    """A run of all test queries and some others, by a feature."""
    return run_of(DATA, DATA.features[:, 0])


def test_a_baseline_is_in_every_comparison_and_fewer_are_adjusted_for(outside):
    methods = METHODS | {"linear": ("listnet", {"epochs": 1, "model": "linear"})}
    every = compare_rankers(FOLDS, methods, "ndcg@10,map", tune=False)
    found = compare_rankers(FOLDS, methods, "ndcg@10,map", tune=False, baseline="listnet")
    assert {case.b for case in found.significance} == {"listnet"}
    assert {case.a for case in found.significance} == {"lambdamart", "linear"}
    for test in ("t-test", "wilcoxon", "fisher-randomization"):
        cases = [case for case in found.significance if case.test == test]
        assert len(cases) == 2 * 2
        assert [case.p_holm for case in cases] == pytest.approx(rp.evaluation.holm([case.p for case in cases]))
    by_pair = {(case.metric, case.test, frozenset((case.a, case.b))): case for case in every.significance}
    for case in found.significance:
        same = by_pair[case.metric, case.test, frozenset((case.a, case.b))]
        assert case.p == pytest.approx(same.p)
        assert case.p_holm <= same.p_holm
        assert case.difference == pytest.approx(same.difference if same.a == case.a else -same.difference)
    assert found.to_dict()["baseline"] == "listnet"
    assert every.to_dict()["baseline"] is None


def test_a_run_of_another_ranker_takes_part(outside, tmp_path):
    methods = {"lambdamart": {"num_trees": 4}}
    found = compare_rankers(FOLDS, methods, ["map"], tune=False, runs={"feature": outside}, baseline="feature")
    expected = [rp.evaluate(fold.test.features[:, 0], fold.test, ["map"]).means["map"] for fold in FOLDS]
    assert found.per_fold("feature", "map") == pytest.approx(expected)
    assert found.methods == ("lambdamart", "feature")
    assert list(found.selections) == ["lambdamart"]
    assert list(found.to_dict()["settings"]) == ["lambdamart"]
    assert {(case.a, case.b) for case in found.significance} == {("lambdamart", "feature")}
    rp.data.write_run(DATA, DATA.features[:, 0], tmp_path / "run.trec")
    of_file = compare_rankers(FOLDS, methods, ["map"], tune=False, runs={"feature": tmp_path / "run.trec"})
    assert of_file.per_fold("feature", "map") == pytest.approx(expected)


def test_the_frame_has_a_row_for_every_method_and_query(comparison):
    frame = comparison.to_frame()
    assert frame.columns == ["method", "fold", "query_id", "ndcg@10", "map"]
    assert len(frame) == 2 * 20
    means = frame.drop("query_id").group_by("method", "fold").mean().sort("method", "fold")
    assert means["map"].to_list() == pytest.approx(
        [*comparison.per_fold("lambdamart", "map"), *comparison.per_fold("listnet", "map")]
    )


def test_wrong_runs_and_baselines_are_found_before_training(monkeypatch, outside):
    monkeypatch.setattr("rankpolicy.experiments.comparison.fit_best", lambda *_, **__: pytest.fail("training began"))

    def message(**options):
        with pytest.raises(rp.RankPolicyError) as error:
            compare_rankers(FOLDS, METHODS, "map", **options)
        return str(error.value)

    first = str(FOLDS[1].test.query_ids[0])
    item = next(iter(outside[first]))
    without_query = {query: items for query, items in outside.items() if query != first}
    without_item = outside | {first: {other: score for other, score in outside[first].items() if other != item}}
    with_more = outside | {first: outside[first] | {"x": 1.0}}
    assert "Unknown baseline 'listnt'. Did you mean 'listnet'?" in message(baseline="listnt")
    assert "'listnet' is a method of this comparison" in message(runs={"listnet": outside})
    missing = message(runs={"other": without_query})
    assert (
        f"the run 'other' in Fold2 must rank every query of the data; 1 of 10 queries are missing, the first is {first!r}"
        in missing
    )
    assert f"of query {first!r} it lacks 1 of" in message(runs={"other": without_item})
    assert f"of query {first!r} it has 1 others, such as 'x'" in message(runs={"other": with_more})
    assert "there is none" in message(runs={"other": "none.trec"})
