"""Rankers of texts, of categories and of groups, served: what they read of a request, and that their propensities are right."""

import math
from collections import Counter

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.service.domain.messages import Item, RankRequest
from rankpolicy.service.domain.records import Ordered
from rankpolicy.service.domain.routing import generator_of
from rankpolicy.service.learning.live import LivePolicy
from rankpolicy.service.policies import SERVED
from rankpolicy.types import RankPolicyError
from tests.service.parts import request_of
from tests.service.test_http import client_of, post

polars = pytest.importorskip("polars")
GROUPS = ["x", "y", "x", "y"]
NUM_DRAWS = 100


@pytest.fixture(scope="module")
def fair(tmp_path_factory):
    """A ranker that mixes rankings so that both groups get exposure by merit."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(80, 2))
    labels = (X[:, 0] > 0.5).astype(float)
    groups = np.array(["x", "y"])[(rng.random(80) < 0.5).astype(int)]
    path = tmp_path_factory.mktemp("fair") / "fair.rp"
    ranker = rp.FairLP(max_disparity=0.0, relevance="regression", relevance_settings={"model": "linear"})
    ranker.fit(X, labels, qid=np.repeat(np.arange(20), 4), protected=groups, progress=False).save(path)
    return str(path)


def fair_request(cutoff=3, groups=GROUPS):
    rows = [[0.62, 0.5], [0.55, 0.5], [0.60, 0.5], [0.53, 0.5]]
    items = [Item(id=name, features=row, group=group) for name, row, group in zip("abcd", rows, groups, strict=True)]
    return RankRequest(query="q", items=items, cutoff=cutoff)


def test_a_fair_ranker_draws_from_its_mixture_with_exact_propensities(fair):
    policy = SERVED.named("ranker")(model=fair, order_by="sampled")
    request = fair_request()
    drawn, expected = Counter(), {}
    for number in range(NUM_DRAWS):
        ordered = policy.order(request, generator=generator_of(b"s", str(number)))
        drawn[tuple(ordered.items)] += 1
        expected[tuple(ordered.items)] = math.prod(ordered.propensities)
    assert len(expected) > 1
    assert sum(expected.values()) == pytest.approx(1)
    for key, probability in expected.items():
        error = math.sqrt(probability * (1 - probability) / NUM_DRAWS)
        assert abs(drawn[key] / NUM_DRAWS - probability) < 4.5 * error
    steps = policy.step_probabilities([request] * len(expected), [list(key) for key in expected])
    assert [math.prod(one) for one in steps] == pytest.approx(list(expected.values()))
    ours = rp.load(fair).exposure(
        np.array([item.features for item in request.items]), group=[4], protected=GROUPS, cutoff=3
    )
    weights = 1 / np.log2(np.arange(2, 5))
    shown = dict.fromkeys("abcd", 0.0)
    for key, probability in expected.items():
        for weight, item in zip(weights, key, strict=True):
            shown[item] += probability * weight
    np.testing.assert_allclose([shown[item] for item in "abcd"], ours, atol=1e-6)


def test_a_fair_ranker_needs_groups_and_has_no_temperature(fair):
    policy = SERVED.named("ranker")(model=fair, order_by="sampled")
    with pytest.raises(RankPolicyError, match="group"):
        policy.order(fair_request(groups=[None, "x", "y", "x"]), generator=generator_of(b"s", "r"))
    with pytest.raises(RankPolicyError, match="no temperature"):
        SERVED.named("ranker")(model=fair, order_by="sampled", temperature=2.0)
    by_exposure = SERVED.named("ranker")(model=fair).order(fair_request(), generator=generator_of(b"s", "r"))
    assert by_exposure.propensities == [1.0] * 3


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A ranker of texts and a side column."""
    rng = np.random.default_rng(0)
    rows = []
    for session in range(60):
        for position, word in enumerate(rng.permutation(["red shoe", "blue shoe", "red hat"]), 1):
            rows.append((str(session), "red", str(word), position, int("red" in word), float(rng.random())))
    schema = ["session", "query_text", "item_text", "position", "clicked", "price"]
    table = polars.DataFrame(rows, schema=schema, orient="row")
    data = rp.clicks.weighted_by_propensity(rp.data.from_click_table(table), np.ones(3))
    model = rp.models.MatchingCross(embedding_size=4, hidden=(4,))
    path = tmp_path_factory.mktemp("texts") / "texts.rp"
    rp.MatchingCross(model=model, epochs=15, random_state=0).fit(data, progress=False).save(path)
    return str(path)


def text_items(**more):
    return [
        {"id": text.replace(" ", "-"), "text": text, "side": {"price": 0.5}} | more
        for text in ("blue shoe", "red shoe", "red hat")
    ]


def test_a_ranker_of_texts_reads_query_texts_and_side_columns(texts, tmp_path):
    policies = {"default": {"kind": "ranker", "model": texts}}
    with client_of(tmp_path / "service.db", policies=policies) as http:
        answer = post(http, "/v1/rank", {"query": "red", "items": text_items()}).json()
        table = polars.DataFrame(
            {"query_text": ["red"] * 3, "item_text": ["blue shoe", "red shoe", "red hat"], "price": [0.5] * 3}
        )
        scores = dict(zip(("blue-shoe", "red-shoe", "red-hat"), rp.load(texts).predict(table), strict=True))
        assert [item["id"] for item in answer["items"]] == sorted(scores, key=scores.get, reverse=True)
        assert {item["id"]: item["score"] for item in answer["items"]} == pytest.approx(scores)
        for body, words in (
            ({"query": "red", "items": [{"id": "a"}]}, "must have a text"),
            ({"query": "red", "items": text_items(side={"clicked": 1})}, "names a role"),
            ({"query": "red", "items": [*text_items(), text_items(id="x", side={"price": "much"})[0]]}, "one kind"),
        ):
            refused = post(http, "/v1/rank", body)
            assert (refused.status_code, words in refused.json()["message"]) == (422, True), refused.json()


def test_a_ranker_of_categories_reads_them_from_side_columns(tmp_path):
    frame = polars.DataFrame({"price": [1.0, 2.0, 3.0, 4.0] * 10, "shop": ["a", "b", "a", "b"] * 10})
    frame = frame.with_columns(polars.col("shop").cast(polars.Categorical))
    labels = [1, 0, 1, 0] * 10
    ranker = rp.BoostedRegression(num_trees=5, min_items_in_leaf=1).fit(
        frame, labels, qid=np.repeat(np.arange(10), 4), progress=False
    )
    ranker.save(tmp_path / "model.rp")
    policy = SERVED.named("ranker")(model=str(tmp_path / "model.rp"))
    policy.warm_up()  # as when a service starts
    items = [Item(id=shop, features={"price": 2.0}, side={"shop": shop}) for shop in "ba"]
    ordered = policy.order(RankRequest(query="q", items=items), generator=generator_of(b"s", "r"))
    assert ordered.items == ["a", "b"]
    with pytest.raises(RankPolicyError, match="must have the feature 'price'"):
        policy.order(
            RankRequest(query="q", items=[Item(id="a", side={"shop": "a"})]), generator=generator_of(b"s", "r")
        )


class Timed:
    """A policy that is not always quick; ``LivePolicy`` believes what it is told about its time."""

    is_quick, learns = False, False

    def state(self):
        return b""

    def order(self, request, *, generator):
        return Ordered(items=[item.id for item in request.items])


def test_who_ranks_in_the_event_loop_stays_there_through_a_slow_moment():
    live = LivePolicy(version=None, policy=Timed())
    found = []
    for milliseconds in (math.inf, 1.5, 0.9, 1.5, 2.5, 1.5, 0.9):
        live._seconds_per_item = 1e-3 * milliseconds
        found.append(live.order_soon(request_of("q", "a"), generator=None) is not None)
    assert found == [False, False, True, True, False, False, True]
