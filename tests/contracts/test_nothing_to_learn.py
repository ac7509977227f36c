"""Every ranker refuses data from which no ranking can be learned, with the likely cause."""

from dataclasses import replace

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.rankers import RANKERS
from tests.contracts.test_rankers import ALL, TRAIN, new_ranker


@ALL
def test_equal_labels_are_refused(name):
    for label in (0, 1):
        equal = replace(TRAIN, labels_by_query=np.full(TRAIN.num_items, label, np.float32))
        with pytest.raises(rp.RankPolicyError, match="nothing can be learned: no query has items of different labels"):
            new_ranker(name).fit(equal, verbose=False)


@ALL
def test_queries_of_one_item_are_refused(name):
    def fit():
        new_ranker(name).fit(
            TRAIN.features, TRAIN.labels, qid=np.arange(TRAIN.num_items), protected=TRAIN.groups, verbose=False
        )

    if RANKERS[name].learns_from_single_items:
        with pytest.warns(UserWarning, match=r"no query has two items to rank.*Are qid and item id swapped?"):
            fit()
    else:
        with pytest.raises(rp.RankPolicyError, match=r"no query has two items to rank.*Are qid and item id swapped?"):
            fit()


@pytest.mark.parametrize("name", [name for name in RANKERS if RANKERS[name].compares_groups])
def test_a_single_protected_group_is_refused(name):
    with pytest.raises(rp.RankPolicyError, match=r"two or more of them in the training data; all .* are in group a"):
        new_ranker(name).fit(replace(TRAIN, groups_by_query=np.full(TRAIN.num_items, "a")), verbose=False)


def test_a_reward_of_the_user_may_differ_where_labels_do_not():
    def first_item_first(rankings, labels, mask):
        return (rankings[..., 0] == 0).double()

    equal = replace(TRAIN, labels_by_query=np.ones(TRAIN.num_items, np.float32))
    ranker = rp.PGRank(reward=first_item_first, epochs=1).fit(equal, verbose=False)
    assert np.isfinite(ranker.predict(equal)).all()
