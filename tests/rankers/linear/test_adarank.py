import math

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.data.scaling import fit_scaling
from rankpolicy.metrics import parse_metric
from rankpolicy.rankers.linear.reward_ascent import RewardSurface

DATA = rp.make_web_search(60, random_state=3)
TRAIN, VALID = DATA[:40], DATA[40:]

# Three queries of two items, the first relevant. Feature 0 has it right in the first two queries, feature 1 in the last two but
# with a smaller difference, feature 2 never; a relevant item at rank 2 has reciprocal rank 1/2.
BY_HAND = rp.from_arrays(
    [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.5, 0.0], [0.0, 0.0, 1.0], [0.0, 0.5, 0.0], [0.1, 0.0, 1.0]],
    [1, 0, 1, 0, 1, 0],
    group=[2, 2, 2],
)


def climb(dataset, **settings):
    """Weights and training reward after each round, on features as they are."""
    ranker = rp.AdaRank(scaling="none", **settings)
    surface = RewardSurface.of(dataset, fit_scaling("none", dataset), parse_metric(ranker.reward))
    return [(weights.copy(), reward) for weights, reward in ranker._climb(surface)]


def test_two_rounds_by_hand():
    # Round 1: both features earn e = (1 + 1 + 1/2) / 3 = 5/6; the first wins the tie. alpha = ln((1 + 5/6) / (1 - 5/6)) / 2 = ln(11) / 2.
    # It ranks queries 1 and 2 right (reward 1) and query 3 wrong (1/2), so P is as exp(-1), exp(-1), exp(-1/2).
    first = math.log(11) / 2
    p = np.exp([-1, -1, -0.5])
    p /= p.sum()
    # Round 2: feature 0 earns 1 - P3 / 2, feature 1 earns 1 - P1 / 2, which is more.
    e = 1 - p[0] / 2
    second = math.log((1 + e) / (1 - e)) / 2
    rounds = climb(BY_HAND, reward="rr", rounds=2)
    np.testing.assert_allclose(rounds[0][0], [first, 0, 0])
    assert rounds[0][1] == pytest.approx(5 / 6)
    # Query 3: 0.5 * second against 0.1 * first: now right. Query 1: first against second, which is larger: now wrong.
    assert 0.5 * second > 0.1 * first
    assert second > first
    np.testing.assert_allclose(rounds[1][0], [first, second, 0])
    assert rounds[1][1] == pytest.approx(5 / 6)


def test_a_feature_that_harms_is_taken_back_and_not_tried_again():
    # Feature 0 ranks three of five queries right and earns 4/5. The other two weigh more then: feature 1, right only there, wins round 2,
    # 1 - 3 exp(-1) / (3 exp(-1) + 2 exp(-1/2)) / 2 = 0.76 against 0.74. It is so long that it decides alone, and earns 7/10.
    first = np.array([[1.0, -100.0]] * 3 + [[-1.0, 100.0]] * 2)
    features = np.stack([first, -first], axis=1).reshape(10, 2)
    dataset = rp.from_arrays(features, [1, 0] * 5, group=[2] * 5)
    rounds = climb(dataset, reward="rr", max_repeats=4)
    assert [reward for _, reward in rounds] == pytest.approx([4 / 5] * 4)
    assert rounds[-1][0][1] == 0
    tolerant = climb(dataset, reward="rr", rounds=2, tolerance=0.2)
    assert tolerant[1][0][1] > 0
    assert tolerant[1][1] == pytest.approx(7 / 10)


def test_a_feature_chosen_too_often_in_a_row_makes_way():
    chosen = [weights for weights, _ in climb(BY_HAND, reward="rr", max_repeats=1, tolerance=1.0)]
    assert len(chosen) == 3  # each once
    assert (chosen[-1] > 0).all()


def test_training_reward_never_falls_by_more_than_the_tolerance():
    for tolerance in (0.0, 0.002):
        (curve,) = rp.AdaRank(tolerance=tolerance).fit(TRAIN).evals_result_["training"].values()
        assert (np.diff(curve) >= -tolerance).all()
        assert curve[-1] > curve[0]


def test_both_directions_find_a_feature_that_points_down():
    features = np.array([[5.0], [1.0], [7.0], [3.0]])
    labels = [0, 1, 0, 1]
    down = rp.AdaRank(both_directions=True).fit(features, labels, group=[2, 2])
    assert (np.diff(down.predict([[0.0], [1.0], [2.0]])) < 0).all()
    assert np.isfinite(down.predict(features)).all()  # a weak ranker without a fault
    up = rp.AdaRank().fit(features, labels, group=[2, 2])
    assert (np.diff(up.predict([[0.0], [1.0], [2.0]])) > 0).all()


def test_validation_picks_the_round():
    ranker = rp.AdaRank().fit(TRAIN, valid=VALID)
    ((_, curve),) = ranker.evals_result_["valid_0"].items()
    assert ranker.best_iteration_ == np.argmax(curve) + 1
    assert ranker.best_score_ == pytest.approx(rp.evaluate(ranker, VALID, ["ndcg@10"]).means["ndcg@10"])


def test_queries_that_cannot_be_ranked_wrong_do_not_matter():
    expected = rp.AdaRank(scaling="none").fit(TRAIN)
    with_others = rp.AdaRank(scaling="none").fit(
        np.concatenate([TRAIN.features, DATA.features[:9]]),
        np.concatenate([TRAIN.labels, [0] * 5, [2] * 4]),
        group=[*TRAIN.sizes, 5, 4],
    )
    np.testing.assert_array_equal(with_others.predict(VALID), expected.predict(VALID))


def test_wrong_settings_and_rewards_are_named(tmp_path):
    wrong = [
        ({"reward": "dcg"}, r"AdaRank needs a reward from -1 to 1.*'dcg' reaches"),
        ({"reward": "avg_rank"}, r"Write '-avg_rank'"),
        ({"rounds": 0}, r"rounds must be at least 1; got 0"),
        ({"max_repeats": 0}, r"max_repeats must be at least 1; got 0"),
        ({"tolerance": -0.1}, r"tolerance must be at least 0; got -0.1"),
    ]
    for settings, message in wrong:
        with pytest.raises(rp.RankPolicyError, match=message):
            rp.AdaRank(**settings).fit(TRAIN)
    with pytest.raises(rp.RankPolicyError, match="no query has items of different labels"):
        rp.AdaRank().fit([[1.0], [2.0]], [1, 1], group=[2])
    with pytest.raises(rp.RankPolicyError, match="AdaRank keeps no checkpoints"):
        rp.AdaRank().fit(TRAIN, checkpoint=tmp_path / "state")
