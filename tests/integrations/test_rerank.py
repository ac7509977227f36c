"""Documents reranked for RAG tools: by Cohere's own client against a server process, and what is refused."""

import math
import signal

import numpy as np
import pytest

import rankpolicy as rp
from tests.service.models import saved_ranker
from tests.service.test_end_to_end import Server
from tests.service.test_http import client_of, post
from tests.service.test_served_rankers import texts  # noqa: F401  (a fixture)

polars = pytest.importorskip("polars")

PRICED = [
    {"text": name, "price": price, "stock": 1.0} for name, price in zip("abcd", (0.1, 0.7, 0.4, 0.9), strict=True)
]
BY_PRICE = [3, 1, 2, 0]
DOCUMENTS = ["blue shoe", "red shoe", "red hat"]


@pytest.fixture(scope="module")
def priced(tmp_path_factory):
    """A ranker by the feature price."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 2))
    data = rp.from_arrays(X, X[:, 0] + 1, qid=np.repeat(np.arange(12), 5), feature_names=["price", "stock"])
    path = tmp_path_factory.mktemp("priced") / "priced.rp"
    rp.Regression(model="linear").fit(data, progress=False).save(path)
    return str(path)


def lengths(query, documents):
    """A feature function: the length of a document, and whether it holds the query."""
    return [
        {"price": float(len(document["text"])), "stock": float(query in document["text"])} for document in documents
    ]


def too_few(query, documents):
    return [{"price": 1.0}]


def test_coheres_client_gets_documents_in_the_order_of_the_model(texts, tmp_path):  # noqa: F811
    cohere = pytest.importorskip("cohere")
    table = polars.DataFrame({"query_text": ["red"] * 3, "item_text": DOCUMENTS, "price": [0.5] * 3})
    best_first = np.argsort(-rp.load(texts).predict(table)).tolist()
    priced_documents = [{"text": text, "price": 0.5} for text in DOCUMENTS]
    server = Server(tmp_path, config=f'list_seconds = 60\n[policies.words]\nkind = "ranker"\nmodel = "{texts}"\n')
    try:
        client = cohere.Client(api_key="none", base_url=server.url)
        answer = client.rerank(model="words", query="red", documents=priced_documents, top_n=2, return_documents=True)
        assert [result.index for result in answer.results] == best_first[:2]
        assert [result.document.text for result in answer.results] == [DOCUMENTS[index] for index in best_first[:2]]
        assert 1 > answer.results[0].relevance_score > answer.results[1].relevance_score > 0
        second = cohere.ClientV2(api_key="none", base_url=server.url)
        answer = second.rerank(model="words", query="red", documents=DOCUMENTS)
        assert sorted(result.index for result in answer.results) == [0, 1, 2]
        with pytest.raises(cohere.UnprocessableEntityError, match="rerank-v9"):
            second.rerank(model="rerank-v9", query="red", documents=DOCUMENTS)
    finally:
        server.end(signal.SIGTERM)


def test_fields_of_documents_are_features_and_scores_are_squashed(priced, tmp_path):
    with client_of(tmp_path / "service.db", policies={"default": {"kind": "ranker", "model": priced}}) as http:
        answer = post(http, "/v1/rerank", {"query": "q", "documents": PRICED, "top_n": 3}).json()
        scores = rp.load(priced).predict(np.array([[row["price"], row["stock"]] for row in PRICED]))
        assert [result["index"] for result in answer["results"]] == BY_PRICE[:3]
        expected = [1 / (1 + math.exp(-scores[index])) for index in BY_PRICE[:3]]
        assert [result["relevance_score"] for result in answer["results"]] == pytest.approx(expected)
        assert all("document" not in result for result in answer["results"])
        # The list is logged as any other: clicks are sent with its id and the index of the document.
        event = {"event_id": "e", "ranking_id": answer["id"], "item": str(BY_PRICE[0])}
        assert post(http, "/v1/events", event).json()["accepted"] == 1


def test_a_feature_function_of_the_operator_reads_query_and_documents(priced, tmp_path):
    settings = {
        "policies": {"default": {"kind": "ranker", "model": priced}},
        "rerank_features": "tests.integrations.test_rerank:lengths",
    }
    with client_of(tmp_path / "service.db", **settings) as http:
        answer = post(http, "/v1/rerank", {"query": "b", "documents": ["a", "bbb", "bb"]}).json()
        assert [result["index"] for result in answer["results"]] == [1, 2, 0]
    few = settings | {"rerank_features": "tests.integrations.test_rerank:too_few"}
    with client_of(tmp_path / "other.db", **few) as http:
        refused = post(http, "/v1/rerank", {"query": "b", "documents": ["a", "b"]})
        assert refused.status_code == 422
        assert "rerank_features must return one dict" in refused.json()["message"]


@pytest.mark.parametrize("name", ["no_colon", "rankpolicy:nothing", "no.such.module:name"])
def test_a_feature_function_that_is_not_there_is_refused_at_the_start(name, tmp_path):
    with pytest.raises(rp.RankPolicyError, match="rerank_features must name a function"):
        client_of(tmp_path / "service.db", rerank_features=name)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"documents": []}, "length >= 1"),
        ({"documents": ["x"] * 2001}, "length <= 2000"),
        ({"documents": [{"text": ["nested"]}]}, "Expected"),
        ({"top_n": 0}, ">= 1"),
        ({"query": ""}, "length >= 1"),
        ({"model": "nobody"}, "policy"),
        ({"model": "random"}, "kind ranker"),
        ({"documents": ["only a text"]}, "must have the feature 'price'"),
        ({"documents": [{"price": "dear", "stock": 1}]}, "must be a number"),
    ],
)
def test_what_cannot_be_reranked_is_refused_in_one_line(change, words, priced, tmp_path):
    policies = {"default": {"kind": "ranker", "model": priced}, "random": {"kind": "uniform"}}
    with client_of(tmp_path / "service.db", policies=policies) as http:
        refused = post(http, "/v1/rerank", {"query": "q", "documents": PRICED} | change)
        assert (refused.status_code, words in refused.json()["message"]) == (422, True), refused.json()


def test_longer_texts_are_cut_and_features_without_names_are_explained(texts, tmp_path):  # noqa: F811
    policies = {
        "words": {"kind": "ranker", "model": texts},
        "rows": {"kind": "ranker", "model": str(saved_ranker(tmp_path / "r.rp"))},
    }
    with client_of(tmp_path / "service.db", policies=policies) as http:
        long = post(http, "/v1/rerank", {"query": "red", "documents": ["red " * 3000, "blue"]}).json()
        assert {result["index"] for result in long["results"]} == {0, 1}
        refused = post(http, "/v1/rerank", {"query": "q", "model": "rows", "documents": [{"price": 1}]})
        assert "have no names" in refused.json()["message"]
