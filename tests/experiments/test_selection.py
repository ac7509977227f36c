import pytest

import rankpolicy as rp
from rankpolicy.experiments import fit_best
from rankpolicy.experiments.selection import settings_to_try

DATA = rp.make_web_search(40, items_per_query=(3, 8), num_features=8, random_state=2)
TRAIN, VALID = DATA[:25], DATA[25:]


def test_the_best_on_validation_data_is_kept(monkeypatch):
    monkeypatch.setattr(
        rp.ListNet, "settings_to_try", ({}, {"model": "highway"}, {"model": "linear"}, {"learning_rate": 0.1})
    )
    selection = fit_best(rp.ListNet, {"epochs": 2, "model__hidden": (4,)}, TRAIN, VALID)
    assert [settings for settings, _ in selection.tried] == [
        {"epochs": 2, "model__hidden": (4,)},
        {"model": "highway", "epochs": 2, "model__hidden": (4,)},
        {"learning_rate": 0.1, "epochs": 2, "model__hidden": (4,)},
    ]  # a linear model has no hidden layers, so that what the user fixed would not be read
    assert selection.ranker.best_score_ == max(score for _, score in selection.tried)
    assert (selection.settings, selection.ranker.best_score_) in selection.tried


def test_what_the_user_fixes_is_not_searched():
    assert settings_to_try(rp.LambdaMART, {"num_leaves": 7}) == [
        {"num_leaves": 7, "min_items_in_leaf": items} for items in (50, 20, 100)
    ]


def test_one_candidate_is_the_default():
    selection = fit_best(rp.LambdaMART, {"num_trees": 3}, TRAIN, VALID, max_candidates=1)
    assert len(selection.tried) == 1
    assert selection.ranker.get_params() == rp.LambdaMART(num_trees=3).get_params()


def test_an_unknown_setting_is_refused_before_training():
    with pytest.raises(rp.RankPolicyError, match="ListNet has no setting 'epoch'"):
        fit_best(rp.ListNet, {"epoch": 3}, TRAIN, VALID)
