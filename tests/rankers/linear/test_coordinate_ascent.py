import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.metrics import p as precision

DATA = rp.make_web_search(40, num_features=8, random_state=3)
TRAIN, VALID = DATA[:30], DATA[30:]


def direction_of(ranker):
    """Angle of two weights in degrees."""
    return np.degrees(np.arctan2(*ranker._weights[::-1]))


def test_the_known_weights_are_found():
    # The relevant item wins if w0 > 2 w1 (query 1), w1 > 0 (query 2) and w0 < 4 w1 (query 3): angles from atan(1/4) to atan(1/2).
    features = [[1.0, 0.0], [0.0, 2.0], [0.0, 1.0], [0.0, 0.0], [0.0, 4.0], [1.0, 0.0]]
    ranker = rp.CoordinateAscent(scaling="none", restarts=1).fit(features, [1, 0, 1, 0, 1, 0], group=[2, 2, 2])
    assert np.degrees(np.arctan(1 / 4)) < direction_of(ranker) < np.degrees(np.arctan(1 / 2))
    assert np.abs(ranker._weights).sum() == pytest.approx(1)
    assert ranker.evals_result_["training"]["map"][-1] == 1


@pytest.mark.parametrize("reward", ["map", "ndcg@3", "-avg_rank"])
def test_two_features_reach_the_best_of_all_angles(reward):
    generator = np.random.default_rng(5)
    labels = generator.integers(0, 3, 80)
    features = np.column_stack([labels + 2 * generator.normal(size=80), -labels + 3 * generator.normal(size=80)])
    dataset = rp.from_arrays(features, labels, group=[8] * 10)
    angles = np.radians(np.arange(0, 360, 0.1))
    best = max(
        rp.evaluate(features @ [np.cos(angle), np.sin(angle)], dataset, [reward]).means[reward] for angle in angles
    )
    ranker = rp.CoordinateAscent(reward=reward, scaling="none", step_scale=1.2, num_steps=60, tolerance=0.0)
    found = rp.evaluate(ranker.fit(dataset), dataset, [reward]).means[reward]
    assert found >= best - 1e-3


def test_passes_climb_and_restarts_do_not_harm():
    one, many = (rp.CoordinateAscent(restarts=restarts).fit(TRAIN) for restarts in (1, 4))
    (first_climb,), (all_climbs,) = (ranker.evals_result_["training"].values() for ranker in (one, many))
    assert (np.diff(first_climb) > -1e-12).all()
    assert all_climbs[: len(first_climb)] == first_climb
    assert max(all_climbs) >= max(first_climb)
    assert many.best_iteration_ == np.argmax(all_climbs) + 1


def test_slack_keeps_the_weights_near_the_start():
    def distance(slack):
        weights = rp.CoordinateAscent(slack=slack, restarts=1).fit(TRAIN)._weights
        return np.linalg.norm(weights - 1 / 8)

    assert distance(0.0) > distance(0.3) > 0
    assert distance(1e3) == 0


def test_a_reward_without_a_kernel_climbs_the_same_way():
    def by_function(rankings, labels, mask):
        return precision(rankings, labels, mask, cutoff=3)

    settings = {"restarts": 2, "num_steps": 4, "max_passes": 2}
    # Queries whose labels are all equal are left out only where the reward is known to depend on labels.
    mixed = TRAIN[[len(set(TRAIN.labels[a:b])) > 1 for a, b in zip(TRAIN.offsets, TRAIN.offsets[1:], strict=False)]]
    compiled = rp.CoordinateAscent(reward="p@3", **settings).fit(mixed)
    plain = rp.CoordinateAscent(reward=by_function, **settings).fit(mixed)
    np.testing.assert_allclose(compiled._weights, plain._weights)


def test_a_single_feature_gets_its_sign():
    ranker = rp.CoordinateAscent(scaling="none").fit([[5.0], [1.0], [7.0], [3.0]], [0, 1, 0, 1], group=[2, 2])
    assert ranker._weights.tolist() == [-1]


def test_wrong_settings_are_named(tmp_path):
    wrong = [
        ({"restarts": 0}, "restarts must be at least 1; got 0"),
        ({"num_steps": 0}, "num_steps must be at least 1; got 0"),
        ({"max_passes": 0}, "max_passes must be at least 1; got 0"),
        ({"step_base": 0.0}, "step_base must be above 0; got 0"),
        ({"step_scale": 0.5}, "step_scale must be at least 1; got 0.5"),
        ({"step_scale": 3.0, "num_steps": 1}, "step_scale=3.0 would not be read: .* num_steps is above 1"),
        ({"tolerance": -1.0}, "tolerance must be at least 0; got -1"),
        ({"slack": -1.0}, "slack must be at least 0; got -1"),
    ]
    for settings, message in wrong:
        with pytest.raises(rp.RankPolicyError, match=message):
            rp.CoordinateAscent(**settings)
    with pytest.raises(rp.RankPolicyError, match="CoordinateAscent keeps no checkpoints"):
        rp.CoordinateAscent().fit(TRAIN, checkpoint=tmp_path / "state")
