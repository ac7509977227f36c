import pytest

import rankpolicy as rp
from rankpolicy.experiments import compare_rankers, methods_to_run, sweep_tradeoff

DATA = rp.make_web_search(12, random_state=1)
FOLD = rp.data.Fold(name="Fold1", train=DATA[:6], valid=DATA[6:9], test=DATA[9:])
FEW = {"num_trees": 2, "min_items_in_leaf": 2}
TWO = {"small": ("lambdamart", FEW | {"num_leaves": 3}), "large": ("lambdamart", FEW)}


def test_names_settings_by_name_and_pairs_by_any_name():
    assert [method.ranker_class for method in methods_to_run(["listnet", "rank-svm"]).values()] == [
        rp.ListNet,
        rp.RankSVM,
    ]
    by_method = methods_to_run({"rank-svm": {"C": 0.1}})["rank-svm"]
    assert (by_method.ranker_class, by_method.settings) == (rp.RankSVM, {"C": 0.1})
    by_name = methods_to_run({"narrow": ("rank-svm", {"C": 0.1})})["narrow"]
    assert (by_name.name, by_name.ranker_class, by_name.settings) == ("narrow", rp.RankSVM, {"C": 0.1})
    with pytest.raises(rp.RankPolicyError, match="Unknown method 'narrow'"):
        methods_to_run({"narrow": {"C": 0.1}})


def test_one_method_may_run_twice_under_two_names():
    comparison = compare_rankers([FOLD], TWO, "ndcg@10", tune=False)
    assert comparison.methods == ("small", "large")
    assert [comparison.selections[name][0].ranker.num_leaves for name in TWO] == [3, 15]
    found = sweep_tradeoff(DATA[:6], DATA[6:], TWO, fairness="individual", executor="serial")
    assert found.methods == ("small", "large")
    assert [point.method for point in found.points] == ["small", "large"]
    assert found.settings["small"]["num_leaves"] == 3
