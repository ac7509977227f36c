"""Rankers and query weights: which rankers use them, and what fit does with labels made from clicks."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.clicks import dataset_from_clicks, log_from_lists, weighted_by_propensity
from rankpolicy.data.arrays import concatenate
from rankpolicy.data.click_table.list_columns import Shown
from rankpolicy.rankers import RANKERS
from tests.contracts.test_rankers import new_ranker

WEB = rp.make_web_search(30, random_state=1)
DATA = replace(
    WEB,
    groups_by_query=np.arange(WEB.num_items) % 2,
    item_ids_by_query=np.array([f"d{item}" for item in range(WEB.num_items)]),
)
TRAIN, VALID = DATA[:20], DATA[20:]
PROPENSITIES = 1 / np.arange(1, 6)


def log_on(dataset, num_sessions=300, seed=0):
    """Five items of a query in random order; relevant ones are clicked where they are examined."""
    generator = np.random.default_rng(seed)
    queries, lists, clicks = [], [], []
    for _ in range(num_sessions):
        query = generator.integers(dataset.num_queries)
        rows = generator.permutation(np.arange(dataset.offsets[query], dataset.offsets[query + 1]))[:5]
        examined = generator.random(len(rows)) < PROPENSITIES[: len(rows)]
        queries.append(dataset.query_ids[query])
        lists.append(dataset.item_ids[rows].tolist())
        clicks.append((examined & (dataset.labels[rows] > 0)).astype(int).tolist())
    return log_from_lists(queries, lists, clicks)


LOG = log_on(DATA)
WEIGHTED = [name for name, ranker in RANKERS.items() if ranker.uses_query_weights]
OTHERS = [name for name in RANKERS if name not in WEIGHTED]


@pytest.mark.parametrize("name", WEIGHTED)
def test_equal_weights_change_nothing(name):
    plain = new_ranker(name).fit(TRAIN, valid=VALID)
    weighted = new_ranker(name).fit(
        replace(TRAIN, query_weights=np.full(20, 7.0)), valid=replace(VALID, query_weights=np.full(10, 3.0))
    )
    np.testing.assert_allclose(weighted.predict(VALID), plain.predict(VALID), rtol=1e-4, atol=1e-5)
    assert weighted.best_score_ == pytest.approx(plain.best_score_, rel=1e-5)


@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_move_what_is_learned(name):
    weights = np.ones(20)
    weights[:5] = 30.0
    plain = new_ranker(name).fit(TRAIN).predict(VALID)
    assert not np.allclose(new_ranker(name).fit(replace(TRAIN, query_weights=weights)).predict(VALID), plain, rtol=1e-3)


@pytest.mark.parametrize("name", OTHERS)
def test_rankers_without_weights_say_who_has_them(name):
    weighted = replace(TRAIN, query_weights=np.ones(20))
    for call in (
        lambda: new_ranker(name).fit(weighted),
        lambda: new_ranker(name).fit(dataset_from_clicks(TRAIN, LOG, PROPENSITIES)),
        lambda: new_ranker(name).fit(replace(dataset_from_clicks(TRAIN, LOG, PROPENSITIES), query_weights=None)),
    ):
        with pytest.raises(rp.RankPolicyError, match=r"does not use query weights.*PGRank"):
            call()


def test_linear_models_solved_at_once_count_a_query_twice():
    """Least squares, and L-BFGS on the whole batch: weight 2 is the query twice, to the last digits."""
    twice = concatenate([TRAIN, TRAIN[:5]])
    weights = np.ones(20)
    weights[:5] = 2
    weighted = replace(TRAIN, query_weights=weights)
    for ranker in (
        rp.Regression(model="linear", scaling="none", weight_decay=0.1),
        rp.FairPGRank(scaling="none", strength=0.5, epochs=10),
        rp.FairPGRank(scaling="none", fairness="individual", max_disparity=0.02, epochs=10),
    ):
        np.testing.assert_allclose(ranker.fit(weighted).predict(VALID), ranker.fit(twice).predict(VALID), rtol=2e-3)
        reports = [getattr(ranker.fit(data), "report_", {}) for data in (weighted, twice)]
        for name in {"utility", "disparity"} & set(reports[0]):
            assert reports[0][name] == pytest.approx(reports[1][name], rel=1e-3)


def test_validation_counts_queries_by_their_weights():
    weights = np.linspace(0.0, 5.0, 10)
    ranker = rp.ListNet(epochs=2).fit(TRAIN, valid=replace(VALID, query_weights=weights))
    values = rp.evaluate(ranker, VALID, ["ndcg@10"])["ndcg@10"]
    last = ranker.evals_result_["valid_0"]["ndcg@10"][ranker.best_iteration_ - 1]
    assert last == pytest.approx((weights * values).sum() / weights.sum())


def test_a_log_gives_labels_weights_and_a_report(tmp_path):
    learned = dataset_from_clicks(TRAIN, LOG, PROPENSITIES)
    ranker = rp.PGRank(reward="dcg@5", epochs=2).fit(learned, valid=VALID)
    as_grades = replace(learned, label_kind="grades", click_evidence=None)
    by_hand = rp.PGRank(reward=rp.metrics.parse_metric("dcg@5", rp.Conventions(gain="linear")), epochs=2).fit(
        as_grades, valid=VALID
    )
    np.testing.assert_array_equal(ranker.predict(VALID), by_hand.predict(VALID))
    assert ranker.click_report_ == learned.click_evidence.to_dict()
    assert by_hand.click_report_ is None
    ranker.save(tmp_path / "clicks.rp")
    assert rp.load(tmp_path / "clicks.rp").click_report_ == ranker.click_report_
    # Trained again on labels, nothing of the clicks is left.
    assert rp.PGRank(reward="ap", epochs=1).fit(TRAIN).click_report_ is None
    assert ranker.fit(TRAIN).click_report_ is None


@pytest.mark.parametrize("ranker_class", [rp.PGRank, rp.BanditRank])
def test_rewards_that_ask_for_relevant_items_need_whole_sessions(ranker_class):
    with pytest.raises(rp.RankPolicyError, match=r"^ap asks which items are relevant.*by='query'"):
        ranker_class(reward="mean(ap, dcg)", epochs=1).fit(dataset_from_clicks(TRAIN, LOG, PROPENSITIES))
    for reward, weighted in (("mean(ap, dcg)", "query"), ("ndcg@10", "item")):
        ranker = ranker_class(reward=reward, epochs=1).fit(dataset_from_clicks(TRAIN, LOG, PROPENSITIES, by=weighted))
        assert ranker.click_report_["weighted"] == weighted


def test_bandit_rank_takes_relevances_as_targets():
    ranker = rp.BanditRank(reward="dcg", gamma=0.0, epochs=1, num_networks=1, model=rp.models.MLP(dropout=0.0))
    learned = dataset_from_clicks(TRAIN, LOG, PROPENSITIES)
    objective = ranker.fit(learned)._objective(learned)
    assert (objective.targets, objective.reward.conventions.gain) == ("labels", "linear")
    assert ranker.report_["queries_left_out"] == {"no relevant item": 0}
    assert ranker.fit(TRAIN)._objective(TRAIN).targets == "relevant"


def as_click_table(dataset):
    ranks = np.arange(dataset.num_items) - np.repeat(dataset.offsets[:-1], dataset.sizes) + 1
    labels = np.minimum(dataset.labels, 1)
    return replace(dataset, labels_by_query=labels, shown_by_query=Shown(ranks=ranks), label_kind="clicks")


def test_click_tables_are_weighted_in_training_and_validation():
    bias = 1 / np.arange(1, 200)
    train, valid = (weighted_by_propensity(as_click_table(part), bias) for part in (TRAIN, VALID))
    ranker = rp.ListNet(epochs=2, valid_metric="mrr").fit(train, valid=valid)
    by_hand = rp.ListNet(epochs=2, valid_metric="mrr").fit(
        replace(train, shown_by_query=None, label_kind="grades", click_evidence=None), valid=valid
    )
    np.testing.assert_array_equal(ranker.predict(VALID), by_hand.predict(VALID))
    assert ranker.click_report_ == train.click_evidence.to_dict()
    assert ranker.best_score_ == pytest.approx(rp.evaluate(ranker, valid, ["mrr"]).means["mrr"])


def test_clicks_without_weights_warn_of_position_bias():
    table = as_click_table(TRAIN)
    ones = np.ones(200)
    with pytest.warns(UserWarning, match=r"position bias included. Weight them: weighted_by_propensity"):
        rp.ListNet(epochs=1).fit(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rp.ListNet(epochs=1).fit(weighted_by_propensity(table, ones))
        rp.ListNet(epochs=1).fit(weighted_by_propensity(table, ones, by="item"))
        rp.ListNet(epochs=1).fit(replace(table, label_kind="grades"))


def test_validation_on_estimated_relevances_has_linear_gains():
    valid = dataset_from_clicks(VALID, LOG, PROPENSITIES)
    ranker = rp.ListNet(epochs=1, valid_metric="dcg@5").fit(TRAIN, valid=valid)
    table = rp.evaluate(ranker, valid, ["dcg@5"], conventions=rp.Conventions(gain="linear"))
    assert ranker.best_score_ == pytest.approx(table.means["dcg@5"])
    with pytest.raises(rp.RankPolicyError, match="ap asks which items are relevant"):
        rp.ListNet(epochs=1, valid_metric="map").fit(TRAIN, valid=valid)


def test_groups_of_a_function_reach_validation_data_of_every_form():
    def halves(dataset):
        return np.arange(dataset.num_items) % 2

    train, valid = replace(TRAIN, groups_by_query=None), replace(VALID, groups_by_query=None)
    eval_set = [(valid.features, valid.labels)]
    ranker = rp.FairPGRank(epochs=1, model="mlp").fit(
        train, protected=halves, eval_set=eval_set, eval_group=[valid.sizes]
    )
    assert ranker.best_score_ is not None
