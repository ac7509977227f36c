from itertools import pairwise

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.kernels.plackett_luce.item_pairs import active_pairs
from rankpolicy.rankers.linear.rank_svm import PairLoss, minimize_pair_loss

DATA = rp.make_web_search(40, random_state=3)
SMALL = rp.from_arrays(
    np.random.default_rng(0).normal(size=(14, 3)), [0, 1, 2, 0, 0, 1, 1, 0.5, 2, 0, 1, 1, 1, 2], group=[5, 6, 3]
)


def pairs_of(dataset):
    """Differences x_i - x_j over all pairs with label_i > label_j, and the weight of each pair."""
    differences, weights = [], []
    for first, last in pairwise(dataset.offsets):
        labels, features = dataset.labels[first:last], dataset.features[first:last].astype(np.float64)
        better, worse = np.nonzero(labels[:, None] > labels[None, :])
        if len(better):
            differences.append(features[better] - features[worse])
            weights.append(np.full(len(better), 1 / len(better)))
    return np.concatenate(differences), np.concatenate(weights) / len(weights)


@pytest.mark.parametrize("spread", [0.3, 1.0, 10.0])
@pytest.mark.parametrize("num_items", [30, 1200])  # as few as one thread sweeps, and as many as all threads do
def test_sweeps_see_the_pairs_that_a_double_loop_sees(num_items, spread):
    generator = np.random.default_rng(1)
    offsets = np.array([0, 1, 8, *range(30, num_items + 1, 30)])
    scores, values = spread * generator.normal(size=(2, num_items))
    scores[10:13] = scores[9]  # ties
    scores[14] = scores[9] - 1  # a pair at the margin is not active
    labels = generator.integers(0, 4, num_items)
    wins, losses, sums = np.zeros((3, num_items))
    for first, last in pairwise(offsets):
        for i in range(first, last):
            for j in range(first, last):
                if labels[i] > labels[j] and scores[i] - 1 < scores[j]:
                    wins[i] += 1
                    losses[j] += 1
                    sums[i] += values[j]
                    sums[j] += values[i]
    found = active_pairs(scores, values, labels, offsets)
    np.testing.assert_array_equal(found[0], wins)
    np.testing.assert_array_equal(found[1], losses)
    np.testing.assert_allclose(found[2], sums, atol=1e-12)


def test_loss_gradient_and_curvature_are_those_of_the_pairs():
    loss, (differences, weights) = PairLoss.of(SMALL), pairs_of(SMALL)
    features = SMALL.features.astype(np.float64)
    w, direction = np.random.default_rng(2).normal(size=(2, 3))
    margins = 1 - differences @ w
    active = margins > 0
    value, slope = loss.value_and_gradient(features @ w)
    bend = loss.curvature_times(features @ direction, scores=features @ w)
    assert value == pytest.approx(weights @ np.where(active, margins, 0) ** 2)
    np.testing.assert_allclose(features.T @ slope, -2 * (weights * margins * active) @ differences)
    np.testing.assert_allclose(
        features.T @ bend, 2 * (weights * active * (differences @ direction)) @ differences, atol=1e-12
    )


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_the_solution_is_the_one_a_general_solver_finds_over_all_pairs(C):
    optimize = pytest.importorskip("scipy.optimize")
    differences, weights = pairs_of(SMALL)

    def objective(w):
        return w @ w / 2 + C * weights @ np.maximum(0, 1 - differences @ w) ** 2

    expected = optimize.minimize(objective, np.zeros(3), tol=1e-12).x
    found = minimize_pair_loss(SMALL.features.astype(np.float64), PairLoss.of(SMALL), C=C)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_at_the_solution_the_gradient_vanishes(C):
    ranker = rp.RankSVM(C=C).fit(DATA)
    features = ranker._scaling.apply(DATA.features).astype(np.float64)
    loss = PairLoss.of(DATA)
    at_start = C * features.T @ loss.value_and_gradient(np.zeros(DATA.num_items))[1]
    slope = loss.value_and_gradient(features @ ranker._weights)[1]
    gradient = ranker._weights + C * features.T @ slope
    assert np.linalg.norm(gradient) <= 1e-6 * np.linalg.norm(at_start)


def test_two_items_by_hand():
    # One pair, x_i - x_j = 2: least w²/2 + (1 - 2w)², so w = 4 (1 - 2w) = 4/9.
    ranker = rp.RankSVM(scaling="none").fit([[3.0], [1.0]], [1, 0], group=[2])
    assert ranker.predict([[1.0]]) == pytest.approx(4 / 9)


def test_queries_weigh_the_same_and_those_without_pairs_nothing():
    once = rp.RankSVM(scaling="none").fit([[3.0, 0], [1, 0], [0, 2], [0, 1]], [1, 0, 1, 0], group=[2, 2])
    copied = rp.RankSVM(scaling="none").fit(
        [[3.0, 0], [3, 0], [1, 0], [0, 2], [0, 1], [5, 5], [9, 9]], [1, 1, 0, 1, 0, 1, 1], group=[3, 2, 2]
    )
    np.testing.assert_allclose(once.predict(np.eye(2)), copied.predict(np.eye(2)))


def test_wrong_settings_and_labels_are_named(tmp_path):
    with pytest.raises(rp.RankPolicyError, match=r"C must be above 0; got 0"):
        rp.RankSVM(C=0).fit(DATA)
    with pytest.raises(rp.RankPolicyError, match="nothing can be learned: no query has items of different labels"):
        rp.RankSVM().fit([[1.0], [2.0]], [1, 1], group=[2])
    with pytest.raises(rp.RankPolicyError, match=r"RankSVM keeps no checkpoints"):
        rp.RankSVM().fit(DATA, checkpoint=tmp_path / "state")
