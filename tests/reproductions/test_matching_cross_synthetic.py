"""The study of three vectors goes through its code with few rows; what is measured there proves nothing, but each claim can fail."""

import json

import numpy as np
import torch

from rankpolicy.cli.main import run
from reproductions.matching_cross import synthetic
from reproductions.matching_cross.synthetic import Learned, Vectors
from reproductions.target import Setup


def test_smoke(tmp_path):
    assert run(["reproduce", "matching-cross/synthetic", "--smoke", "--out", str(tmp_path)]) == 0
    outcome = json.loads((tmp_path / "reproduce.json").read_text())
    assert [row["arm"] for row in outcome["rows"]] == list(synthetic.ARMS.values())
    assert all(0 <= row["test_accuracy"] <= 1 for row in outcome["rows"])
    assert len(outcome["claims"]) == 3
    assert (tmp_path / "learning_curves.svg").exists()


def test_arms_are_of_equal_size():
    size = synthetic.num_parameters("concatenation", synthetic.WIDTH)
    # 60 inputs: 60 * 100 + 100, two layers of 100 * 100 + 100, and 101 for the output.
    assert size == 26_401
    for arm in synthetic.ARMS:
        width = synthetic.width_of_equal_size(arm)
        assert 0.99 * size < synthetic.num_parameters(arm, width) <= size < synthetic.num_parameters(arm, width + 1)


def test_labels_say_whether_the_first_two_vectors_point_the_same_way():
    data = Vectors.draw(1000, generators=[torch.Generator().manual_seed(seed) for seed in (0, 1)])
    cosines = np.einsum("srd,srd->sr", data.query, data.item)
    np.testing.assert_array_equal(data.labels, cosines > 0)
    for vectors in (data.query, data.item, data.side):
        assert vectors.shape == (2, 1000, 20)
        # Uniform on (-1, 1): 40,000 numbers of mean 0 and variance 1/3.
        assert abs(vectors.mean()) < 4 * (1 / 3 / 40_000) ** 0.5
        assert -1 <= vectors.min() < -0.99
        assert 0.99 < vectors.max() <= 1


def test_a_seed_learns_the_same_alone_and_among_others():
    setup = Setup(is_smoke=True)
    together = synthetic._accuracies("match", 16, 1e-2, 0.0, seeds=[3, 4, 5], setup=setup)
    alone = synthetic._accuracies("match", 16, 1e-2, 0.0, seeds=[4], setup=setup)
    # Products are summed in another order: a row near the boundary may change sides.
    np.testing.assert_allclose(together[1], alone[0], atol=2 / 200)
    assert not np.array_equal(together[0], together[1])


def learned(*accuracy):
    """An arm of two seeds with this (validation, test) accuracy in each epoch."""
    return Learned(1, 1, 1e-3, 0.0, np.array([accuracy, accuracy], float))


def claims(**arms):
    found = {
        "match": learned((0.9, 0.95)),
        "concatenation": learned((0.6, 0.6)),
        "latent-cross": learned((0.6, 0.6)),
    } | {name.replace("_", "-"): value for name, value in arms.items()}
    return [claim.holds for claim in synthetic._claims(found)]


def test_claims_hold_where_the_match_is_far_ahead():
    assert claims() == [True, True, True]


def test_claims_fail_where_the_match_does_not_learn_or_others_do():
    assert claims(match=learned((0.9, 0.89))) == [False, True, True]
    assert claims(latent_cross=learned((0.8, 0.81))) == [True, True, False]


def test_a_competitor_counts_at_its_best_validation_epoch_too():
    assert claims(concatenation=learned((0.9, 0.85), (0.7, 0.6))) == [True, False, True]
    # A high test accuracy that validation does not find is not its own.
    assert claims(concatenation=learned((0.6, 0.85), (0.7, 0.6))) == [True, True, True]
