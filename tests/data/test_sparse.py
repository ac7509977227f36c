"""Sparse features give what the same dense ones give, and are not made dense where that would cost memory."""

import numpy as np
import pytest
from scipy import sparse

import rankpolicy as rp
from rankpolicy.data.scaling import SCALINGS, fit_scaling
from rankpolicy.data.sparse import SparseFeatures
from rankpolicy.rankers import RANKERS

RNG = np.random.default_rng(0)
NUM_ROWS, NUM_FEATURES = 400, 12
X = np.where(RNG.random((NUM_ROWS, NUM_FEATURES)) < 0.7, 0, RNG.normal(size=(NUM_ROWS, NUM_FEATURES))).astype(
    np.float32
)
QID = RNG.permutation(np.repeat(np.arange(40), 10))
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] != 0)
FORMATS = [sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix, sparse.csr_array, sparse.coo_array]


@pytest.fixture
def never_dense(monkeypatch):
    """Fail where more than this many rows become dense at once."""
    allowed = [NUM_ROWS // 2]
    to_dense = SparseFeatures.__array__

    def guarded(self, dtype=None, copy=None):
        assert len(self) <= allowed[0], f"{len(self)} rows became dense"
        return to_dense(self, dtype, copy)

    monkeypatch.setattr(SparseFeatures, "__array__", guarded)
    return allowed


@pytest.mark.parametrize("form", FORMATS)
def test_a_dataset_of_a_sparse_matrix_is_that_of_the_array(form):
    dense, thin = rp.from_arrays(X, Y, qid=QID), rp.from_arrays(form(X), Y, qid=QID)
    assert isinstance(thin.features, SparseFeatures)
    assert thin.features.shape == dense.features.shape
    np.testing.assert_array_equal(np.asarray(thin.features), dense.features)
    np.testing.assert_array_equal(np.asarray(thin[3:9].features), dense[3:9].features)
    np.testing.assert_array_equal(np.asarray(thin[[5, 2]].features), dense[[5, 2]].features)
    np.testing.assert_array_equal(thin.features[:, 4], dense.features[:, 4])
    np.testing.assert_array_equal(np.asarray(thin.features[:, [4, 1]]), dense.features[:, [4, 1]])
    both = rp.data.concatenate([thin, thin[:3]])
    assert isinstance(both.features, SparseFeatures)
    assert both.num_items == thin.num_items + thin[:3].num_items
    assert repr(thin) == repr(dense)


def test_the_maker_of_the_matrix_cannot_change_the_dataset():
    matrix = sparse.csr_matrix(X)
    data = rp.from_arrays(matrix, Y, qid=QID)
    matrix.data[:] = 7
    np.testing.assert_array_equal(np.asarray(data.features), rp.from_arrays(X, Y, qid=QID).features)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", SCALINGS)
def test_scaling_is_that_of_the_array(kind, missing):
    values = X.copy()
    if missing:
        values[::9, 2] = np.nan
    dense, thin = rp.from_arrays(values, qid=QID), rp.from_arrays(sparse.csr_matrix(values), qid=QID)
    first, second = fit_scaling(kind, dense), fit_scaling(kind, thin)
    for name, array in first.to_arrays().items():
        np.testing.assert_allclose(second.to_arrays()[name], array, rtol=1e-6)
    np.testing.assert_allclose(
        second.apply(thin.features_by_query, thin.query_offsets),
        first.apply(dense.features_by_query, dense.query_offsets),
        rtol=1e-5,
        atol=1e-6,
    )


QUICK = {
    "pg-rank": {"epochs": 2, "num_networks": 2, "batch_queries": 8},
    "fair-pg-rank": {"epochs": 2, "fairness": "individual"},
    "matching-cross": {"epochs": 2, "model": "mlp"},
    "adarank": {"rounds": 5},
    "auto": {
        "methods": ("boosted-regression", "pg-rank"),
        "method_settings": {"boosted-regression": {"num_trees": 5}, "pg-rank": {"epochs": 2, "num_networks": 1}},
        "num_folds": 2,
    },
    "fair-exposure": {
        "strength": 0.1,
        "num_samples": 20,
        "num_folds": 2,
        "relevance_settings": {"boosted-regression": {"num_trees": 5}},
    },
    "coordinate-ascent": {"restarts": 1, "max_passes": 1},
}
TREES = ("lambdamart", "boosted-policy", "boosted-regression")
GROUPS = np.arange(NUM_ROWS) % 2


@pytest.mark.parametrize("name", RANKERS)
def test_every_ranker_learns_and_scores_the_same(name):
    quick = {"epochs": 2} if "epochs" in RANKERS[name].setting_names() else {}
    quick = {"num_trees": 10, "min_items_in_leaf": 5} if name in TREES else QUICK.get(name, quick)
    fitted = [
        RANKERS[name](**quick).fit(
            given, Y, qid=QID, protected=GROUPS, eval_set=[(given, Y)], eval_qid=[QID], progress=False
        )
        for given in (X, sparse.csr_matrix(X))
    ]
    beside = (
        {"qid": QID, "protected": GROUPS}
        if name in ("fair-lp", "fair-exposure", "fa-ir", "equity-of-attention")
        else {}
    )
    expected = fitted[0].predict(X, **beside)
    for ranker in fitted:
        for given in (X, sparse.csc_matrix(X)):
            np.testing.assert_allclose(ranker.predict(given, **beside), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["pg-rank", "listnet", "bandit-rank", *TREES])
def test_trees_and_networks_never_hold_all_rows_dense(name, never_dense, monkeypatch, tmp_path):
    monkeypatch.setattr("rankpolicy.data.rows._BLOCK_CELLS", 50 * NUM_FEATURES)
    if name in TREES:
        never_dense[0] = 0
        quick = {"num_trees": 5, "min_items_in_leaf": 5}
    else:
        quick = {"epochs": 1, "batch_queries": 8}
    matrix = sparse.csr_matrix(X)
    ranker = RANKERS[name](**quick).fit(matrix, Y, qid=QID, eval_set=[(matrix, Y)], eval_qid=[QID], progress=False)
    scores = ranker.predict(matrix, qid=QID)
    np.testing.assert_allclose(ranker.predict(matrix), scores, rtol=1e-5)
    ranker.rank(matrix, qid=QID)
    rp.evaluate(ranker, rp.from_arrays(matrix, Y, qid=QID), ["ndcg@10"])


def test_files_and_frames_of_sparse_data(tmp_path):
    dense, thin = rp.from_arrays(X, Y, qid=QID), rp.from_arrays(sparse.csr_matrix(X), Y, qid=QID)
    for name, data in (("dense", dense), ("thin", thin)):
        rp.data.write_letor(data, tmp_path / f"{name}.txt")
        rp.data.write_parquet(data, tmp_path / f"{name}.parquet")
    assert (tmp_path / "thin.txt").read_bytes() == (tmp_path / "dense.txt").read_bytes()
    read = rp.read_parquet(tmp_path / "thin.parquet")
    np.testing.assert_array_equal(read.features, rp.read_parquet(tmp_path / "dense.parquet").features)


def test_checkpoints_know_the_data(tmp_path):
    matrix = sparse.csr_matrix(X)
    settings = {"epochs": 2, "batch_queries": 8}
    rp.ListNet(**settings).fit(matrix, Y, qid=QID, checkpoint=tmp_path / "c", progress=False)
    rp.ListNet(**settings).fit(matrix, Y, qid=QID, checkpoint=tmp_path / "c", resume=True, progress=False)
    with pytest.raises(rp.RankPolicyError, match="data"):
        rp.ListNet(**settings).fit(2 * matrix, Y, qid=QID, checkpoint=tmp_path / "c", resume=True, progress=False)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (sparse.csr_matrix(np.array([[1, np.inf], [0, 1]])), r"features must be finite.* row 0, feature 1"),
        (sparse.csr_matrix(np.array([[1j, 2], [0, 1]])), "features must be real numbers"),
        (sparse.coo_array(np.array([1.0, 2.0])), "features must be a matrix"),
    ],
)
def test_wrong_matrices_are_named(matrix, message):
    with pytest.raises(rp.RankPolicyError, match=message):
        rp.from_arrays(matrix, [1, 0], group=[2])
