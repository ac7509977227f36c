import numpy as np
import pytest

from rankpolicy.explanations import enumerated_shapley, sampled_shapley


def gloves(taken):
    """A left glove and two right ones: a pair is worth 1. The Shapley values are 2/3, 1/6 and 1/6."""
    return (taken[:, 0] & (taken[:, 1] | taken[:, 2])).astype(float)


def test_the_glove_game_by_enumeration():
    found = enumerated_shapley(gloves, num_players=3, empty=0.0, full=1.0)
    np.testing.assert_allclose(found.values, [2 / 3, 1 / 6, 1 / 6], atol=1e-12)
    assert (found.variances == 0).all()


def test_the_glove_game_by_sampling_is_near_and_adds_up():
    generator = np.random.default_rng(0)
    found = sampled_shapley(gloves, num_players=3, empty=0.0, full=1.0, num_samples=2000, generator=generator)
    assert found.values.sum() == pytest.approx(1, abs=1e-12)
    errors = np.sqrt(found.variances)
    assert (np.abs(found.values - [2 / 3, 1 / 6, 1 / 6]) < 4 * errors).all()
    assert (errors < 0.02).all()


def test_a_sum_of_players_is_exact_after_any_number_of_orders():
    generator, worth = np.random.default_rng(0), np.arange(6.0)
    found = sampled_shapley(
        lambda taken: taken @ worth, num_players=6, empty=0.0, full=15.0, num_samples=2, generator=generator
    )
    np.testing.assert_allclose(found.values, worth, atol=1e-12)
    np.testing.assert_allclose(found.variances, 0, atol=1e-24)


def test_one_player_gets_all():
    for found in (
        enumerated_shapley(gloves, num_players=1, empty=1.0, full=3.0),
        sampled_shapley(gloves, num_players=1, empty=1.0, full=3.0, num_samples=2, generator=np.random.default_rng(0)),
    ):
        assert found.values.tolist() == [2.0]
