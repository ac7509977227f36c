"""Distillation: trees that score as another ranker does, up to a constant per query."""

import numpy as np
import pytest

import rankpolicy as rp

DATA = rp.make_web_search(120, random_state=0)
TRAIN, TEST = DATA[:90], DATA[90:]


def within_queries(scores, dataset):
    means = np.bincount(dataset.query_of_item, scores) / dataset.sizes
    return scores - means[dataset.query_of_item]


def test_trees_rank_as_the_network_does_without_reading_labels():
    teacher = rp.PGRank(epochs=20, num_networks=1).fit(TRAIN, progress=False)
    unlabelled = rp.from_arrays(TRAIN.features, qid=TRAIN.query_of_item)
    trees = rp.distil(teacher, unlabelled, num_trees=100)
    assert isinstance(trees, rp.BoostedRegression)
    assert trees.best_iteration_ == 100
    for data, lowest_correlation in ((TEST, 0.9), (TRAIN, 0.99)):
        expected, scores = within_queries(teacher.predict(data), data), within_queries(trees.predict(data), data)
        assert np.corrcoef(expected, scores)[0, 1] > lowest_correlation
    assert abs(np.polyfit(expected, scores, 1)[0] - 1) < 0.1  # the scale of the scores is the teacher's
    fewer = rp.distil(teacher, unlabelled, num_trees=5)
    train_errors = [np.var(within_queries(t.predict(TRAIN) - teacher.predict(TRAIN), TRAIN)) for t in (trees, fewer)]
    assert train_errors[0] < 0.1 * train_errors[1]


def test_trees_of_one_leaf_per_item_reproduce_scores():
    # Four items of one feature each, scores 0, 1, 2, 4 after a shift by query: enough trees have no error left.
    data = rp.from_arrays([[0.0], [1.0], [2.0], [3.0]] * 10, [0, 1, 2, 4] * 10, group=[4] * 10)
    teacher = rp.BoostedRegression(num_trees=200, min_items_in_leaf=1, bagging_fraction=1.0, learning_rate=0.3)
    teacher.fit(data, progress=False)
    scores = rp.distil(teacher, data, num_trees=200).predict(data[0])
    np.testing.assert_allclose(scores - scores[0], [0, 1, 2, 4], atol=1e-3)


def test_labels_shifted_by_query_do_not_disturb_the_loss_within_queries():
    rng = np.random.default_rng(0)
    shifted = TRAIN.labels + 50 * rng.random(TRAIN.num_queries)[TRAIN.query_of_item]
    for loss, is_equal in (("within-query", True), ("squared", False)):
        plain, other = (
            rp.BoostedRegression(loss=loss, num_trees=20, bagging_fraction=1.0).fit(
                TRAIN.features, labels, qid=TRAIN.query_of_item, progress=False
            )
            for labels in (TRAIN.labels, shifted)
        )
        difference = np.abs(plain.predict(TEST) - other.predict(TEST)).max()
        assert (difference < 1e-3) == is_equal


def test_a_fair_policy_becomes_trees():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, TRAIN.num_items)
    teacher = rp.FairPGRank(epochs=3, strength=0.5).fit(TRAIN, protected=groups, progress=False)
    trees = rp.distil(teacher, TRAIN, num_trees=50)
    assert np.corrcoef(teacher.predict(TEST), trees.predict(TEST))[0, 1] > 0.9


def test_what_cannot_be_distilled():
    with pytest.raises(rp.RankPolicyError, match="is not fitted yet"):
        rp.distil(rp.PGRank(), TRAIN)
    teacher = rp.RankSVM().fit(TRAIN, progress=False)
    with pytest.raises(rp.RankPolicyError, match=r"Unknown kind of model to distil into 'tree'\. Did you mean 'trees'"):
        rp.distil(teacher, TRAIN, into="tree")
    with pytest.raises(rp.RankPolicyError, match="num_trees must be at least 1; got 0"):
        rp.distil(teacher, TRAIN, num_trees=0)
