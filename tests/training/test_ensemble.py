"""Networks that are trained together end as they would alone: on the CPU, with the steps of a device, and on a device."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from rankpolicy import make_web_search
from rankpolicy.data.batches import RaggedTensors
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.models import MLP, Average
from rankpolicy.objectives import FairPolicyGradient, ListNetCrossEntropy, PolicyGradient
from rankpolicy.training import NetworkFit, TrainingSettings, Validation, device_batches, ensemble, fit_networks
from rankpolicy.training.module_step import new_adamw
from rankpolicy.training.optimizer import FlatAdamW

DATA = make_web_search(40, random_state=0)
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]


def tensors(data: RankingDataset = DATA, device="cpu") -> RaggedTensors:
    grouped = replace(data, groups_by_query=np.arange(data.num_items) % 2)
    return RaggedTensors.of(grouped, torch.from_numpy(data.features.copy()), torch.device(device))


def new_fit(train, *, seed=0, rate=1e-2, decay=0.0, dropout=0.2, objective=None, epochs=3, validation=None):
    device = train.labels.device
    generator = torch.Generator().manual_seed(seed)
    model = MLP(hidden=(8, 6), dropout=dropout)
    network = Average([model.new_network_of(train.features.shape[1], generator=generator) for _ in range(2)])
    return NetworkFit(
        network=network.to(device),
        train=train,
        objective=objective or PolicyGradient(estimator="exact"),
        settings=TrainingSettings(epochs=epochs, batch_queries=7, learning_rate=rate, weight_decay=decay, patience=2),
        generator=torch.Generator(device).manual_seed(seed),
        validation=validation,
    )


def weights_of(fit):
    return torch.cat([parameter.detach().flatten().cpu() for parameter in fit.network.parameters()])


def ranking_scores(fit):
    """Scores less their mean in each query: a constant for all items of a query has no gradient but for rounding, which Adam scales up."""
    train = fit.train
    with torch.no_grad():
        scores = fit.network(train.features).double().cpu()
    parts = np.split(scores.numpy(), train.offsets[1:-1])
    return np.concatenate([part - part.mean() for part in parts])


def check_same(make, *, tolerance=2e-3):
    """Every fit ends with the same scores and numbers, trained alone and together with the others."""
    alone, all_together = make(), make()
    expected = [fit_networks([fit])[0] for fit in alone]
    found = fit_networks(all_together)
    for one, other, state, same in zip(alone, all_together, expected, found, strict=True):
        np.testing.assert_allclose(ranking_scores(other), ranking_scores(one), rtol=0, atol=tolerance)
        np.testing.assert_allclose(same.reports, state.reports, rtol=1e-4)
        assert (same.best_epoch, same.epoch) == (state.best_epoch, state.epoch)
    starts = torch.cat([weights_of(fit) for fit in make()])
    assert (torch.cat([weights_of(fit) for fit in all_together]) - starts).abs().max() > 0.01


@pytest.fixture(params=["batches of the host", "steps of a device"])
def device(request, monkeypatch):
    monkeypatch.setattr(ensemble, "stays_on_device", lambda fit: request.param == "steps of a device")
    return "cpu"


def test_settings_seeds_and_dropout(device):
    train = tensors()
    numbers = [(0, 1e-2, 0.0, 0.2), (0, 3e-3, 0.1, 0.5), (1, 1e-2, 0.0, 0.2), (1, 2e-2, 0.1, 0.3)]

    def make():
        return [new_fit(train, seed=s, rate=r, decay=w, dropout=d) for s, r, w, d in numbers]

    assert ensemble.ensembles_of(make()) == [[0, 1, 2, 3]]
    check_same(make)


def test_strengths_of_fairness(device):
    train = tensors()

    def make():
        strengths = (0.0, 1.0, 50.0)
        return [
            new_fit(train, objective=FairPolicyGradient(strength=strength, num_groups=2), epochs=2)
            for strength in strengths
        ]

    assert ensemble.ensembles_of(make()) == [[0, 1, 2]]
    check_same(make)


def test_seeds_with_data_of_their_own(device):
    mirrored = replace(
        DATA, features_by_query=DATA.features_by_query[::-1].copy(), labels_by_query=DATA.labels_by_query[::-1].copy()
    )
    trains = [tensors(), tensors(mirrored)]
    check_same(lambda: [new_fit(train, seed=seed) for seed, train in enumerate(trains)])


def test_data_of_other_lengths_are_trained_together_by_the_host():
    trains = [tensors(), tensors(make_web_search(40, random_state=5))]
    check_same(lambda: [new_fit(train, seed=seed) for seed, train in enumerate(trains)])


def test_each_network_stops_by_its_own_validation():
    train = tensors()

    def make():
        curves = ([1, 2, 3, 4, 5, 6], [3, 2, 1, 0], [1, 5, 1, 1], [3, 2, 1, 0])
        validations = [Validation(train.features, lambda _, left=iter(curve): next(left), "told") for curve in curves]
        return [
            new_fit(train, rate=rate, epochs=6, validation=validation)
            for rate, validation in zip((1e-2, 2e-2, 3e-2, 4e-2), validations, strict=True)
        ]

    check_same(make)


def test_networks_that_differ_in_more_than_numbers_are_trained_apart():
    train = tensors()
    fits = [
        new_fit(train),
        new_fit(train, objective=ListNetCrossEntropy()),
        new_fit(train, objective=PolicyGradient(estimator="reinforce")),
        new_fit(train, objective=PolicyGradient(estimator="reinforce")),
        new_fit(train, dropout=0.0),
        new_fit(train, seed=3),
    ]
    assert ensemble.ensembles_of(fits) == [[0, 5], [1], [2], [3], [4]]


def test_buckets_hold_every_query_once_and_queries_of_similar_length_together():
    sizes = np.random.default_rng(0).integers(1, 200, 500)
    buckets = device_batches._buckets([sizes, sizes[::-1]], 16)
    for dataset, lengths in enumerate((sizes, sizes[::-1])):
        queries = np.concatenate([bucket[dataset] for bucket in buckets])
        assert sorted(queries) == list(range(500))
        cells = sum(len(bucket[dataset]) * lengths[bucket[dataset]].max() for bucket in buckets)
        assert cells < 1.3 * lengths.sum()
    assert len(buckets) <= 9


def test_steps_of_a_device_take_every_query_once():
    train = tensors()
    steps = device_batches.DeviceBatches(
        [train], 7, generators=[torch.Generator().manual_seed(0)], members_per_group=1, num_policies=1
    )
    seen = []
    steps.run_epoch(lambda batch: seen.append(batch.queries.labels.sum(-1)), epoch=0)
    expected = [DATA[query].labels.sum() for query in range(DATA.num_queries)]
    assert sorted(torch.cat(seen).tolist()) == pytest.approx(sorted(expected))
    features = train.features
    steps.programs[0].bucket.step.zero_()
    batch = steps.batch(steps.programs[0])
    assert batch.features.shape[1] == batch.queries.labels.numel()
    row = batch.features[0].view(*batch.queries.labels.shape, -1)[0, 0]
    assert (features == row).all(1).any()


@pytest.mark.parametrize("device", DEVICES)
def test_adamw_moves_each_member_as_torch_would(device):
    generator = torch.Generator().manual_seed(0)
    start, rates, decays = torch.randn(3, 4, 5, generator=generator), [1e-2, 3e-3, 0.1], [0.0, 0.5, 0.01]
    flat = start.flatten().to(device)
    weights = flat.view(start.shape)
    settings = [
        TrainingSettings(learning_rate=rate, weight_decay=decay) for rate, decay in zip(rates, decays, strict=True)
    ]
    ours = FlatAdamW(SimpleNamespace(flat=flat, weights=[weights], num_networks=1), settings)
    members = [start[member].clone().requires_grad_() for member in range(3)]
    theirs = [
        torch.optim.AdamW([member], lr=rate, weight_decay=decay)
        for member, rate, decay in zip(members, rates, decays, strict=True)
    ]
    for _ in range(30):
        gradient = torch.randn(start.shape, generator=generator)
        ours.step(gradient.flatten().to(device))
        for member, own, optimizer in zip(members, gradient, theirs, strict=True):
            member.grad = own.clone()
            optimizer.step()
    torch.testing.assert_close(weights.detach().cpu(), torch.stack(members).detach(), rtol=1e-5, atol=1e-6)


def step_of_torch(weight, settings):
    parameter = nn.Parameter(weight)  # in the memory of the weight
    optimizer = new_adamw(nn.ParameterList([parameter]), settings)

    def step(gradient):
        parameter.grad = gradient
        optimizer.step()

    return step


def step_of_a_stack(weight, settings):
    return FlatAdamW(SimpleNamespace(flat=weight, weights=[weight[None]], num_networks=1), [settings]).step


@pytest.mark.parametrize("new_step", [step_of_torch, step_of_a_stack])
def test_two_steps_of_adamw_by_hand(new_step):
    """β1 = 1/2, β2 = 3/4, gradients 2 and 4, rate 0.1, decay 0.5; t counts from 1.

    m = 1, then 2.5; v = 1, then 4.75; corrected 2 / sqrt(4) = 1, then (2.5 / 0.75) / sqrt(4.75 / 0.4375).
    """
    weight = torch.ones(1)
    step = new_step(weight, TrainingSettings(learning_rate=0.1, weight_decay=0.5, betas=(0.5, 0.75)))
    step(torch.tensor([2.0]))
    first = 0.95 - 0.1
    assert weight.item() == pytest.approx(first, abs=1e-6)
    step(torch.tensor([4.0]))
    assert weight.item() == pytest.approx(0.95 * first - 0.1 * 1.0116284, abs=1e-6)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("fair", [False, True])
def test_captured_steps_train_as_eager_ones(monkeypatch, fair, caplog):
    train = tensors(device="cuda")

    def make():
        objectives = [FairPolicyGradient(strength=s, num_groups=2) if fair else None for s in (1.0, 20.0)]
        return [new_fit(train, seed=seed, objective=objective) for seed in (0, 1) for objective in objectives]

    caplog.set_level("INFO", "rankpolicy.training")
    check_same(make, tolerance=1e-2)
    assert "without a CUDA graph" not in caplog.text
    captured = make()
    fit_networks(captured)
    monkeypatch.setattr(device_batches.DeviceBatches, "capture", lambda *_: None)
    eager = make()
    fit_networks(eager)
    for one, other in zip(captured, eager, strict=True):
        np.testing.assert_allclose(ranking_scores(one), ranking_scores(other), rtol=0, atol=1e-2)


def test_the_device_auto_is_the_gpu_if_there_is_one(monkeypatch):
    from rankpolicy.rankers.networks.network import usable_device

    assert usable_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert usable_device("auto") == torch.device("cpu")


def test_candidates_of_settings_are_chosen_as_one_by_one():
    from rankpolicy.experiments.selection import fit_best_of
    from rankpolicy.rankers import ListNet

    candidates = [{"learning_rate": rate, "epochs": 3} for rate in (1e-3, 1e-2, 3e-2)]
    found = fit_best_of(ListNet, candidates, DATA, DATA, progress=False)
    alone = [ListNet(**candidate).fit(DATA, valid=DATA, progress=False).best_score_ for candidate in candidates]
    assert [score for _, score in found.tried] == pytest.approx(alone, abs=1e-4)
    assert found.settings == candidates[int(np.argmax(alone))]
