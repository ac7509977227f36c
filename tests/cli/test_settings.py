import re

import pytest

from rankpolicy import BoostedPolicy, FairPGRank, LambdaMART, ListNet, PGRank, RankPolicyError
from rankpolicy.cli.support.method_settings import as_text, parse_assignments, parse_settings, settings_of_methods


def test_texts_become_the_type_of_their_setting():
    texts = parse_assignments(
        ["num-networks=2", "model.dropout=0", "model.hidden=8", "patience=7", "reward=mean(ap, rr)", "model=highway"]
    )
    assert parse_settings(PGRank, texts) == {
        "num_networks": 2, "model__dropout": 0.0, "model__hidden": (8,), "patience": 7, "reward": "mean(ap, rr)",
        "model": "highway",
    }  # fmt: skip


def test_a_setting_of_one_method_goes_before_one_of_all():
    classes = {"pg-rank": PGRank, "lambdamart": LambdaMART}
    texts = parse_assignments(["pg-rank.patience=3", "patience=9", "num_leaves=5"])
    assert settings_of_methods(classes, texts) == {
        "pg-rank": {"patience": 3},
        "lambdamart": {"patience": 9, "num_leaves": 5},
    }


def test_settings_of_a_model_go_to_the_methods_whose_model_has_them():
    classes = {"pg-rank": PGRank, "listnet": ListNet, "lambdamart": LambdaMART}
    texts = parse_assignments(["model.hidden=4", "pg_rank.model.hidden=8", "listnet.model=highway", "model.dropout=0"])
    assert settings_of_methods(classes, texts) == {
        "pg-rank": {"model__hidden": (8,), "model__dropout": 0.0},
        "listnet": {"model": "highway", "model__hidden": (4,), "model__dropout": 0.0},
        "lambdamart": {},
    }
    assert settings_of_methods(classes, {"model.hidden": "4", "pg_rank.model": "linear"})["pg-rank"] == {
        "model": "linear"
    }


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"compression": "sum"}, "it belongs to the model: --set model=mcan --set model.compression=..."),
        ({"hidden": "4"}, "it belongs to the model: --set model.hidden=..."),
        ({"model.compression": "sum"}, "MLP has no setting 'compression'; it is a setting of MCAN"),
        ({"gamma": "0.5"}, "pg-rank has no setting 'gamma'; it is a setting of BanditRank"),
        (
            {"model.epochs": "4"},
            "MLP has no setting 'epochs'. Known: hidden, dropout, query_context, initial_range. Settings of training, such as epochs",
        ),
        ({"model": "linear", "model.hidden": "4"}, "Linear has no setting 'hidden'"),
        ({"epochs.hidden": "4"}, "the setting 'epochs' has no settings of its own"),
    ],
)
def test_a_setting_that_the_method_would_not_read_is_sent_where_it_belongs(texts, message):
    with pytest.raises(RankPolicyError, match=re.escape(message)):
        parse_settings(PGRank, texts)


def test_toml_values_read_like_flags():
    assert [as_text(value) for value in ([64, 32], True, 0.5, "none")] == ["64,32", "true", "0.5", "none"]


def test_an_unknown_setting_lists_the_known():
    with pytest.raises(
        RankPolicyError,
        match=r"Unknown setting of lambdamart: 'leaves'. Did you mean 'num_leaves'\? Known: num_trees, ",
    ):
        parse_settings(LambdaMART, {"leaves": "3"})


def test_a_setting_of_another_bandit_names_its_bandit():
    from rankpolicy.bandits import DcmTS

    for assignments in ({"epsilon": "0.2"}, {"dcm_ts.epsilon": "0.2"}):
        with pytest.raises(RankPolicyError, match="it is a setting of the bandit epsilon-greedy"):
            settings_of_methods({"dcm-ts": DcmTS}, assignments)


def test_settings_of_an_aim_go_to_the_methods_whose_aim_has_them():
    classes = {"fair-pg-rank": FairPGRank, "equal": FairPGRank, "boosted-policy": BoostedPolicy, "pg-rank": PGRank}
    texts = parse_assignments(
        [
            "fairness.merit=exp2",
            "fairness.rank_weights=1,0.5",
            "equal.fairness.parity=1",
            "boosted_policy.fairness=individual",
        ]
    )
    shared = {"fairness__merit": "exp2", "fairness__rank_weights": (1.0, 0.5)}
    assert settings_of_methods(classes, texts) == {
        "fair-pg-rank": shared,
        "equal": {"fairness__parity": 1.0, **shared},
        "boosted-policy": {"fairness": "individual", **shared},
        "pg-rank": {},
    }
    for texts, message in (
        ({"merit": "exp2"}, "fair-pg-rank has no setting 'merit'; it belongs to fairness: --set fairness.merit=..."),
        ({"fairness": "individual", "fairness.parity": "1"}, "IndividualExposure has no setting 'parity'"),
        ({"fairness.impact": "maybe"}, "setting impact must be true or false; got 'maybe'"),
    ):
        with pytest.raises(RankPolicyError, match=re.escape(message)):
            parse_settings(FairPGRank, texts)
