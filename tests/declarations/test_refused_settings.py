import numpy as np
import pytest

import rankpolicy as rp

TRAIN = rp.make_web_search(4, num_features=8)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"model": {"name": "mlp", "hidden": 64}},
            r"hidden must be a list of whole numbers; got 64. For a single one write \(64,\)",
        ),
        ({"model": {"name": "mlp", "hidden": "64"}}, "hidden must be a list of whole numbers; got '64'"),
        ({"epochs": "3"}, "epochs must be a whole number; got '3'"),
        ({"epochs": 2.5}, "epochs must be a whole number; got 2.5"),
        ({"patience": "none"}, "patience must be a whole number or None; got 'none'"),
        ({"learning_rate": float("nan")}, "learning_rate must be a number; got nan"),
        ({"model": {"name": "mlp", "dropout": None}}, "dropout must be a number; got None"),
        ({"device": None}, "device must be a string; got None"),
        ({"random_state": "0"}, "random_state must be a whole number or None; got '0'"),
        ({"random_state": -1}, "random_state must be a seed from 0 to 2147483647; got -1"),
    ],
)
def test_a_setting_of_the_wrong_kind_is_named_when_the_ranker_is_made(settings, message):
    with pytest.raises(rp.RankPolicyError, match=message):
        rp.PGRank(**settings)


def test_numbers_of_numpy_are_numbers(tmp_path):
    model = rp.models.MLP(hidden=[np.int64(4)], dropout=np.float32(0))
    ranker = rp.PGRank(model=model, epochs=np.int64(1), random_state=np.int32(2)).fit(TRAIN)
    ranker.save(tmp_path / "model.rp")
    loaded = rp.load(tmp_path / "model.rp")
    assert loaded.get_params() == ranker.get_params() | {"model__hidden": (4,)}
    np.testing.assert_array_equal(loaded.predict(TRAIN), ranker.predict(TRAIN))
