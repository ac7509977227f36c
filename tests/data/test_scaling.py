import numpy as np
import pytest

from rankpolicy.data import from_arrays, make_web_search
from rankpolicy.data.scaling import SCALINGS, FeatureScaling, fit_scaling
from rankpolicy.types import RankPolicyError

FEATURES = np.array([[0.0, 5.0], [10.0, 5.0], [5.0, 5.0], [-3.0, 1.0]], np.float32)
OFFSETS = np.array([0, 3, 4])


def test_query_minmax():
    scaling = fit_scaling("query_minmax", from_arrays(FEATURES, group=[3, 1]))
    assert scaling.needs_queries
    assert scaling.apply(FEATURES, OFFSETS).tolist() == [[0, 0], [1, 0], [0.5, 0], [0, 0]]
    with pytest.raises(RankPolicyError, match=r"needs to know the queries; got features only\. Pass qid or group"):
        scaling.apply(FEATURES)


def test_standardize():
    train = from_arrays([[1.0, 7.0], [3.0, 7.0]], group=[2])
    scaling = fit_scaling("standardize", train)
    assert not scaling.needs_queries
    assert scaling.apply(train.features).tolist() == [[-1, 0], [1, 0]]
    assert scaling.apply(np.array([[2.0, 100.0]], np.float32)).tolist() == [[0, 0]]


def test_log1p_is_symmetric():
    train = from_arrays([[-np.expm1(1.0)], [np.expm1(1.0)]], group=[2])
    np.testing.assert_allclose(fit_scaling("log1p", train).apply(train.features), [[-1], [1]], rtol=1e-6)


def test_none_changes_nothing():
    assert fit_scaling("none", from_arrays(FEATURES, group=[4])).apply(FEATURES).tolist() == FEATURES.tolist()


@pytest.mark.parametrize("kind", SCALINGS)
def test_every_kind_is_finite_and_survives_saving(kind):
    train = make_web_search(10, items_per_query=(1, 9))
    scaling = fit_scaling(kind, train)
    scaled = scaling.apply(train.features, train.offsets)
    assert scaled.dtype == np.float32
    assert scaled.shape == (train.num_items, scaling.num_scaled(train.num_features))
    assert np.isfinite(scaled).all()
    again = FeatureScaling.from_arrays(kind, scaling.to_arrays())
    assert again.apply(train.features, train.offsets).tobytes() == scaled.tobytes()


def test_errors():
    train = from_arrays(FEATURES, group=[4])
    with pytest.raises(
        RankPolicyError, match=r"Unknown scaling 'standardise'\. Did you mean 'standardize'\? Known: none"
    ):
        fit_scaling("standardise", train)
    with pytest.raises(RankPolicyError, match="the 2 columns the scaling was fitted on; got 1"):
        fit_scaling("standardize", train).apply(FEATURES[:, :1])
    with pytest.raises(RankPolicyError, match=r"saved as arrays \['center', 'spread'\]; got \[\]"):
        FeatureScaling.from_arrays("log1p", {})
