import numpy as np
import pytest
import torch

import rankpolicy as rp
from rankpolicy.data.batches import RaggedTensors
from rankpolicy.objectives import DELTRLoss, ListNetCrossEntropy
from rankpolicy.rankers.networks.list_net import DELTR

TRAIN = rp.data.make_fair_synthetic(40, random_state=0)
SETTINGS = {"scaling": "none", "epochs": 40, "learning_rate": 0.05}


def top_one_gap(ranker):
    """Mean chance of the first rank of the others minus that of the protected, averaged over queries with both."""
    padding = TRAIN.padding()
    chances = np.where(padding.mask, np.exp(ranker.policy(TRAIN).scores), 0)
    first = chances / chances.sum(-1, keepdims=True)
    protected = padding.pad(np.array(TRAIN.groups)) == 1
    gaps = [
        row[~member].mean() - row[member].mean() for row, member in zip(first, protected, strict=True) if member.any()
    ]
    return float(np.mean(gaps))


def test_the_loss_by_hand():
    data = rp.from_arrays(np.zeros((2, 1)), [1, 1], group=[2], protected=[0, 1])
    batch = RaggedTensors.of(data, data.features.copy(), torch.device("cpu")).batch(np.array([0]))
    scores = torch.tensor([[np.log(3.0), 0.0]], dtype=torch.float32, requires_grad=True)
    accuracy = float(ListNetCrossEntropy()(scores, batch).report)
    # chances 3/4 and 1/4: a gap of 1/2 against the protected item
    assert float(DELTRLoss(protected=1, strength=2.0)(scores, batch).report) == pytest.approx(accuracy + 2 * 0.25)
    assert float(DELTRLoss(protected=0, strength=2.0)(scores, batch).report) == pytest.approx(accuracy)
    DELTRLoss(protected=1, strength=100.0)(scores, batch).loss.backward()
    assert scores.grad[0, 0] > 0 > scores.grad[0, 1]  # descent moves the two together


def test_a_stronger_penalty_narrows_the_gap():
    gaps = [top_one_gap(DELTR(strength=strength, **SETTINGS).fit(TRAIN)) for strength in (0.0, 1e4)]
    assert gaps[1] < 0.5 * gaps[0]


def test_without_a_penalty_it_is_listnet():
    ours = DELTR(strength=0.0, **SETTINGS).fit(TRAIN).predict(TRAIN)
    listnet = rp.ListNet(model="linear", **SETTINGS).fit(TRAIN).predict(TRAIN)
    np.testing.assert_allclose(ours, listnet, rtol=1e-5)


def test_the_protected_group_must_be_there():
    with pytest.raises(
        rp.RankPolicyError,
        match=r"protected_group must be one of the groups of the training data, \[0, 1\]; got 'women'",
    ):
        DELTR(protected_group="women").fit(TRAIN)
    with pytest.raises(rp.RankPolicyError, match="which has none"):
        DELTR().fit(TRAIN.features, TRAIN.labels, group=TRAIN.sizes)
    with pytest.raises(rp.RankPolicyError, match=r"strength must be at least 0; got -1\.0"):
        DELTR(strength=-1.0).fit(TRAIN)
