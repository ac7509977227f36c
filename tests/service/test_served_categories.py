"""Categories and missing values from the request to the log, the export, replay and the next ranker."""

import json

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.service.domain.messages import REQUEST, Item, RankRequest
from rankpolicy.service.domain.routing import generator_of
from rankpolicy.service.learning.retrain import training_data
from rankpolicy.service.log.export import export_log
from rankpolicy.service.log.sqlite import SqliteStore
from rankpolicy.service.policies import SERVED
from rankpolicy.types import RankPolicyError
from tests.service.logs import written_log
from tests.service.test_client import SHOWN, client_with
from tests.service.test_http import client_of, post

polars = pytest.importorskip("polars")


@pytest.fixture(scope="module", params=["trees", "network"])
def saved(request, tmp_path_factory):
    """A ranker of a number with missing values and of a category, in a file."""
    frame = polars.DataFrame({"price": [1.0, None, 3.0, 4.0] * 20, "shop": ["a", "b", None, "7"] * 20})
    frame = frame.with_columns(polars.col("shop").cast(polars.Categorical))
    ranker = {
        "trees": rp.BoostedRegression(num_trees=20, min_items_in_leaf=1),
        "network": rp.PGRank(epochs=5, num_networks=1, random_state=0),
    }[request.param]
    ranker.fit(frame, [1, 0, 2, 0] * 20, qid=np.repeat(np.arange(20), 4), progress=False)
    path = tmp_path_factory.mktemp("saved") / "model.rp"
    ranker.save(path)
    return str(path)


FEATURES = {
    "both": {"price": 2.0, "shop": "a"},
    "null": {"price": None, "shop": "b"},
    "absent": {"shop": "b"},
    "number": {"price": 2, "shop": 7},
    "unseen": {"price": 2.0, "shop": "never seen"},
    "missing": {"price": 2.0, "shop": None},
    "list": [2.0, "a"],
}


def expected_scores(path):
    frame = polars.DataFrame(
        {"price": [2.0, None, None, 2.0, 2.0, 2.0, 2.0], "shop": ["a", "b", "b", "7", "never seen", None, "a"]}
    ).with_columns(polars.col("shop").cast(polars.Categorical))
    return dict(zip(FEATURES, rp.load(path).predict(frame), strict=True))


def test_texts_nulls_and_absent_values_score_as_offline(saved, tmp_path):
    items = [{"id": name, "features": features} for name, features in FEATURES.items()]
    with client_of(tmp_path / "service.db", policies={"default": {"kind": "ranker", "model": saved}}) as http:
        answer = post(http, "/v1/rank", {"query": "q", "items": items}).json()
        assert {item["id"]: item["score"] for item in answer["items"]} == pytest.approx(expected_scores(saved))
        refused = post(http, "/v1/rank", {"query": "q", "items": [{"id": "a", "features": {"price": "cheap"}}]})
        assert refused.status_code == 422
        assert "'price' of item 'a' must be a number" in refused.json()["message"]
        refused = post(http, "/v1/rank", {"query": "shoes", "items": [items[0], items[0]]})
        assert "'both', for the query 'shoes'" in refused.json()["message"]


def test_a_contextual_bandit_says_that_it_reads_numbers_only():
    policy = SERVED.named("contextual")(features=["price"])
    for value in ("cheap", None):
        request = RankRequest(query="q", items=[Item(id="a", features={"price": value})])
        with pytest.raises(RankPolicyError, match="must be numbers; got a text or null"):
            policy.order(request, generator=generator_of(b"s", "r"))


def test_the_client_sends_numbers_of_numpy_and_integer_ids():
    client, requests = client_with(SHOWN)
    named = {"price": np.float32(0.5), "stars": np.int64(4), "shop": "a", "age": np.nan, "size": None}
    client.rank(
        query=7, items=[1, np.int64(2), {"id": 3, "features": np.array([1.5, np.nan])}, {"id": "x", "features": named}]
    )
    client.click(SHOWN, 3)
    sent = json.loads(requests[0].content)
    assert sent["query"] == "7"
    assert sent["items"] == [
        {"id": "1"},
        {"id": "2"},
        {"id": "3", "features": [1.5, None]},
        {"id": "x", "features": {"price": 0.5, "stars": 4.0, "shop": "a", "age": None, "size": None}},
    ]
    assert json.loads(requests[1].content)[0]["item"] == "3"
    with pytest.raises(RankPolicyError, match="must be finite"):
        client.rank(query="q", items=[{"id": "x", "features": [np.inf]}])


def test_log_export_and_training_data_carry_them_as_they_were_sent(saved, tmp_path):
    named = {name: features for name, features in FEATURES.items() if name != "list"}
    body = {"query": "q", "items": [{"id": name, "features": features} for name, features in named.items()]}
    policies = {"default": {"kind": "ranker", "model": saved}}
    path = written_log(tmp_path / "log.db", policies, [("default", body)] * 3, lambda number, shown: shown[:1])
    store = SqliteStore(path)
    lists = list(store.logged())
    store.close()
    policy = SERVED.named("ranker")(model=saved)
    for one in lists:
        request = REQUEST.decode(one.request)
        assert [item.features for item in request.items] == list(named.values())
        assert policy.order(request, generator=generator_of(b"s", "r")).scores == one.shown.scores
    export_log(lists, tmp_path, versions={one.version: "ranker" for one in lists}, now=lists[0].deadline + 1)
    items = polars.read_parquet(tmp_path / "items.parquet")
    assert items["price"].to_list() == [2.0, None, None, 2.0, 2.0, 2.0]
    assert items["shop"].cast(polars.String).to_list() == ["a", "b", "b", "7", "never seen", None]
    assert items["shop"].dtype == polars.Categorical
    data = training_data(lists, None, texts=False)
    assert data.categories == {"shop": ("7", "a", "b", "never seen")}
    np.testing.assert_array_equal(data.features[:, 0], [2, np.nan, np.nan, 2, 2, 2])
    np.testing.assert_array_equal(data.features[:, 1], [1, 2, 2, 0, 3, np.nan])


def test_a_model_that_reads_more_than_a_request_can_carry_is_refused_at_the_start(tmp_path):
    X = np.random.default_rng(0).uniform(size=(8, 4097))
    ranker = rp.BoostedRegression(num_trees=1, min_items_in_leaf=1)
    ranker.fit(X, [0, 1] * 4, qid=[0] * 8, progress=False).save(tmp_path / "wide.rp")
    with pytest.raises(RankPolicyError, match="reads 4097 features; items of a request have at most 4096"):
        SERVED.named("ranker")(model=str(tmp_path / "wide.rp"))
