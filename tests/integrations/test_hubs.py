"""Rankers in PyTerrier, ir_measures, ir_datasets, the Hugging Face Hub and MLflow, each with the real package."""

from types import SimpleNamespace as Record

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.integrations import from_ir_datasets, from_pretrained, save_pretrained, text_transformer

pandas = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
QUERIES = {"q1": "red shoe", "q2": "blue hat"}
DOCUMENTS = {"d1": "a red shoe", "d2": "a blue hat", "d3": "a red hat", "d4": "green trousers"}
RELEVANCE = {("q1", "d1"): 2, ("q1", "d3"): 1, ("q2", "d2"): 2, ("q2", "d4"): -1}


@pytest.fixture(scope="module")
def texts():
    """A small ranker of texts."""
    names = list(DOCUMENTS.values())
    train = rp.from_texts(list(QUERIES.values()) * 4, [names] * 8, [[2, 0, 1, 0], [0, 2, 1, 0]] * 4)
    return rp.BanditRank(model=rp.models.MCAN(embedding_size=8, hidden=(8,)), epochs=2).fit(train, progress=False)


def result_frame(num_queries, *, seed):
    """What a stage with features gives to learners in PyTerrier."""
    rng = np.random.default_rng(seed)
    rows = [
        {
            "qid": f"q{query}",
            "query": "red",
            "docno": f"d{item}",
            "score": 0.0,
            "rank": item,
            "features": rng.normal(size=3),
        }
        for query in range(num_queries)
        for item in range(8)
    ]
    frame = pandas.DataFrame(rows)
    qrels = frame[["qid", "docno"]].assign(label=[int(row["features"][0] > 0.3) for row in rows])
    return frame, qrels


@pytest.mark.parametrize(
    "ranker", [rp.PGRank(epochs=10), rp.LambdaMART(num_trees=20, min_items_in_leaf=5)], ids=["network", "trees"]
)
def test_rankers_are_learners_of_pyterrier(ranker):
    pt = pytest.importorskip("pyterrier", reason="python-terrier is not installed")
    train, valid, (test, test_qrels) = result_frame(30, seed=1), result_frame(10, seed=2), result_frame(10, seed=3)
    learner = pt.ltr.apply_learned_model(ranker, form="ltr")
    learner.fit(*train, *valid)
    ranked = learner.transform(test)
    expected = ranker.predict(np.stack(test["features"]), qid=test["qid"].to_numpy())
    np.testing.assert_allclose(ranked["score"], expected, atol=1e-6)
    best = ranked[ranked["rank"] == 0].merge(test_qrels, on=["qid", "docno"])
    assert best["label"].mean() > 0.8


def test_a_text_ranker_is_a_transformer_of_pyterrier(texts):
    pt = pytest.importorskip("pyterrier", reason="python-terrier is not installed")
    rows = [(q, query, d, text) for q, query in QUERIES.items() for d, text in DOCUMENTS.items()]
    frame = pandas.DataFrame(rows, columns=["qid", "query", "docno", "text"])
    transformer = text_transformer(texts)
    assert isinstance(transformer, pt.Transformer)
    ranked = (transformer % 2)(frame)  # in a pipeline: the first two of each query
    for q, query in QUERIES.items():
        expected = [text for text, _ in texts.rank_texts(query, list(DOCUMENTS.values()))][:2]
        of_query = ranked[ranked["qid"] == q].sort_values("rank")
        assert of_query["text"].tolist() == expected
    with pytest.raises(rp.RankPolicyError, match=r"reads features: pt\.ltr\.apply_learned_model"):
        text_transformer(rp.RankSVM())


MEASURES = [
    "nDCG@3",
    "AP",
    "AP(rel=2)@3",
    "RR",
    "P@2",
    "P(rel=2)@3",
    "R@3",
    "Success@1",
]


@pytest.mark.parametrize("text", MEASURES)
def test_measures_of_ir_measures_have_its_values(text):
    ir_measures = pytest.importorskip("ir_measures")
    measure = ir_measures.parse_measure(text)
    labels, scores = RNG.integers(0, 4, 60).astype(float), RNG.permutation(60).astype(float)
    qid, items = np.repeat([f"q{n}" for n in range(6)], 10), [f"d{n}" for n in range(60)]
    qrels = [ir_measures.Qrel(q, d, int(label)) for q, d, label in zip(qid, items, labels, strict=True)]
    run = [ir_measures.ScoredDoc(q, d, score) for q, d, score in zip(qid, items, scores, strict=True)]
    expected = ir_measures.calc_aggregate([measure], qrels, run)[measure]
    reward = rp.metrics.as_reward(measure)
    table = rp.evaluate(scores, labels, qid=qid, metrics=[measure], conventions=reward.conventions)
    assert table.means[reward.name] == pytest.approx(expected, abs=1e-4)


def test_parameters_of_ir_measures_are_taken_over():
    ir_measures = pytest.importorskip("ir_measures")
    assert rp.metrics.as_reward(ir_measures.ERR @ 20) == rp.metrics.as_reward("err@20")
    assert rp.metrics.as_reward(ir_measures.nDCG(dcg="exp-log2") @ 10) == rp.metrics.as_reward("nDCG@10")
    assert rp.metrics.as_reward(ir_measures.RBP(p=0.5)).name == "rbp(persistence=0.5)"


def test_unknown_measures_of_ir_measures_are_refused():
    ir_measures = pytest.importorskip("ir_measures")
    with pytest.raises(rp.RankPolicyError, match="Unknown measure of ir_measures 'Bpref'"):
        rp.metrics.as_reward(ir_measures.Bpref)
    with pytest.raises(rp.RankPolicyError, match="has parameters that are not known here: judged_only"):
        rp.metrics.as_reward(ir_measures.AP(judged_only=True))


class Collection:
    """A test collection as ir_datasets gives it."""

    def queries_iter(self):
        return iter([Record(query_id=q, text=text) for q, text in {**QUERIES, "q3": "unjudged"}.items()])

    def docs_iter(self):
        return iter([Record(doc_id=d, text=text) for d, text in DOCUMENTS.items()])

    def qrels_iter(self):
        return iter([Record(query_id=q, doc_id=d, relevance=label) for (q, d), label in RELEVANCE.items()])


class Retrieved(Collection):
    def scoreddocs_iter(self):
        return iter([Record(query_id=q, doc_id=d, score=1.0) for q in ("q2", "q3") for d in ("d4", "d2", "d1")])


def test_collections_become_datasets_of_texts(texts):
    data = from_ir_datasets(Collection())
    assert data.query_ids.tolist() == ["q1", "q2"]
    assert data.item_ids.tolist() == ["d1", "d3", "d2", "d4"]
    assert data.labels.tolist() == [2, 1, 2, 0]  # a negative judgement is not relevant
    assert data.texts.distinct[data.texts.of_item[0]] == "a red shoe"
    retrieved = from_ir_datasets(Retrieved())
    assert retrieved.query_ids.tolist() == ["q2", "q3"]
    assert retrieved.item_ids.tolist() == ["d4", "d2", "d1"] * 2
    assert retrieved.labels.tolist() == [0, 2, 0, 0, 0, 0]
    assert from_ir_datasets(Retrieved(), items="qrels").item_ids.tolist() == ["d1", "d3", "d2", "d4"]
    assert len(texts.predict(data)) == 4


def test_objects_that_are_no_collection_are_refused():
    with pytest.raises(rp.RankPolicyError, match="SimpleNamespace lacks queries_iter, docs_iter, qrels_iter"):
        from_ir_datasets(Record())
    with pytest.raises(rp.RankPolicyError, match="this collection has no scoreddocs; got 'scoreddocs'"):
        from_ir_datasets(Collection(), items="scoreddocs")
    stranger = Retrieved()
    stranger.docs_iter = lambda: iter([])
    with pytest.raises(rp.RankPolicyError, match="every item must be a document of the collection; 'd1' is none"):
        from_ir_datasets(stranger)


def test_a_real_dataset_of_ir_datasets_has_the_iterators():
    ir_datasets = pytest.importorskip("ir_datasets")
    vaswani = ir_datasets.load("vaswani")  # described without being downloaded
    assert all(hasattr(vaswani, name) for name in ("queries_iter", "docs_iter", "qrels_iter"))


@pytest.fixture(scope="module")
def priced():
    """A ranker of two named features, and a frame of them."""
    X = RNG.normal(size=(120, 2))
    data = rp.from_arrays(X, (X[:, 0] > 0) * 1.0, qid=np.repeat(np.arange(12), 10), feature_names=["price", "stock"])
    return rp.LambdaMART(num_trees=10, min_items_in_leaf=5).fit(data, progress=False), pandas.DataFrame(
        X, columns=["price", "stock"]
    )


def test_a_folder_of_the_hugging_face_hub(priced, texts, tmp_path):
    hub = pytest.importorskip("huggingface_hub")
    ranker, frame = priced
    folder = save_pretrained(ranker, tmp_path / "model", repo_id="user/prices")
    np.testing.assert_array_equal(from_pretrained(folder).predict(frame), ranker.predict(frame))
    card = hub.ModelCard.load(folder / "README.md")
    assert (card.data.pipeline_tag, card.data.library_name) == ("text-ranking", "rankpolicy")
    assert 'from_pretrained("user/prices")' in card.text
    assert "2 features: price, stock" in card.text
    assert (folder / "config.json").is_file()
    again = from_pretrained(save_pretrained(texts, tmp_path / "texts"))
    assert again.rank_texts("red", ["red shoe", "hat"]) == texts.rank_texts("red", ["red shoe", "hat"])
    with pytest.raises(rp.RankPolicyError, match="is not fitted yet"):
        save_pretrained(rp.PGRank(), tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(rp.RankPolicyError, match=r"no model file at .*model\.rp"):
        from_pretrained(tmp_path / "empty")


def test_a_model_of_mlflow(priced, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    pytest.importorskip("mlflow.pyfunc")
    from rankpolicy.integrations import load_model, log_model, save_model

    monkeypatch.chdir(tmp_path)
    ranker, frame = priced
    save_model(ranker, tmp_path / "model", input_example=frame[:3])
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict(frame), ranker.predict(frame))
    scorer = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    np.testing.assert_array_equal(scorer.predict(frame[["stock", "price"]]), ranker.predict(frame))
    assert scorer.metadata.signature.inputs.input_names() == ["price", "stock"]
    assert scorer.metadata.flavors["rankpolicy"]["method"] == "lambdamart"
    with pytest.raises(rp.RankPolicyError, match="must not exist yet"):
        save_model(ranker, tmp_path / "model")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # a database would need more than mlflow-skinny
    mlflow.set_tracking_uri(str(tmp_path / "runs"))
    with mlflow.start_run():
        logged = log_model(ranker)
    np.testing.assert_array_equal(load_model(logged.model_uri).predict(frame), ranker.predict(frame))
