"""Names that other libraries have for settings are answered with the name that is meant here."""

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.rankers.familiar_names import ADVICE, SYNONYMS
from rankpolicy.rankers.members import RANKERS

MEANT = [
    (rp.LambdaMART, "n_estimators", "num_trees"),
    (rp.PGRank, "n_estimators", "epochs"),
    (rp.AdaRank, "n_estimators", "rounds"),
    (rp.LambdaMART, "early_stopping_rounds", "patience"),
    (rp.LambdaMART, "eval_at", "valid_metric"),
    (rp.LambdaMART, "metric", "valid_metric"),
    (rp.LambdaMART, "max_depth", "num_leaves"),
    (rp.LambdaMART, "seed", "random_state"),
    (rp.AutoRanker, "n_jobs", "jobs"),
    (rp.PGRank, "objective", "reward"),
]


@pytest.mark.parametrize(("ranker", "name", "meant"), MEANT)
def test_a_familiar_name_is_answered_with_the_setting_that_is_meant(ranker, name, meant):
    for refused in (lambda: ranker(**{name: 1}), lambda: ranker().set_params(**{name: 1})):
        with pytest.raises(rp.RankPolicyError, match=f"has no setting '{name}'; here it is called '{meant}'"):
            refused()
    with pytest.raises(
        rp.RankPolicyError, match=rf"fit has no argument '{name}'; .*{ranker.__name__}\({meant}=\.\.\.\)"
    ):
        ranker().fit(np.eye(2), [0, 1], group=[2], **{name: 1})


@pytest.mark.parametrize("ranker", RANKERS.values())
@pytest.mark.parametrize("name", sorted({*SYNONYMS, *ADVICE}))
def test_no_ranker_leaves_a_familiar_name_without_an_answer(ranker, name):
    assert name not in ranker.setting_names()
    with pytest.raises(rp.RankPolicyError, match=f"has no setting '{name}'"):
        ranker(**{name: 1})


@pytest.mark.parametrize(
    ("name", "advice"),
    [("verbose", "argument of fit"), ("categorical_feature", "category"), ("n_jobs", "OMP_NUM_THREADS")],
)
def test_what_is_no_setting_here_is_answered_with_what_to_do(name, advice):
    with pytest.raises(rp.RankPolicyError, match=advice):
        rp.LambdaMART(**{name: 1})


def test_fit_sends_settings_to_the_ranker_and_corrects_its_arguments():
    with pytest.raises(TypeError, match=r"it is a setting of the ranker: LambdaMART\(num_leaves=\.\.\.\)"):
        rp.LambdaMART().fit(np.eye(2), [0, 1], group=[2], num_leaves=3)
    with pytest.raises(TypeError, match="Did you mean 'sample_weight'"):
        rp.LambdaMART().fit(np.eye(2), [0, 1], group=[2], sample_weights=[1])
