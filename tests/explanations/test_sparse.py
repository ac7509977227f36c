"""Explanations of sparse data are those of the same data in full."""

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.rankers import RANKERS


@pytest.mark.parametrize("method", ["pg-rank", "lambdamart"])
def test_sparse_and_dense_data_are_explained_alike(method):
    sparse = pytest.importorskip("scipy.sparse")
    data = rp.make_web_search(12, items_per_query=(5, 9), random_state=0)
    features = np.where(data.features > 0.5, data.features, 0)
    dense = rp.from_arrays(features, data.labels, group=data.sizes)
    packed = rp.from_arrays(sparse.csr_matrix(features), data.labels, group=data.sizes)
    settings = {"epochs": 2, "num_networks": 1} if method == "pg-rank" else {"num_trees": 5}
    ranker = RANKERS[method](**settings, random_state=0).fit(dense, progress=False)
    ours, theirs = (ranker.explain(each, item=0, over=1, random_state=0) for each in (packed, dense))
    np.testing.assert_allclose(ours.values, theirs.values, atol=1e-9)
    ours, theirs = (ranker.feature_importance(each, num_repeats=1, random_state=0) for each in (packed, dense))
    np.testing.assert_allclose(ours.importances, theirs.importances, atol=1e-9)
