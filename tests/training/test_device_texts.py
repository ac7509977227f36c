"""Text networks on the steps of a device: every query once, the scores of ragged batches, and graphs that train as single operations."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from rankpolicy.data.batches import RaggedTensors
from rankpolicy.data.texts.text_pairs import TextPairs, TokenTable
from rankpolicy.models.average import Average
from rankpolicy.models.mcan import MCANNetwork
from rankpolicy.objectives import Hybrid, ListNetCrossEntropy
from rankpolicy.objectives.deltr import DELTRLoss
from rankpolicy.training import NetworkFit, TrainingSettings, device_texts, ensemble, fit_networks

SIZES = np.random.default_rng(0).integers(1, 7, 30)
NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def texts(device="cpu") -> RaggedTensors:
    """Items are relevant that begin with the first word of their query."""
    random = np.random.default_rng(1)
    queries = [random.integers(1, 20, random.integers(1, 6)).tolist() for _ in SIZES]
    items = [random.integers(1, 20, random.integers(1, 40)).tolist() for _ in range(SIZES.sum())]
    of_query = np.repeat(np.arange(len(SIZES)), SIZES)
    labels = random.integers(0, 2, len(items))
    for item, label, query in zip(items, labels, of_query, strict=True):
        item[0] = queries[query][0] if label else 20
    pairs = TextPairs(
        TokenTable.of(queries), TokenTable.of(items), torch.from_numpy(of_query), torch.arange(len(items))
    )
    offsets = np.concatenate([[0], SIZES.cumsum()])
    return RaggedTensors(pairs.to(device), torch.from_numpy(labels).float().to(device), offsets)


def network(*, dropout=0.0, num_networks=2) -> Average:
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(21, 8, generator=generator)
    made = [
        MCANNetwork(vectors, recurrent=5, hidden=(6, 6), dropout=dropout, generator=generator)
        for _ in range(num_networks)
    ]
    return Average(made)


def new_fit(train, *, objective, dropout=0.2, epochs=4) -> NetworkFit:
    device = train.labels.device
    return NetworkFit(
        network=network(dropout=dropout).to(device),
        train=train,
        objective=objective,
        settings=TrainingSettings(epochs=epochs, batch_queries=7, learning_rate=1e-2),
        generator=torch.Generator(device).manual_seed(0),
    )


def test_batches_hold_every_query_once_and_score_as_ragged_ones():
    train = texts()
    steps = device_texts.DeviceTexts(new_fit(train, objective=ListNetCrossEntropy()))
    scorer = network().eval()
    with torch.no_grad():
        expected = scorer(train.features)
    found = torch.full_like(expected, torch.nan)

    def is_of(own, batch):
        return torch.equal(steps.texts(own).items.tokens, batch.features.items.tokens)

    for batch in steps.shuffled_batches(0):
        # The last program that has written its queries is the one of this batch.
        (program,) = [
            own for own in steps.programs if own.program.num_queries == len(batch.labels) and is_of(own, batch)
        ]
        rows = program.program.bucket.rows[program.queries][batch.mask]
        assert found[rows].isnan().all()
        with torch.no_grad():
            scores = batch.padding.pad(scorer(batch.features))
        found[rows] = scores[batch.mask]
        assert torch.equal(batch.labels[batch.mask], train.labels[rows])

    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_buckets_are_whole_steps_of_texts_of_similar_length():
    random = np.random.default_rng(0)
    sizes, longest = random.integers(1, 40, 333), random.integers(1, 128, 333)
    buckets = device_texts.text_buckets(sizes, longest, 16)
    assert sorted(np.concatenate(buckets)) == list(range(333))
    assert [len(own) % 16 for own in buckets] == [0] * (len(buckets) - 1) + [333 % 16]
    cells = sum(len(own) * sizes[own].max() * longest[own].max() for own in buckets)
    shuffled = random.permutation(333)
    at_random = [shuffled[start : start + 16] for start in range(0, 333, 16)]
    assert cells < 0.7 * sum(len(own) * sizes[own].max() * longest[own].max() for own in at_random)
    assert len(buckets) < 16


@pytest.mark.parametrize("objective", [ListNetCrossEntropy(), DELTRLoss(strength=1.0, protected=1)])
def test_training_learns(monkeypatch, objective):
    monkeypatch.setattr(ensemble, "stays_on_device", lambda fit: True)
    train = texts()
    weights = torch.linspace(0.5, 1.5, len(SIZES))
    train = replace(train, groups=torch.arange(len(train.labels)) % 2, query_weights=weights)
    fit = new_fit(train, objective=objective, epochs=6)
    (state,) = fit_networks([fit])
    assert state.reports[-1] < state.reports[0]


@NEEDS_GPU
@pytest.mark.parametrize("objective", [ListNetCrossEntropy(), Hybrid(reward="mean(ap, rr)", num_samples=10)])
def test_graphs_train_as_single_operations(monkeypatch, caplog, objective):
    train = texts("cuda")
    caplog.set_level("INFO", "rankpolicy.training")
    captured = new_fit(train, objective=objective)
    (state,) = fit_networks([captured])
    assert "without a CUDA graph" not in caplog.text
    monkeypatch.setattr(device_texts.DeviceTexts, "capture", lambda *_: None)
    eager = new_fit(train, objective=objective)
    (same,) = fit_networks([eager])
    np.testing.assert_allclose(state.reports, same.reports, rtol=1e-2)
    with torch.no_grad():
        one, other = captured.network(train.features), eager.network(train.features)
    torch.testing.assert_close(one, other, rtol=0, atol=0.05)
