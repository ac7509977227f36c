"""Linear networks as arrays take the steps that torch's autograd and AdamW take."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import rankpolicy as rp
from rankpolicy.data.batches import RaggedTensors
from rankpolicy.models.average import Average
from rankpolicy.models.linear_networks import LinearNetworks
from rankpolicy.models.mlp import MLPNetwork
from rankpolicy.objectives import FairPolicyGradient, PolicyGradient
from rankpolicy.training import NetworkFit, TrainingSettings
from rankpolicy.training.loop import train_network

DATA = rp.make_web_search(30, random_state=0)
FEATURES = DATA.features_by_query.astype(np.float64)
FEATURES = (FEATURES - FEATURES.mean(0)) / FEATURES.std(0)
SETTINGS = TrainingSettings(epochs=20, batch_queries=8, learning_rate=0.03, weight_decay=0.01)
ORDERS = [np.random.default_rng(epoch).permutation(DATA.num_queries) for epoch in range(20)]


def trained(network, data, objective, generator):
    """The weights after 20 epochs of the same batches; what was reported."""

    def batches(epoch):
        return (data.batch(ORDERS[epoch][start : start + 8]) for start in range(0, DATA.num_queries, 8))

    fit = NetworkFit(network=network, train=data, objective=objective, settings=SETTINGS, generator=generator)
    state = train_network(fit, batches)
    return {name: np.asarray(weight) for name, weight in network.state_dict().items()}, state.reports


@pytest.mark.parametrize(
    "objective",
    [
        PolicyGradient(reward="ndcg@10"),
        PolicyGradient(reward="dcg@5 + recall@10", entropy=0.1),
        FairPolicyGradient(reward="ndcg", fairness="individual", strength=3.0, entropy=0.05),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_weights_are_those_of_torch(objective, weighted):
    weights = np.random.default_rng(1).uniform(0.5, 2.0, DATA.num_queries) if weighted else None
    data = replace(DATA, query_weights=weights) if weighted else DATA
    drawn = LinearNetworks.drawn(3, FEATURES.shape[1], within=None, generator=np.random.default_rng(0))
    # In float64: no ranking depends on a bias, whose gradient is a rounding error that AdamW makes a step of.
    arrays = LinearNetworks(drawn.matrix.astype(np.float64))
    modules = Average(MLPNetwork(FEATURES.shape[1], hidden=()) for _ in range(3)).double()
    modules.load_state_dict({name: torch.from_numpy(weight) for name, weight in arrays.state_dict().items()})
    of_arrays, reports = trained(arrays, RaggedTensors.of(data, FEATURES), objective, np.random.default_rng(0))
    of_torch, expected = trained(
        modules, RaggedTensors.of(data, FEATURES, torch.device("cpu")), objective, torch.Generator()
    )
    assert reports == pytest.approx(expected, abs=1e-6)
    assert of_arrays.keys() == of_torch.keys()
    for name, weight in of_torch.items():
        np.testing.assert_allclose(of_arrays[name], weight, atol=1e-6, err_msg=name)


def test_saved_names_are_those_of_torch(tmp_path):
    """A file of a linear network that torch trained is read without torch, and the other way round."""
    ranker = rp.PGRank(model="linear", epochs=1, num_networks=2).fit(DATA, progress=False)
    other = rp.ListNet(model="linear", epochs=1, num_networks=2, scaling="quantile").fit(DATA, progress=False)
    assert list(ranker._network.state_dict()) == list(other._network.state_dict())
    continued = rp.PGRank(model="linear", epochs=1, num_networks=2).fit(DATA, init=other, progress=False)
    back = rp.ListNet(model="linear", epochs=1, num_networks=2, scaling="quantile").fit(
        DATA, init=continued, progress=False
    )
    # AdamW moves a weight by at most about its learning rate per step.
    assert back.predict(DATA) == pytest.approx(other.predict(DATA), abs=0.5)
    assert not np.array_equal(back.predict(DATA), other.predict(DATA))
