from dataclasses import replace

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.data.click_table.list_columns import Shown, SideColumns
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.texts.texts import Texts
from rankpolicy.rankers.networks.matching_cross import LOSSES, MatchingCross

WORDS = ("tea", "milk", "bread", "salt", "rice", "corn")
SMALL = {"embedding_size": 8, "hidden": (8,), "dropout": 0.0, "ngrams": ()}
QUICK = {"model": rp.models.MatchingCross(**SMALL), "epochs": 20, "batch_queries": 32, "random_state": 0}


def sessions(num_sessions, seed=0, clicked=True):
    """Lists of four items, three of them words and one that is the query; it is wanted, and clicked where it is examined (1 / rank)."""
    generator = np.random.default_rng(seed)
    distinct = tuple(f"{word} shop" for word in WORDS)
    queries, of_item, labels, ranks = [], [], [], []
    for _ in range(num_sessions):
        shown = generator.permutation(len(WORDS))[:4]
        wanted = generator.integers(4)
        queries.append(WORDS[shown[wanted]])
        of_item += shown.tolist()
        ranks += [1, 2, 3, 4]
        is_examined = not clicked or generator.random() < 1 / (wanted + 1)
        labels += [float(position == wanted and is_examined) for position in range(4)]
    num_items = 4 * num_sessions
    return RankingDataset(
        features_by_query=np.empty((num_items, 0), np.float32),
        labels_by_query=np.array(labels, np.float32),
        query_offsets=np.arange(0, num_items + 1, 4),
        query_ids=np.arange(num_sessions).astype(str),
        source_rows_by_query=np.arange(num_items),
        texts_by_query=Texts(queries=tuple(queries), distinct=distinct, of_item=np.array(of_item)),
        side_by_query=SideColumns(numbers={"age": np.tile(np.float32([1, 2, np.nan, 4]), num_sessions)}),
        shown_by_query=Shown(ranks=np.array(ranks)),
        label_kind="clicks",
    )


BIAS = 1 / np.arange(1, 5)
TRAIN, VALID, TEST = sessions(300), sessions(100, 1), sessions(100, 2, clicked=False)
WEIGHTED, WEIGHTED_VALID = rp.weighted_by_propensity(TRAIN, BIAS), rp.weighted_by_propensity(VALID, BIAS)


@pytest.mark.parametrize("loss", LOSSES)
def test_it_learns_which_texts_match(loss, tmp_path):
    ranker = MatchingCross(loss=loss, **QUICK).fit(WEIGHTED, valid=WEIGHTED_VALID)
    assert rp.evaluate(ranker, TEST, ["mrr"]).means["mrr"] > 0.9
    ranker.save(tmp_path / "m.rp")
    loaded = rp.load(tmp_path / "m.rp")
    np.testing.assert_array_equal(loaded.predict(TEST), ranker.predict(TEST))
    assert (loaded.report_, loaded.click_report_) == (ranker.report_, ranker.click_report_)


def test_single_clicks_have_no_least_loss_item_by_item():
    by_item = rp.weighted_by_propensity(TRAIN, BIAS, by="item")
    with pytest.raises(rp.RankPolicyError, match="for labels above 1 the sigmoid loss is unbounded below"):
        MatchingCross(loss="sigmoid", **QUICK).fit(by_item)
    hybrid = rp.BanditRank(reward="ndcg", **QUICK | {"model": rp.models.Match(**SMALL), "epochs": 1})
    with pytest.raises(rp.RankPolicyError, match="gamma=1"):
        hybrid.fit(by_item)
    MatchingCross(**QUICK | {"epochs": 1}).fit(by_item)


def test_queries_without_a_click_are_left_out_and_counted():
    num_without = int((~TRAIN.has_relevant_items()).sum())
    assert num_without > 0
    weighted = MatchingCross(**QUICK | {"epochs": 1}).fit(WEIGHTED)
    with pytest.warns(UserWarning, match="position bias included"):
        plain = MatchingCross(**QUICK | {"epochs": 1}).fit(TRAIN)
    assert weighted.report_ == plain.report_ == {"queries_left_out": {"no click": num_without}}
    assert weighted.click_report_["num_sessions"] == 300 - num_without
    assert 0 < weighted.click_report_["effective_sample_size"] < 300 - num_without
    assert plain.click_report_ is None


def test_validation_is_the_weighted_mrr():
    ranker = MatchingCross(**QUICK | {"epochs": 2}).fit(WEIGHTED, valid=WEIGHTED_VALID)
    table = rp.evaluate(ranker, WEIGHTED_VALID, ["mrr", "success@1"])
    assert ranker.best_score_ == pytest.approx(table.means["mrr"])
    assert table.effective_sample_size < VALID.has_relevant_items().sum()


def test_an_unknown_model_is_named_whatever_the_data():
    with pytest.raises(rp.RankPolicyError, match=r"Unknown model 'matchingcross'. Did you mean 'matching-cross'?"):
        MatchingCross(model="matchingcross").fit(WEIGHTED)
    with pytest.raises(rp.RankPolicyError, match=r"Unknown model 'mcann'\. .*Known: linear, mlp, highway"):
        rp.FairPGRank(model="mcann").fit(rp.data.make_fair_synthetic(5, random_state=0))


def test_other_settings_are_checked():
    with pytest.raises(rp.RankPolicyError, match=r"Unknown loss 'softmx'. Did you mean 'softmax'"):
        MatchingCross(loss="softmx").fit(WEIGHTED)
    with pytest.raises(rp.RankPolicyError, match="reads texts"):
        MatchingCross().fit(rp.make_web_search(5))
    with pytest.raises(rp.RankPolicyError, match="at least one click"):
        rp.weighted_by_propensity(replace(TRAIN, labels_by_query=0 * TRAIN.labels_by_query), BIAS)


def test_training_data_without_any_click():
    train = sessions(3)
    with pytest.raises(rp.RankPolicyError, match="nothing can be learned: no query has items of different labels"):
        MatchingCross(**QUICK).fit(
            replace(train, labels_by_query=np.zeros_like(train.labels_by_query), shown_by_query=None)
        )
