import numpy as np
import pytest

from rankpolicy.data import make_web_search
from rankpolicy.data.fingerprints import fingerprint
from rankpolicy.types import RankPolicyError


def test_it_looks_like_web_search():
    dataset = make_web_search(400)
    shares = np.bincount(dataset.labels.astype(int)) / dataset.num_items
    assert len(shares) == 5
    assert (np.diff(shares) < 0).all()
    assert shares[0] > 0.65
    assert 0.08 < 1 - dataset.has_relevant_items().mean() < 0.18
    assert (dataset.sizes.min(), dataset.sizes.max()) == (5, 60)
    assert len(set(dataset.item_ids.tolist())) == dataset.num_items


def test_same_seed_same_data():
    assert fingerprint(make_web_search(20)) == fingerprint(make_web_search(20))
    assert fingerprint(make_web_search(20)) != fingerprint(make_web_search(20, random_state=1))


def test_only_the_first_eight_features_tell_about_relevance():
    dataset = make_web_search(2000)
    correlation = np.abs(np.corrcoef(dataset.features.T, dataset.labels)[-1, :-1])
    assert correlation[[0, 1, 5, 7]].min() > 0.08
    assert correlation[8:].max() < 0.03


def test_errors():
    with pytest.raises(RankPolicyError, match="num_features must be 8 or more"):
        make_web_search(5, num_features=3)
    with pytest.raises(RankPolicyError, match=r"1 <= fewest <= most; got 5 and \(9, 3\)"):
        make_web_search(5, items_per_query=(9, 3))
