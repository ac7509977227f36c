import pytest

from rankpolicy import LambdaMART, PGRank, RankPolicyError
from rankpolicy.cli.support.settings import as_text, parse_assignments, parse_settings, settings_of_methods


def test_texts_become_the_type_of_their_setting():
    texts = parse_assignments(
        ["num-networks=2", "dropout=0", "hidden=8", "patience=7", "reward=mean(ap, rr)", "model=linear"]
    )
    assert parse_settings(PGRank, texts) == {
        "num_networks": 2, "dropout": 0.0, "hidden": (8,), "patience": 7, "reward": "mean(ap, rr)", "model": "linear",
    }  # fmt: skip


def test_a_setting_of_one_method_goes_before_one_of_all():
    classes = {"pg-rank": PGRank, "lambdamart": LambdaMART}
    texts = parse_assignments(["pg-rank.patience=3", "patience=9", "num_leaves=5"])
    assert settings_of_methods(classes, texts) == {
        "pg-rank": {"patience": 3},
        "lambdamart": {"patience": 9, "num_leaves": 5},
    }


def test_toml_values_read_like_flags():
    assert [as_text(value) for value in ([64, 32], True, 0.5, "none")] == ["64,32", "true", "0.5", "none"]


def test_an_unknown_setting_lists_the_known():
    with pytest.raises(
        RankPolicyError,
        match=r"Unknown setting of lambdamart: 'leaves'. Did you mean 'num_leaves'\? Known: num_trees, ",
    ):
        parse_settings(LambdaMART, {"leaves": "3"})
